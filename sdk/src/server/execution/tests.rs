//! The machine against a real log's pure store, with a fault at every step.

mod schedules;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::to_raw_value;

use super::*;
use crate::key::{CommandRef, Principal};
use crate::log::{LogId, Store};
use crate::server::outcome::{Events, Outcome, Running, Settle};
use crate::server::record::subject_of;
use crate::wire::{CommandFailure, Retry};

const LOG: Duration = Duration::from_secs(10);
const ATTEMPT: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_secs(3600);
const SIGMA: Duration = Duration::from_secs(30);

/// What a caller was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answered {
    Report { status: CommandStatus, accepted: Seq },
    Refused(RefusalCode),
}

use Answered::{Refused as No, Report as Yes};

/// One replica: a machine and its operation under way, on a log that others share.
struct Replica {
    machine: Execution,
    operation: Option<Action>,
    left_out: usize,
}

struct Rig {
    store: Store,
    now: Now,
    replicas: Vec<Replica>,
    wants: BTreeMap<Caller, Want>,
    answers: BTreeMap<Caller, Answered>,
    runs: usize,
    /// What the handler decides, given the aggregate's head.
    handler: fn(Option<Seq>) -> Outcome,
}

fn command(key: &str) -> CommandRef {
    CommandRef::new(Principal::new("alice").unwrap(), key)
}

fn key() -> Subject {
    subject_of(&command("k")).unwrap()
}

fn aggregate() -> Subject {
    Subject::of(["build", "1"])
}

fn events(head: Option<Seq>) -> Outcome {
    Outcome::Events(Events::on(aggregate()).version(head).push("effect"))
}

fn running(head: Option<Seq>) -> Outcome {
    let events = Events::on(aggregate()).version(head).push("effect");
    Outcome::Running(Running::new(events).on_cancel(aggregate(), "stop"))
}

fn call(params: u32) -> Want {
    call_minted(params, Wall::from_millis(1_000_000_000))
}

fn call_minted(params: u32, minted: Wall) -> Want {
    let fingerprint = Fingerprint::of("farm.v1/build", &to_raw_value(&params).unwrap()).unwrap();
    Want::Call(Offer { method: "farm.v1/build".into(), fingerprint, level: KeyLevel::Minted, minted, id: Ulid::nil() })
}

fn cancel() -> Want {
    Want::Cancel { minted: Wall::from_millis(1_000_000_000) }
}

impl Rig {
    fn new(replicas: usize, handler: fn(Option<Seq>) -> Outcome) -> Self {
        let bounds = Bounds { attempt: ATTEMPT, log: LOG, admission: Admission { retention: RETENTION, sigma: SIGMA } };
        let replica = || Replica { machine: Execution::new(key(), bounds), operation: None, left_out: 0 };
        Self {
            store: Store::new(LogId::new(Ulid::nil())),
            now: Now { instant: Monotonic::ZERO, wall: Wall::from_millis(1_000_000_000), draw: 7 },
            replicas: (0..replicas).map(|_| replica()).collect(),
            wants: BTreeMap::new(),
            answers: BTreeMap::new(),
            runs: 0,
            handler,
        }
    }

    fn event(&mut self, replica: usize, event: Event) {
        self.now.draw = self.now.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for action in self.replicas[replica].machine.on_event(self.now, event) {
            match action {
                Action::Report { caller, record } => {
                    self.answer(caller, Yes { status: record.status, accepted: record.accepted });
                }
                Action::Refuse { caller, refused } => self.answer(caller, No(refused.code)),
                Action::Abandon => self.replicas[replica].operation = None,
                Action::LeaveOut { .. } => self.replicas[replica].left_out += 1,
                Action::Load | Action::Run { .. } | Action::Link { .. } | Action::Append(_) => {
                    self.runs += usize::from(matches!(action, Action::Run { .. }));
                    let before = self.replicas[replica].operation.replace(action);
                    assert_eq!(before, None, "one operation at a time");
                }
            }
        }
    }

    fn answer(&mut self, caller: Caller, answer: Answered) {
        let before = self.answers.insert(caller, answer);
        assert_eq!(before, None, "every request is answered once");
    }

    fn ask(&mut self, replica: usize, want: Want) -> Caller {
        let caller = self.wants.len() as Caller;
        self.wants.insert(caller, want.clone());
        self.event(replica, Event::Requested { caller, want });
        caller
    }

    fn load(&self, subject: &Subject) -> Option<KeyRecord> {
        let entries = self.store.read(&subject.itself(), 0, usize::MAX);
        entries.iter().flat_map(|c| &c.entries).fold(None, |record, entry| KeyRecord::fold(record, entry).unwrap())
    }

    /// Performs the operation under way; `false` if there is none.
    fn step(&mut self, replica: usize) -> bool {
        let Some(operation) = self.replicas[replica].operation.take() else { return false };
        let event = match operation {
            Action::Load => Event::Loaded(Some(self.load(&key()))),
            Action::Run { .. } => Event::Decided(Plan::of((self.handler)(self.store.head(&aggregate())))),
            Action::Link { subjects } => {
                Event::Linked(Some(subjects.into_iter().map(|s| (s.clone(), self.load(&s))).collect()))
            }
            Action::Append(append) => Event::Appended(self.store.append(&append)),
            Action::Abandon | Action::Report { .. } | Action::Refuse { .. } | Action::LeaveOut { .. } => {
                unreachable!("no operation")
            }
        };
        self.event(replica, event);
        true
    }

    /// Everything that is under way, to its end.
    fn settle(&mut self) {
        for replica in 0..self.replicas.len() {
            for _ in 0..1_000 {
                if !self.step(replica) {
                    let Some(deadline) = self.replicas[replica].machine.deadline() else { break };
                    self.now.instant = self.now.instant.max(deadline);
                    self.event(replica, Event::Tick);
                }
            }
            assert!(self.replicas[replica].machine.is_idle(), "{:?}", self.replicas[replica].machine);
        }
    }

    fn effects(&self) -> usize {
        let entries = self.store.read(&aggregate().itself(), 0, usize::MAX);
        entries.iter().flat_map(|c| &c.entries).filter(|entry| &entry.body[..] == b"\"effect\"").count()
    }

    fn foreign(&mut self, subject: &Subject, body: &str) {
        let id = AppendId::new(Ulid::from(u128::from(self.now.draw)));
        let done =
            self.store.append(&Append::new(id, self.now.wall).write(subject.clone(), Expect::Any, body.to_owned()));
        assert!(matches!(done, Appended::Done(_)));
    }
}

/// S1, S2, FC-78: many at once run once, and all get the one timestamp; so does every replay.
#[test]
fn s1_s2_fc78_parallel_calls_are_one_effect() {
    let mut rig = Rig::new(1, events);
    let first = rig.ask(0, call(1));
    rig.step(0); // loaded: the handler runs
    let second = rig.ask(0, call(1));
    let watcher = rig.ask(0, Want::Attach);
    rig.settle();
    let third = rig.ask(0, call(1));
    rig.settle();
    assert_eq!((rig.effects(), rig.runs), (1, 1));
    for caller in [first, second, watcher, third] {
        assert_eq!(rig.answers[&caller], Yes { status: CommandStatus::Succeeded, accepted: 2 });
    }
}

/// K1, FC-79: the same key for something else is refused, while the first runs and after.
#[test]
fn k1_fc79_another_fingerprint_is_refused() {
    let mut rig = Rig::new(2, events);
    rig.ask(0, call(1));
    rig.step(0);
    let during = rig.ask(0, call(2));
    assert_eq!(rig.answers[&during], No(RefusalCode::KeyConflict), "at once, while the first runs");
    rig.settle();
    let after = rig.ask(0, call(2));
    let elsewhere = rig.ask(1, call(3));
    rig.settle();
    assert_eq!(rig.answers[&after], No(RefusalCode::KeyConflict));
    assert_eq!(rig.answers[&elsewhere], No(RefusalCode::KeyConflict));
    assert_eq!(rig.effects(), 1);
}

/// S1: two replicas decide at the same instant; the append decides.
#[test]
fn s1_two_replicas_append_one_effect() {
    let mut rig = Rig::new(2, events);
    let (a, b) = (rig.ask(0, call(1)), rig.ask(1, call(1)));
    for _ in 0..2 {
        rig.step(0);
        rig.step(1); // both have loaded nothing, both have decided
    }
    rig.settle();
    assert_eq!(rig.effects(), 1);
    assert_eq!(rig.answers[&a], rig.answers[&b]);
}

/// S1, FC-77, FC-81: an ambiguous append that happened, a crash after it: a resend is answered from the record.
#[test]
fn fc77_fc81_a_lost_answer_and_a_crash_are_one_effect() {
    for crash in [false, true] {
        let mut rig = Rig::new(2, events);
        let first = rig.ask(0, call(1));
        rig.step(0);
        rig.step(0);
        let Some(Action::Append(append)) = rig.replicas[0].operation.take() else { panic!("an append") };
        assert!(matches!(rig.store.append(&append), Appended::Done(_)));
        if crash {
            let again = rig.ask(1, call(1)); // another life of the server
            rig.replicas.swap(0, 1);
            rig.replicas.truncate(1);
            rig.settle();
            assert_eq!(rig.answers[&again], Yes { status: CommandStatus::Succeeded, accepted: 2 });
        } else {
            rig.event(0, Event::Appended(Appended::Unknown));
            assert!(rig.replicas[0].operation.is_none() && rig.replicas[0].machine.deadline().is_some());
            rig.settle();
            assert_eq!(rig.answers[&first], Yes { status: CommandStatus::Succeeded, accepted: 2 });
        }
        assert_eq!(rig.effects(), 1);
    }
}

/// S1: the repetition of an ambiguous append is identical, its id included.
#[test]
fn s1_an_ambiguous_append_is_repeated_identically() {
    let mut rig = Rig::new(1, events);
    rig.ask(0, call(1));
    rig.step(0);
    rig.step(0);
    let first = rig.replicas[0].operation.take();
    rig.event(0, Event::Appended(Appended::Unknown));
    rig.now.instant = rig.replicas[0].machine.deadline().unwrap();
    rig.now.wall = rig.now.wall + Duration::from_secs(1);
    rig.event(0, Event::Tick);
    assert_eq!(rig.replicas[0].operation, first);
    assert!(matches!(first, Some(Action::Append(append)) if append.is_repeatable()));
}

/// S2: what the aggregate's newer version decides is decided again, a bounded number of times.
#[test]
fn s2_a_conflict_of_the_aggregate_runs_the_handler_again() {
    let mut rig = Rig::new(1, events);
    let caller = rig.ask(0, call(1));
    rig.step(0);
    rig.step(0);
    rig.foreign(&aggregate(), "1");
    rig.settle();
    assert_eq!((rig.runs, rig.effects()), (2, 1));
    assert_eq!(rig.answers[&caller], Yes { status: CommandStatus::Succeeded, accepted: 3 });

    let mut rig = Rig::new(1, events);
    let caller = rig.ask(0, call(1));
    rig.step(0);
    while rig.step(0) && !rig.answers.contains_key(&caller) {
        if matches!(rig.replicas[0].operation, Some(Action::Append(_))) {
            rig.foreign(&aggregate(), "1");
        }
    }
    assert_eq!(rig.runs, ROUNDS as usize);
    assert_eq!((&rig.answers[&caller], rig.effects()), (&No(RefusalCode::Unavailable), 0));
}

/// S4: no answer of the log, no answer but "again later", and nothing of it is remembered.
#[test]
fn s4_an_unavailable_log_fails_closed() {
    let mut rig = Rig::new(1, events);
    let callers = [rig.ask(0, call(1)), rig.ask(0, Want::Attach), rig.ask(0, cancel())];
    rig.replicas[0].operation = None;
    rig.event(0, Event::Loaded(None));
    for caller in callers {
        assert_eq!(rig.answers[&caller], No(RefusalCode::Unavailable));
    }
    // A log that answers nothing at all, at every step, is given up within the bound.
    for steps in [0, 2] {
        let mut rig = Rig::new(1, events);
        let caller = rig.ask(0, call(1));
        (0..steps).for_each(|_| assert!(rig.step(0)));
        let until = rig.replicas[0].machine.deadline().unwrap();
        assert_eq!(until, rig.now.instant + LOG);
        rig.now.instant = until;
        rig.event(0, Event::Tick);
        assert_eq!(rig.answers[&caller], No(RefusalCode::Unavailable));
        assert!(rig.replicas[0].operation.is_none() && rig.replicas[0].machine.is_idle());
    }
    // Busy for ever.
    let mut rig = Rig::new(1, events);
    let caller = rig.ask(0, call(1));
    rig.step(0);
    rig.step(0);
    while !rig.answers.contains_key(&caller) {
        rig.replicas[0].operation = None;
        rig.event(0, Event::Appended(Appended::Busy));
        rig.now.instant = rig.replicas[0].machine.deadline().unwrap();
        rig.event(0, Event::Tick);
        assert!(rig.now.instant <= Monotonic::ZERO + LOG + LAST_WAIT);
    }
    assert_eq!((&rig.answers[&caller], rig.effects()), (&No(RefusalCode::Unavailable), 0));
}

/// S3: a key outside retention makes no record; one that has a record is answered all the same.
#[test]
fn s3_admission_guards_new_keys_only() {
    let mut rig = Rig::new(1, events);
    let old = Wall::from_millis(1_000_000_000 - 3_600_001);
    let (late, late_cancel) = (rig.ask(0, call_minted(1, old)), rig.ask(0, Want::Cancel { minted: old }));
    rig.settle();
    assert_eq!([&rig.answers[&late], &rig.answers[&late_cancel]], [&No(RefusalCode::Expired); 2]);
    assert_eq!(rig.runs, 0);
    rig.ask(0, call(1));
    rig.settle();
    let replay = rig.ask(0, call_minted(1, old));
    rig.settle();
    assert!(matches!(rig.answers[&replay], Yes { .. }));
}

/// W7: `SameKey` leaves no record, `NewKey` and `Never` are recorded and replayed.
#[test]
fn w7_advice_decides_about_the_record() {
    let fail = |retry| Outcome::Failed(CommandFailure::rejected(retry, "no"));
    let mut rig = Rig::new(1, |_| Outcome::Failed(CommandFailure::rejected(Retry::SameKey, "not now")));
    assert!(matches!(fail(Retry::Never), Outcome::Failed(_)));
    let refused = rig.ask(0, call(1));
    rig.settle();
    assert_eq!(rig.answers[&refused], No(RefusalCode::Unavailable));
    assert!(rig.load(&key()).is_none());

    rig.handler = |_| Outcome::Failed(CommandFailure::rejected(Retry::NewKey, "no"));
    let (failed, again) = (rig.ask(0, call(1)), rig.ask(0, call(1)));
    rig.settle();
    assert_eq!(rig.answers[&failed], Yes { status: CommandStatus::Failed, accepted: 1 });
    assert_eq!(rig.answers[&again], rig.answers[&failed]);
    assert_eq!(rig.load(&key()).unwrap().failure.unwrap().retry, Retry::NewKey);
}

/// W5: a cancel that comes first is recorded, so that a late first copy does not run.
#[test]
fn w5_a_cancel_of_a_key_never_seen_fences_it() {
    let mut rig = Rig::new(1, events);
    let first = rig.ask(0, cancel());
    rig.settle();
    let late = rig.ask(0, call(1));
    rig.settle();
    for caller in [first, late] {
        assert_eq!(rig.answers[&caller], Yes { status: CommandStatus::Canceled, accepted: 1 });
    }
    assert_eq!((rig.runs, rig.effects()), (0, 0));
}

/// W5: a cancel does not wait for a handler; what that would have decided never happens.
#[test]
fn w5_a_cancel_abandons_the_handler() {
    let mut rig = Rig::new(1, running);
    let caller = rig.ask(0, call(1));
    rig.step(0);
    assert!(matches!(rig.replicas[0].operation, Some(Action::Run { .. })));
    let canceled = rig.ask(0, cancel());
    rig.settle();
    assert_eq!(rig.answers[&caller], Yes { status: CommandStatus::Canceled, accepted: 1 });
    assert_eq!(rig.answers[&canceled], rig.answers[&caller]);
    assert_eq!(rig.effects(), 0);
    let mut rig = Rig::new(1, running);
    rig.ask(0, call(1));
    rig.step(0);
    let expired = rig.ask(0, Want::Cancel { minted: Wall::default() });
    assert_eq!(rig.answers[&expired], No(RefusalCode::Expired));
    rig.settle();
    assert_eq!(rig.effects(), 1, "a cancel that is not admitted stops nothing");
}

/// W5, FC-71: before the executor has begun a cancel is the end; after that the executor says when it stopped.
#[test]
fn w5_fc71_canceled_means_that_the_executor_stopped() {
    let mut rig = Rig::new(1, running);
    rig.ask(0, call(1));
    rig.settle();
    let canceled = rig.ask(0, cancel());
    rig.settle();
    assert_eq!(rig.answers[&canceled], Yes { status: CommandStatus::Canceled, accepted: 2 });

    let mut rig = Rig::new(1, running);
    rig.ask(0, call(1));
    rig.settle();
    rig.foreign(&key(), r#"{"k":"started"}"#);
    let canceled = rig.ask(0, cancel());
    rig.settle();
    assert_eq!(rig.answers[&canceled], Yes { status: CommandStatus::CancelRequested, accepted: 2 });
    assert_eq!(rig.load(&key()).unwrap().status, CommandStatus::CancelRequested);
    let stop = rig.store.read(&aggregate().itself(), 0, usize::MAX);
    let bodies: Vec<_> = stop.iter().flat_map(|c| &c.entries).map(|entry| &entry.body[..]).collect();
    assert_eq!(bodies, [&b"\"effect\""[..], b"\"stop\""], "the executor is told, in the same append");
    let again = rig.ask(0, cancel());
    rig.settle();
    assert_eq!(rig.answers[&again], Yes { status: CommandStatus::CancelRequested, accepted: 2 });
}

/// W5, FC-71: a cancel that races with the end: one terminal state, which the append decides.
#[test]
fn fc71_a_race_of_cancel_and_completion_has_one_end() {
    let mut rig = Rig::new(1, running);
    rig.ask(0, call(1));
    rig.settle();
    let canceled = rig.ask(0, cancel());
    rig.step(0); // the cancel has loaded the record
    rig.foreign(&key(), r#"{"k":"settled","status":"SUCCEEDED"}"#);
    rig.settle();
    assert_eq!(rig.answers[&canceled], Yes { status: CommandStatus::Succeeded, accepted: 2 });
    assert_eq!(rig.load(&key()).unwrap().status, CommandStatus::Succeeded);
}

fn finishing(head: Option<Seq>) -> Outcome {
    let other = command("build");
    Outcome::Events(
        Events::on(aggregate()).version(head).push("effect").starts(&other).settles(&other, Settle::Succeeded),
    )
}

/// Another command is started and settled in this command's append, if it still permits that.
#[test]
fn w3_linked_commands_move_forward_only() {
    let other = subject_of(&command("build")).unwrap();
    let accepted = KeyEntry::Accepted {
        method: "farm.v1/build".into(),
        fingerprint: Fingerprint::of("m", &to_raw_value(&1).unwrap()).unwrap(),
        level: KeyLevel::Minted,
        minted: 1,
        id: Ulid::nil(),
        settled: None,
        on_cancel: vec![],
    };
    let accepted = String::from_utf8(accepted.encode().to_vec()).unwrap();

    let mut rig = Rig::new(1, finishing);
    rig.foreign(&other, &accepted);
    let caller = rig.ask(0, call(1));
    // The other command moves between the look and the append: only the look is repeated.
    while !matches!(rig.replicas[0].operation, Some(Action::Append(_))) {
        rig.step(0);
    }
    rig.foreign(&other, r#"{"k":"cancel_requested"}"#);
    rig.settle();
    assert!(matches!(rig.answers[&caller], Yes { status: CommandStatus::Succeeded, .. }));
    assert_eq!(rig.load(&other).unwrap().status, CommandStatus::Succeeded);
    assert_eq!((rig.runs, rig.replicas[0].left_out), (1, 1), "a start after a cancel is left out");

    let mut rig = Rig::new(1, finishing);
    rig.foreign(&other, &accepted);
    rig.foreign(&other, r#"{"k":"settled","status":"CANCELED"}"#);
    rig.ask(0, call(1));
    rig.settle();
    assert_eq!(rig.load(&other).unwrap().status, CommandStatus::Canceled);
    assert_eq!((rig.effects(), rig.replicas[0].left_out), (1, 2));
}

/// A handler cannot write to a key's subject: only the framework keeps records.
#[test]
fn keys_are_reserved() {
    let mut rig = Rig::new(1, |_| Outcome::Events(Events::on(key()).push("forged")));
    let caller = rig.ask(0, call(1));
    rig.settle();
    assert_eq!(rig.answers[&caller], No(RefusalCode::Unavailable));
    assert!(rig.load(&key()).is_none());
}

/// A handler that never decides is given up, and the slot is free again.
#[test]
fn s6_a_handler_that_hangs_is_answered() {
    let mut rig = Rig::new(1, events);
    let (caller, watcher) = (rig.ask(0, call(1)), rig.ask(0, Want::Attach));
    rig.step(0);
    assert_eq!(rig.replicas[0].machine.deadline(), Some(rig.now.instant + ATTEMPT));
    rig.now.instant = rig.now.instant + ATTEMPT;
    rig.event(0, Event::Tick);
    assert_eq!([&rig.answers[&caller], &rig.answers[&watcher]], [&No(RefusalCode::Unavailable); 2]);
    rig.ask(0, call(1));
    rig.settle();
    assert_eq!(rig.effects(), 1);
}
