//! Reads: stale-but-recovering observables.

pub mod machine;
mod reading;

pub use reading::{End, Known, Reading};
