//! Every run of one command: the shipped command machine against the shipped [`Execution`] over the
//! memory log's store, with each message late, lost or repeated, and either side crashed at any moment.
//!
//! Time is left out: whatever waits may be woken at any moment, so every order of timers is a run too.
//! Of each kind of fault there is one, and a run has a few of them together. The states are visited
//! breadth first, so the first broken promise comes with a shortest run to it.
//!
//! Not in here: a log that is lost or replaced (`command::machine`'s rows 11 to 16), several replicas,
//! and news of a record that gets lost on a connection that stays up, which TCP does not do.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use serde_json::value::to_raw_value;
use ulid::Ulid;

use super::admission::Admission;
use super::execution::{self, Bounds, Caller, Execution, Offer, Plan, Want};
use super::outcome::{Events, Outcome, Running};
use super::record::{KeyEntry, KeyRecord, Settled, subject_of};
use crate::command::machine::{self as client, Ask, Lineage, Oddity, Settings};
use crate::command::{CommandStatus, Delivery, Protection};
use crate::key::{CommandKey, CommandRef, Fingerprint, KeyLevel, Principal};
use crate::log::{Append, AppendId, Appended, Expect, LogId, Seq, Store, Subject, Write};
use crate::machine::{Machine as _, Monotonic, Now, Wall};
use crate::wire::{CommandReport, RefusalCode, Refused};

/// No bound of the server ever runs out.
const NEVER: Duration = Duration::from_secs(3_600);
/// Any bound of the server may run out at any time.
const ANY_TIME: Duration = Duration::ZERO;
const MINTED: Wall = Wall::from_millis(1_764_500_000_000);
const NOON: Monotonic = Monotonic::new(Duration::from_secs(1_000));
const RETENTION: Duration = Duration::from_secs(86_400);

/// What may still go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Luck {
    /// All together.
    total: u8,
    /// The connection is cut.
    cuts: u8,
    /// A message is lost and the connection stays.
    losses: u8,
    /// A message arrives twice.
    repeats: u8,
    /// The server is killed.
    server_crashes: u8,
    /// The client is killed and starts again.
    client_crashes: u8,
    /// The log fails a load, or an append before or after it happened.
    log_faults: u8,
    /// The client's timer runs out although the answer is on its way.
    hurries: u8,
    /// A bound of the server runs out.
    stalls: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Question {
    Call,
    Attach,
    Cancel,
}

/// What the server tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Told {
    Answer(CommandReport),
    News(CommandReport),
    Refused(Refused),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Connection {
    to_server: VecDeque<(Ask, Question)>,
    to_client: VecDeque<(Ask, Told)>,
    open: Option<OpenCall>,
}

/// The newest call of the command on its connection; the client forgets the others. It is told of every
/// change of the record after its answer, until it is refused or settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OpenCall {
    ask: Ask,
    told: Option<Seq>,
}

/// What the server's driver does for its execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Load,
    Run,
    Append(Append),
    /// It is in the log; that is not known yet.
    Appended(Appended),
}

/// The process that does the work of a running command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Executor {
    Away,
    Works,
    /// Stopped because of the cancel, which it has not said yet.
    Stopped,
    Gone,
}

/// What the handler's outcome is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    AtOnce,
    GoesOn,
}

#[derive(Clone, Hash)]
struct World {
    luck: Luck,
    work: Work,
    /// The server's bound on its handler and on its log.
    bound: Duration,

    client: client::Machine,
    /// The question whose answers are wanted.
    asked: Ask,
    may_cancel: bool,
    released: bool,

    connection: Option<Connection>,
    /// Of connections that are gone: may still arrive, answered to nobody.
    late: VecDeque<Question>,

    up: bool,
    execution: Execution,
    operation: Option<Operation>,
    callers: Vec<(Caller, Option<Ask>)>,
    next_caller: Caller,
    /// Appends whose execution has given up on them: each may still happen.
    orphans: Vec<Append>,

    disk: Disk,
    executor: Executor,
}

/// The log, and what it says of the command.
#[derive(Clone, Debug)]
struct Disk {
    store: Store,
    /// The key's record after each of its entries.
    records: Rc<Vec<KeyRecord>>,
    effects: usize,
}

/// Everything that anybody reads of the log here; the ids of its appends are not.
impl Hash for Disk {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.store.head_of_log(), &self.records, self.effects).hash(hasher);
    }
}

impl Disk {
    fn of(store: Store) -> Self {
        let entries = |subject: Subject| {
            let appends = store.read(&subject.prefix(), 0, usize::MAX);
            appends.into_iter().flat_map(|append| append.entries).collect::<Vec<_>>()
        };
        let mut records: Vec<KeyRecord> = Vec::new();
        for entry in entries(key()) {
            let record = KeyRecord::fold(records.last().cloned(), &entry).expect("a key's record that folds");
            records.extend(record);
        }
        let effects = entries(build()).len();
        Self { store, records: Rc::new(records), effects }
    }

    fn append(&mut self, append: &Append) -> Appended {
        let appended = self.store.append(append);
        *self = Self::of(self.store.clone());
        appended
    }
}

/// A run, for the message of a broken promise.
struct Run {
    step: &'static str,
    before: Option<Rc<Self>>,
}

impl Run {
    fn told(&self) -> String {
        let mut steps = vec![self.step];
        let mut run = self.before.as_deref();
        while let Some(earlier) = run {
            steps.push(earlier.step);
            run = earlier.before.as_deref();
        }
        steps.reverse();
        steps.join(" > ")
    }
}

fn command() -> CommandRef {
    CommandRef::new(principal(), "release:42")
}

fn principal() -> Principal {
    Principal::new("ci").unwrap()
}

fn key() -> Subject {
    subject_of(&command()).unwrap()
}

fn build() -> Subject {
    Subject::of(["build", "1"])
}

fn settings(origin: client::Origin) -> Settings {
    let mut settings = Settings::call(CommandKey::explicit("release:42"), MINTED, Protection::Recorded);
    settings.origin = origin;
    // Whatever waits may be woken at once.
    settings.answer_within = Duration::ZERO;
    settings.first_backoff = Duration::ZERO;
    settings.last_backoff = Duration::ZERO;
    settings
}

fn want(question: Question) -> Want {
    match question {
        Question::Call => Want::Call(Offer {
            method: "farm.v1/build".into(),
            fingerprint: Fingerprint::of("farm.v1/build", &to_raw_value(&1).unwrap()).unwrap(),
            level: KeyLevel::Explicit,
            minted: MINTED,
            id: Ulid(1),
        }),
        Question::Attach => Want::Attach,
        Question::Cancel => Want::Cancel { minted: MINTED },
    }
}

impl World {
    fn new(work: Work, bound: Duration, faults: u8) -> Self {
        let mut world = Self {
            luck: Luck {
                total: faults,
                cuts: 1,
                losses: 1,
                repeats: 1,
                server_crashes: 1,
                client_crashes: 1,
                log_faults: 1,
                hurries: 1,
                stalls: 1,
            },
            work,
            bound,
            client: client::Machine::new(settings(client::Origin::Call)),
            asked: Ask::default(),
            may_cancel: true,
            released: false,
            connection: None,
            late: VecDeque::new(),
            up: true,
            execution: Self::idle(bound),
            operation: None,
            callers: Vec::new(),
            next_caller: 0,
            orphans: Vec::new(),
            disk: Disk::of(Store::new(LogId::new(Ulid(1)))),
            executor: Executor::Away,
        };
        world.tell_client(client::Event::Called);
        world
    }

    fn idle(bound: Duration) -> Execution {
        let admission = Admission { retention: RETENTION, sigma: Duration::from_secs(30) };
        Execution::new(key(), Bounds { attempt: bound, log: bound, admission })
    }

    fn now(&self) -> Now {
        // Different for each append, and far too small to make a jitter.
        Now { instant: NOON, wall: MINTED, draw: self.disk.store.head_of_log() }
    }

    fn record(&self) -> Option<&KeyRecord> {
        self.disk.records.last()
    }

    /// The record as it was at `seq`.
    fn record_until(&self, seq: Seq) -> Option<&KeyRecord> {
        self.disk.records.iter().rfind(|record| record.head <= seq)
    }

    /// The entry that follows `told` on the key's subject.
    fn news_after(&self, told: Seq) -> Option<Seq> {
        self.disk.records.iter().map(|record| record.head).find(|seq| *seq > told)
    }

    // --- the client and its driver ----------------------------------------------------------------

    fn tell_client(&mut self, event: client::Event) {
        let before = self.client.state().clone();
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.client.on_event(self.now(), event) {
                assert!(!self.released, "the client goes on after its end: {action:?}");
                match action {
                    client::Action::Persist(record) => events.push_back(client::Event::Persisted(record)),
                    client::Action::SendCall { ask, minted } => {
                        assert_eq!(minted, MINTED, "W1: another minted-at");
                        self.send(ask, Question::Call);
                    }
                    client::Action::SendAttach { ask } => self.send(ask, Question::Attach),
                    client::Action::SendCancel { ask, .. } => self.send(ask, Question::Cancel),
                    client::Action::Publish(_) => {}
                    // A repeated report; and a key that is looked up twice may be recorded in between.
                    client::Action::Trace(
                        Oddity::Backwards { .. } | Oddity::OtherTerminal { kept: CommandStatus::NotFound, .. },
                    ) => {}
                    client::Action::Trace(oddity) => panic!("{oddity}"),
                    client::Action::Release => self.released = true,
                }
            }
        }
        let shown = self.client.state();
        assert!(shown.status().rank() >= before.status().rank(), "W3: {before:?}, then {shown:?}");
        if before.status().is_terminal() {
            assert_eq!(before.status(), shown.status(), "W3: one terminal status");
        }
    }

    fn send(&mut self, ask: Ask, question: Question) {
        assert!(!self.client.state().status().is_terminal(), "sent after the end");
        self.asked = ask;
        self.connection.as_mut().expect("sent without a connection").to_server.push_back((ask, question));
    }

    fn hear(&mut self, ask: Ask, told: Told) {
        // Its driver has forgotten earlier questions.
        if ask != self.asked {
            return;
        }
        self.tell_client(match told {
            Told::Answer(report) | Told::News(report) => client::Event::Report(report),
            Told::Refused(refused) => client::Event::Refused { ask, refused },
        });
    }

    /// Whether an answer to the present question may still come by itself.
    fn is_on_its_way(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| {
            connection.to_server.iter().any(|(ask, _)| *ask == self.asked)
                || self.callers.iter().any(|(_, ask)| *ask == Some(self.asked))
                || connection.to_client.iter().any(|(ask, told)| *ask == self.asked && !matches!(told, Told::News(_)))
        })
    }

    // --- the server and its drivers ---------------------------------------------------------------

    fn ask_server(&mut self, question: Question, ask: Option<Ask>) {
        if let (Some(connection), Some(ask)) = (&mut self.connection, ask) {
            match connection.open {
                // The id is taken: a fault, and nothing else.
                Some(open) if open.ask == ask && question != Question::Cancel => return,
                Some(open) if open.ask == ask => {}
                Some(_) | None => connection.open = Some(OpenCall { ask, told: None }),
            }
        }
        let caller = self.next_caller;
        self.next_caller += 1;
        self.callers.push((caller, ask));
        self.tell_server(execution::Event::Requested { caller, want: want(question) });
    }

    /// Reports to a call that is open still: the newest that it may know.
    fn report(&mut self, ask: Ask, head: Seq, as_told: impl FnOnce(CommandReport) -> Told) {
        let Some(connection) = &self.connection else { return };
        let Some(open) = connection.open.filter(|open| open.ask == ask) else { return };
        let head = open.told.map_or(head, |told| told.max(head));
        let report = self.record_until(head).expect("a record that is reported").report();
        let connection = self.connection.as_mut().unwrap();
        connection.open = (!report.status.is_terminal()).then_some(OpenCall { ask, told: Some(head) });
        connection.to_client.push_back((ask, as_told(report)));
    }

    fn refuse(&mut self, ask: Ask, refused: Refused) {
        let Some(connection) = &mut self.connection else { return };
        if connection.open.is_some_and(|open| open.ask == ask) {
            connection.open = None;
            connection.to_client.push_back((ask, Told::Refused(refused)));
        }
    }

    fn tell_server(&mut self, event: execution::Event) {
        for action in self.execution.on_event(self.now(), event) {
            match action {
                execution::Action::Load => self.start(Operation::Load),
                execution::Action::Run { .. } => self.start(Operation::Run),
                execution::Action::Append(append) => self.start(Operation::Append(append)),
                execution::Action::Link { .. } | execution::Action::LeaveOut { .. } => {
                    panic!("the plan has no links")
                }
                execution::Action::Abandon => {
                    if let Some(Operation::Append(append)) = self.operation.take() {
                        self.orphans.push(append);
                    }
                }
                execution::Action::Report { caller, record } => {
                    if let Some(ask) = self.answered(caller) {
                        self.report(ask, record.head, Told::Answer);
                    }
                }
                execution::Action::Refuse { caller, refused } => {
                    if refused.code == RefusalCode::NotFound {
                        assert_eq!(self.record(), None, "W8: NOT_FOUND with a record");
                    }
                    if let Some(ask) = self.answered(caller) {
                        self.refuse(ask, refused);
                    }
                }
            }
        }
        if self.execution.is_idle() {
            assert_eq!((self.operation.as_ref(), self.callers.len()), (None, 0), "S6: somebody is not answered");
            self.execution = Self::idle(self.bound);
            self.next_caller = 0;
        }
    }

    fn start(&mut self, operation: Operation) {
        assert_eq!(self.operation.replace(operation), None, "two operations at once");
    }

    fn answered(&mut self, caller: Caller) -> Option<Ask> {
        let at = self.callers.iter().position(|(waiting, _)| *waiting == caller).expect("answered once");
        self.callers.remove(at).1
    }

    fn plan(&self) -> Plan {
        // No version: only the key keeps a second effect out.
        let events = Events::on(build()).push("effect");
        Plan::of(match self.work {
            Work::AtOnce => Outcome::Events(events),
            Work::GoesOn => Outcome::Running(Running::new(events)),
        })
        .unwrap()
    }

    /// What the executor appends, by compare-and-append.
    fn write(&mut self, record: &KeyRecord, entry: &KeyEntry) {
        let write = Write { subject: key(), expect: Expect::At(record.head), body: entry.encode() };
        let id = AppendId::new(Ulid(u128::from(self.disk.store.head_of_log()) + 1_000));
        let appended = self.disk.append(&Append { id, at: MINTED, writes: vec![write] });
        assert!(matches!(appended, Appended::Done(_)), "{appended:?}");
    }

    // --- accidents --------------------------------------------------------------------------------

    fn cut(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        self.late.extend(connection.to_server.into_iter().map(|(_, question)| question));
        self.callers.iter_mut().for_each(|(_, ask)| *ask = None);
        self.tell_client(client::Event::Unlinked);
    }

    fn crash_server(&mut self) {
        self.cut();
        self.up = false;
        self.late.clear();
        self.operation = None;
        self.orphans.clear();
        self.callers.clear();
        self.next_caller = 0;
        self.execution = Self::idle(self.bound);
    }

    fn crash_client(&mut self, origin: client::Origin) {
        // Nobody is left to be told.
        if let Some(connection) = self.connection.take() {
            self.late.extend(connection.to_server.into_iter().map(|(_, question)| question));
            self.callers.iter_mut().for_each(|(_, ask)| *ask = None);
        }
        self.client = client::Machine::new(settings(origin));
        self.asked = Ask::default();
        self.released = false;
        self.tell_client(client::Event::Called);
    }

    // --- what can happen next ---------------------------------------------------------------------

    fn moves(&self) -> Vec<(&'static str, Self)> {
        let mut moves = Vec::new();
        self.client_moves(&mut moves);
        self.network_moves(&mut moves);
        if self.up {
            self.server_moves(&mut moves);
            self.executor_moves(&mut moves);
        } else {
            moves.push(self.then("restart", |w| w.up = true));
        }
        moves
    }

    fn then(&self, step: &'static str, change: impl FnOnce(&mut Self)) -> (&'static str, Self) {
        let mut world = self.clone();
        change(&mut world);
        (step, world)
    }

    /// As `then`, if luck still permits such a fault.
    fn fault(
        &self,
        moves: &mut Vec<(&'static str, Self)>,
        step: &'static str,
        kind: impl Fn(&mut Luck) -> &mut u8,
        change: impl FnOnce(&mut Self),
    ) {
        let mut world = self.clone();
        let left = kind(&mut world.luck);
        if *left == 0 || self.luck.total == 0 {
            return;
        }
        *left -= 1;
        world.luck.total -= 1;
        change(&mut world);
        moves.push((step, world));
    }

    fn client_moves(&self, moves: &mut Vec<(&'static str, Self)>) {
        if self.client.deadline() == Some(NOON) {
            if self.is_on_its_way() {
                self.fault(moves, "hurry", |luck| &mut luck.hurries, |w| w.tell_client(client::Event::Tick));
            } else {
                moves.push(self.then("tick", |w| w.tell_client(client::Event::Tick)));
            }
        }
        if self.may_cancel && !self.client.state().status().is_terminal() {
            moves.push(self.then("cancel", |w| {
                w.may_cancel = false;
                w.tell_client(client::Event::Cancel);
            }));
        }
        for origin in [client::Origin::Attach, client::Origin::Call] {
            self.fault(moves, "crash client", |luck| &mut luck.client_crashes, |w| w.crash_client(origin));
        }
    }

    fn network_moves(&self, moves: &mut Vec<(&'static str, Self)>) {
        let Some(connection) = &self.connection else {
            if self.up && !self.client.state().status().is_terminal() {
                moves.push(self.then("connect", |w| {
                    let (to_server, to_client) = (VecDeque::new(), VecDeque::new());
                    w.connection = Some(Connection { to_server, to_client, open: None });
                    w.tell_client(client::Event::Linked(Lineage {
                        log: w.disk.store.id(),
                        history: 0,
                        durable: true,
                        retention: RETENTION,
                        principal: principal(),
                    }));
                }));
            }
            return;
        };
        self.fault(moves, "cut", |luck| &mut luck.cuts, Self::cut);
        if let Some((ask, question)) = connection.to_server.front().copied() {
            let take = |w: &mut Self| w.connection.as_mut().unwrap().to_server.pop_front();
            moves.push(self.then("ask", |w| {
                take(w);
                w.ask_server(question, Some(ask));
            }));
            self.fault(
                moves,
                "lose question",
                |luck| &mut luck.losses,
                |w| {
                    take(w);
                },
            );
            self.fault(moves, "repeat question", |luck| &mut luck.repeats, |w| w.ask_server(question, Some(ask)));
        }
        if let Some((ask, told)) = connection.to_client.front().cloned() {
            let take = |w: &mut Self| w.connection.as_mut().unwrap().to_client.pop_front();
            let is_news = matches!(told, Told::News(_));
            let again = told.clone();
            moves.push(self.then("hear", |w| {
                take(w);
                w.hear(ask, told);
            }));
            // An answer that nobody waits for any more is news.
            if !is_news && self.client.deadline() == Some(NOON) {
                self.fault(moves, "lose answer", |luck| &mut luck.losses, |w| drop(take(w)));
            }
            self.fault(moves, "repeat answer", |luck| &mut luck.repeats, |w| w.hear(ask, again));
        }
    }

    fn server_moves(&self, moves: &mut Vec<(&'static str, Self)>) {
        self.fault(moves, "crash server", |luck| &mut luck.server_crashes, Self::crash_server);
        if let Some(question) = self.late.front().copied() {
            moves.push(self.then("late", |w| {
                w.late.pop_front();
                w.ask_server(question, None);
            }));
            moves.push(self.then("never", |w| {
                w.late.pop_front();
            }));
        }
        for orphan in 0..self.orphans.len() {
            moves.push(self.then("orphan appended", |w| {
                let append = w.orphans.remove(orphan);
                w.disk.append(&append);
            }));
            moves.push(self.then("orphan lost", |w| drop(w.orphans.remove(orphan))));
        }
        if let Some(OpenCall { ask, told: Some(told) }) =
            self.connection.as_ref().and_then(|connection| connection.open)
            && let Some(seq) = self.news_after(told)
        {
            moves.push(self.then("news", |w| w.report(ask, seq, Told::News)));
        }
        match &self.operation {
            None => {
                // Resting before it repeats an append: that wait is over at some time.
                if self.execution.deadline().is_some() {
                    moves.push(self.then("rested", |w| w.tell_server(execution::Event::Tick)));
                }
                return;
            }
            Some(Operation::Load) => {
                let loaded = |w: &mut Self, record| {
                    w.operation = None;
                    w.tell_server(execution::Event::Loaded(record));
                };
                moves.push(self.then("loaded", |w| loaded(w, Some(w.record().cloned()))));
                self.fault(moves, "load fails", |luck| &mut luck.log_faults, |w| loaded(w, None));
            }
            Some(Operation::Run) => moves.push(self.then("decided", |w| {
                w.operation = None;
                w.tell_server(execution::Event::Decided(Ok(w.plan())));
            })),
            Some(Operation::Append(append)) => {
                moves.push(self.then("append", |w| w.operation = Some(Operation::Appended(w.disk.append(append)))));
                self.fault(
                    moves,
                    "append fails before",
                    |luck| &mut luck.log_faults,
                    |w| {
                        w.operation = None;
                        w.tell_server(execution::Event::Appended(Appended::Unknown));
                    },
                );
            }
            Some(Operation::Appended(outcome)) => {
                let answer = |w: &mut Self, outcome| {
                    w.operation = None;
                    w.tell_server(execution::Event::Appended(outcome));
                };
                moves.push(self.then("appended", |w| answer(w, outcome.clone())));
                self.fault(moves, "append fails after", |luck| &mut luck.log_faults, |w| answer(w, Appended::Unknown));
            }
        }
        if self.execution.deadline() == Some(NOON) {
            self.fault(moves, "stall", |luck| &mut luck.stalls, |w| w.tell_server(execution::Event::Tick));
        }
    }

    fn executor_moves(&self, moves: &mut Vec<(&'static str, Self)>) {
        let Some(record) = self.record().filter(|_| self.work == Work::GoesOn).cloned() else { return };
        match self.executor {
            Executor::Away if record.status == CommandStatus::Pending => moves.push(self.then("claim", |w| {
                w.write(&record, &KeyEntry::Started);
                w.executor = Executor::Works;
            })),
            Executor::Works => {
                moves.push(self.then("finish", |w| {
                    w.write(&record, &KeyEntry::Settled(Settled::SUCCEEDED));
                    w.executor = Executor::Gone;
                }));
                if record.status == CommandStatus::CancelRequested {
                    moves.push(self.then("stop", |w| w.executor = Executor::Stopped));
                }
            }
            Executor::Stopped => moves.push(self.then("stopped", |w| {
                w.write(&record, &KeyEntry::Settled(Settled::CANCELED));
                w.executor = Executor::Gone;
            })),
            Executor::Away | Executor::Gone => {}
        }
    }

    // --- the promises -----------------------------------------------------------------------------

    fn check(&self) {
        let record = self.record();
        let accepted = record.is_some_and(|record| record.fingerprint.is_some());
        assert_eq!(self.disk.effects, usize::from(accepted), "S1: one effect, and only with its record");
        let shown = self.client.state();
        let recorded = record.map(|record| record.status);
        if [Some(shown.status()), recorded].contains(&Some(CommandStatus::Canceled)) {
            assert_ne!(self.executor, Executor::Works, "W5: canceled, and its executor works");
        }
        match shown.status() {
            CommandStatus::Pending | CommandStatus::Running | CommandStatus::CancelRequested => {}
            CommandStatus::NotFound => {
                assert_eq!(self.client.origin(), client::Origin::Attach, "a call is found or made");
            }
            CommandStatus::Canceled | CommandStatus::Succeeded | CommandStatus::Failed => {
                assert_eq!(recorded, Some(shown.status()), "W3: the handle and the log differ");
            }
        }
        if self.client.origin() == client::Origin::Call && self.may_cancel {
            assert_ne!(shown.delivery(), Delivery::Indeterminate, "W2: one log, so nothing is unknown");
        }
        if let (Some(timestamp), Some(record)) = (shown.timestamp(), record) {
            assert_eq!(timestamp.seq, record.accepted, "S2: the stored timestamp");
        }
    }

    /// Nothing can happen any more, so everything is over.
    fn check_end(&self) {
        assert!(self.client.state().status().is_terminal(), "the wait never ends: {:?}", self.client.state());
        assert_eq!((self.operation.as_ref(), self.callers.len()), (None, 0), "S6: somebody is not answered");
        assert_ne!(self.executor, Executor::Works);
        if let Some(record) = self.record() {
            assert!(record.status.is_terminal(), "{record:?}");
        }
    }

    /// In 64 bits: among a few million states, two that share them are not to be expected.
    fn print(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Visits every state, and returns how many there are and how many are ends.
fn explore(first: World) -> (usize, usize) {
    let mut seen = HashSet::from([first.print()]);
    let mut ends = 0;
    let mut frontier = VecDeque::from([(first, Rc::new(Run { step: "call", before: None }))]);
    while let Some((world, run)) = frontier.pop_front() {
        let moves = guarded(&run, "", || world.moves());
        if moves.is_empty() {
            guarded(&run, "the end", || world.check_end());
            ends += 1;
        }
        for (step, next) in moves {
            if seen.insert(next.print()) {
                guarded(&run, step, || next.check());
                frontier.push_back((next, Rc::new(Run { step, before: Some(Rc::clone(&run)) })));
            }
        }
    }
    (seen.len(), ends)
}

/// A broken promise, with the run that led to it.
fn guarded<T>(run: &Run, step: &str, look: impl FnOnce() -> T) -> T {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
    result.unwrap_or_else(|broken| {
        eprintln!("in the run: {} > {step}", run.told());
        std::panic::resume_unwind(broken)
    })
}

/// S1, S2, S4, S6, W1 to W5 and W8: one command that settles with its append.
#[test]
fn every_run_of_a_command_that_settles_at_once() {
    explore_and_tell(Work::AtOnce, NEVER, 2);
    explore_and_tell(Work::AtOnce, ANY_TIME, 2);
}

/// The same for a command that goes on: an executor claims it, and finishes or stops.
#[test]
fn every_run_of_a_command_that_goes_on() {
    explore_and_tell(Work::GoesOn, NEVER, 2);
    explore_and_tell(Work::GoesOn, ANY_TIME, 1);
}

/// With more faults in one run, which takes minutes: only when `OUTLAST_EXPLORE=deep` asks for it.
#[test]
fn every_run_with_more_faults() {
    if std::env::var("OUTLAST_EXPLORE").is_ok_and(|how| how == "deep") {
        explore_and_tell(Work::AtOnce, NEVER, 3);
        explore_and_tell(Work::AtOnce, ANY_TIME, 3);
        explore_and_tell(Work::GoesOn, ANY_TIME, 2);
    }
}

fn explore_and_tell(work: Work, bound: Duration, faults: u8) {
    let (states, ends) = explore(World::new(work, bound, faults));
    println!("{work:?}, at most {faults} faults, bounds of {bound:?}: {states} states, {ends} ends");
}
