//! Endpoints that asked to be left alone for a while (R8: never before the hint).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::connection::discover::Endpoint;
use crate::machine::{LONGEST_HINT, Monotonic};

/// How many endpoints are remembered; the one that is free soonest is forgotten first.
const MOST: usize = 64;

/// A hint holds for the endpoint that gave it. Others are dialed, and discovery is asked, all the same: a service that
/// moves is found although its old place asked to wait (FC-42).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Holds(BTreeMap<Endpoint, Monotonic>);

impl Holds {
    /// Keeps away from `endpoint` for `hint`, and no shorter than an earlier hint said.
    pub(super) fn hold(&mut self, endpoint: Endpoint, now: Monotonic, hint: Duration) {
        let until = now + hint.min(LONGEST_HINT);
        let entry = self.0.entry(endpoint).or_insert(until);
        *entry = until.max(*entry);
        while self.0.len() > MOST {
            let soonest = self.0.iter().min_by_key(|(_, until)| **until).map(|(endpoint, _)| endpoint.clone());
            soonest.and_then(|endpoint| self.0.remove(&endpoint));
        }
    }

    pub(super) fn is_held(&self, endpoint: &Endpoint, now: Monotonic) -> bool {
        self.0.get(endpoint).is_some_and(|until| *until > now)
    }

    /// Forgets those that are over, and says when the next one will be.
    pub(super) fn next_free(&mut self, now: Monotonic) -> Option<Monotonic> {
        self.0.retain(|_, until| *until > now);
        self.0.values().min().copied()
    }
}
