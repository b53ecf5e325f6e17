//! What is left in the windows that a service counts requests in, and what goes with each request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Flights;
use crate::http::told::Window;
use crate::machine::{Monotonic, Now};

/// The farthest reset that is believed.
const MOST_WINDOW: Duration = Duration::from_secs(3600);
/// Two resets that are no farther apart are of one window: headers count whole seconds, and answers take their time.
const SAME: Duration = Duration::from_secs(2);
/// The greatest delay, at random, after the end of a window or hold.
const MOST_DELAY: Duration = Duration::from_secs(1);
/// How many windows of a service are remembered.
const MOST_WINDOWS: usize = 16;
/// What remains is much if it is that many times what is wanted.
const MUCH: u128 = 16;
/// How many requests make a measure of what each costs; older ones count half.
const MEMORY: u64 = 16;
/// After how many requests that cost nothing they are taken to be free.
const FREE: u64 = 4;
/// What goes with each request of ours is taken for this at most, however much others use.
const MOST_COST: u64 = 8;

/// `after` from now, and up to a tenth of that later, at random: whoever else was told the same does not come at once.
pub(super) fn put_off(now: &Now, after: Duration) -> Monotonic {
    now.instant + after + now.jitter((after / 10).min(MOST_DELAY))
}

/// All windows of one budget, by the names that the service gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Windows(BTreeMap<Arc<str>, Ledger>);

/// One window after the other under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Ledger {
    current: Option<Current>,
    /// How much `remaining` went down lately..
    spent: u64,
    /// .. in how many requests of ours.
    own: u64,
}

/// The window that is not over yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Current {
    remaining: u64,
    resets: Monotonic,
    /// The reset, put off at random.
    anew: Monotonic,
    /// What remained when it was first heard of, and when that was.
    first: (u64, Monotonic),
    /// The newest grant that `remaining` has in it.
    counted: u64,
    /// How many were granted when `remaining` came: the answer to a later one is certainly newer.
    grants: u64,
}

impl Windows {
    /// Takes what the answer to grant `number` says, while `grants` have been made. Returns whether it says that nothing
    /// is left.
    pub(super) fn take(&mut self, now: &Now, number: u64, grants: u64, said: &Window, flights: &Flights) -> bool {
        let remaining = said.limit.map_or(said.remaining, |limit| said.remaining.min(limit));
        // A window that is over, or that never holds anything, says nothing.
        if said.reset.is_zero() || said.limit == Some(0) {
            return false;
        }
        if !self.0.contains_key(&said.name) && self.0.len() >= MOST_WINDOWS {
            self.0.retain(|_, ledger| ledger.current.is_some());
            // Rather forget one that has something left than not hold (R8).
            let spare = self.0.iter().find(|(_, ledger)| ledger.current.as_ref().is_some_and(|c| c.remaining > 0));
            let spare = spare.map(|(name, _)| Arc::clone(name)).filter(|_| remaining == 0);
            if let Some(name) = spare {
                self.0.remove(&name);
            }
            if self.0.len() >= MOST_WINDOWS {
                return remaining == 0;
            }
        }
        let left = said.reset.min(MOST_WINDOW);
        let fresh = Current {
            remaining,
            resets: now.instant + left,
            anew: put_off(now, left),
            first: (remaining, now.instant),
            counted: number,
            grants,
        };
        self.0.entry(Arc::clone(&said.name)).or_default().take(now, number, fresh, flights);
        remaining == 0
    }

    /// Forgets the windows that are over; what a request costs is remembered.
    pub(super) fn expire(&mut self, now: Monotonic) {
        for ledger in self.0.values_mut() {
            ledger.current = ledger.current.take().filter(|current| current.anew > now);
        }
    }

    fn current(&self) -> impl Iterator<Item = (&Ledger, &Current)> {
        self.0.values().filter_map(|ledger| Some((ledger, ledger.current.as_ref()?)))
    }

    /// When the last of the windows in which nothing is left starts anew.
    pub(super) fn used_up(&self) -> Option<Monotonic> {
        self.current().filter(|(_, current)| current.remaining == 0).map(|(_, current)| current.anew).max()
    }

    /// When the last window starts anew.
    pub(super) fn last_reset(&self) -> Option<Monotonic> {
        self.current().map(|(_, current)| current.anew).max()
    }

    /// When the next request is due so that each window lasts; `None` if they all have much. `last` is when the last one
    /// was granted.
    pub(super) fn due(&self, last: Monotonic, wanted: usize, flights: &Flights) -> Option<Monotonic> {
        self.current().filter_map(|(ledger, current)| ledger.due(current, last, wanted, flights)).max()
    }
}

impl Ledger {
    fn take(&mut self, now: &Now, number: u64, said: Current, flights: &Flights) {
        let Some(known) = self.current.take() else {
            self.current = Some(said);
            return;
        };
        let own = if number > known.counted { 1 + flights.unanswered(known.counted, number) as u64 } else { 0 };
        let spent = known.remaining.saturating_sub(said.remaining);
        let same = said.resets.since(known.resets).max(known.resets.since(said.resets)) <= SAME;
        let counted = known.counted.max(number);
        let newer = number > known.grants;
        // Sent before, and answered in the next window: a used up one is waited for all the same.
        let over = known.remaining > 0 && now.instant + SAME >= known.resets;
        let next = !same && over && said.resets > known.resets;
        self.current = Some(if newer || next {
            let first = if same { known.first } else { said.first };
            Current { first, counted, ..said }
        } else if said.remaining < known.remaining {
            // Which of the two is newer is not known: the lesser one counts.
            Current { first: known.first, counted, ..said }
        } else if said.remaining == known.remaining && said.resets > known.resets {
            Current { resets: said.resets, anew: said.anew.max(known.anew), counted, ..known }
        } else {
            Current { counted, ..known }
        });
        self.own += own;
        self.spent = self.spent.saturating_add(spent).min(MOST_COST * (self.own + 1));
        if self.own > MEMORY {
            self.own /= 2;
            self.spent /= 2;
        }
    }

    /// Whether our requests cost nothing.
    fn is_free(&self) -> bool {
        self.spent == 0 && self.own >= FREE
    }

    /// What remains after all that is under way.
    fn left(&self, current: &Current, flights: &Flights) -> u64 {
        let under_way = if self.is_free() { 0 } else { flights.unanswered_after(current.counted) as u64 };
        current.remaining.saturating_sub(under_way)
    }

    fn due(&self, current: &Current, last: Monotonic, wanted: usize, flights: &Flights) -> Option<Monotonic> {
        let left = u128::from(self.left(current, flights));
        if left == 0 {
            return Some(current.anew);
        }
        if self.is_free() {
            return None;
        }
        let time = current.resets.since(last);
        // What goes with one request: (spent + 1) / (own + 1), one until something else is known.
        let (spent, own) = (u128::from(self.spent) + 1, u128::from(self.own) + 1);
        let (first, since) = current.first;
        let whole = current.resets.since(since);
        let much = left * own >= MUCH * wanted.max(1) as u128 * spent.max(own)
            && left * whole.as_nanos() * 4 >= u128::from(first) * time.as_nanos() * 3;
        if much {
            return None;
        }
        let nanos = time.as_nanos() * spent / (own * left);
        let interval = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Some((last + interval).min(current.anew))
    }
}
