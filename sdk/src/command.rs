//! Writes: cancelable command handles whose key exists before the first byte is sent.

#[cfg(feature = "client")]
mod ambient;
#[cfg(any(feature = "client", feature = "macros"))]
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "a declared service names it; a client makes it"))]
mod handle;
pub mod machine;
#[cfg(any(feature = "client", feature = "macros"))]
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "a declared service names it; a client makes it"))]
mod settlement;
mod state;

pub use crate::wire::{CommandFailure, CommandStatus, FailureReason, Retry};
#[cfg(feature = "client")]
pub use ambient::with_command_key;
#[cfg(feature = "client")]
pub(crate) use ambient::{Rung, Scope, resolve};
#[cfg(feature = "client")]
pub(crate) use handle::Control;
#[cfg(any(feature = "client", feature = "macros"))]
pub use handle::{Command, Settled};
#[cfg(any(feature = "client", feature = "macros"))]
pub use settlement::{CommandError, Done, Settlement, Unsettled};
pub use state::{CommandState, Delivery, Hold, Protection};
