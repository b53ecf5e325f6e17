//! A supervisor in virtual time, with a world that answers it. For tests only: arithmetic, no clock.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::connection::discover::Endpoint;
use crate::connection::wake;
use crate::key::Principal;
use crate::wire::{Epoch, LogId};

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn welcome(spread: Duration) -> Arc<Welcome> {
    Arc::new(Welcome {
        epoch: Epoch::new(ulid::Ulid::from_parts(1, 1)),
        log: LogId::new(ulid::Ulid::from_parts(1, 2)),
        head: 0,
        durable: true,
        principal: Principal::new("anonymous").unwrap(),
        now: 0,
        heartbeat: SECOND * 10,
        retention: SECOND * 86_400,
        spread,
    })
}

pub(super) fn unreachable() -> Cause {
    Cause::Unreachable { detail: "refused".into() }
}

/// Why a source of credentials has none.
pub(super) fn offline() -> Cause {
    Cause::CredentialUnavailable { detail: "offline".into() }
}

pub(super) enum Draws {
    Fixed(u64),
    Seeded(Box<StdRng>),
}

/// A supervisor, its time, and what it has under way. Checks after every event what holds always.
pub(super) struct Rig {
    pub(super) supervisor: Supervisor,
    pub(super) time: Duration,
    pub(super) wall: Duration,
    pub(super) draws: Draws,
    /// Dials that have not ended, as the driver sees it.
    pub(super) in_flight: BTreeSet<Attempt>,
    pub(super) closed: bool,
    dialed: u64,
}

impl Rig {
    pub(super) fn new(config: Config, draws: Draws) -> Self {
        let wall = SECOND * 1_700_000_000;
        let now = Now { instant: Monotonic::ZERO, wall: Wall::new(wall), draw: 0 };
        let supervisor = Supervisor::new(&now, config);
        Self { supervisor, time: Duration::ZERO, wall, draws, in_flight: BTreeSet::new(), closed: false, dialed: 0 }
    }

    pub(super) fn fixed(config: Config, draw: u64) -> Self {
        Self::new(config, Draws::Fixed(draw))
    }

    pub(super) fn seeded(config: Config, seed: u64) -> Self {
        Self::new(config, Draws::Seeded(Box::new(StdRng::seed_from_u64(seed))))
    }

    pub(super) fn now(&mut self) -> Now {
        let draw = match &mut self.draws {
            Draws::Fixed(draw) => *draw,
            Draws::Seeded(rng) => rng.next_u64(),
        };
        Now { instant: Monotonic::new(self.time), wall: Wall::new(self.wall), draw }
    }

    /// Time passes, on both clocks.
    pub(super) fn pass(&mut self, time: Duration) {
        self.time += time;
        self.wall += time;
    }

    pub(super) fn deadline(&self) -> Duration {
        self.supervisor.deadline().expect("a timer is armed (R7)").since_start()
    }

    /// One event, at the present time.
    pub(super) fn tell(&mut self, event: Event) -> Vec<Action> {
        let now = self.now();
        self.closed |= event == Event::Close;
        let (ended, won) = match event {
            Event::Failed { attempt, .. } | Event::Refused { attempt } => (Some(attempt), None),
            Event::Welcomed { attempt, .. } => (Some(attempt), Some(attempt)),
            _ => (None, None),
        };
        let alive = ended.is_some_and(|attempt| self.in_flight.remove(&attempt));
        let was_closed = *self.supervisor.shown() == LinkState::Closed;
        let shown = self.supervisor.shown().clone();
        let tick = event == Event::Tick;
        let actions = self.supervisor.on_event(now, event);
        if was_closed {
            assert_eq!(actions, [], "nothing after a close");
        }
        for action in &actions {
            match action {
                Action::Dial { attempt, .. } => {
                    assert!(attempt.0 > self.dialed, "no attempt is named twice");
                    self.dialed = attempt.0;
                    self.in_flight.insert(*attempt);
                }
                Action::Abort { attempt } => {
                    assert!(self.in_flight.remove(attempt), "only a dial in flight is aborted, once");
                }
                Action::Publish(state) => assert_ne!(*state, shown, "only a change is published"),
                _ => {}
            }
        }
        if let Some(attempt) = won.filter(|_| alive) {
            assert_eq!(self.supervisor.link(), Some(attempt), "the first to be welcomed wins");
        }
        let flights: BTreeSet<Attempt> = match &self.supervisor.state {
            State::Down(race) => race.flights.keys().copied().collect(),
            _ => BTreeSet::new(),
        };
        assert_eq!(flights, self.in_flight, "no dial leaks");
        match self.supervisor.deadline() {
            None => assert_eq!(*self.supervisor.shown(), LinkState::Closed, "a timer is armed until the close (R7)"),
            Some(at) => {
                assert_ne!(*self.supervisor.shown(), LinkState::Closed);
                assert!(!tick || at > now.instant, "a tick leaves no timer due: {:?}", self.supervisor.armed());
                assert!(at <= now.instant + wake::CHECK_EVERY, "a jump is noticed within a second (R7)");
            }
        }
        actions
    }

    /// Time passes to `until`, with a tick at each deadline. Returns what was asked for, and when.
    pub(super) fn run_until(&mut self, until: Duration) -> Vec<(Duration, Action)> {
        let mut done = Vec::new();
        while let Some(deadline) = self.supervisor.deadline() {
            let deadline = deadline.since_start().max(self.time);
            if deadline > until {
                break;
            }
            self.pass(deadline - self.time);
            let actions = self.tell(Event::Tick);
            done.extend(actions.into_iter().map(|action| (self.time, action)));
        }
        self.pass(until - self.time);
        done
    }

    /// As `run_until`, but stops at the first action that `stop` accepts.
    pub(super) fn run_to(&mut self, within: Duration, stop: impl Fn(&Action) -> bool) -> Vec<Action> {
        let until = self.time + within;
        while self.time <= until {
            let deadline = self.deadline().max(self.time);
            self.pass(deadline - self.time);
            let actions = self.tell(Event::Tick);
            if actions.iter().any(&stop) {
                return actions;
            }
        }
        panic!("not within {within:?}: {:?}", self.supervisor.armed());
    }

    /// Time passes to `until`; `world` answers each action at once, as often as that asks for more.
    pub(super) fn live_until(&mut self, until: Duration, world: &mut dyn FnMut(Duration, &Action) -> Option<Event>) {
        loop {
            let Some(deadline) = self.supervisor.deadline() else { return };
            let deadline = deadline.since_start().max(self.time);
            if deadline > until {
                break;
            }
            self.pass(deadline - self.time);
            let actions = self.tell(Event::Tick);
            self.answer(actions, world);
        }
        self.pass(until - self.time);
    }

    pub(super) fn answer(&mut self, actions: Vec<Action>, world: &mut dyn FnMut(Duration, &Action) -> Option<Event>) {
        let mut open = std::collections::VecDeque::from(actions);
        while let Some(action) = open.pop_front() {
            if let Some(event) = world(self.time, &action) {
                let more = self.tell(event);
                open.extend(more);
            }
        }
    }

    /// Tick, discovery of one endpoint with one target, and the dial that follows.
    pub(super) fn dial(&mut self) -> Attempt {
        self.dial_at(&["a"])
    }

    /// As `dial`, with several targets: the first dial.
    pub(super) fn dial_at(&mut self, targets: &[&str]) -> Attempt {
        self.run_to(SECOND * 60, |action| *action == Action::Discover);
        self.found(targets)
    }

    /// Answers discovery and the resolver: the first dial.
    pub(super) fn found(&mut self, targets: &[&str]) -> Attempt {
        *dials(&self.resolved(targets)).first().expect("a dial")
    }

    /// As `found`, while the credential is awaited: no dial yet.
    pub(super) fn found_later(&mut self, targets: &[&str]) {
        assert_eq!(dials(&self.resolved(targets)), [], "not before the credential is known");
    }

    fn resolved(&mut self, targets: &[&str]) -> Vec<Action> {
        self.tell(Event::Discovered { endpoints: vec![endpoint()] });
        let targets = targets.iter().map(|target| Arc::from(*target)).collect();
        self.tell(Event::Resolved { endpoint: endpoint(), targets })
    }

    /// A link, just welcomed.
    pub(super) fn up(&mut self, spread: Duration) -> Attempt {
        let attempt = self.dial();
        self.tell(Event::Welcomed { attempt, welcome: welcome(spread) });
        attempt
    }

    /// A link that has proven healthy.
    pub(super) fn proven(&mut self, spread: Duration) -> Attempt {
        let link = self.up(spread);
        self.tell(Event::Exchanged { link });
        self.run_until(self.time + SECOND * 6);
        link
    }

    pub(super) fn lose(&mut self, link: Attempt, code: Option<u16>) -> Vec<Action> {
        self.tell(Event::Lost { link, cause: Cause::Dropped { code }, code, retry_after: None })
    }

    pub(super) fn fail(&mut self, attempt: Attempt) -> Vec<Action> {
        self.tell(Event::Failed { attempt, cause: unreachable(), retry_after: None })
    }

    /// When the next round begins, from now.
    pub(super) fn next_round(&self) -> Option<Duration> {
        let armed = self.supervisor.armed().into_iter();
        let mut next = armed.filter(|(timer, _)| *timer == SupervisorTimer::NextRound);
        next.next().map(|(_, at)| at.since(Monotonic::new(self.time)))
    }
}

pub(super) fn endpoint() -> Endpoint {
    Endpoint::new("ws://builds.example")
}

pub(super) fn dials(actions: &[Action]) -> Vec<Attempt> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Dial { attempt, .. } => Some(*attempt),
            _ => None,
        })
        .collect()
}

/// A world with one endpoint at one target, whose service is there from `back` on.
pub(super) fn single_instance(back: Duration, spread: Duration) -> impl FnMut(Duration, &Action) -> Option<Event> {
    move |time, action| match action {
        Action::Discover => Some(Event::Discovered { endpoints: vec![endpoint()] }),
        Action::Resolve(endpoint) => Some(Event::Resolved { endpoint: endpoint.clone(), targets: vec!["a".into()] }),
        Action::Dial { attempt, .. } if time >= back => {
            Some(Event::Welcomed { attempt: *attempt, welcome: welcome(spread) })
        }
        Action::Dial { attempt, .. } => {
            Some(Event::Failed { attempt: *attempt, cause: unreachable(), retry_after: None })
        }
        Action::AskCredential { .. } => Some(Event::Credential(Ok(Generation::new(1)))),
        Action::AskDelay { .. } => Some(Event::Delay(None)),
        Action::Abort { .. } | Action::Disconnect { .. } | Action::Publish(_) => None,
    }
}
