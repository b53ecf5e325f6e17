//! What a feed is held to.

use std::time::Duration;

use crate::connection::Backoff;
use crate::http::poll::{Bounds, Pace};
use crate::http::sse;

/// The bounds of a feed. [`Default`] has the documented ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Settings {
    /// How often a log is looked at. Default: from 1 s soon after something new to 10 s.
    pub pace: Pace,
    /// What each phase of a request may take (R7). [`Bounds::body`] says nothing here: a log may be long. Nor does
    /// [`Bounds::credential`]: the source is bound as what sends the requests says.
    pub bounds: Bounds,
    /// How long a stream that goes on may be silent, comments included, before it is asked for anew. Default 60 s.
    pub quiet: Duration,
    /// The delays after failures (R8).
    pub backoff: Backoff,
    /// How long after the work is over a log may still grow: it is complete when a read that began so long after reaches
    /// the end, unless the service says itself that it is complete. Default 2 s.
    pub settle: Duration,
    /// How long after the work is over, or after the last that was new, the rest of the log is tried for. Default 60 s.
    pub finish_within: Duration,
    /// Ends the feed as closed once an outage has lasted this long (R8). Default: never.
    pub give_up: Option<Duration>,
    /// The most bytes of one event, one line, one page of JSON, and a log that is compared as a whole. Default 1 MiB, 1 MiB,
    /// 16 MiB and 64 MiB.
    pub sizes: Sizes,
    /// How many pieces of answers wait for a slow consumer before reading stops. Default 16.
    pub buffer: usize,
}

/// The most bytes of what has to be whole before it can be delivered, and of a log that is read twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Sizes {
    /// One event of a stream. Default 1 MiB.
    pub event: usize,
    /// One line that starts with its time. Default 1 MiB.
    pub line: usize,
    /// One page of JSON. Default 16 MiB.
    pub page: usize,
    /// A log that is compared as a whole at its end, since parts of it were read one after the other: it is read once more,
    /// and what has changed before is a gap. A longer one is not compared. Default 64 MiB.
    pub proof: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { event: sse::Parser::BOUND, line: 1 << 20, page: 16 << 20, proof: 64 << 20 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pace: Pace::between(Duration::from_secs(1), Duration::from_secs(10)),
            bounds: Bounds::default(),
            quiet: Duration::from_secs(60),
            backoff: Backoff::default(),
            settle: Duration::from_secs(2),
            finish_within: Duration::from_secs(60),
            give_up: None,
            sizes: Sizes::default(),
            buffer: 16,
        }
    }
}
