//! The shipped exchange: pooled connections by reqwest.
