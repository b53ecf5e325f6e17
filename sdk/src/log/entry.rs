//! What is appended, what comes back.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::Subject;
use crate::error::Error;
use crate::machine::Wall;

/// A position in a log: 1 for the first entry, without gaps. 0 stands before all.
pub type Seq = u64;

/// Names one history. A restored backup or a lossy failover is another history and has another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogId(UlidText);

/// Names one append, so that an ambiguous one can be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AppendId(UlidText);

/// A ULID that serialises as its 26 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct UlidText(Ulid);

impl From<UlidText> for String {
    fn from(id: UlidText) -> Self {
        id.0.to_string()
    }
}

impl TryFrom<String> for UlidText {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for UlidText {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Ulid::from_string(text).map(Self).map_err(|e| Error::invalid("id", "a ULID of 26 characters").with_source(e))
    }
}

macro_rules! ulid_newtype {
    ($name:ident) => {
        impl $name {
            /// Wraps a ULID.
            pub const fn new(id: Ulid) -> Self {
                Self(UlidText(id))
            }

            /// The ULID.
            pub const fn ulid(self) -> Ulid {
                self.0.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                text.parse().map(Self)
            }
        }
    };
}

ulid_newtype!(LogId);
ulid_newtype!(AppendId);

/// A point in one history. Two of different logs cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a timestamp is these two and nothing else")]
pub struct Timestamp {
    /// Whose history.
    pub log: LogId,
    /// Where in it.
    pub seq: Seq,
}

impl PartialOrd for Timestamp {
    /// `None` across logs.
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self.log == other.log).then(|| self.seq.cmp(&other.seq))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.seq, self.log)
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
