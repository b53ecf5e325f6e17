//! What is appended, what comes back.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::Subject;
use crate::machine::Wall;
use crate::wire::{Seq, Timestamp};

/// Names one append, so that an ambiguous one can be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AppendId(Ulid);

impl AppendId {
    /// Wraps a ULID.
    pub const fn new(id: Ulid) -> Self {
        Self(id)
    }

    /// The ULID.
    pub const fn ulid(self) -> Ulid {
        self.0
    }
}

impl fmt::Display for AppendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a write expects of its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a backend must decide on each of them")]
pub enum Expect {
    /// It has no entry.
    Absent,
    /// Its newest entry has this sequence.
    At(Seq),
    /// Nothing. Never used for an append that may have to be repeated.
    Any,
}

/// One entry to be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a write is these three; backends read them all")]
pub struct Write {
    /// To which subject.
    pub subject: Subject,
    /// On which condition. Only a subject's first write in an append states one; later ones say `Any`.
    pub expect: Expect,
    /// The entry's body.
    pub body: Bytes,
}

/// Entries that are written together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "an append is these; backends read them all")]
pub struct Append {
    /// The append's name, by which an ambiguous one is found again.
    pub id: AppendId,
    /// When it was made; kept with each entry and used by expiry.
    pub at: Wall,
    /// The entries in order; at least one.
    pub writes: Vec<Write>,
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a caller must decide on each of them")]
pub enum Appended {
    /// Written; the timestamp is that of its last entry.
    Done(Timestamp),
    /// An expectation did not hold and nothing was written: the present heads of the subjects written to.
    Conflict(Vec<(Subject, Option<Seq>)>),
    /// Nothing was written; try the same again.
    Busy,
    /// It may or may not have been written. Repeat the identical append until `Done` or `Conflict`,
    /// then look for its id in the subject.
    Unknown,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Entry {
    /// Its position.
    pub seq: Seq,
    /// Its subject.
    pub subject: Subject,
    /// The append that wrote it.
    pub append: AppendId,
    /// The append's time.
    pub at: Wall,
    /// Its body.
    pub body: Bytes,
}

impl Entry {
    /// An entry, as a backend reads it.
    pub fn new(seq: Seq, subject: Subject, append: AppendId, at: Wall, body: Bytes) -> Self {
        Self { seq, subject, append, at, body }
    }
}

/// One whole append as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Committed {
    /// The sequence of the append's last entry, whether or not that entry is among `entries`.
    pub through: Seq,
    /// Its entries under the reader's prefix, in order.
    pub entries: Vec<Entry>,
}

impl Committed {
    /// An append, as a backend reads it.
    pub fn new(through: Seq, entries: Vec<Entry>) -> Self {
        Self { through, entries }
    }
}
