//! The manual, in compiled chapters.
//!
//! 1. [Reads](reads): what a read shows, what ends it, how to wait for a state.
//! 2. [Writes](writes): what a command's handle tells, what a resend may do, how to cancel.
//! 3. [Declaring and serving](declaring): a service as a trait, its handlers, and the same by hand.

#[doc = include_str!("manual/reads.md")]
pub mod reads {}

#[doc = include_str!("manual/writes.md")]
pub mod writes {}

#[cfg(all(feature = "macros", feature = "server"))]
#[doc = include_str!("manual/declaring.md")]
pub mod declaring {}
