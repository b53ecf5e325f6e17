//! What happens to a command.

use std::sync::Arc;
use std::time::Duration;

use super::action::{Ask, Record};
use crate::key::Principal;
use crate::wire::{CommandReport, LogId, Refused};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a driver builds each of them")]
pub enum Event {
    /// The caller made the command. The first event of every machine.
    Called,
    /// This record is durable. Without an outbox the driver answers every `Persist` so, at once.
    Persisted(Record),
    /// This record could not be made durable.
    PersistFailed {
        /// Which one.
        record: Record,
        /// What failed.
        detail: Arc<str>,
    },
    /// A connection is up and the service has said welcome.
    Linked(Lineage),
    /// The connection is gone, and with it every answer that was outstanding on it.
    Unlinked,
    /// The service will close this connection soon.
    Draining,
    /// The service said where the command stands, on this connection.
    Report(CommandReport),
    /// The service refused what was asked, on this connection.
    Refused {
        /// Which question it answers. A refusal of an older one is dropped.
        ask: Ask,
        /// Why.
        refused: Refused,
    },
    /// The caller wants the command canceled. Repeats are harmless.
    Cancel,
    /// The service refuses this client's credential. A later `Linked` ends that.
    CredentialDenied,
    /// Nobody looks at the command any more: neither its handle nor an observable of its state is left.
    HandleDropped,
    /// The client is closed.
    ClientClosed,
    /// The deadline has passed.
    Tick,
}

/// What a welcome says of the history that the service speaks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a driver builds it from the welcome")]
pub struct Lineage {
    /// The log.
    pub log: LogId,
    /// How often this client has seen the log's head below a sequence that it had seen of it: each time it is another
    /// history under the same name, a restored backup, and stays one however far it grows (R4, W2).
    pub history: u32,
    /// Whether the log outlives the process.
    pub durable: bool,
    /// R: how long the service remembers a key.
    pub retention: Duration,
    /// Whom the service takes the client for. Keys of two principals never meet (K1), so a command is
    /// resent only as the principal that sent it first.
    pub principal: Principal,
}
