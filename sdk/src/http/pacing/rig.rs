//! A budget in arithmetic time, and a service that answers it. For tests only. [`Rig::tell`] checks what holds always.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng};

use super::*;
use crate::machine::Wall;

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn limits(spacing: Duration, in_flight: usize, most_spacing: Duration) -> Limits {
    Limits { spacing, in_flight, most_spacing }
}

/// What an answer says that speaks of one window.
pub(super) fn left(remaining: u64, reset: Duration) -> Told {
    Told { windows: vec![crate::http::Window::new("core", None, remaining, reset)], ..Told::default() }
}

/// A refusal for the rate.
pub(super) fn refusal(retry_after: Option<Duration>) -> Told {
    Told { retry_after, throttled: true, ..Told::default() }
}

/// A machine, its time, and the laws.
pub(super) struct Rig {
    pub(super) pacing: Pacing,
    pub(super) time: Duration,
    pub(super) draws: StdRng,
    pub(super) granted: Vec<(Duration, Ticket)>,
    limits: Limits,
    /// As the machine should see it: who waits, in order, and who has a request under way.
    pub(super) waiting: VecDeque<Ticket>,
    pub(super) under_way: BTreeSet<Ticket>,
    /// Before when the service has told us not to come.
    pub(super) forbidden: Duration,
}

impl Rig {
    pub(super) fn new(limits: Limits, seed: u64) -> Self {
        Self {
            pacing: Pacing::new(limits),
            time: Duration::ZERO,
            draws: StdRng::seed_from_u64(seed),
            granted: Vec::new(),
            limits,
            waiting: VecDeque::new(),
            under_way: BTreeSet::new(),
            forbidden: Duration::ZERO,
        }
    }

    /// One event, at the present time. Returns who is granted.
    pub(super) fn tell(&mut self, event: Event) -> Vec<Ticket> {
        match &event {
            Event::Wanted(ticket) if self.waiting.contains(ticket) => {}
            Event::Wanted(ticket) if self.under_way.remove(ticket) => self.waiting.push_front(*ticket),
            Event::Wanted(ticket) => self.waiting.push_back(*ticket),
            Event::Ended(ticket) | Event::Unsent(ticket) => {
                self.waiting.retain(|waiting| waiting != ticket);
                self.under_way.remove(ticket);
            }
            Event::Told(_, told) => {
                let asked = told.retry_after.filter(|_| told.throttled).unwrap_or_default();
                let windows = told
                    .windows
                    .iter()
                    .filter(|w| w.limit != Some(0) && w.remaining.min(w.limit.unwrap_or(w.remaining)) == 0);
                let resets = windows.map(|window| window.reset.min(SECOND * 3600));
                let longest = resets.chain([asked.min(SECOND * 86_400)]).max().unwrap_or_default();
                self.forbidden = self.forbidden.max(self.time + longest * u32::from(!longest.is_zero()));
            }
            Event::Tick => {}
        }
        let now = Now { instant: Monotonic::new(self.time), wall: Wall::default(), draw: self.draws.next_u64() };
        let actions = self.pacing.on_event(now, event);
        let granted: Vec<_> = actions.into_iter().map(|Action::Grant(ticket)| ticket).collect();
        for ticket in &granted {
            assert_eq!(self.waiting.pop_front(), Some(*ticket), "first wanted, first granted");
            assert!(self.under_way.insert(*ticket));
            assert!(self.forbidden <= self.time, "granted at {:?}, forbidden before {:?}", self.time, self.forbidden);
            if let Some((last, _)) = self.granted.last() {
                assert!(self.time - *last >= self.limits.spacing, "two grants are {:?} apart", self.time - *last);
            }
            self.granted.push((self.time, *ticket));
        }
        let recent = self.granted.iter().rev().take_while(|(at, _)| self.time - *at < OCCUPIES);
        let recent: BTreeSet<_> = recent.filter(|(_, ticket)| self.under_way.contains(ticket)).collect();
        assert!(recent.len() <= self.limits.in_flight.max(1), "too many under way");
        assert_eq!(self.pacing.first(), self.waiting.front().copied());
        match self.pacing.deadline() {
            None => assert!(self.waiting.is_empty(), "a timer is armed while somebody waits (R7)"),
            Some(at) => assert!(at.since_start() > self.time, "a deadline that has passed leaves nothing to do"),
        }
        if self.forbidden > self.time {
            let held = self.pacing.held_until().unwrap_or_default().since_start();
            assert!(held >= self.forbidden, "the hold is known");
        }
        granted
    }

    /// Time passes, with every tick.
    pub(super) fn pass(&mut self, time: Duration) -> Vec<Ticket> {
        let end = self.time + time;
        let mut granted = Vec::new();
        while let Some(at) = self.pacing.deadline().map(Monotonic::since_start).filter(|at| *at <= end) {
            self.time = at;
            granted.extend(self.tell(Event::Tick));
        }
        self.time = end;
        granted
    }
}

/// A service, as its requests reach it.
pub(super) trait Service {
    /// What the answer to a request of ours at that time says; `None` for none at all.
    fn asked(&mut self, at: Duration) -> Option<Told>;
}

#[derive(Clone, Copy, Debug)]
enum Happens {
    Arrives(Ticket),
    Answered(Ticket),
    Ends(Ticket),
    Wants(usize),
    Leaves(Ticket),
}

/// Waiters that ask a service again and again, a `pause` after each answer.
pub(super) struct World<S> {
    pub(super) rig: Rig,
    pub(super) service: S,
    /// The longest time that a request takes to the service, and an answer back.
    pub(super) latency: Duration,
    pub(super) pause: Duration,
    /// In how many of a hundred cases a waiter leaves in a while, or a request gets lost.
    pub(super) accidents: u64,
    /// Accepted answers of each waiter.
    pub(super) served: Vec<usize>,
    agenda: BTreeMap<(Duration, u64), Happens>,
    answers: BTreeMap<Ticket, Told>,
    /// Which waiter's a ticket is.
    owners: BTreeMap<Ticket, usize>,
    count: u64,
}

impl<S: Service> World<S> {
    pub(super) fn new(limits: Limits, seed: u64, service: S, waiters: usize) -> Self {
        let mut world = Self {
            rig: Rig::new(limits, seed),
            service,
            latency: MS * 50,
            pause: SECOND,
            accidents: 0,
            served: vec![0; waiters],
            agenda: BTreeMap::new(),
            answers: BTreeMap::new(),
            owners: BTreeMap::new(),
            count: 0,
        };
        (0..waiters).for_each(|waiter| world.plan(Duration::ZERO, Happens::Wants(waiter)));
        world
    }

    fn plan(&mut self, after: Duration, what: Happens) {
        self.count += 1;
        self.agenda.insert((self.rig.time + after, self.count), what);
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.rig.draws.next_u64() % below.max(1)
    }

    fn travel(&mut self) -> Duration {
        let most = self.latency.as_micros() as u64;
        Duration::from_micros(1 + self.draw(most))
    }

    /// Everything that happens until `end`, or until `enough`.
    pub(super) fn run(&mut self, end: Duration, enough: impl Fn(&Self) -> bool) {
        while !enough(self) {
            let tick = self.rig.pacing.deadline().map(Monotonic::since_start);
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let Some(at) = tick.into_iter().chain(next).min().filter(|at| *at <= end) else {
                self.rig.time = end;
                return;
            };
            self.rig.time = at;
            let granted = if next == Some(at) {
                let happens = self.agenda.pop_first().map(|(_, happens)| happens);
                happens.map(|happens| self.happens(happens)).unwrap_or_default()
            } else {
                self.rig.tell(Event::Tick)
            };
            for ticket in granted {
                let (lost, travel) = (self.draw(100) < self.accidents, self.travel());
                self.plan(travel, if lost { Happens::Ends(ticket) } else { Happens::Arrives(ticket) });
            }
        }
    }

    fn happens(&mut self, happens: Happens) -> Vec<Ticket> {
        match happens {
            Happens::Wants(waiter) => {
                let ticket = Ticket::new(self.count);
                self.count += 1;
                self.owners.insert(ticket, waiter);
                if self.draw(100) < self.accidents {
                    let after = MS * (self.draw(3000) as u32);
                    self.plan(after, Happens::Leaves(ticket));
                }
                self.rig.tell(Event::Wanted(ticket))
            }
            Happens::Arrives(ticket) => {
                let travel = self.travel();
                match self.service.asked(self.rig.time) {
                    Some(told) => {
                        self.answers.insert(ticket, told);
                        self.plan(travel, Happens::Answered(ticket));
                    }
                    None => self.plan(travel, Happens::Ends(ticket)),
                }
                Vec::new()
            }
            Happens::Answered(ticket) => match (self.answers.remove(&ticket), self.owners.get(&ticket)) {
                (Some(told), Some(waiter)) => {
                    self.served[*waiter] += usize::from(!told.throttled);
                    self.plan(MS, Happens::Ends(ticket));
                    self.rig.tell(Event::Told(ticket, told))
                }
                (Some(_) | None, Some(_) | None) => Vec::new(),
            },
            // Whoever left comes back later; the request may end after he has.
            Happens::Ends(ticket) | Happens::Leaves(ticket) => match self.owners.remove(&ticket) {
                Some(waiter) => {
                    self.plan(self.pause, Happens::Wants(waiter));
                    self.rig.tell(Event::Ended(ticket))
                }
                None => Vec::new(),
            },
        }
    }

    /// How many were granted in that time.
    pub(super) fn rate(&self, from: Duration, to: Duration) -> usize {
        self.rig.granted.iter().filter(|(at, _)| (from..to).contains(at)).count()
    }
}
