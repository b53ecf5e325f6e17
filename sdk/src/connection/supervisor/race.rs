//! The way to a link: what is asked, resolved, waiting and in flight while there is none.
//!
//! Rounds overlap. A round asks discovery, resolves, and queues the addresses that are not in flight already; the next one
//! begins after a backoff step, or after the backoff's cap while nothing has failed. So one address that hangs does not
//! keep another from being dialed again, and a service that moves is found while the old place still hangs (FC-42).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::holds::Holds;
use super::vocabulary::Generation;
use crate::connection::dial::{Attempt, DialPhase};
use crate::connection::discover::{Address, Endpoint};
use crate::connection::timers::SupervisorTimer;
use crate::machine::Monotonic;

/// How many resolutions, and how many dials, are under way at once.
pub(super) const AT_ONCE: usize = 64;

/// How many endpoints, and how many addresses, wait their turn. What is beyond is left out of the round.
const MOST_WAITING: usize = 256;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Race {
    /// The bound on discovery's answer, while it is awaited.
    pub(super) discover: Option<Monotonic>,
    /// The bound on the credential source's answer, while it is awaited. No dial starts meanwhile.
    pub(super) credential: Option<Monotonic>,
    pub(super) unresolved: VecDeque<Endpoint>,
    /// With the bound on each answer.
    pub(super) resolving: BTreeMap<Endpoint, Monotonic>,
    waiting: BTreeMap<Turn, Address>,
    arrivals: u64,
    pub(super) flights: BTreeMap<Attempt, Flight>,
    /// When the next dial may start beside those in flight. `None`: at once.
    pub(super) stagger: Option<Monotonic>,
    /// The next round, once this one has all its answers.
    pub(super) next: Option<NextRound>,
    /// Something has failed and no backoff step is armed for it yet.
    pub(super) failed: bool,
}

/// In which order addresses are dialed: one of each endpoint, then the second of each, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Turn {
    /// The one that refused the credential last goes last: where there are two, both have to refuse (R3).
    suspect: bool,
    round: u64,
    rank: usize,
    arrival: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) address: Address,
    pub(super) phase: DialPhase,
    pub(super) bound: Monotonic,
    pub(super) generation: Option<Generation>,
    pub(super) round: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NextRound {
    pub(super) at: Monotonic,
    pub(super) why: Why,
}

/// Why the next round begins when it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Why {
    /// The first round, or the first after a link that had proven healthy.
    Fresh,
    /// Nothing has failed, but the dials are taking long: the service may have moved.
    Ask,
    /// Something failed.
    Backoff,
    /// Something failed and the caller's policy has not answered yet.
    Policy,
    /// Every endpoint asked to be left alone.
    Held,
    /// The credential was refused: its next use is a backoff step away (R3).
    Refusal,
}

impl Race {
    /// A race whose first round begins at `at`.
    pub(super) fn new(at: Monotonic, why: Why) -> Self {
        Self { next: Some(NextRound { at, why }), ..Self::default() }
    }

    /// A race that begins with a backoff step.
    pub(super) fn after_failure() -> Self {
        Self { failed: true, ..Self::default() }
    }

    /// Queues an endpoint, unless it is queued or being resolved.
    pub(super) fn enqueue_endpoint(&mut self, endpoint: Endpoint) {
        let known = self.resolving.contains_key(&endpoint) || self.unresolved.contains(&endpoint);
        if !known && self.unresolved.len() < MOST_WAITING {
            self.unresolved.push_back(endpoint);
        }
    }

    /// Queues an endpoint's targets, in order, without those that are queued or in flight.
    pub(super) fn enqueue_targets(
        &mut self,
        endpoint: &Endpoint,
        targets: Vec<Arc<str>>,
        round: u64,
        suspect: Option<&Address>,
    ) {
        for (rank, target) in targets.into_iter().enumerate() {
            let address = Address::new(endpoint.clone(), target);
            let known = self.waiting.values().any(|waiting| *waiting == address)
                || self.flights.values().any(|flight| flight.address == address);
            if known || self.waiting.len() >= MOST_WAITING {
                continue;
            }
            let suspect = suspect == Some(&address);
            self.waiting.insert(Turn { suspect, round, rank, arrival: self.arrivals }, address);
            self.arrivals += 1;
        }
    }

    /// The next address to dial, if one waits and may start now.
    pub(super) fn take_startable(&mut self, now: Monotonic) -> Option<Address> {
        let early = !self.flights.is_empty() && self.stagger.is_some_and(|at| at > now);
        if early || !self.can_start() {
            return None;
        }
        self.waiting.pop_first().map(|(_, address)| address)
    }

    fn can_start(&self) -> bool {
        self.credential.is_none() && self.flights.len() < AT_ONCE && !self.waiting.is_empty()
    }

    /// Drops what waits at endpoints that ask to be left alone.
    pub(super) fn leave_alone(&mut self, holds: &Holds, now: Monotonic) {
        self.waiting.retain(|_, address| !holds.is_held(&address.endpoint, now));
        self.unresolved.retain(|endpoint| !holds.is_held(endpoint, now));
    }

    /// Starts nothing more in this round. What is in flight goes on.
    pub(super) fn halt(&mut self) {
        self.discover = None;
        self.credential = None;
        self.unresolved.clear();
        self.resolving.clear();
        self.waiting.clear();
        self.failed = false;
    }

    /// Whether the round has asked all its questions and started all its dials.
    pub(super) fn is_started(&self) -> bool {
        self.discover.is_none() && self.credential.is_none() && self.unresolved.is_empty() && self.waiting.is_empty()
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.is_started() && self.resolving.is_empty() && self.flights.is_empty()
    }

    pub(super) fn visit(&self, see: &mut dyn FnMut(SupervisorTimer, Monotonic)) {
        if let Some(at) = self.discover {
            see(SupervisorTimer::Discover, at);
        }
        if let Some(at) = self.credential {
            see(SupervisorTimer::Credential, at);
        }
        for (endpoint, at) in &self.resolving {
            see(SupervisorTimer::Resolve(endpoint.clone()), *at);
        }
        for (attempt, flight) in &self.flights {
            see(SupervisorTimer::Dial(*attempt, flight.phase), flight.bound);
        }
        if let Some(at) = self.stagger.filter(|_| self.can_start()) {
            see(SupervisorTimer::Stagger, at);
        }
        if let Some(next) = self.next {
            see(SupervisorTimer::NextRound, next.at);
        }
    }
}
