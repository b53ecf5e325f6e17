//! Reads: stale-but-recovering observables.
//!
//! [`machine`] decides what a read shows, a [`Publisher`] shows it, an [`Observable`] is looked at.

mod cell;
pub mod machine;
mod observable;
mod publisher;
mod reading;
mod source;
#[cfg(test)]
mod tests;
mod until;
mod view;
mod watermark;

pub use observable::{Observable, Readings};
pub use publisher::{Publisher, WeakObservable, channel};
pub use reading::{End, Known, Reading};
pub use until::{Until, WaitError};
#[cfg(feature = "client")]
pub(crate) use watermark::Watermark;
