//! The two machines, what is between them, and what may still go wrong.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::value::to_raw_value;
use ulid::Ulid;

use super::command::key;
use super::disk::Disk;
use crate::command::Protection;
use crate::command::machine::{self as client, Ask, Settings};
use crate::key::{CommandKey, Fingerprint, KeyLevel};
use crate::log::{Append, Appended, LogId, Seq, Store};
use crate::machine::{Monotonic, Now, Wall};
use crate::server::admission::Admission;
use crate::server::execution::{Bounds, Caller, Execution, Offer, Want};
use crate::server::record::KeyRecord;
use crate::wire::{CommandReport, Refused};

/// No bound of the server ever runs out.
pub(super) const NEVER: Duration = Duration::from_secs(3_600);
/// Any bound of the server may run out at any time.
pub(super) const ANY_TIME: Duration = Duration::ZERO;
pub(super) const MINTED: Wall = Wall::from_millis(1_764_500_000_000);
pub(super) const NOON: Monotonic = Monotonic::new(Duration::from_secs(1_000));
pub(super) const RETENTION: Duration = Duration::from_secs(86_400);

/// What may still go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Luck {
    /// All together.
    pub(super) total: u8,
    /// The connection is cut.
    pub(super) cuts: u8,
    /// A message is lost and the connection stays.
    pub(super) losses: u8,
    /// A message arrives twice.
    pub(super) repeats: u8,
    /// The server is killed.
    pub(super) server_crashes: u8,
    /// The client is killed and starts again.
    pub(super) client_crashes: u8,
    /// The log fails a load, or an append before or after it happened.
    pub(super) log_faults: u8,
    /// The client's timer runs out although the answer is on its way.
    pub(super) hurries: u8,
    /// A bound of the server runs out.
    pub(super) stalls: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    Call,
    Attach,
    Cancel,
}

/// What the server tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Told {
    Answer(CommandReport),
    News(CommandReport),
    Refused(Refused),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Connection {
    pub(super) to_server: VecDeque<(Ask, Question)>,
    pub(super) to_client: VecDeque<(Ask, Told)>,
    pub(super) open: Option<OpenCall>,
}

/// The newest call of the command on its connection; the client forgets the others. It is told of every
/// change of the record after its answer, until it is refused or settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpenCall {
    pub(super) ask: Ask,
    pub(super) told: Option<Seq>,
}

/// What the server's driver does for its execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Load,
    Run,
    Append(Append),
    /// It is in the log; that is not known yet.
    Appended(Appended),
}

/// The process that does the work of a running command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Executor {
    Away,
    Works,
    /// Stopped because of the cancel, which it has not said yet.
    Stopped,
    Gone,
}

/// What the handler's outcome is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    AtOnce,
    GoesOn,
}

#[derive(Clone, Hash)]
pub(super) struct World {
    pub(super) luck: Luck,
    pub(super) work: Work,
    /// The server's bound on its handler and on its log.
    pub(super) bound: Duration,

    pub(super) client: client::Machine,
    /// The question whose answers are wanted.
    pub(super) asked: Ask,
    pub(super) may_cancel: bool,
    pub(super) released: bool,

    pub(super) connection: Option<Connection>,
    /// Of connections that are gone: may still arrive, answered to nobody.
    pub(super) late: VecDeque<Question>,

    pub(super) up: bool,
    pub(super) execution: Execution,
    pub(super) operation: Option<Operation>,
    pub(super) callers: Vec<(Caller, Option<Ask>)>,
    pub(super) next_caller: Caller,
    /// Appends whose execution has given up on them: each may still happen.
    pub(super) orphans: Vec<Append>,

    pub(super) disk: Disk,
    pub(super) executor: Executor,
}

pub(super) fn settings(origin: client::Origin) -> Settings {
    let mut settings = Settings::call(CommandKey::explicit("release:42"), MINTED, Protection::Recorded);
    settings.origin = origin;
    // Whatever waits may be woken at once.
    settings.answer_within = Duration::ZERO;
    settings.first_backoff = Duration::ZERO;
    settings.last_backoff = Duration::ZERO;
    settings
}

pub(super) fn want(question: Question) -> Want {
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
    pub(super) fn new(work: Work, bound: Duration, faults: u8) -> Self {
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

    pub(super) fn idle(bound: Duration) -> Execution {
        let admission = Admission { retention: RETENTION, sigma: Duration::from_secs(30) };
        Execution::new(key(), Bounds { attempt: bound, log: bound, admission })
    }

    pub(super) fn now(&self) -> Now {
        // Different for each append, and far too small to make a jitter.
        Now { instant: NOON, wall: MINTED, draw: self.disk.store.head_of_log() }
    }

    pub(super) fn record(&self) -> Option<&KeyRecord> {
        self.disk.records.last()
    }

    /// The record as it was at `seq`.
    pub(super) fn record_until(&self, seq: Seq) -> Option<&KeyRecord> {
        self.disk.records.iter().rfind(|record| record.head <= seq)
    }

    /// The entry that follows `told` on the key's subject.
    pub(super) fn news_after(&self, told: Seq) -> Option<Seq> {
        self.disk.records.iter().map(|record| record.head).find(|seq| *seq > told)
    }
}
