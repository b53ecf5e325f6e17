//! The machine against a service that lies, and a small model of what R1 to R10 permit then.

use std::time::Duration;

use proptest::prelude::*;
use ulid::Ulid;

use super::*;
use crate::http::poll::{Answer, Generation, Pace};
use crate::machine::{Machine as _, Wall};

const SECOND: Duration = Duration::from_secs(1);

fn marks() -> impl Strategy<Value = Marks> {
    (prop::option::of(0..3_u64), prop::option::of(0..4_u64), any::<bool>())
        .prop_map(|(attempt, version, terminal)| Marks { attempt, version, terminal })
}

fn cause() -> impl Strategy<Value = Cause> {
    prop::sample::select(vec![
        Cause::Dropped { code: None },
        Cause::Status { code: 502 },
        Cause::Undecodable { detail: "a number".into() },
        Cause::RateLimited { retry_after: SECOND },
        Cause::Unreachable { detail: "refused".into() },
    ])
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        6 => marks().prop_map(Answer::Value),
        2 => Just(Answer::Same),
        3 => Just(Answer::Unchanged),
        2 => Just(Answer::Nothing),
        2 => Just(Answer::Absent),
        1 => Just(Answer::Refused(Generation::new(1))),
        3 => cause().prop_map(Answer::Unserved),
    ]
}

fn hint() -> impl Strategy<Value = Option<Duration>> {
    prop::option::weighted(0.15, (0..20_000_u64).prop_map(Duration::from_millis))
}

fn answered() -> impl Strategy<Value = Event> {
    (answer(), hint(), hint()).prop_map(|(answer, retry_after, holds)| Event::Answered { answer, retry_after, holds })
}

fn failed() -> impl Strategy<Value = Event> {
    (cause(), any::<bool>()).prop_map(|(cause, again)| Event::Failed { cause, again })
}

fn streamed() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Attached),
        1 => Just(Event::Detached(Cause::Dropped { code: None })),
        3 => Just(Event::Hint),
        6 => marks().prop_map(|marks| Event::Pushed(Some(marks))),
        1 => Just(Event::Pushed(None)),
        1 => Just(Event::Woke),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let wait = prop::option::of((0..60_000_u64).prop_map(Duration::from_millis));
    let give_up = prop::option::weighted(0.2, (0..60_u64).prop_map(Duration::from_secs));
    (wait, give_up, any::<bool>()).prop_map(|(wait, give_up, reopens)| Settings {
        wait,
        give_up,
        reopens,
        ..Settings::default()
    })
}

#[derive(Clone, Debug)]
enum Op {
    On(Event),
    Held(u64),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let phase =
        prop::sample::select(vec![Phase::Credential, Phase::Connect, Phase::FirstByte, Phase::Idle, Phase::Write]);
    prop_oneof![
        12 => Just(Op::On(Event::Permitted)),
        12 => answered().prop_map(Op::On),
        3 => failed().prop_map(Op::On),
        8 => streamed().prop_map(Op::On),
        2 => phase.prop_map(|phase| Op::On(Event::Began(phase))),
        1 => (0..20_000_u64).prop_map(|millis| Op::On(Event::Told(Duration::from_millis(millis)))),
        2 => (0..30_000_u64).prop_map(Op::Held),
        14 => prop_oneof![0..1_500_u64, 0..70_000_u64].prop_map(Op::Pass),
        1 => prop::sample::select(vec![Event::Tick, Event::Start]).prop_map(Op::On),
        1 => prop::sample::select(vec![
            Event::Denied,
            Event::Close,
            Event::Answered { answer: Answer::Gone, retry_after: None, holds: None },
        ]).prop_map(Op::On),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Request {
    validate: bool,
    sent: Duration,
    overtaken: bool,
    /// Whether it is the second attempt of one look.
    second: bool,
    /// Whether a stream was up when it was sent, and still is.
    beside: bool,
}

/// What an observer and the budget know.
#[derive(Debug, Default)]
struct Model {
    wanted: bool,
    second: bool,
    flight: Option<Request>,
    shown: Option<Marks>,
    pushed: bool,
    fresh: bool,
    last: Option<Shown>,
    ended: bool,
    attached: bool,
    confirmed: bool,
    count: u64,
    hold: Duration,
    /// Since when every answer was that there is none, and for how long that was said in all.
    absent: Option<Duration>,
    absent_for: Duration,
    contradicted: Option<Duration>,
    /// Whether the service may be another life of itself, and since when all that it says is of a lower version.
    broken: bool,
    lower: Option<Duration>,
    outage: Option<(Duration, bool)>,
}

/// Whether `new` may be shown after `old` without any other answer.
fn in_order(old: Marks, new: Marks) -> bool {
    match (old.attempt, new.attempt) {
        (Some(old), Some(new)) if old != new => new > old,
        _ => match (old.version, new.version) {
            (Some(old), Some(new)) => new >= old,
            _ => true,
        },
    }
}

fn proves(old: Marks, new: Marks) -> bool {
    let higher = |old: Option<u64>, new: Option<u64>| old.zip(new).is_some_and(|(old, new)| new > old);
    higher(old.attempt, new.attempt) || old.attempt == new.attempt && higher(old.version, new.version)
}

fn same_attempt(old: Marks, new: Marks) -> bool {
    old.attempt.is_some() && old.attempt == new.attempt
}

impl Model {
    /// What the event says, before the machine is asked; what may be shown because of it.
    fn may_show(&mut self, now: Duration, event: &Event, settings: &Settings) -> May {
        let no = May::default();
        if matches!(event, Event::Attached | Event::Detached(_)) {
            (self.attached, self.confirmed) = (matches!(event, Event::Attached), false);
            self.flight = self.flight.map(|flight| Request { beside: false, ..flight });
        }
        if let Event::Pushed(Some(new)) = event {
            let ordered = self.shown.is_some_and(|old| in_order(old, *new) && proves(old, *new) && !self.reopens(*new));
            return May { take: (self.confirmed && ordered).then_some(*new), ..no };
        }
        self.broken |= !matches!(event, Event::Answered { answer: Answer::Value(_) | Answer::Same, .. });
        let Some(flight) = self.flight else { return no };
        if let Event::Failed { .. } = event {
            (self.absent, self.lower) = (None, None);
            return no;
        }
        let Event::Answered { answer, retry_after, .. } = event else { return no };
        self.hold = now + retry_after.unwrap_or_default();
        let before = self.absent.take();
        let lower = self.lower.take();
        match answer {
            Answer::Value(new) => {
                let Some(old) = self.shown else { return May { take: Some(*new), ..no } };
                let counts_anew = old.version > new.version
                    && new.version.is_some()
                    && old.attempt.is_none_or(|old| new.attempt.is_none_or(|new| new == old));
                if self.broken && counts_anew && !flight.overtaken && (new.terminal || !old.terminal) {
                    let first = lower.unwrap_or(now);
                    self.lower = Some(first);
                    return May { take: (now - first >= settings.grace.max(SECOND)).then_some(*new), ..no };
                }
                if flight.overtaken && !proves(old, *new) || !in_order(old, *new) {
                    return no;
                }
                if self.reopens(*new) {
                    if same_attempt(old, *new) && !settings.reopens {
                        return no;
                    }
                    let first = *self.contradicted.get_or_insert(now);
                    return May { take: (now - first >= SECOND).then_some(*new), ..no };
                }
                May { take: Some(*new), ..no }
            }
            Answer::Same => May { confirm: self.shown.is_some() && !flight.overtaken, ..no },
            Answer::Unchanged => May { confirm: flight.validate && !flight.overtaken, ..no },
            Answer::Nothing => {
                let waited = settings.wait.is_some_and(|_| now > flight.sent);
                May { confirm: self.shown.is_some() && !flight.overtaken && (flight.validate || waited), ..no }
            }
            Answer::Absent if flight.overtaken => no,
            Answer::Absent => {
                let last = before.unwrap_or(now);
                self.absent = Some(now);
                self.absent_for =
                    if before.is_none() && self.shown.is_some() { Duration::ZERO } else { self.absent_for };
                self.absent_for += now - last;
                let needed = if self.shown.is_some() { settings.grace.max(SECOND) } else { settings.grace };
                May { end: (self.absent_for >= needed).then_some(End::Gone), ..no }
            }
            Answer::Gone => May { end: (!flight.overtaken).then_some(End::Gone), ..no },
            Answer::Refused(_) | Answer::Unserved(_) => no,
        }
    }

    fn reopens(&self, new: Marks) -> bool {
        self.shown.is_some_and(|old| {
            let later = old.attempt.zip(new.attempt).is_some_and(|(old, new)| new > old);
            old.terminal && !new.terminal && !later
        })
    }

    fn perform(
        &mut self,
        now: Duration,
        event: &Event,
        may: &May,
        action: &Action,
        settings: &Settings,
    ) -> Result<(), TestCaseError> {
        prop_assert!(!self.ended, "R3: nothing follows an end, but {action:?} did");
        match action {
            Action::Want => {
                prop_assert!(!self.wanted && self.flight.is_none(), "one request at a time");
                prop_assert!(now >= self.hold, "FC-55: before the hint");
                self.wanted = true;
                self.second = matches!(event, Event::Failed { again: true, .. });
            }
            Action::Withdraw => {
                prop_assert!(self.wanted);
                self.wanted = false;
            }
            Action::Send { validate, .. } => {
                prop_assert!(
                    self.wanted && self.flight.is_none() && *event == Event::Permitted,
                    "as the budget permits"
                );
                prop_assert!(
                    !validate || self.shown.is_some() && !self.pushed,
                    "there is a validator for what is shown"
                );
                self.wanted = false;
                self.flight = Some(Request {
                    validate: *validate,
                    sent: now,
                    overtaken: false,
                    second: self.second,
                    beside: self.attached,
                });
                if let Some((_, retried)) = &mut self.outage {
                    *retried = true;
                }
            }
            Action::Abort => {
                prop_assert!(self.flight.is_some());
                self.flight = None;
            }
            Action::Scheduled(interval) => prop_assert!(*interval > Duration::ZERO),
            Action::Publish(shown) => {
                let repeats = self.last.as_ref() == Some(shown);
                prop_assert!(!repeats, "said twice: {shown:?}");
                self.last = Some(shown.clone());
                self.publish(now, event, may, shown, settings)?;
            }
        }
        Ok(())
    }

    fn publish(
        &mut self,
        now: Duration,
        event: &Event,
        may: &May,
        shown: &Shown,
        settings: &Settings,
    ) -> Result<(), TestCaseError> {
        match shown {
            Shown::Fresh { at, take } => {
                let Cursor::Epoch { count, .. } = *at else { return Err(TestCaseError::fail("a log?")) };
                prop_assert!(count > self.count, "R4: requests are ordered");
                self.count = count;
                if *take {
                    let Some(new) = may.take else { return Err(TestCaseError::fail("it was not given that")) };
                    let old = self.shown.unwrap_or_default();
                    let higher = old.attempt.zip(new.attempt).is_some_and(|(old, new)| new > old);
                    self.shown = Some(Marks {
                        attempt: new.attempt.or(old.attempt),
                        version: if higher { new.version } else { new.version.or(old.version) },
                        terminal: new.terminal,
                    });
                    self.pushed = matches!(event, Event::Pushed(_));
                } else {
                    prop_assert!(may.confirm && self.shown.is_some(), "R5: nobody confirmed it");
                    self.pushed = false;
                }
                (self.fresh, self.contradicted, self.absent, self.absent_for) = (true, None, None, Duration::ZERO);
                (self.broken, self.lower) = (false, None);
                self.outage = None;
                match (event, &mut self.flight) {
                    (Event::Pushed(_), Some(flight)) => flight.overtaken = true,
                    (Event::Answered { .. }, Some(flight)) => self.confirmed |= flight.beside,
                    _ => {}
                }
            }
            Shown::Stale { .. } => {
                prop_assert!(self.shown.is_some(), "R2");
                self.fresh = false;
            }
            Shown::Loading { .. } => prop_assert!(self.shown.is_none(), "R1: what is loaded stays loaded"),
            Shown::Ended(End::Gone) => prop_assert_eq!(may.end, Some(End::Gone), "R3"),
            Shown::Ended(End::Denied) => prop_assert_eq!(event, &Event::Denied, "R3"),
            Shown::Ended(End::Closed) => {
                let bears = settings.give_up.zip(self.outage);
                let gives_up = bears.is_some_and(|(bears, (since, retried))| retried && now - since >= bears);
                prop_assert!(*event == Event::Close || gives_up, "R3, FC-45");
            }
        }
        self.ended |= matches!(shown, Shown::Ended(_));
        Ok(())
    }

    /// One event, and what has to be true afterwards.
    fn step(&mut self, machine: &mut Machine, now: Duration, draw: u64, event: Event) -> Result<(), TestCaseError> {
        let settings = machine.settings.clone();
        let may = self.may_show(now, &event, &settings);
        // The request is over: with this answer, or with none.
        let ending = if let Event::Answered { answer, .. } = &event { Some(Some(answer.clone())) } else { None };
        let ending = if matches!(event, Event::Failed { .. }) { Some(None) } else { ending };
        let ending = ending.filter(|_| self.flight.is_some());
        let flight = self.flight;
        let held = machine.hold > Monotonic::new(now);
        let retries =
            matches!(&event, Event::Failed { again: true, .. }) && flight.is_some_and(|flight| !flight.second) && !held;
        let at = Now { instant: Monotonic::new(now), wall: Wall::default(), draw };
        if ending.is_some() {
            self.outage = match (&ending, self.outage) {
                (Some(Some(Answer::Refused(_) | Answer::Unserved(_))), before) => before.or(Some((now, false))),
                (Some(Some(Answer::Unchanged)), before) if !flight.is_some_and(|f| f.validate || f.overtaken) => {
                    before.or(Some((now, false)))
                }
                (Some(Some(Answer::Same)), before) if self.shown.is_none() => before.or(Some((now, false))),
                (Some(Some(Answer::Absent)), before) => before,
                (Some(Some(_)), _) => None,
                (Some(None), before) if !retries => before.or(Some((now, false))),
                (_, before) => before,
            };
        }
        let actions = machine.on_event(at, event.clone());
        for action in &actions {
            // The request is over with its answer, before another one is wanted.
            if ending.is_some() && !matches!(action, Action::Publish(_)) {
                self.flight = None;
            }
            self.perform(now, &event, &may, action, &settings)?;
        }
        if ending.is_some() {
            self.flight = None;
        }
        if let Event::Tick = event {
            // A stall.
            if actions.contains(&Action::Abort) {
                self.outage = self.outage.or(Some((now, false)));
                (self.absent, self.lower) = (None, None);
            }
        }
        prop_assert_eq!(machine.is_ended(), self.ended);
        let waits = machine.deadline().is_some() || self.wanted;
        prop_assert_eq!(waits, !self.ended, "R7: something is armed or wanted");
        prop_assert!(self.flight.is_none() || machine.deadline().is_some() || self.ended, "R7: each phase has a bound");
        Ok(())
    }
}

/// What an event permits to be shown.
#[derive(Clone, Debug, Default)]
struct May {
    take: Option<Marks>,
    confirm: bool,
    end: Option<End>,
}

fn begun(settings: Settings) -> (Machine, Model) {
    let started = Now { instant: Monotonic::ZERO, wall: Wall::default(), draw: 0 };
    (Machine::new(settings, Epoch::new(Ulid(7)), started), Model::default())
}

/// The machine, its model, and the time.
struct Run {
    machine: Machine,
    model: Model,
    now: Duration,
    draws: u64,
    sent: u64,
}

impl Run {
    fn new(settings: Settings, seed: u64) -> Self {
        let (machine, model) = begun(settings);
        Self { machine, model, now: Duration::ZERO, draws: seed | 1, sent: 0 }
    }

    fn draw(&mut self) -> u64 {
        // xorshift64*: every schedule has its own draws, and the same again when it is replayed.
        self.draws ^= self.draws >> 12;
        self.draws ^= self.draws << 25;
        self.draws ^= self.draws >> 27;
        self.draws.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn on(&mut self, event: Event) -> Result<(), TestCaseError> {
        let before = self.model.flight.is_some();
        let draw = self.draw();
        self.model.step(&mut self.machine, self.now, draw, event)?;
        self.sent += u64::from(!before && self.model.flight.is_some());
        Ok(())
    }

    /// Lets the time pass until `end`; whatever is wanted is permitted, and whatever is sent is answered as `lie` says.
    fn serve(
        &mut self,
        end: Duration,
        mut lie: impl FnMut(&Model) -> (Duration, Option<Event>),
    ) -> Result<(), TestCaseError> {
        let mut due: Option<(Duration, Event)> = None;
        while !self.model.ended {
            if self.model.wanted {
                self.on(Event::Permitted)?;
                due = None;
                if self.model.flight.is_some() {
                    let (latency, event) = lie(&self.model);
                    due = event.map(|event| (self.now + latency, event));
                }
            }
            let timer = self.machine.deadline().map(Monotonic::since_start);
            match due.take() {
                Some((at, event)) if timer.is_none_or(|timer| at <= timer) && at <= end => {
                    self.now = self.now.max(at);
                    self.on(event)?;
                }
                other => {
                    due = other;
                    let Some(timer) = timer.filter(|&timer| timer <= end) else { break };
                    self.now = self.now.max(timer);
                    self.on(Event::Tick)?;
                    if self.model.flight.is_none() {
                        due = None;
                    }
                }
            }
        }
        self.now = self.now.max(end);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Any order of events: a service that lies, streams that come and go, budgets that hold, clocks that jump.
    #[test]
    fn r1_r2_r3_r4_r5_r7_r10_hold_against_a_service_that_lies(
        settings in settings(),
        seed in any::<u64>(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut run = Run::new(settings, seed);
        run.on(Event::Start)?;
        for op in ops {
            match op {
                // Strays: the budget permits only what is wanted, and only what is under way is answered.
                Op::On(Event::Permitted) if !run.model.wanted => {}
                Op::On(Event::Answered { .. } | Event::Failed { .. }) if run.model.flight.is_none() => {}
                Op::On(event) => run.on(event)?,
                Op::Held(millis) => {
                    let until = Monotonic::new(run.now) + Duration::from_millis(millis);
                    if run.model.wanted {
                        run.on(Event::Held { until })?;
                    }
                }
                Op::Pass(millis) => {
                    let end = run.now + Duration::from_millis(millis);
                    while let Some(timer) = run.machine.deadline().map(Monotonic::since_start).filter(|&at| at <= end) {
                        run.now = run.now.max(timer);
                        run.on(Event::Tick)?;
                        let next = run.machine.deadline().map(Monotonic::since_start);
                        prop_assert!(next.is_none_or(|next| next > run.now), "a tick settles its timer");
                    }
                    run.now = end;
                }
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// The rate has a bound whatever is answered; and once the service tells the truth, it is shown.
    #[test]
    fn r8_the_rate_is_bounded_and_the_truth_is_shown_in_the_end(
        wait in prop::option::of((500..40_000_u64).prop_map(Duration::from_millis)),
        seed in any::<u64>(),
        lies in prop::collection::vec(
            (prop_oneof![4 => Just(0), 1 => 0..3_000_u64], prop_oneof![9 => answered().prop_map(Some), 3 => failed().prop_map(Some), 1 => Just(None)]),
            1..12,
        ),
        events in prop::collection::vec((streamed(), 20..2_000_u64), 0..12),
        truth in any::<bool>(),
    ) {
        let settings = Settings { wait, pace: Pace::default(), ..Settings::default() };
        let mut run = Run::new(settings, seed);
        run.on(Event::Start)?;
        let mut lie = lies.iter().cycle();
        let mut told = |_: &Model| {
            let (millis, event) = lie.next().cloned().unwrap_or((0, None));
            (Duration::from_millis(millis), event)
        };
        let end = 120 * SECOND;
        let mut events = events.iter().cycle();
        while run.now < end && !run.model.ended {
            let Some((event, pause)) = events.next().cloned() else {
                run.serve(end, &mut told)?;
                break;
            };
            run.on(event)?;
            let until = run.now + Duration::from_millis(pause);
            run.serve(until, &mut told)?;
        }
        // The worst that these schedules reach is a good answer amid failures, each time once the pace or a hint permits: then a
        // young outage begins again. A budget comes on top; this is what one read does without it.
        prop_assert!(run.sent <= 20 + 16 * 120, "{} requests in two minutes", run.sent);

        // It tells the truth: of a later attempt, and 304 to who knows it already.
        let honest = Marks { attempt: Some(9), version: Some(9), terminal: truth };
        let answer = |model: &Model| {
            let current = model.shown.is_some_and(|shown| shown == honest);
            let flight = model.flight.map(|flight| flight.validate);
            let answer = if current && flight == Some(true) { Answer::Unchanged } else { Answer::Value(honest) };
            (Duration::from_millis(50), Some(Event::Answered { answer, retry_after: None, holds: None }))
        };
        let recovery = recovery(&run.machine.settings);
        let bound = run.now + recovery;
        run.serve(bound, answer)?;
        if !run.model.ended {
            prop_assert_eq!(run.model.shown, Some(honest), "within {:?}", recovery);
            prop_assert!(run.model.fresh, "R8: fresh within {recovery:?}");
        }
    }
}

/// A hang is found, then the longest of what puts off a look; the answer comes.
fn recovery(settings: &Settings) -> Duration {
    let hang = settings.bounds.first_byte + settings.wait.unwrap_or_default();
    // What the services of this model ask for at most.
    let stated = 20 * SECOND;
    let quiet = settings.pace.most.max(settings.reread).max(settings.backoff.most_cap).max(stated);
    hang + quiet + SECOND
}
