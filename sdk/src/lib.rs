//! Outlast.
pub mod env;
pub mod error;
pub mod key;
pub mod log;
pub mod machine;
