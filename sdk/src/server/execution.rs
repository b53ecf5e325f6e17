//! At most one recorded effect per key (S1): everything that is asked of one key, as a pure machine.
//!
//! There is one machine for a (principal, key) while anybody waits for an answer, and none after. It
//! remembers nothing that matters: only the append decides. So it may be lost at any instant, and
//! another replica may run one for the same key.
//!
//! ```text
//! Idle -> Loading -> a record: answer everybody, or append a cancel
//!                 -> none: Running (handler) -> Linking -> Appending <-> Resting
//!                                     a conflict -> Loading, Linking or Running again
//! ```
//!
//! An append that is ambiguous is repeated, the identical one. A conflict then tells that the key has
//! a record, and the whole subject is loaded: whether it was this append or another's that made the
//! record does not matter, since both answer the same.

mod plan;
#[cfg(test)]
mod tests;

pub(crate) use plan::{Linked, Plan};

use std::sync::Arc;
use std::time::Duration;

use ulid::Ulid;

use super::admission::Admission;
use super::record::{KeyEntry, KeyRecord, Settled};
use super::refused;
use crate::key::{Fingerprint, KeyLevel};
use crate::log::{Append, AppendId, Appended, Expect, Seq, Subject, Write};
use crate::machine::{Actions, Machine, Monotonic, Now, Wall};
use crate::wire::{CommandStatus, RefusalCode, Refused};

/// How often a handler may run for one call before its conflicts are given up as contention.
const ROUNDS: u32 = 16;

/// The first bound on the wait before an append is repeated; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(10);

/// The last bound on that wait.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Names one request within one machine.
pub(crate) type Caller = u64;

/// What is asked of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Want {
    /// The command, once.
    Call(Offer),
    /// Where it stands.
    Attach,
    /// That it stops, or never starts (W5).
    Cancel { minted: Wall },
}

/// A command as it was received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Offer {
    pub(crate) method: Arc<str>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) level: KeyLevel,
    pub(crate) minted: Wall,
    pub(crate) id: Ulid,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// Somebody asks.
    Requested { caller: Caller, want: Want },
    /// The key's record was read; `None`: the log cannot be read.
    Loaded(Option<Option<KeyRecord>>),
    /// The handler decided.
    Decided(Result<Plan, Refused>),
    /// The records of the commands that the plan starts or settles; `None`: the log cannot be read.
    Linked(Option<Linked>),
    /// The log answered the append.
    Appended(Appended),
    /// [`Machine::deadline`] has come.
    Tick,
}

/// What is to be done. At most one operation (`Load`, `Run`, `Link`, `Append`) is under way; its
/// result comes back as an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Read the key's record.
    Load,
    /// Run the handler with this caller's arguments.
    Run { caller: Caller },
    /// Read the records of these keys.
    Link { subjects: Vec<Subject> },
    /// Write it.
    Append(Append),
    /// Drop the operation under way: its result is no longer wanted.
    Abandon,
    /// This caller's answer: where the command stands.
    Report { caller: Caller, record: KeyRecord },
    /// This caller's answer.
    Refuse { caller: Caller, refused: Refused },
    /// Trace that a plan would start or settle a command which is past that.
    LeaveOut { subject: Subject },
}

/// What the machine waits for no longer than.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// One run of the handler.
    pub(crate) attempt: Duration,
    /// An answer of the log, an ambiguous append's repetitions included.
    pub(crate) log: Duration,
    /// Which keys are taken (S3).
    pub(crate) admission: Admission,
}

/// What is going on for one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Execution {
    key: Subject,
    bounds: Bounds,
    waiting: Vec<(Caller, Want)>,
    phase: Phase,
    rounds: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Loading { until: Monotonic },
    Running { offer: Offer, until: Monotonic },
    Linking { offer: Offer, plan: Plan, until: Monotonic },
    Appending(Pending),
    Resting { pending: Pending, wake: Monotonic },
}

/// An append until its outcome is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pending {
    append: Append,
    purpose: Purpose,
    /// The key's record before it.
    base: Option<KeyRecord>,
    /// Its last writes: what it adds to the record.
    own: Vec<KeyEntry>,
    give_up: Monotonic,
    wait: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Accept { offer: Offer, plan: Plan },
    Cancel,
}

impl Execution {
    /// Nobody asks for anything yet.
    pub(crate) fn new(key: Subject, bounds: Bounds) -> Self {
        Self { key, bounds, waiting: Vec::new(), phase: Phase::Idle, rounds: 0 }
    }

    /// Whether everybody is answered and nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && matches!(self.phase, Phase::Idle)
    }

    fn requested(&mut self, now: Now, caller: Caller, want: Want) -> Actions<Action> {
        match (self.claim(), &want) {
            // K1: also while the first still runs, and it shows nothing of the first.
            (Some(claim), Want::Call(offer)) if offer.fingerprint != claim => {
                return vec![Action::Refuse { caller, refused: refused::key_conflict() }];
            }
            _ => self.waiting.push((caller, want)),
        }
        match self.phase {
            Phase::Idle => self.load(now),
            // A cancel need not wait for a handler that has no effect: what it decides is not wanted.
            Phase::Running { .. } if self.waiting.iter().any(|(_, want)| matches!(want, Want::Cancel { .. })) => {
                let before = self.phase.clone();
                let mut actions = self.absent(now);
                if self.phase == before {
                    return actions; // its key is not admitted; the handler goes on
                }
                actions.insert(0, Action::Abandon);
                actions
            }
            Phase::Running { .. }
            | Phase::Loading { .. }
            | Phase::Linking { .. }
            | Phase::Appending(_)
            | Phase::Resting { .. } => Vec::new(),
        }
    }

    /// What the call under way asks for.
    fn claim(&self) -> Option<Fingerprint> {
        match &self.phase {
            Phase::Idle | Phase::Loading { .. } => None,
            Phase::Running { offer, .. } | Phase::Linking { offer, .. } => Some(offer.fingerprint),
            Phase::Appending(pending) | Phase::Resting { pending, .. } => match &pending.purpose {
                Purpose::Accept { offer, .. } => Some(offer.fingerprint),
                Purpose::Cancel => None,
            },
        }
    }

    fn load(&mut self, now: Now) -> Actions<Action> {
        self.phase = Phase::Loading { until: now.instant + self.bounds.log };
        vec![Action::Load]
    }

    /// The key has a record: it answers everybody, but for a cancel that it still permits.
    fn present(&mut self, now: Now, record: KeyRecord) -> Actions<Action> {
        let mut actions = self.answer(|want| match want {
            // A fenced command answers as canceled, whatever it was to be (W5).
            Want::Call(offer) => Some(match record.fingerprint {
                Some(known) if known != offer.fingerprint => Err(refused::key_conflict()),
                Some(_) | None => Ok(record.clone()),
            }),
            Want::Attach => Some(Ok(record.clone())),
            Want::Cancel { .. } => (!record.can_cancel()).then(|| Ok(record.clone())),
        });
        if self.waiting.is_empty() {
            self.rest();
        } else {
            let mut own = vec![KeyEntry::CancelRequested];
            if record.status == CommandStatus::Pending {
                own.push(KeyEntry::Settled(Settled::CANCELED)); // it has not started, and now never will
            }
            let events = record.on_cancel.iter().map(|event| Write {
                subject: Subject::from_encoded(&event.subject),
                expect: Expect::Any, // the key's own expectation makes a repetition harmless
                body: event.body.as_bytes().to_vec().into(),
            });
            actions.push(self.append(now, events.collect(), Purpose::Cancel, Some(record), own));
        }
        actions
    }

    /// The key has no record: somebody's call makes one, or a cancel fences it.
    fn absent(&mut self, now: Now) -> Actions<Action> {
        let admission = self.bounds.admission;
        let mut actions = self.answer(|want| match want {
            Want::Call(Offer { minted, .. }) | Want::Cancel { minted } => admission.refusal(now.wall, *minted).map(Err),
            Want::Attach => None,
        });
        let fence = self.waiting.iter().find_map(|(_, want)| match want {
            Want::Cancel { minted } => Some(minted.millis()),
            Want::Call(_) | Want::Attach => None,
        });
        if let Some(minted) = fence {
            let own = vec![KeyEntry::Fenced { minted }];
            actions.push(self.append(now, Vec::new(), Purpose::Cancel, None, own));
            return actions;
        }
        if matches!(self.phase, Phase::Running { .. }) && self.claimant().is_some() {
            return actions;
        }
        let Some((caller, offer)) = self.first_call() else {
            actions.extend(self.answer(|_| Some(Err(refused::not_found()))));
            self.rest();
            return actions;
        };
        actions.extend(self.answer(|want| match want {
            Want::Call(other) if other.fingerprint != offer.fingerprint => Some(Err(refused::key_conflict())),
            Want::Call(_) | Want::Attach | Want::Cancel { .. } => None,
        }));
        self.phase = Phase::Running { offer, until: now.instant + self.bounds.attempt };
        actions.push(Action::Run { caller });
        actions
    }

    fn first_call(&self) -> Option<(Caller, Offer)> {
        self.waiting.iter().find_map(|(caller, want)| match want {
            Want::Call(offer) => Some((*caller, offer.clone())),
            Want::Attach | Want::Cancel { .. } => None,
        })
    }

    fn claimant(&self) -> Option<Caller> {
        self.first_call().map(|(caller, _)| caller)
    }

    /// Another try of the same call, after a conflict that left the key without a record.
    fn again(&mut self, now: Now) -> Actions<Action> {
        self.rounds += 1;
        self.phase = Phase::Idle;
        if self.rounds >= ROUNDS {
            return self.refuse_all(refused::unavailable("too many conflicting changes"));
        }
        self.absent(now)
    }

    fn link(&mut self, now: Now, offer: Offer, plan: Plan) -> Actions<Action> {
        let subjects = plan.linked(&self.key);
        if subjects.is_empty() {
            return self.accept(now, offer, plan, &Linked::new());
        }
        self.phase = Phase::Linking { offer, plan, until: now.instant + self.bounds.log };
        vec![Action::Link { subjects }]
    }

    /// Effect, versions and the key's record in one append (S2). The key's entry is the last one, so
    /// that its sequence is the append's timestamp.
    fn accept(&mut self, now: Now, offer: Offer, plan: Plan, linked: &Linked) -> Actions<Action> {
        let (writes, left_out) = plan.writes(&self.key, linked);
        let own = KeyEntry::Accepted {
            method: Arc::clone(&offer.method),
            fingerprint: offer.fingerprint,
            level: offer.level,
            minted: offer.minted.millis(),
            id: offer.id,
            settled: plan.settled.clone(),
            on_cancel: plan.on_cancel.clone(),
        };
        let mut actions: Vec<_> = left_out.into_iter().map(|subject| Action::LeaveOut { subject }).collect();
        actions.push(self.append(now, writes, Purpose::Accept { offer, plan }, None, vec![own]));
        actions
    }

    fn append(
        &mut self,
        now: Now,
        mut writes: Vec<Write>,
        purpose: Purpose,
        base: Option<KeyRecord>,
        own: Vec<KeyEntry>,
    ) -> Action {
        let mut expect = base.as_ref().map_or(Expect::Absent, |record| Expect::At(record.head));
        for entry in &own {
            writes.push(Write { subject: self.key.clone(), expect, body: entry.encode() });
            expect = Expect::Any;
        }
        let id = AppendId::new(Ulid::from_parts(now.wall.millis(), u128::from(now.draw)));
        let append = Append { id, at: now.wall, writes };
        let give_up = now.instant + self.bounds.log;
        let pending = Pending { append: append.clone(), purpose, base, own, give_up, wait: FIRST_WAIT };
        self.phase = Phase::Appending(pending);
        Action::Append(append)
    }

    fn appended(&mut self, now: Now, mut pending: Pending, outcome: Appended) -> Actions<Action> {
        match outcome {
            Appended::Done(timestamp) => match pending.record(timestamp.seq) {
                Some(record) => self.present(now, record),
                None => self.load(now), // a record that cannot follow its base; the log knows better
            },
            Appended::Conflict(heads) => self.conflict(now, pending, &heads),
            Appended::Busy | Appended::Unknown => {
                let wake = now.instant + now.jitter(pending.wait);
                pending.wait = (pending.wait * 2).min(LAST_WAIT);
                self.phase = Phase::Resting { pending, wake };
                Vec::new()
            }
            Appended::Invalid(invalid) => self.unrecorded(&refused::invalid(invalid.to_string())),
        }
    }

    fn conflict(&mut self, now: Now, pending: Pending, heads: &[(Subject, Option<Seq>)]) -> Actions<Action> {
        let head = |subject: &Subject| heads.iter().find(|(s, _)| s == subject).and_then(|(_, head)| *head);
        match pending.purpose {
            // Somebody else's copy, another replica's, or an earlier copy of this very append: the record answers.
            Purpose::Accept { .. } if head(&self.key).is_some() => self.load(now),
            Purpose::Accept { offer, plan } => {
                let moved = |write: &&Write| match write.expect {
                    Expect::Absent => head(&write.subject).is_some(),
                    Expect::At(seq) => head(&write.subject) != Some(seq),
                    Expect::Any => false,
                };
                let linked = plan.linked(&self.key);
                let mut moved = pending.append.writes.iter().filter(moved).peekable();
                // Only another command's record has moved: what the handler decided still holds.
                if moved.peek().is_some() && moved.all(|write| linked.contains(&write.subject)) && self.rounds < ROUNDS
                {
                    self.rounds += 1;
                    return self.link(now, offer, plan);
                }
                self.again(now)
            }
            Purpose::Cancel if self.rounds >= ROUNDS => {
                self.phase = Phase::Idle;
                self.refuse_all(refused::unavailable("too many conflicting changes"))
            }
            Purpose::Cancel => {
                self.rounds += 1;
                self.load(now)
            }
        }
    }

    /// Nothing was recorded: calls are told why, the others that there is no such command.
    fn unrecorded(&mut self, refused: &Refused) -> Actions<Action> {
        self.rest();
        self.answer(|want| match want {
            Want::Call(_) | Want::Cancel { .. } => Some(Err(refused.clone())),
            // Where it is unavailable, the same key may be recorded in the next moment.
            Want::Attach if refused.code == RefusalCode::Unavailable => Some(Err(refused.clone())),
            Want::Attach => Some(Err(refused::not_found())),
        })
    }

    fn refuse_all(&mut self, refused: Refused) -> Actions<Action> {
        self.rest();
        self.answer(|_| Some(Err(refused.clone())))
    }

    fn rest(&mut self) {
        self.phase = Phase::Idle;
        self.rounds = 0;
    }

    /// Answers those for whom `choose` has an answer; the others go on waiting.
    fn answer(&mut self, choose: impl Fn(&Want) -> Option<Result<KeyRecord, Refused>>) -> Actions<Action> {
        let mut actions = Vec::new();
        self.waiting.retain(|(caller, want)| match choose(want) {
            None => true,
            Some(Ok(record)) => {
                actions.push(Action::Report { caller: *caller, record });
                false
            }
            Some(Err(refused)) => {
                actions.push(Action::Refuse { caller: *caller, refused });
                false
            }
        });
        actions
    }

    fn tick(&mut self, now: Now) -> Actions<Action> {
        let late = |until: Monotonic| now.instant >= until;
        let mut actions = vec![Action::Abandon];
        match &self.phase {
            Phase::Loading { until } | Phase::Linking { until, .. } if late(*until) => {
                actions.extend(self.refuse_all(refused::log_unavailable()));
            }
            Phase::Running { until, .. } if late(*until) => {
                let refused = refused::unavailable("the handler did not decide in time");
                actions.extend(self.unrecorded(&refused));
            }
            // The append may still happen. Whoever asks again is answered from the log.
            Phase::Appending(Pending { give_up, .. }) if late(*give_up) => {
                actions.extend(self.refuse_all(refused::log_unavailable()));
            }
            Phase::Resting { pending, wake } if late(*wake) => {
                if late(pending.give_up) {
                    return self.refuse_all(refused::log_unavailable());
                }
                let pending = pending.clone();
                actions = vec![Action::Append(pending.append.clone())];
                self.phase = Phase::Appending(pending);
            }
            Phase::Idle
            | Phase::Loading { .. }
            | Phase::Running { .. }
            | Phase::Linking { .. }
            | Phase::Appending(_)
            | Phase::Resting { .. } => actions.clear(),
        }
        actions
    }
}

impl Pending {
    /// The key's record after it was written at `seq`, its last entry's.
    fn record(self, seq: Seq) -> Option<KeyRecord> {
        let first = (seq + 1).checked_sub(self.own.len() as u64)?;
        let mut record = self.base;
        for (seq, entry) in (first..).zip(&self.own) {
            record = Some(KeyRecord::apply(record, seq, entry).ok()?);
        }
        record
    }
}

impl Machine for Execution {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        match (std::mem::replace(&mut self.phase, Phase::Idle), event) {
            (phase, Event::Requested { caller, want }) => {
                self.phase = phase;
                self.requested(now, caller, want)
            }
            (phase, Event::Tick) => {
                self.phase = phase;
                self.tick(now)
            }
            (Phase::Loading { .. }, Event::Loaded(Some(Some(record)))) => self.present(now, record),
            (Phase::Loading { .. }, Event::Loaded(Some(None))) => self.absent(now),
            // S4: fail closed.
            (Phase::Loading { .. }, Event::Loaded(None)) | (Phase::Linking { .. }, Event::Linked(None)) => {
                self.refuse_all(refused::log_unavailable())
            }
            (Phase::Running { offer, .. }, Event::Decided(Ok(plan))) => self.link(now, offer, plan),
            (Phase::Running { .. }, Event::Decided(Err(refused))) => self.unrecorded(&refused),
            (Phase::Linking { offer, plan, .. }, Event::Linked(Some(linked))) => self.accept(now, offer, plan, &linked),
            (Phase::Appending(pending), Event::Appended(outcome)) => self.appended(now, pending, outcome),
            // The result of an operation that was abandoned: nobody waits for it.
            (
                phase @ (Phase::Idle
                | Phase::Loading { .. }
                | Phase::Running { .. }
                | Phase::Linking { .. }
                | Phase::Appending(_)
                | Phase::Resting { .. }),
                Event::Loaded(_) | Event::Decided(_) | Event::Linked(_) | Event::Appended(_),
            ) => {
                self.phase = phase;
                Vec::new()
            }
        }
    }

    fn deadline(&self) -> Option<Monotonic> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Loading { until } | Phase::Running { until, .. } | Phase::Linking { until, .. } => Some(*until),
            Phase::Appending(pending) => Some(pending.give_up),
            Phase::Resting { wake, .. } => Some(*wake),
        }
    }
}
