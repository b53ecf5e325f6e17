//! Writes: cancelable command handles whose key exists before the first byte is sent.

mod handle;
pub mod machine;
mod state;

pub use crate::wire::{CommandFailure, CommandStatus, FailureReason, Retry};
pub use handle::Command;
pub(crate) use handle::Control;
pub use state::{CommandState, Delivery, Hold, Protection};
