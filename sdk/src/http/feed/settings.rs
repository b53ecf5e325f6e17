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
    /// What a service repeats of a stream of events after a reconnect. Default: what came after the last id.
    pub replay: Replay,
    /// The most bytes of one event, one line, one page of JSON, and a log that is compared as a whole. Default 1 MiB, 1 MiB,
    /// 16 MiB and 64 MiB.
    pub sizes: Sizes,
    /// How many pieces of answers wait for a slow consumer before reading stops. Default 16.
    pub buffer: usize,
}

/// What a service gives of a stream of events when it is asked with the id of the last event (`Last-Event-ID`; WHATWG HTML,
/// 9.2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Replay {
    /// The events after that one, as the standard means it to.
    #[default]
    AfterId,
    /// What happens from now on, whatever it is asked: each reconnect is a gap.
    Nothing,
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
            replay: Replay::default(),
            sizes: Sizes::default(),
            buffer: 16,
        }
    }
}

impl Settings {
    /// Looks so often. Default: from 1 s soon after something new to 10 s.
    #[must_use]
    pub const fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Bounds each phase of a request so (R7). Default: those of [`Bounds`].
    #[must_use]
    pub const fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Asks anew for a stream that was silent for so long. Default 60 s.
    #[must_use]
    pub const fn with_quiet(self, quiet: Duration) -> Self {
        Self { quiet, ..self }
    }

    /// Waits so long after failures (R8). Default: those of [`Backoff`].
    #[must_use]
    pub const fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Takes a log for complete so long after the work is over. Default 2 s.
    #[must_use]
    pub const fn with_settle(self, settle: Duration) -> Self {
        Self { settle, ..self }
    }

    /// Tries so long for the rest of a log after the work is over. Default 60 s.
    #[must_use]
    pub const fn with_finish_within(self, finish_within: Duration) -> Self {
        Self { finish_within, ..self }
    }

    /// Ends the feed as closed once an outage has lasted so long (R8). Default: never.
    #[must_use]
    pub const fn with_give_up(self, give_up: Duration) -> Self {
        Self { give_up: Some(give_up), ..self }
    }

    /// What the service repeats of a stream of events. Default: what came after the last id.
    #[must_use]
    pub const fn with_replay(self, replay: Replay) -> Self {
        Self { replay, ..self }
    }

    /// Holds what has to be whole to these sizes. Default: those of [`Sizes`].
    #[must_use]
    pub const fn with_sizes(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }

    /// Lets so many pieces of answers wait for a slow consumer. Default 16.
    #[must_use]
    pub const fn with_buffer(self, buffer: usize) -> Self {
        Self { buffer, ..self }
    }
}

impl Sizes {
    /// Takes events of at most so many bytes. Default 1 MiB.
    #[must_use]
    pub const fn with_event(self, event: usize) -> Self {
        Self { event, ..self }
    }

    /// Takes lines that start with their time of at most so many bytes. Default 1 MiB.
    #[must_use]
    pub const fn with_line(self, line: usize) -> Self {
        Self { line, ..self }
    }

    /// Takes pages of JSON of at most so many bytes. Default 16 MiB.
    #[must_use]
    pub const fn with_page(self, page: usize) -> Self {
        Self { page, ..self }
    }

    /// Compares logs of at most so many bytes as a whole at their end; none with zero. Default 64 MiB.
    #[must_use]
    pub const fn with_proof(self, proof: u64) -> Self {
        Self { proof, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_set_by_its_name() {
        let n = Duration::from_secs;
        let sizes = Sizes::default().with_event(1).with_line(2).with_page(3).with_proof(4);
        assert_eq!(sizes, Sizes { event: 1, line: 2, page: 3, proof: 4 });
        let (pace, bounds) = (Pace::every(n(1)), Bounds::default().with_tls(n(2)));
        let backoff = Backoff::default().with_floor(n(3));
        let settings = Settings::default().with_pace(pace).with_bounds(bounds).with_quiet(n(4)).with_backoff(backoff);
        let settings =
            settings.with_settle(n(5)).with_finish_within(n(6)).with_give_up(n(7)).with_replay(Replay::Nothing);
        let expected = Settings {
            pace,
            bounds,
            quiet: n(4),
            backoff,
            settle: n(5),
            finish_within: n(6),
            give_up: Some(n(7)),
            replay: Replay::Nothing,
            sizes,
            buffer: 8,
        };
        assert_eq!(settings.with_sizes(sizes).with_buffer(8), expected);
    }
}
