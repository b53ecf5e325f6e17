//! Everything that a handle shows.

use crate::error::Cause;
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

/// What keeps an open command from being asked about, although the service can be reached.
///
/// It never ends a wait: when the original service answers again, the command goes on from where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hold {
    /// The service speaks from another log than the one the command was sent to, or that log's head went back (W2).
    OtherLog,
    /// The service takes the client for another principal than the one that sent the command (K1).
    OtherPrincipal,
    /// The service refuses the client's credential (R3).
    Denied,
}

/// Everything known of a command: what its handle shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandState {
    pub(crate) status: CommandStatus,
    pub(crate) delivery: Delivery,
    pub(crate) protection: Protection,
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) failure: Option<CommandFailure>,
    pub(crate) hold: Option<Hold>,
    pub(crate) cause: Option<Cause>,
    /// A question about it is outstanding or will be asked, so that `Indeterminate` is not the last word.
    pub(crate) asking: bool,
}

impl CommandState {
    /// A command of which nothing was sent.
    pub const fn queued(protection: Protection) -> Self {
        Self {
            status: CommandStatus::Pending,
            delivery: Delivery::Queued,
            protection,
            timestamp: None,
            failure: None,
            hold: None,
            cause: None,
            asking: true,
        }
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

    /// What keeps it from being asked about, if anything does.
    pub const fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// Why the service has not taken it or told of it yet, in its own words, where it has said so: it asked to wait, or
    /// cannot answer now. That the connection is down is told by [`Client::connection`](crate::client::Client::connection).
    pub const fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// Whether a wait for its end is over: it is settled, or nothing here can tell any more whether it was recorded.
    #[cfg(any(feature = "client", feature = "macros"))]
    pub(crate) fn ends_wait(&self) -> bool {
        let lost = self.delivery == Delivery::Indeterminate && self.hold.is_none() && !self.asking;
        self.status.is_terminal() || lost
    }

    /// How far a resend is harmless.
    pub const fn protection(&self) -> Protection {
        self.protection
    }
}
