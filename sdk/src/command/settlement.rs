//! How a command ends, and why a wait for that may end before it.

use std::fmt;

use super::{CommandFailure, CommandState, CommandStatus, FailureReason, Retry};
use crate::key::CommandKey;
use crate::wire::Timestamp;

/// A command that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Done {
    key: CommandKey,
    timestamp: Option<Timestamp>,
}

impl Done {
    /// The command's key.
    pub fn key(&self) -> &CommandKey {
        &self.key
    }

    /// When it was accepted, for [`Observable::at_least`](crate::observe::Observable::at_least): read your
    /// writes (W9). `None` from a service without a log.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }
}

/// How a command ended. Exhaustive on purpose: these are all the ways (W3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a caller decides on each of the four")]
pub enum Settlement {
    /// Done.
    Succeeded(Done),
    /// Recorded as failed, or refused for good.
    Failed(CommandFailure),
    /// Its executor stopped, or it never started and never will (W5).
    Canceled,
    /// The service never had a record of it, or has forgotten it (W8).
    NotFound,
}

impl Settlement {
    pub(super) fn of(key: &CommandKey, state: &CommandState) -> Option<Self> {
        match state.status {
            CommandStatus::Pending | CommandStatus::Running | CommandStatus::CancelRequested => None,
            CommandStatus::Succeeded => Some(Self::Succeeded(Done { key: key.clone(), timestamp: state.timestamp })),
            CommandStatus::Failed => {
                // A service that gives no reason has recorded one all the same.
                let failure = state.failure.clone().unwrap_or_else(|| {
                    CommandFailure::new(FailureReason::Other, Retry::NewKey, "failed, and the service does not say why")
                });
                Some(Self::Failed(failure))
            }
            CommandStatus::Canceled => Some(Self::Canceled),
            CommandStatus::NotFound => Some(Self::NotFound),
        }
    }
}

/// Why a wait ended before its command was settled. It never says that the work failed (R9).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unsettled {
    /// The wait's own budget is used up.
    #[non_exhaustive]
    StillPending {
        /// What was known last.
        last: Option<CommandState>,
    },
    /// It may or may not have been recorded, nothing here can tell, and a resend is not safe (W2).
    #[non_exhaustive]
    Indeterminate {
        /// The command's key, to look for its effect.
        key: CommandKey,
    },
    /// The client was closed. The command goes on, or not, without it.
    #[non_exhaustive]
    Closed {
        /// The command's key, to attach to it again.
        key: CommandKey,
    },
}

impl Unsettled {
    /// Whether another wait for the same command may succeed.
    pub fn is_still_pending(&self) -> bool {
        matches!(self, Self::StillPending { .. })
    }
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StillPending { last: Some(last) } => match last.cause() {
                Some(cause) => write!(f, "not settled yet: {} ({cause})", last.status()),
                None => write!(f, "not settled yet: {}", last.status()),
            },
            Self::StillPending { last: None } => f.write_str("not settled yet"),
            Self::Indeterminate { key } => indeterminate(f, key),
            Self::Closed { key } => closed(f, key),
        }
    }
}

impl std::error::Error for Unsettled {}

/// Why an awaited command is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CommandError {
    /// Recorded as failed, or refused for good; [`CommandFailure::retry`] says what the caller may do (W7).
    Failed(CommandFailure),
    /// Its executor stopped, or it never started and never will (W5).
    Canceled,
    /// The service never had a record of it, or has forgotten it (W8).
    NotFound,
    /// It may or may not have been recorded, nothing here can tell, and a resend is not safe (W2).
    #[non_exhaustive]
    Indeterminate {
        /// The command's key, to look for its effect.
        key: CommandKey,
    },
    /// The client was closed. The command goes on, or not, without it.
    #[non_exhaustive]
    Closed {
        /// The command's key, to attach to it again.
        key: CommandKey,
    },
}

impl CommandError {
    pub(super) fn unless_succeeded(settled: Result<Settlement, Unsettled>, key: &CommandKey) -> Result<Done, Self> {
        match settled {
            Ok(Settlement::Succeeded(done)) => Ok(done),
            Ok(Settlement::Failed(failure)) => Err(Self::Failed(failure)),
            Ok(Settlement::Canceled) => Err(Self::Canceled),
            Ok(Settlement::NotFound) => Err(Self::NotFound),
            Err(Unsettled::Indeterminate { key }) => Err(Self::Indeterminate { key }),
            Err(Unsettled::Closed { key }) => Err(Self::Closed { key }),
            // A handle's own wait has no budget that could be used up.
            Err(Unsettled::StillPending { .. }) => Err(Self::Indeterminate { key: key.clone() }),
        }
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<&CommandFailure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Canceled | Self::NotFound | Self::Indeterminate { .. } | Self::Closed { .. } => None,
        }
    }

    /// Whether the same command, with the same key, may be called again.
    pub fn is_retryable(&self) -> bool {
        self.failure().is_some_and(|failure| failure.retry == Retry::SameKey)
    }

    /// Whether anything of it may have happened at the service. `false` is certain.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Failed(failure) => match failure.reason {
                FailureReason::Rejected
                | FailureReason::Invalid
                | FailureReason::KeyConflict
                | FailureReason::Denied
                | FailureReason::NotPersisted => false,
                FailureReason::Verdict
                | FailureReason::Ambiguous
                | FailureReason::NotFound
                | FailureReason::Closed
                | FailureReason::Other => true,
            },
            Self::Canceled | Self::NotFound | Self::Indeterminate { .. } | Self::Closed { .. } => true,
        }
    }

    /// Whether the key is bound to another command (K1).
    pub fn is_conflict(&self) -> bool {
        self.failure().is_some_and(|failure| failure.reason == FailureReason::KeyConflict)
    }

    /// Whether it was canceled.
    pub fn is_canceled(&self) -> bool {
        matches!(self, Self::Canceled)
    }

    /// Whether nothing here can tell what became of it.
    pub fn is_indeterminate(&self) -> bool {
        matches!(self, Self::Indeterminate { .. })
    }

    /// Whether the client was closed before it was settled.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => write!(f, "the command failed: {failure}"),
            Self::Canceled => f.write_str("the command was canceled"),
            Self::NotFound => f.write_str("the service has no record of the command"),
            Self::Indeterminate { key } => indeterminate(f, key),
            Self::Closed { key } => closed(f, key),
        }
    }
}

impl std::error::Error for CommandError {}

fn indeterminate(f: &mut fmt::Formatter<'_>, key: &CommandKey) -> fmt::Result {
    write!(f, "the command of key {key} may or may not have been recorded")
}

fn closed(f: &mut fmt::Formatter<'_>, key: &CommandKey) -> fmt::Result {
    write!(f, "the client was closed before the command of key {key} was settled")
}
