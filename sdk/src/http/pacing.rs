//! How often a budget is used: pure.
//!
//! All who ask one origin with one credential share a [`Pacing`] (R8). Each wants a [`Ticket`] for each request; the
//! machine grants them in the order in which they were wanted, as fast as the service permits.
//!
//! | what is known | what follows |
//! |---|---|
//! | nothing | one request each [`Limits::spacing`] (200 ms), at most [`Limits::in_flight`] (64) under way |
//! | a request has been under way for 15 s: a long poll, or one that hangs | it takes no place any more, so that nobody waits for its end (R7) |
//! | a refusal with `Retry-After` (FC-55; RFC 9110, 10.2.3) | nothing before that time has passed; of several the longest counts; believed up to 24 h |
//! | `Retry-After` on an answer that is no refusal | nothing here: it speaks of that resource, and is the floor of that read alone |
//! | nothing remains in a window | nothing before its reset, believed up to 1 h |
//! | something remains | the time until the reset, divided by how many requests still fit. That is what remains, divided by how much it has lately gone down with each request of ours: others who share the credential count into that, answers that cost nothing (GitHub's 304) do not |
//! | much remains: 16 times what is wanted now, and no less for the time that is left than three quarters of what there was at first | no more than [`Limits::spacing`] |
//! | others use more than seven times what we use | an eighth of what remains is ours all the same |
//! | as many requests are unanswered as remain | nothing before one of them is answered or ends, or the reset |
//! | a hold has ended | one request a second, until one is answered that is not refused again; so a wrong time costs one refusal |
//! | a refusal for the rate that no window and no time explains (FC-11) | twice the time between requests, up to [`Limits::most_spacing`] (60 s); only once for all requests that were granted before |
//! | a refusal with a time, after something was accepted | the same beside the hold, at first no more than that time |
//! | answers that are not refused after that | a quarter less time with each; from 1.25 to 0.8 times what was last refused, for a minute, only 1/128 |
//! | an answer to a request that was granted before a hold was known | may prolong the hold, never shortens it |
//! | a request that never reached the service | it counts for nothing but [`Limits::spacing`]: whoever dials a service that is away finds it again as soon as another (R8) |
//! | an answer that is no newer than the last one | may lower what remains, never raises it, until the reset |
//!
//! The end of every hold and window is put off by a time uniform in a tenth of its length, at most 1 s, so that processes
//! that were told the same time do not return at once.

mod refusals;
mod vocabulary;
mod windows;

pub use vocabulary::{Action, Event, Limits, Ticket};

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::http::told::Told;
use crate::machine::{Actions, LONGEST_HINT, Machine, Monotonic, Now};
use refusals::Refusals;
use windows::Windows;

/// The least time between requests after a hold, until one is answered that is not refused.
const PROBE: Duration = Duration::from_secs(1);
/// How long a request takes one of the places. Long polls may be held for minutes, and whoever waits for a place has no
/// other timer (R7).
const OCCUPIES: Duration = Duration::from_secs(15);

/// Grants requests in the order in which they are wanted, as fast as the service permits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pacing {
    limits: Limits,
    waiting: VecDeque<Ticket>,
    flights: Flights,
    /// How many were ever granted: the number of the newest.
    grants: u64,
    /// When the newest was granted.
    last: Option<Monotonic>,
    /// Of those that may have reached the service.
    sent: Sent,
    /// Until when a refusal asked to wait.
    hold: Option<Monotonic>,
    /// How many had been granted when the newest hold became known, until a later one is accepted.
    probing: Option<u64>,
    windows: Windows,
    refusals: Refusals,
}

impl Pacing {
    /// A budget that nobody has used.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            waiting: VecDeque::new(),
            flights: Flights::default(),
            grants: 0,
            last: None,
            sent: Sent::default(),
            hold: None,
            probing: None,
            windows: Windows::default(),
            refusals: Refusals::default(),
        }
    }

    /// Before when certainly nothing is granted: the service asked to wait, nothing remains in a window, or what remains
    /// is so little that the next request is due more than [`Limits::most_spacing`] after the last one. It may have passed.
    pub fn held_until(&self) -> Option<Monotonic> {
        // What is under way may turn out to have cost nothing.
        let due = self
            .paced(&Flights::default())
            .filter(|due| due.since(self.sent.last.unwrap_or_default()) > self.limits.most_spacing);
        self.forbidden_until().max(due)
    }

    /// Before when the service wants no request at all: it asked to wait, or nothing remains in a window. It may have
    /// passed.
    pub fn forbidden_until(&self) -> Option<Monotonic> {
        self.hold.max(self.windows.used_up())
    }

    /// Who is granted next.
    pub fn first(&self) -> Option<Ticket> {
        self.waiting.front().copied()
    }

    /// From when on a new machine would decide as this one does, if nobody uses it any more.
    pub fn remembers_until(&self) -> Option<Monotonic> {
        let spaced = self.last.map(|last| last + self.limits.spacing);
        [self.hold, self.windows.last_reset(), self.refusals.remembers_until(), spaced].into_iter().flatten().max()
    }

    fn wanted(&mut self, ticket: Ticket) {
        match self.flights.0.get(&ticket) {
            // Given back unused: it was first before, and is again.
            Some(Flight { told: false, .. }) => {
                self.flights.0.remove(&ticket);
                self.waiting.push_front(ticket);
            }
            Some(Flight { told: true, .. }) => {}
            None if self.waiting.contains(&ticket) => {}
            None => self.waiting.push_back(ticket),
        }
    }

    fn ended(&mut self, ticket: Ticket) {
        if self.flights.0.remove(&ticket).is_none() {
            self.waiting.retain(|waiting| *waiting != ticket);
        }
    }

    fn unsent(&mut self, ticket: Ticket) {
        if let Some(flight) = self.flights.0.remove(&ticket)
            && flight.number == self.grants
        {
            self.sent = flight.before;
        }
    }

    fn told(&mut self, now: &Now, ticket: Ticket, told: &Told) {
        // The head of a request that is not known any more says no less, only nothing newer than what is known.
        let number = self.flights.0.get_mut(&ticket).map_or(0, |flight| {
            flight.told = true;
            flight.number
        });
        let asked = told.retry_after.filter(|_| told.throttled).unwrap_or_default();
        if !asked.is_zero() {
            self.hold_until(windows::put_off(now, asked.min(LONGEST_HINT)));
        }
        let mut explained = false;
        for window in &told.windows {
            explained |= self.windows.take(now, number, self.grants, window, &self.flights);
        }
        if told.throttled && !explained {
            let interval = self.sent.interval.unwrap_or_default();
            // Who says for how long does not want more time than that between two.
            let interval = if asked.is_zero() { interval } else { interval.min(asked / 2) }.max(self.limits.spacing);
            self.refusals.refused(
                now.instant,
                number,
                self.grants,
                !asked.is_zero(),
                interval,
                self.limits.most_spacing,
            );
        } else if !told.throttled {
            self.refusals.accepted(now.instant, number, self.limits.spacing);
            self.probing = self.probing.filter(|&at| number <= at);
        }
        if self.windows.used_up().is_some() {
            self.probing = Some(self.grants);
        }
    }

    fn hold_until(&mut self, until: Monotonic) {
        self.hold = self.hold.max(Some(until));
        self.probing = Some(self.grants);
    }

    /// When the windows have a request due.
    fn paced(&self, flights: &Flights) -> Option<Monotonic> {
        let wanted = self.waiting.len() + self.flights.unanswered_after(0);
        self.windows.due(self.sent.last?, wanted, flights)
    }

    /// When the next is granted, as far as time decides.
    fn due(&self) -> Monotonic {
        let held = self.forbidden_until().unwrap_or_default();
        let Some(last) = self.last else {
            return held;
        };
        let probe = self.probing.map_or(Duration::ZERO, |_| PROBE);
        let refused = self.refusals.due(self.sent.last.unwrap_or_default()).unwrap_or_default();
        held.max(last + self.limits.spacing.max(probe)).max(refused).max(self.paced(&self.flights).unwrap_or_default())
    }

    /// When one more may be under way, if none ends before; zero when at once.
    fn room(&self) -> Monotonic {
        let Some(before) = self.limits.in_flight.max(1).checked_sub(1).filter(|&n| n < self.flights.0.len()) else {
            return Monotonic::ZERO;
        };
        let mut newest_first: Vec<_> = self.flights.0.values().map(|flight| Reverse(flight.granted)).collect();
        let (_, Reverse(granted), _) = newest_first.select_nth_unstable(before);
        *granted + OCCUPIES
    }

    fn grant(&mut self, now: &Now) -> Actions<Action> {
        let mut actions = Vec::new();
        while !self.waiting.is_empty()
            && self.room().max(self.due()) <= now.instant
            && let Some(ticket) = self.waiting.pop_front()
        {
            self.grants += 1;
            let before = self.sent;
            self.flights.0.insert(ticket, Flight { number: self.grants, granted: now.instant, told: false, before });
            self.last = Some(now.instant);
            self.sent = before.then(now.instant);
            actions.push(Action::Grant(ticket));
        }
        actions
    }
}

impl Machine for Pacing {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        self.hold = self.hold.filter(|&until| until > now.instant);
        self.windows.expire(now.instant);
        match event {
            Event::Wanted(ticket) => self.wanted(ticket),
            Event::Ended(ticket) => self.ended(ticket),
            Event::Unsent(ticket) => self.unsent(ticket),
            Event::Told(ticket, told) => self.told(&now, ticket, &told),
            Event::Tick => {}
        }
        self.grant(&now)
    }

    fn deadline(&self) -> Option<Monotonic> {
        self.first()?;
        Some(self.room().max(self.due()))
    }
}

/// Grants, as the service may have seen them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Sent {
    /// When the newest was granted.
    last: Option<Monotonic>,
    /// The time between grants of late.
    interval: Option<Duration>,
}

impl Sent {
    fn then(self, now: Monotonic) -> Self {
        let interval = self.last.map(|last| {
            let interval = now.since(last);
            self.interval.map_or(interval, |before| before.saturating_add(interval) / 2)
        });
        Self { last: Some(now), interval }
    }
}

/// The requests under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Flights(BTreeMap<Ticket, Flight>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    /// Which grant it was, counted from one.
    number: u64,
    granted: Monotonic,
    /// Whether the head of its answer came.
    told: bool,
    /// What the service may have seen before it.
    before: Sent,
}

impl Flights {
    /// How many granted after that number have no answer.
    fn unanswered_after(&self, number: u64) -> usize {
        self.unanswered(number, u64::MAX)
    }

    /// How many granted between those numbers have no answer.
    fn unanswered(&self, after: u64, before: u64) -> usize {
        self.0.values().filter(|flight| !flight.told && after < flight.number && flight.number < before).count()
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod tests;
