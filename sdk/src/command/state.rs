//! Everything that a handle shows.

use crate::wire::{CommandFailure, CommandStatus, Timestamp};

/// What is known of a command's way to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "four in all")]
pub enum Delivery {
    /// Nothing was sent.
    Queued,
    /// Sent; no answer yet.
    Sent,
    /// The service has recorded it.
    Accepted,
    /// It may or may not have been recorded, and a resend is not safe (W2).
    Indeterminate,
}

/// How far a resend of the command is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "three in all")]
pub enum Protection {
    /// Effect and key are recorded in one append.
    Recorded,
    /// The effect is outside the log.
    BestEffort,
    /// The service does not deduplicate it.
    Unprotected,
}

/// Everything known of a command: what its handle shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandState {
    pub(crate) status: CommandStatus,
    pub(crate) delivery: Delivery,
    pub(crate) protection: Protection,
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) failure: Option<CommandFailure>,
}

impl CommandState {
    /// A command of which nothing was sent.
    pub const fn queued(protection: Protection) -> Self {
        Self { status: CommandStatus::Pending, delivery: Delivery::Queued, protection, timestamp: None, failure: None }
    }

    /// Of the seven.
    pub const fn status(&self) -> CommandStatus {
        self.status
    }

    /// When it was accepted; every replay says the same (S2).
    pub const fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// Why it failed, if it did.
    pub const fn failure(&self) -> Option<&CommandFailure> {
        self.failure.as_ref()
    }

    /// What is known of its way to the service.
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// How far a resend is harmless.
    pub const fn protection(&self) -> Protection {
        self.protection
    }
}
