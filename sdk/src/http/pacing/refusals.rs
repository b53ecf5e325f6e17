//! How far apart requests are kept after refusals for the rate.

use std::time::Duration;

use crate::machine::Monotonic;

/// For how long it is remembered what was too fast.
const MEMORY: Duration = Duration::from_secs(60);
/// The least time between requests to start from.
const LEAST: Duration = Duration::from_millis(50);

/// More time after each refusal, gradually less after each success: twice, and a quarter. Near what was last refused the
/// steps are small, so that few requests are spent on finding out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Refusals {
    backoff: Option<Backoff>,
    /// How many had been granted at the last refusal: it speaks for all of them.
    grants: u64,
    /// Whether a request granted after it was accepted.
    accepted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Backoff {
    spacing: Duration,
    /// What was refused.
    refused: Duration,
    /// When that was.
    at: Monotonic,
}

impl Refusals {
    /// Grant `number` was refused for the rate, while `grants` have been made at that `interval`.
    ///
    /// `timed`: the service said for how long. If nothing was accepted since the last refusal, the rate is not why.
    pub(super) fn refused(
        &mut self,
        now: Monotonic,
        number: u64,
        grants: u64,
        timed: bool,
        interval: Duration,
        most: Duration,
    ) {
        if number <= self.grants {
            return;
        }
        if !timed || self.accepted {
            let refused = self.backoff.as_ref().map_or(interval.max(LEAST), |backoff| backoff.spacing);
            let spacing = refused.saturating_mul(2).min(most.max(LEAST));
            self.backoff = Some(Backoff { spacing, refused, at: now });
        }
        self.grants = grants;
        self.accepted = false;
    }

    /// Grant `number` was answered, and not refused for the rate. Without refusals requests are `least` apart.
    pub(super) fn accepted(&mut self, now: Monotonic, number: u64, least: Duration) {
        if number <= self.grants {
            return;
        }
        self.accepted = true;
        self.backoff = self.backoff.take().and_then(|backoff| {
            let (from, to) = (backoff.refused / 5 * 4, backoff.refused / 4 * 5);
            let remembered = now.since(backoff.at) <= MEMORY;
            let near = remembered && (from..=to).contains(&backoff.spacing);
            let spacing = backoff.spacing - backoff.spacing / if near { 128 } else { 4 };
            let spacing = if remembered && backoff.spacing > to { spacing.max(to) } else { spacing };
            (spacing > least.max(LEAST)).then_some(Backoff { spacing, ..backoff })
        });
    }

    /// When the next request is due, if the last one was granted at `last`.
    pub(super) fn due(&self, last: Monotonic) -> Option<Monotonic> {
        // The refusal may have come long after its request was granted.
        self.backoff.as_ref().map(|backoff| last.max(backoff.at) + backoff.spacing)
    }

    /// Until when this matters to somebody who has no request under way.
    pub(super) fn remembers_until(&self) -> Option<Monotonic> {
        self.backoff.as_ref().map(|backoff| backoff.at + MEMORY.max(backoff.spacing))
    }
}
