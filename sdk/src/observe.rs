//! Reads: stale-but-recovering observables.

mod reading;

pub use reading::{End, Known, Reading};
