//! What is appended, what comes back.

use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::Subject;
use crate::error::{Error, ErrorKind};
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
///
/// Has 1 to [`Append::MAX_WRITES`] writes of together at most [`Append::MAX_BYTES`]; see [`Append::validate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "an append is these; backends read them all")]
pub struct Append {
    /// The append's name, by which an ambiguous one is found again.
    pub id: AppendId,
    /// When it was made; kept with each entry, in whole milliseconds, and used by expiry.
    pub at: Wall,
    /// The entries in order; at least one.
    pub writes: Vec<Write>,
}

impl Append {
    /// The most writes of one append.
    pub const MAX_WRITES: usize = 1_000;

    /// The most bytes that the bodies of one append have together: 16 MiB.
    pub const MAX_BYTES: usize = 16 << 20;

    /// An append that has no write yet.
    pub const fn new(id: AppendId, at: Wall) -> Self {
        Self { id, at, writes: Vec::new() }
    }

    /// Adds one entry.
    #[must_use]
    pub fn write(mut self, subject: Subject, expect: Expect, body: impl Into<Bytes>) -> Self {
        self.writes.push(Write { subject, expect, body: body.into() });
        self
    }

    /// Whether a backend may take it. Every backend asks this first.
    ///
    /// # Errors
    /// Says which rule is broken.
    pub fn validate(&self) -> Result<(), InvalidAppend> {
        if self.writes.is_empty() || self.writes.len() > Self::MAX_WRITES {
            return Err(InvalidAppend::Writes { count: self.writes.len() });
        }
        let bytes = self.writes.iter().fold(0_usize, |sum, write| sum.saturating_add(write.body.len()));
        if bytes > Self::MAX_BYTES {
            return Err(InvalidAppend::TooLarge { bytes });
        }
        let mut earlier = Earlier::new(&self.writes);
        for (i, write) in self.writes.iter().enumerate() {
            let len = write.subject.as_str().len();
            if len == 0 || len > Subject::MAX {
                return Err(InvalidAppend::Subject { bytes: len });
            }
            if earlier.has(i) && write.expect != Expect::Any {
                return Err(InvalidAppend::Expectation { subject: write.subject.clone() });
            }
        }
        Ok(())
    }

    /// Whether a second copy of it must meet a conflict: some write is conditional.
    ///
    /// Only such an append may be repeated after [`Appended::Unknown`].
    pub fn is_repeatable(&self) -> bool {
        self.writes.iter().any(|write| write.expect != Expect::Any)
    }
}

/// Asks, write by write, whether its subject has been written to before.
enum Earlier<'a> {
    /// A handful: looking is cheaper than hashing, and it is what nearly every append has.
    Few(&'a [Write]),
    Many(&'a [Write], HashSet<&'a Subject>),
}

impl<'a> Earlier<'a> {
    fn new(writes: &'a [Write]) -> Self {
        if writes.len() <= 8 { Self::Few(writes) } else { Self::Many(writes, HashSet::with_capacity(writes.len())) }
    }

    fn has(&mut self, i: usize) -> bool {
        match self {
            Self::Few(writes) => writes[..i].iter().any(|write| write.subject == writes[i].subject),
            Self::Many(writes, seen) => !seen.insert(&writes[i].subject),
        }
    }
}

/// Why no backend takes an append, ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidAppend {
    /// It has no write, or more than [`Append::MAX_WRITES`].
    Writes {
        /// How many it has.
        count: usize,
    },
    /// Its bodies have together more than [`Append::MAX_BYTES`].
    TooLarge {
        /// How many they have.
        bytes: usize,
    },
    /// A subject is empty or longer than [`Subject::MAX`].
    Subject {
        /// How long it is, encoded.
        bytes: usize,
    },
    /// A later write to a subject of the same append states an expectation; only the first one may.
    Expectation {
        /// To which subject.
        subject: Subject,
    },
}

impl fmt::Display for InvalidAppend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writes { count } => write!(f, "append: expected 1 to {} writes, got {count}", Append::MAX_WRITES),
            Self::TooLarge { bytes } => {
                write!(f, "append: expected at most {} bytes of bodies, got {bytes}", Append::MAX_BYTES)
            }
            Self::Subject { bytes } => {
                write!(f, "subject: expected 1 to {} bytes encoded, got {bytes}", Subject::MAX)
            }
            Self::Expectation { subject } => {
                write!(f, "append: expected `Any` for a later write to subject {subject}")
            }
        }
    }
}

impl std::error::Error for InvalidAppend {}

impl From<InvalidAppend> for Error {
    fn from(invalid: InvalidAppend) -> Self {
        Self::new(ErrorKind::Invalid, invalid.to_string()).with_source(invalid)
    }
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
    /// It breaks a rule of [`Append::validate`]; nothing was written, nor ever will be.
    Invalid(InvalidAppend),
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
