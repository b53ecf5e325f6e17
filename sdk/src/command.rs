//! Writes: cancelable command handles whose key exists before the first byte is sent.

mod ambient;
mod handle;
pub mod machine;
mod settlement;
mod state;

pub use crate::wire::{CommandFailure, CommandStatus, FailureReason, Retry};
pub use ambient::with_command_key;
#[cfg(feature = "client")]
pub(crate) use ambient::{Rung, Scope, resolve};
#[cfg(feature = "client")]
pub(crate) use handle::Control;
pub use handle::{Command, Settled};
pub use settlement::{CommandError, Done, Settlement, Unsettled};
pub use state::{CommandState, Delivery, Hold, Protection};
