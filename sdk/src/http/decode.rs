//! Content codings, decoded under a bound on what comes out.
