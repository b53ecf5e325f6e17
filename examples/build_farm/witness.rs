//! What happened to the poller's reads, for the story's figures.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast::{End, Reading};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::build_farm::domain::Build;

/// Sees every reading of the build.
#[derive(Debug)]
pub(crate) struct Witness {
    seen: Mutex<Seen>,
    lines: watch::Sender<u64>,
}

/// What it has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Reads that ended without an authority.
    pub(crate) read_errors: u64,
    /// Whether a reading was stale.
    pub(crate) went_stale: bool,
    /// How long after the server listened again a reading was fresh.
    pub(crate) fresh_again: Option<Duration>,
    listening_again: Option<Instant>,
    fresh_since: Option<Instant>,
    ended: bool,
}

impl Witness {
    /// One that has seen nothing.
    pub(crate) fn new() -> Self {
        Self { seen: Mutex::default(), lines: watch::Sender::new(0) }
    }

    /// What it has seen so far.
    pub(crate) fn seen(&self) -> Seen {
        *self.lock()
    }

    /// The build's read shows this.
    pub(crate) fn reading(&self, reading: &Reading<Build>, now: Instant) {
        self.lock().reading(reading, now);
        if let Some(build) = reading.last() {
            self.lines.send_if_modified(|lines| std::mem::replace(lines, build.lines) != build.lines);
        }
    }

    /// The build's read shows nothing any more.
    pub(crate) fn read_vanished(&self) {
        self.lock().vanished();
    }

    /// The server listens again, since `at`.
    pub(crate) fn listening_again(&self, at: Instant) {
        self.lock().listening(at);
    }

    /// Completes when the build has printed `lines` lines.
    ///
    /// # Cancel safety
    /// Safe: it only looks.
    pub(crate) async fn printed(&self, lines: u64) {
        // The sender is our own, so it does not go away.
        let _ = self.lines.subscribe().wait_for(|printed| *printed >= lines).await;
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn reading(&mut self, reading: &Reading<Build>, now: Instant) {
        match reading {
            Reading::Fresh(_) => {
                self.fresh_since.get_or_insert(now);
            }
            Reading::Loading { .. } => self.fresh_since = None,
            Reading::Stale { .. } => {
                self.fresh_since = None;
                self.went_stale = true;
            }
            Reading::Ended { end, .. } => {
                self.ended = true;
                match end {
                    End::Gone | End::Denied => {}
                    // The story does not close a read before it is over.
                    End::Closed => self.read_errors += 1,
                }
            }
        }
        self.compare();
    }

    fn vanished(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.read_errors += 1;
        }
    }

    fn listening(&mut self, at: Instant) {
        self.listening_again = Some(at);
        self.compare();
    }

    /// The server's word and the fresh reading come by different ways, in any order.
    fn compare(&mut self) {
        if let (Some(listening), Some(fresh), None) = (self.listening_again, self.fresh_since, self.fresh_again) {
            self.fresh_again = Some(fresh.saturating_duration_since(listening));
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast::Known;

    use super::*;
    use crate::build_farm::domain::{BuildSpec, BuildStatus};

    fn fresh() -> Reading<Build> {
        Reading::Fresh(Known::new(Build {
            spec: BuildSpec { directory: "/".into(), command: "true".into() },
            status: BuildStatus::Running,
            worker: None,
            lines: 3,
            last_line: String::new(),
            cancel_requested: false,
            failure: None,
            command: None,
        }))
    }

    #[test]
    fn the_time_to_fresh_is_the_same_in_either_order() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        for server_first in [true, false] {
            let mut seen = Seen::default();
            seen.reading(&fresh(), at(0));
            assert_eq!(seen.fresh_again, None, "before the outage it counts for nothing");
            seen.fresh_since = None; // as a stale reading leaves it
            if server_first {
                seen.listening(at(100));
                seen.reading(&fresh(), at(150));
            } else {
                seen.reading(&fresh(), at(150));
                seen.listening(at(100));
            }
            seen.reading(&fresh(), at(900));
            assert_eq!(seen.fresh_again, Some(Duration::from_millis(50)));
        }
    }

    /// R3: an end without an authority is an error of the read, and counts once.
    #[test]
    fn r3_an_end_without_an_authority_is_an_error() {
        let mut seen = Seen::default();
        seen.vanished();
        seen.vanished();
        assert_eq!(seen.read_errors, 1);
    }

    #[tokio::test]
    async fn lines_are_awaited() {
        let witness = Witness::new();
        witness.reading(&fresh(), Instant::now());
        witness.printed(3).await;
        let mut more = std::pin::pin!(witness.printed(4));
        assert!(futures::poll!(&mut more).is_pending());
    }
}
