//! Many deadlines, one alarm.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use crate::machine::Monotonic;

/// The deadlines of many machines, ordered.
#[derive(Debug)]
pub(super) struct Timers<Id> {
    by_time: BTreeSet<(Monotonic, Id)>,
    by_id: HashMap<Id, Monotonic>,
}

impl<Id: Copy + Ord + Hash> Timers<Id> {
    pub(super) fn new() -> Self {
        Self { by_time: BTreeSet::new(), by_id: HashMap::new() }
    }

    /// Sets, moves or clears the deadline of `id`.
    pub(super) fn set(&mut self, id: Id, deadline: Option<Monotonic>) {
        if self.by_id.get(&id).copied() == deadline {
            return;
        }
        if let Some(old) = self.by_id.remove(&id) {
            self.by_time.remove(&(old, id));
        }
        if let Some(at) = deadline {
            self.by_id.insert(id, at);
            self.by_time.insert((at, id));
        }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Monotonic> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes one whose deadline has passed.
    pub(super) fn pop_due(&mut self, now: Monotonic) -> Option<Id> {
        let (at, id) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.set(id, None);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_earliest_comes_first_and_a_moved_one_moves() {
        let at = |s| Monotonic::new(Duration::from_secs(s));
        let mut timers = Timers::new();
        timers.set(1, Some(at(5)));
        timers.set(2, Some(at(3)));
        timers.set(2, Some(at(9)));
        assert_eq!(timers.next(), Some(at(5)));
        assert_eq!(timers.pop_due(at(4)), None);
        assert_eq!(timers.pop_due(at(5)), Some(1));
        timers.set(2, None);
        assert_eq!(timers.next(), None);
    }
}
