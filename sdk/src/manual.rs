//! The manual, in compiled chapters.
//!
//! 1. [Reads](reads): what a read shows, what ends it, how to wait for a state.
//! 2. [Polling any service](polling): from a bare loop to three lines; the traps of each service.
//! 3. [Writes](writes): what a command's handle tells, what a resend may do, how to cancel.
//! 4. [Declaring and serving](declaring): a service as a trait, its handlers, and the same by hand.
//! 5. [The machines](machines): the state tables; what "row 9" means.
//! 6. [Field cases](cases): failures seen elsewhere; what "FC-26" means.
//! 7. [Defaults](defaults): every bound and limit, and where it is set.
//!
//! The README lists the promises, such as R1 and W2.

#[doc = include_str!("manual/reads.md")]
pub mod reads {}

#[cfg(feature = "http")]
#[doc = include_str!("manual/polling.md")]
pub mod polling {}

#[doc = include_str!("manual/writes.md")]
pub mod writes {}

#[cfg(all(feature = "macros", feature = "server"))]
#[doc = include_str!("manual/declaring.md")]
pub mod declaring {}

#[doc = include_str!("manual/machines.md")]
pub mod machines {}

#[doc = include_str!("manual/cases.md")]
pub mod cases {}

#[doc = include_str!("manual/defaults.md")]
pub mod defaults {}
