//! What is known at the moment, in words.

use std::time::Duration;

use outlast::command::{CommandState, Delivery};
use outlast::connection::LinkState;
use outlast::{End, Reading};
use tokio::time::Instant;

use super::Change;
use crate::build_farm::domain::Build;
use crate::build_farm::verdict::{Summary, Verdict};

/// The latest of everything.
#[derive(Debug)]
pub(super) struct Scene {
    started: Instant,
    link: Option<Reading<LinkState>>,
    build: Option<Reading<Build>>,
    /// Since when the build's read is as fresh or stale as it is.
    since: Instant,
    command: Option<CommandState>,
}

/// Whether what is shown is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// Nothing is shown yet.
    Loading,
    /// It is so.
    Fresh,
    /// It was so.
    Stale,
    /// An authority ended the read.
    Ended,
}

impl Freshness {
    pub(super) fn of<T>(reading: &Reading<T>) -> Self {
        match reading {
            Reading::Loading { .. } => Self::Loading,
            Reading::Fresh(_) => Self::Fresh,
            Reading::Stale { .. } => Self::Stale,
            Reading::Ended { .. } => Self::Ended,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Ended => "ended",
        }
    }
}

impl Scene {
    pub(super) fn new(now: Instant) -> Self {
        Self { started: now, link: None, build: None, since: now, command: None }
    }

    pub(super) fn apply(&mut self, change: &Change, now: Instant) {
        match change {
            Change::Link(link) => self.link = Some(link.clone()),
            Change::Build(build) => {
                let before = self.build.as_ref().map(Freshness::of);
                if before != Some(Freshness::of(build)) {
                    self.since = now;
                }
                self.build = Some(build.clone());
            }
            Change::Command(state) => self.command = state.last().map(|state| CommandState::clone(state)),
            Change::Note(_) | Change::Summary(_) => {}
        }
    }

    /// Time since the start.
    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// The connection's state, and whether it is up.
    pub(super) fn link(&self) -> (bool, String) {
        match self.link.as_ref().and_then(Reading::last) {
            Some(link) => (link.is_up(), link.to_string()),
            None => (false, "connecting".to_owned()),
        }
    }

    /// The read's freshness.
    pub(super) fn freshness(&self) -> Freshness {
        self.build.as_ref().map_or(Freshness::Loading, Freshness::of)
    }

    /// Why the read is not fresh.
    pub(super) fn cause(&self) -> Option<String> {
        match self.build.as_ref()? {
            Reading::Ended { end, .. } => Some(
                match end {
                    End::Gone => "gone",
                    End::Denied => "denied",
                    End::Closed => "closed",
                }
                .to_owned(),
            ),
            reading @ (Reading::Loading { .. } | Reading::Fresh(_) | Reading::Stale { .. }) => {
                reading.cause().map(ToString::to_string)
            }
        }
    }

    /// How long it is as fresh or stale as it is.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    /// What the read shows.
    pub(super) fn build(&self) -> Option<&Build> {
        self.build.as_ref().and_then(Reading::last).map(|build| &**build)
    }

    /// Where the command stands, and how far it has come on its way.
    pub(super) fn command(&self) -> Option<(String, &'static str)> {
        let state = self.command.as_ref()?;
        Some((state.status().to_string(), delivery(state.delivery())))
    }
}

fn delivery(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Queued => "queued",
        Delivery::Sent => "sent",
        Delivery::Accepted => "accepted",
        Delivery::Indeterminate => "indeterminate",
    }
}

/// The end in one sentence.
pub(super) fn sentence(summary: &Summary) -> String {
    let Summary { verdict, executions, read_errors, server_restarts, went_stale, fresh_again_ms } = summary;
    let verdict = match verdict {
        Verdict::Succeeded => "succeeded",
        Verdict::Failed => "failed",
        Verdict::Canceled => "canceled",
    };
    let stale = match (went_stale, fresh_again_ms) {
        (false, _) => "never stale".to_owned(),
        (true, None) => "stale".to_owned(),
        (true, Some(ms)) => format!("stale, and fresh again {ms} ms after the server listened"),
    };
    format!(
        "verdict: {verdict}; started {executions} time(s), {server_restarts} server restart(s), {read_errors} read \
         error(s); the read was {stale}"
    )
}

/// Text of others, without what could move the cursor.
pub(super) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Seconds with one digit: `3.2 s`.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_move_the_cursor() {
        assert_eq!(harmless("a\x1b[2Jb\r\n\tü"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}ü");
    }

    #[test]
    fn the_end_is_one_sentence() {
        let summary = Summary {
            verdict: Verdict::Succeeded,
            executions: 1,
            read_errors: 0,
            server_restarts: 1,
            went_stale: true,
            fresh_again_ms: Some(147),
        };
        assert_eq!(
            sentence(&summary),
            "verdict: succeeded; started 1 time(s), 1 server restart(s), 0 read error(s); the read was stale, and \
             fresh again 147 ms after the server listened"
        );
    }
}
