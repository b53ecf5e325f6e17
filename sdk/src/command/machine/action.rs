//! What is to be done about a command.

use std::fmt;
use std::sync::Arc;

use crate::command::CommandState;
use crate::key::{CommandKey, Principal};
use crate::machine::Wall;
use crate::wire::{CommandStatus, LogId, Seq, Timestamp};

/// What is to be done, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a driver performs each of them")]
pub enum Action {
    /// Make this durable, then say `Persisted` or `PersistFailed` with the same record.
    /// Records are written in the order in which they are given.
    Persist(Record),
    /// Send the command: the same key and a byte-equal body each time (W1).
    SendCall {
        /// Names the refusal that may come back.
        ask: Ask,
        /// The key's minted-at. Fixed from the first send on.
        minted: Wall,
    },
    /// Ask where the command of this key stands, without sending it.
    SendAttach {
        /// Names the refusal that may come back.
        ask: Ask,
    },
    /// Cancel the command of this key (W5).
    SendCancel {
        /// Names the refusal that may come back.
        ask: Ask,
        /// The key's minted-at.
        minted: Wall,
    },
    /// Show this in the handle.
    Publish(CommandState),
    /// Say this in the log of the program; it changes nothing.
    Trace(Oddity),
    /// The machine has finished: forget its calls on the connection, free what is stored of it, drop it.
    ///
    /// What is shown stays as it is if its status is terminal; else its read ends as closed, since nobody
    /// follows the command any more.
    Release,
}

/// Numbers the questions of one command. At most one is unanswered at a time; its driver maps each
/// `CallId` to the command and the question, so that a late refusal is not taken for the newest one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ask(pub(super) u32);

impl Ask {
    pub(super) fn next(&mut self) -> Self {
        self.0 = self.0.wrapping_add(1);
        *self
    }
}

/// What an outbox keeps of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Record {
    /// The command exists. The driver adds method and body. Before this is durable nothing is sent (W1).
    Key {
        /// Its key.
        key: CommandKey,
        /// When that was minted.
        minted: Wall,
    },
    /// It is about to be sent to this log, for the first time.
    Sent {
        /// The only log to which it may ever be resent (W2).
        log: LogId,
        /// As whom.
        principal: Principal,
        /// The key's minted-at, now fixed.
        minted: Wall,
    },
    /// The caller wants it canceled.
    CancelRequested,
    /// The service has recorded it.
    Accepted {
        /// Where.
        timestamp: Timestamp,
    },
    /// The service has no record of it; it is about to be sent once more, to this log (W8).
    NotFoundOnce {
        /// The log.
        log: LogId,
    },
    /// It is over.
    Settled(CommandState),
}

/// Something that should not happen and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Oddity {
    /// Another terminal status after the first (W3).
    OtherTerminal {
        /// The first, which stays.
        kept: CommandStatus,
        /// The other.
        got: CommandStatus,
    },
    /// A lower status than is known already (W3).
    Backwards {
        /// What is known.
        kept: CommandStatus,
        /// The lower one.
        got: CommandStatus,
    },
    /// A replay told another acceptance in the same log (S2).
    OtherAcceptance {
        /// The first, which stays.
        kept: Timestamp,
        /// The other.
        got: Seq,
    },
    /// A key conflict for a command that had been accepted (row 9 of the manual's chapter `machines`).
    ConflictAfterAcceptance,
    /// A report of a command that was not asked for on this connection.
    Unasked {
        /// What it said.
        got: CommandStatus,
    },
    /// Something could not be made durable, and the command went on without it.
    NotPersisted {
        /// What failed.
        detail: Arc<str>,
    },
    /// The service refuses to cancel, or to say where the command stands.
    Refused {
        /// In the service's words.
        detail: Arc<str>,
    },
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherTerminal { kept, got } => write!(f, "{got} reported after {kept}; kept {kept}"),
            Self::Backwards { kept, got } => write!(f, "{got} reported after {kept}; kept {kept}"),
            Self::OtherAcceptance { kept, got } => write!(f, "acceptance {got} reported after {kept}; kept {kept}"),
            Self::ConflictAfterAcceptance => f.write_str("key conflict reported for an accepted command; asking again"),
            Self::Unasked { got } => write!(f, "{got} reported for a command that was not asked for here; ignored"),
            Self::NotPersisted { detail } => write!(f, "not made durable: {detail}"),
            Self::Refused { detail } => write!(f, "refused: {detail}"),
        }
    }
}
