//! Writes: cancelable command handles whose key exists before the first byte is sent.

mod state;

pub use crate::wire::{CommandFailure, CommandStatus, FailureReason, Retry};
pub use state::{CommandState, Delivery, Protection};
