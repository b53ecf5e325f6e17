//! What an answer comes down to: a value, an authority, or a cause. Pure.
