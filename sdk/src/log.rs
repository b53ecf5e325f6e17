//! The one durable primitive: an atomic conditional append over one or more subjects of one log.
//!
//! Everything durable is a fold over one subject's entries, decided by a pure function and written
//! by compare-and-append: load heads, decide, append; on [`Appended::Conflict`] reload and decide again.

mod any;
#[cfg(feature = "testing")]
pub mod conformance;
mod entry;
mod ext;
#[cfg(feature = "testing")]
mod fault;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
mod subject;
mod tail;

pub use crate::wire::{LogId, Seq, Timestamp};
pub use any::AnyLog;
pub use entry::{Append, AppendId, Appended, Committed, Entry, Expect, InvalidAppend, Write};
pub use ext::{Certain, LogExt, Recorded};
#[cfg(feature = "testing")]
pub use fault::{Fault, Faulty, Odds};
pub use memory::{MemoryLog, Store};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteLog, SqliteLogBuilder};
pub use subject::{Prefix, Subject};

#[cfg(all(test, feature = "testing"))]
mod tests;

use futures::Stream;

use crate::error::Error;
use crate::machine::Wall;

/// A durable, totally ordered log of entries by subject.
///
/// Laws that every backend keeps, and that [`log_conformance!`](crate::log_conformance) tests:
/// - an append is all or nothing: every write's expectation holds and all entries are there, or none is;
/// - its entries have consecutive sequences, the last of which is its timestamp;
/// - sequences grow by one from 1, and are never reused, also after [`expire`](Self::expire) and a restart;
/// - readers and tails see whole appends only, in order (of an append that wrote to a subject which has expired, the rest);
/// - [`Appended::Done`] means that it survives `kill -9` of the process; each backend states what it means for power loss;
/// - "absent" never becomes true again except by [`expire`](Self::expire).
pub trait Log: Send + Sync + 'static {
    /// Whether what is appended outlives this process.
    fn durable(&self) -> bool;

    /// The id of this history. Changes only by [`renew_id`](Self::renew_id).
    fn id(&self) -> LogId;

    /// Gives the history a new id: what an operator calls after restoring a backup.
    ///
    /// # Errors
    /// Retryable, when the log is unavailable.
    fn renew_id(&self) -> impl Future<Output = Result<LogId, Error>> + Send;

    /// Appends all of `append` or nothing of it.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it ambiguous whether the append happened, like [`Appended::Unknown`].
    fn append(&self, append: Append) -> impl Future<Output = Appended> + Send;

    /// The sequence of the newest entry of `subject`, or `None` if it is absent.
    ///
    /// # Errors
    /// Retryable, when the log is unavailable.
    fn head(&self, subject: &Subject) -> impl Future<Output = Result<Option<Seq>, Error>> + Send;

    /// The sequence of the newest append of all; 0 for an empty log.
    ///
    /// # Errors
    /// Retryable, when the log is unavailable.
    fn head_of_log(&self) -> impl Future<Output = Result<Seq, Error>> + Send;

    /// The appends after `after` that touch `prefix`, oldest first, each with its entries under `prefix` only.
    ///
    /// `after` is the end of an append: a `through`, a timestamp, or 0; inside an append it selects the rest of it.
    /// Ends with the append that reaches `limit` entries (at least 1); fewer than `limit` entries mean that
    /// there are no more.
    ///
    /// # Errors
    /// Retryable, when the log is unavailable.
    fn read(
        &self,
        prefix: &Prefix,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Committed>, Error>> + Send;

    /// Every append after `after`, for ever, each with its entries under `prefix` only.
    ///
    /// Also yields appends without entries under `prefix` (then empty), so that a follower knows how
    /// far it has come; several of those may be told by the last of them. It never ends: while the log
    /// is unavailable it waits and goes on.
    ///
    /// # Cancel safety
    /// Dropping a pending `next()` loses nothing; dropping the stream ends the following.
    fn tail(&self, prefix: &Prefix, after: Seq) -> impl Stream<Item = Committed> + Send + Unpin + 'static;

    /// Removes whole subjects under `prefix` whose every entry is older than `before`, and returns how many.
    ///
    /// Sequences are not reused.
    ///
    /// # Errors
    /// Retryable, when the log is unavailable.
    fn expire(&self, prefix: &Prefix, before: Wall) -> impl Future<Output = Result<u64, Error>> + Send;
}
