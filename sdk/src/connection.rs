//! The persistent connection: a pure supervisor, pure liveness, and the driver that does their I/O.

pub mod backoff;
pub mod close;
mod dial;
pub mod discover;
#[cfg(feature = "client")]
mod driver;
pub mod link;
pub mod liveness;
#[cfg(feature = "client")]
mod sources;
pub mod supervisor;
pub mod timers;
pub(crate) mod wake;

pub use backoff::{Backoff, Schedule};
pub use discover::{Address, Endpoint};
pub use link::LinkState;
pub use liveness::Liveness;
#[cfg(feature = "client")]
pub use sources::Discover;
pub use supervisor::Supervisor;
pub use timers::{LivenessTimer, SupervisorTimer};

#[cfg(feature = "client")]
pub(crate) use driver::{Driver, Happening, Parts, Schedule as Policy, check_url};
#[cfg(feature = "http")]
pub(crate) use wake::Wake;
