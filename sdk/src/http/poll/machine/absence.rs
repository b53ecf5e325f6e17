//! For how long the service has said that it does not know the resource.

use std::time::Duration;

use crate::machine::Monotonic;

/// Counts only from one such answer to the next: while the service cannot be asked, nobody says so (R3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Absence {
    confirmed: Duration,
    last: Option<Monotonic>,
}

impl Absence {
    /// It said so now. For how long it has.
    pub(super) fn confirm(&mut self, now: Monotonic) -> Duration {
        if let Some(last) = self.last.replace(now) {
            self.confirmed = self.confirmed.saturating_add(now.since(last));
        }
        self.confirmed
    }

    /// It could not be asked. What was `seen` before must then be missed anew in one piece: a proxy in front of a service
    /// that restarts answers 404 and 502 in turns.
    pub(super) fn interrupt(&mut self, seen: bool) {
        self.last = None;
        if seen {
            self.confirmed = Duration::ZERO;
        }
    }
}
