//! Random lives of a supervisor, checked against what must hold whatever happens. [`Rig::tell`] checks the rest: no dial
//! leaks, none is named twice, nothing follows a close, a timer is always armed and a tick leaves none due.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::rig::*;
use super::*;
use crate::connection::backoff::{Backoff, Schedule};
use crate::connection::discover::Endpoint;

/// One thing that happens. Numbers choose among what there is: living attempts, dead ones, and none at all.
#[derive(Clone, Debug)]
enum Step {
    Pass { ms: u64, tick: bool },
    ToDeadline,
    Jump { ms: i64 },
    Discovered(Vec<u8>),
    DiscoverFailed,
    Resolved { endpoint: u8, targets: Vec<u8> },
    ResolveFailed(u8),
    Advanced { attempt: u64, phase: DialPhase },
    Failed { attempt: u64, hint_ms: Option<u64> },
    Refused(u64),
    Welcomed { attempt: u64, spread_ms: u64 },
    Exchanged(u64),
    Draining(u64),
    Spread { link: u64, ms: u64 },
    Lost { link: u64, code: Option<u16>, hint_ms: Option<u64> },
    Credential(Option<u64>),
    Delay(Option<u64>),
}

fn step() -> impl Strategy<Value = Step> {
    let hint = || proptest::option::weighted(0.3, 0..10_000u64);
    let phase =
        prop_oneof![Just(DialPhase::Connect), Just(DialPhase::Tls), Just(DialPhase::Upgrade), Just(DialPhase::Welcome)];
    let code = proptest::option::of(prop_oneof![
        Just(1000u16),
        Just(1006),
        Just(1008),
        Just(1012),
        Just(1013),
        Just(4401),
        any::<u16>()
    ]);
    let targets = || proptest::collection::vec(0..4u8, 0..4);
    // The newest attempts are the interesting ones.
    let attempt = || 0..6u64;
    prop_oneof![
        4 => (0..8_000u64, any::<bool>()).prop_map(|(ms, tick)| Step::Pass { ms, tick }),
        6 => Just(Step::ToDeadline),
        1 => (-10_000..10_000i64).prop_map(|ms| Step::Jump { ms }),
        6 => targets().prop_map(Step::Discovered),
        1 => Just(Step::DiscoverFailed),
        6 => (0..4u8, targets()).prop_map(|(endpoint, targets)| Step::Resolved { endpoint, targets }),
        1 => (0..4u8).prop_map(Step::ResolveFailed),
        2 => (attempt(), phase).prop_map(|(attempt, phase)| Step::Advanced { attempt, phase }),
        4 => (attempt(), hint()).prop_map(|(attempt, hint_ms)| Step::Failed { attempt, hint_ms }),
        2 => attempt().prop_map(Step::Refused),
        3 => (attempt(), 0..4_000u64).prop_map(|(attempt, spread_ms)| Step::Welcomed { attempt, spread_ms }),
        2 => attempt().prop_map(Step::Exchanged),
        1 => attempt().prop_map(Step::Draining),
        1 => (attempt(), 0..4_000u64).prop_map(|(link, ms)| Step::Spread { link, ms }),
        3 => (attempt(), code, hint()).prop_map(|(link, code, hint_ms)| Step::Lost { link, code, hint_ms }),
        4 => proptest::option::weighted(0.8, 0..3u64).prop_map(Step::Credential),
        2 => proptest::option::of(0..20_000u64).prop_map(Step::Delay),
    ]
}

fn place(n: u8) -> Endpoint {
    Endpoint::new(format!("ws://{n}.example"))
}

/// What the model remembers.
struct Model {
    rig: Rig,
    newest: u64,
    asked: bool,
    held: BTreeMap<Endpoint, Duration>,
    places: BTreeMap<Attempt, Endpoint>,
    /// Refusals that were told of the present credential while it was in use.
    present: Option<u64>,
}

impl Model {
    fn new(config: Config, seed: u64) -> Self {
        let rig = Rig::seeded(config, seed);
        let (held, places) = (BTreeMap::new(), BTreeMap::new());
        Self { rig, newest: 0, asked: false, held, places, present: None }
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        let denied = matches!(self.rig.supervisor.state, State::Denied(_));
        let another = matches!(&event, Event::Credential(Ok(generation)) if self.present.map(Generation::new) != Some(*generation));
        if let Event::Credential(answer) = &event {
            // Late answers are dropped: only an open ask is answered.
            if std::mem::take(&mut self.asked)
                && let Ok(generation) = answer
            {
                self.present = (0..3).find(|n| Generation::new(*n) == *generation);
            }
        }
        let had_link = self.rig.supervisor.link();
        if let Event::Failed { attempt, retry_after: Some(hint), .. } = &event
            && self.rig.in_flight.contains(attempt)
        {
            self.hold(*attempt, *hint);
        }
        if let Event::Lost { link, retry_after: Some(hint), .. } = &event
            && had_link == Some(*link)
        {
            self.hold(*link, *hint);
        }
        let actions = self.rig.tell(event.clone());
        let now = self.rig.time;
        for action in &actions {
            match action {
                Action::Dial { attempt, address } => {
                    self.newest = attempt.0;
                    self.places.insert(*attempt, address.endpoint.clone());
                    let held = self.held.get(&address.endpoint).is_some_and(|until| *until > now);
                    assert!(!held, "dialed {} before its hint was over", address.endpoint);
                    assert_eq!(self.rig.supervisor.link(), None, "no dial beside a link");
                    assert!(!self.asked, "no dial before the credential is known");
                }
                Action::AskCredential { .. } => self.asked = true,
                Action::Discover | Action::Resolve(_) => {
                    let source = self.rig.supervisor.config.credential_source;
                    assert!(!denied || !source || another, "denied, and no other credential");
                }
                Action::Abort { .. } | Action::AskDelay { .. } | Action::Disconnect { .. } | Action::Publish(_) => {}
            }
        }
        // Asks are over with the race, and once their bound has passed.
        self.asked &= self.rig.supervisor.armed().iter().any(|(timer, _)| *timer == SupervisorTimer::Credential);
        self.check_delay();
        actions
    }

    fn hold(&mut self, attempt: Attempt, hint: Duration) {
        let until = self.rig.time + hint;
        if let Some(place) = self.places.get(&attempt) {
            let held = self.held.entry(place.clone()).or_default();
            *held = until.max(*held);
        }
    }

    /// R8: no round is further away than the stated bounds.
    fn check_delay(&self) {
        let supervisor = &self.rig.supervisor;
        if let Some(delay) = self.rig.next_round()
            && supervisor.config.schedule == Schedule::Default
        {
            let outage = Monotonic::new(self.rig.time).since(supervisor.outage_since);
            let most = Backoff::default().cap(outage).max(supervisor.spread);
            assert!(delay <= most, "{delay:?} > {most:?}");
        }
    }

    fn attempt(&self, back: u64) -> Attempt {
        Attempt(self.newest.saturating_sub(back))
    }

    fn step(&mut self, step: Step) {
        let ms = Duration::from_millis;
        let event = match step {
            Step::Pass { ms: time, tick } => {
                self.rig.pass(ms(time));
                if !tick {
                    return;
                }
                Event::Tick
            }
            Step::ToDeadline => {
                let deadline = self.rig.deadline();
                self.rig.pass(deadline.saturating_sub(self.rig.time));
                Event::Tick
            }
            Step::Jump { ms: by } => {
                let by_abs = ms(by.unsigned_abs());
                self.rig.wall = if by < 0 { self.rig.wall - by_abs } else { self.rig.wall + by_abs };
                Event::Tick
            }
            Step::Discovered(places) => Event::Discovered { endpoints: places.into_iter().map(place).collect() },
            Step::DiscoverFailed => Event::DiscoverFailed { detail: "gone".into() },
            Step::Resolved { endpoint, targets } => {
                let targets = targets.iter().map(|target| Arc::from(format!("t{target}"))).collect();
                Event::Resolved { endpoint: place(endpoint), targets }
            }
            Step::ResolveFailed(endpoint) => Event::ResolveFailed { endpoint: place(endpoint), detail: "gone".into() },
            Step::Advanced { attempt, phase } => Event::Advanced { attempt: self.attempt(attempt), phase },
            Step::Failed { attempt, hint_ms } => {
                Event::Failed { attempt: self.attempt(attempt), cause: unreachable(), retry_after: hint_ms.map(ms) }
            }
            Step::Refused(attempt) => Event::Refused { attempt: self.attempt(attempt) },
            Step::Welcomed { attempt, spread_ms } => {
                Event::Welcomed { attempt: self.attempt(attempt), welcome: welcome(ms(spread_ms)) }
            }
            Step::Exchanged(link) => Event::Exchanged { link: self.attempt(link) },
            Step::Draining(link) => Event::Draining { link: self.attempt(link) },
            Step::Spread { link, ms: spread } => Event::Spread { link: self.attempt(link), spread: ms(spread) },
            Step::Lost { link, code, hint_ms } => Event::Lost {
                link: self.attempt(link),
                cause: Cause::Dropped { code },
                code,
                retry_after: hint_ms.map(ms),
            },
            Step::Credential(Some(generation)) => Event::Credential(Ok(Generation::new(generation))),
            Step::Credential(None) => Event::Credential(Err(offline())),
            Step::Delay(delay) => Event::Delay(delay.map(ms)),
        };
        self.tell(event);
    }
}

fn config() -> impl Strategy<Value = Config> {
    (any::<bool>(), any::<bool>()).prop_map(|(credential_source, asked)| Config {
        credential_source,
        schedule: if asked { Schedule::Asked } else { Schedule::Default },
        ..Config::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// R7, R8, FC-32: whatever happens, in whatever order, a timer is armed and no dial leaks; and as long as the caller
    /// does not close, a service that is there again is found, within the longest hint and one slow recheck.
    #[test]
    fn r8_every_life_recovers(config in config(), seed in any::<u64>(), steps in proptest::collection::vec(step(), 1..120)) {
        let mut model = Model::new(config, seed);
        for step in steps {
            model.step(step);
        }
        let Model { mut rig, .. } = model;
        // Whatever is open now is never answered; what is asked from here on is, by a healthy service.
        let mut healthy = single_instance(Duration::ZERO, Duration::ZERO);
        let mut healthy = |time: Duration, action: &Action| match action {
            Action::AskCredential { .. } => Some(Event::Credential(Ok(Generation::new(99)))),
            other => healthy(time, other),
        };
        if let Some(link) = rig.supervisor.link() {
            let actions = rig.lose(link, None);
            rig.answer(actions, &mut healthy);
        }
        let until = rig.time + SECOND * 60;
        rig.live_until(until, &mut healthy);
        prop_assert!(rig.supervisor.shown().is_up(), "{:?}", rig.supervisor);
    }

    /// R8: only the caller's close ends it, at any moment, and lets go of everything.
    #[test]
    fn r8_close_ends_every_life(config in config(), seed in any::<u64>(), steps in proptest::collection::vec(step(), 0..60), after in proptest::collection::vec(step(), 0..20)) {
        let mut model = Model::new(config, seed);
        for step in steps {
            model.step(step);
        }
        let link = model.rig.supervisor.link();
        let actions = model.tell(Event::Close);
        let disconnected = link.map(|link| Action::Disconnect { link, code: 1000 });
        prop_assert_eq!(disconnected.is_some(), actions.iter().any(|action| Some(action) == disconnected.as_ref()));
        prop_assert!(model.rig.in_flight.is_empty());
        prop_assert_eq!(actions.last(), Some(&Action::Publish(LinkState::Closed)));
        for step in after {
            if !matches!(step, Step::ToDeadline) {
                model.step(step);
            }
        }
    }
}
