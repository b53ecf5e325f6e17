//! Positions in a history: a log's id and a sequence in it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::error::Error;

/// A position in a log: 1 for the first entry, without gaps. 0 stands before all.
pub type Seq = u64;

/// Names one history. A restored backup or a lossy failover is another history and has another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogId(Ulid);

impl LogId {
    /// Wraps a ULID.
    pub const fn new(id: Ulid) -> Self {
        Self(id)
    }

    /// The ULID.
    pub const fn ulid(self) -> Ulid {
        self.0
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for LogId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Ulid::from_string(text).map(Self).map_err(|e| Error::invalid("log", "a ULID of 26 characters").with_source(e))
    }
}

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
