//! Writes: cancelable command handles whose key exists before the first byte is sent.

#[cfg(feature = "client")]
mod ambient;
#[cfg(feature = "client")]
mod handle;
pub mod machine;
#[cfg(feature = "client")]
mod settlement;
mod state;

pub use crate::wire::{CommandFailure, CommandStatus, FailureReason, Retry};
#[cfg(feature = "client")]
pub use ambient::with_command_key;
#[cfg(feature = "client")]
pub(crate) use ambient::{Rung, Scope, resolve};
#[cfg(feature = "client")]
pub(crate) use handle::Control;
#[cfg(feature = "client")]
pub use handle::{Command, Settled};
#[cfg(feature = "client")]
pub use settlement::{CommandError, Done, Settlement, Unsettled};
pub use state::{CommandState, Delivery, Hold, Protection};
