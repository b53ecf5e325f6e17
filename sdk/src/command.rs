//! Writes: cancelable command handles whose key exists before the first byte is sent.

pub mod machine;
mod state;

pub use crate::wire::{CommandFailure, CommandStatus, FailureReason, Retry};
pub use state::{CommandState, Delivery, Hold, Protection};
