//! Where a command stands, in the words that travel.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The seven statuses of a command. It moves forward only (W3).
///
/// There is no "timed out": a lifecycle is never a deadline. There is no "rejected": that is `Failed`
/// with a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(clippy::exhaustive_enums, reason = "seven in all")]
pub enum CommandStatus {
    /// Not started.
    Pending,
    /// Its executor works on it.
    Running,
    /// A cancel was asked for; its executor has not stopped yet.
    CancelRequested,
    /// Its executor stopped, or it never started and never will.
    Canceled,
    /// Done.
    Succeeded,
    /// Recorded as failed; see [`CommandFailure`].
    Failed,
    /// Never accepted by the service, or forgotten.
    NotFound,
}

impl CommandStatus {
    /// Whether nothing can follow.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::CancelRequested => false,
            Self::Canceled | Self::Succeeded | Self::Failed | Self::NotFound => true,
        }
    }

    /// How far along: terminals share the highest rank, so none can follow another.
    pub const fn rank(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Running => 1,
            Self::CancelRequested => 2,
            Self::Canceled | Self::Succeeded | Self::Failed | Self::NotFound => 3,
        }
    }
}

impl fmt::Display for CommandStatus {
    /// The name on the wire: `CANCEL_REQUESTED`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::CancelRequested => "CANCEL_REQUESTED",
            Self::Canceled => "CANCELED",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::NotFound => "NOT_FOUND",
        })
    }
}

/// What a caller may do about a failure (W7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Retry {
    /// Nothing was recorded: the same key may be sent again.
    SameKey,
    /// It is recorded as failed; a new key is a new try. For L2 that is the next attempt.
    NewKey,
    /// A new try would fail the same way.
    Never,
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandFailure {
    /// The kind of failure.
    pub reason: FailureReason,
    /// What the caller may do.
    pub retry: Retry,
    /// For people. Holds no secret. [`CommandFailure::new`] keeps its first 4 KiB: it travels in one frame.
    pub message: Arc<str>,
}

/// The kinds of failure of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureReason {
    /// The service's own verdict on the work.
    Verdict,
    /// The service will not do it: what its handler said.
    Rejected,
    /// The arguments or the key are not acceptable; the message names the field.
    Invalid,
    /// The key is bound to another command (K1).
    KeyConflict,
    /// The principal may not do this.
    Denied,
    /// Several past commands match: a look-up could not tell which (W2).
    Ambiguous,
    /// The key could not be made durable, so nothing was sent (W1).
    NotPersisted,
    /// The service never had a record of the key, or has forgotten it; goes with `NOT_FOUND` (W8).
    NotFound,
    /// The client was closed while the command was open.
    Closed,
    /// A reason of a later version.
    #[serde(other)]
    Other,
}

/// The longest message for people, in bytes.
pub(crate) const MESSAGE: usize = 4 << 10;

/// At most the first `most` bytes of `text`, whole characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl CommandFailure {
    /// A failure.
    pub fn new(reason: FailureReason, retry: Retry, message: impl Into<Arc<str>>) -> Self {
        let message = message.into();
        let message = if message.len() > MESSAGE { Arc::from(cut(&message, MESSAGE)) } else { message };
        Self { reason, retry, message }
    }

    /// The service's verdict: the work was done and its result is a failure.
    pub fn verdict(retry: Retry, message: impl Into<Arc<str>>) -> Self {
        Self::new(FailureReason::Verdict, retry, message)
    }

    /// What the caller gave is not acceptable.
    pub fn invalid(error: &crate::Error) -> Self {
        Self::new(FailureReason::Invalid, Retry::Never, error.to_string())
    }

    /// The service will not do it.
    pub fn rejected(retry: Retry, message: impl Into<Arc<str>>) -> Self {
        Self::new(FailureReason::Rejected, retry, message)
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
