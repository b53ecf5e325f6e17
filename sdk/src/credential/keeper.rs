//! One credential for all that share it: asked for once, refreshed before it expires and after a refusal (R3).
