//! The persistent connection: a pure supervisor, pure liveness, and the driver that does their I/O.

pub mod backoff;
pub mod close;
pub mod discover;
pub mod link;
pub mod liveness;
pub mod supervisor;
pub mod timers;
mod wake;

pub use backoff::{Backoff, Schedule};
pub use discover::{Address, Endpoint};
pub use link::LinkState;
pub use liveness::Liveness;
pub use supervisor::Supervisor;
pub use timers::{LivenessTimer, SupervisorTimer};
