//! Where a redirect leads, and what does not go there. Pure.
