//! The wire vocabulary: one JSON object per WebSocket text frame, subprotocol [`SUBPROTOCOL`].
//!
//! A frame has a `type` and the fields of that type. Unknown fields are ignored; a frame of an unknown
//! type is traced and ignored, so both ends can grow. Durations are whole milliseconds (`heartbeat_ms`),
//! wall times milliseconds since 1970. `tests/golden` has an example of every frame.

mod client_frame;
mod fields;
mod millis;
mod refusal;
mod server_frame;
mod status;
mod timestamp;

#[cfg(feature = "server")]
pub(crate) use client_frame::Asker;
pub use client_frame::{Call, ClientFrame, Level, Subscribe};
pub use fields::{Incoming, MalformedFrame};
pub use refusal::{EndReason, RefusalCode, Refused};
pub use server_frame::{CommandReport, ServerFrame, Welcome};
pub use status::{CommandFailure, CommandStatus, FailureReason, Retry};
#[cfg(feature = "server")]
pub(crate) use status::{MESSAGE, cut};
pub use timestamp::{LogId, Seq, Timestamp};

use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// The WebSocket subprotocol, with its version.
pub const SUBPROTOCOL: &str = "outlast.v1";

/// The largest frame that either side takes by default, in bytes.
pub const MAX_FRAME: usize = 1 << 20;

/// Names a subscription within one connection; chosen by the client, never reused in that connection.
pub type SubId = u64;

/// Names a call within one connection; chosen by the client, never reused in that connection.
pub type CallId = u64;

/// One life of a server process: a ULID per start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(Ulid);

impl Epoch {
    /// Wraps a ULID.
    pub const fn new(id: Ulid) -> Self {
        Self(id)
    }
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How recent a value is, and in which order it stands (R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, try_from = "fields::CursorFields")]
#[expect(clippy::exhaustive_enums, reason = "a source has a log or it has none")]
pub enum Cursor {
    /// From a source with a log: the watermark at which it was taken.
    Log(Timestamp),
    /// From a source without one: a counter within one life of the server.
    Epoch {
        /// That life.
        epoch: Epoch,
        /// The counter.
        count: u64,
    },
}

impl Cursor {
    /// The log position, where there is one.
    pub fn timestamp(self) -> Option<Timestamp> {
        match self {
            Self::Log(timestamp) => Some(timestamp),
            Self::Epoch { .. } => None,
        }
    }

    /// A position in `log`.
    pub const fn log(log: LogId, seq: Seq) -> Self {
        Self::Log(Timestamp { log, seq })
    }
}

impl PartialOrd for Cursor {
    /// `None` across logs, across epochs, and between the two kinds.
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Self::Log(a), Self::Log(b)) => a.partial_cmp(b),
            (Self::Epoch { epoch: a, count: x }, Self::Epoch { epoch: b, count: y }) => (a == b).then(|| x.cmp(y)),
            (Self::Log(_), Self::Epoch { .. }) | (Self::Epoch { .. }, Self::Log(_)) => None,
        }
    }
}
