//! The decisions of one command, from its key to its end. Rows are those of the manual's chapter `machines`.
//!
//! One question is outstanding at a time: the call itself, an attach, or a cancel. After every event
//! the machine looks at what it knows and at the connection, and asks what is to be asked next, so a
//! lost message, a restart and a slow answer all take the same road.

mod action;
mod answer;
mod event;
mod open;
mod stage;
#[cfg(test)]
mod tests;

pub use action::{Action, Ask, Oddity, Record};
pub use event::{Event, Lineage};

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::{CommandState, Delivery, Hold, Protection};
use crate::key::{CommandKey, KeyLevel};
use crate::machine::{Actions, Machine as PureMachine, Monotonic, Now, Wall};
use crate::wire::{CommandFailure, CommandStatus, FailureReason, Retry};
use stage::{Bound, Fit, Flight, Gate, Link, Open, Progress, Question, Stage};

/// What a command is, and the bounds that it keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Settings {
    /// The command's key, the same in every send (W1).
    pub key: CommandKey,
    /// When it was minted.
    pub minted: Wall,
    /// Whether there is a command to send, or only a key to follow.
    pub origin: Origin,
    /// Whether a resend is harmless; with [`Protection::Unprotected`] there is none after a lost answer.
    pub protection: Protection,
    /// The stated bound on clock error (S3). Default 30 s.
    pub sigma: Duration,
    /// How long one question may stay unanswered before it is asked again (R7). Default 15 s.
    pub answer_within: Duration,
    /// The cap of the first delay after a refusal that may be asked again; it doubles. Default 100 ms.
    pub first_backoff: Duration,
    /// The largest cap of such a delay. Default 5 s.
    pub last_backoff: Duration,
}

/// Where a machine's command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it is sent here or it is not")]
pub enum Origin {
    /// Called here: this machine sends it.
    Call,
    /// Only its key is known here: it is followed and may be canceled, and is never sent.
    Attach,
}

impl Settings {
    /// A command to be sent.
    pub fn call(key: CommandKey, minted: Wall, protection: Protection) -> Self {
        Self {
            key,
            minted,
            origin: Origin::Call,
            protection,
            sigma: Duration::from_secs(30),
            answer_within: Duration::from_secs(15),
            first_backoff: Duration::from_millis(100),
            last_backoff: Duration::from_secs(5),
        }
    }

    /// A key to be followed, from `now` on.
    pub fn attach(key: CommandKey, now: Wall) -> Self {
        Self { origin: Origin::Attach, ..Self::call(key, now, Protection::Recorded) }
    }
}

/// One command's decisions. Pure: see [`crate::machine`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    settings: Settings,
    /// As in the settings, until it is minted afresh before the first send (row 25).
    minted: Wall,
    stage: Stage,
    link: Link,
    /// Whether anybody still looks at the command.
    observed: bool,
    asked: Ask,
    /// Refusals in a row, for the backoff.
    refusals: u8,
    state: CommandState,
    published: Option<CommandState>,
    /// When an unanswered command may no longer be resent (row 10).
    horizon: Option<Monotonic>,
}

impl Machine {
    /// A command of which nothing has happened. Its driver says [`Event::Called`] first; if a
    /// connection is up, it says [`Event::Linked`] next.
    pub fn new(settings: Settings) -> Self {
        let mut state = CommandState::queued(settings.protection);
        if settings.origin == Origin::Attach {
            state.delivery = Delivery::Indeterminate;
        }
        Self {
            minted: settings.minted,
            settings,
            stage: Stage::New,
            link: Link::Down,
            observed: true,
            asked: Ask::default(),
            refusals: 0,
            state,
            published: None,
            horizon: None,
        }
    }

    /// What the handle shows. Every change of it is also an [`Action::Publish`], and so is the first.
    pub fn state(&self) -> &CommandState {
        &self.state
    }

    /// The command's key.
    pub fn key(&self) -> &CommandKey {
        &self.settings.key
    }

    /// Whether there is a command to send, or only a key to follow.
    pub fn origin(&self) -> Origin {
        self.settings.origin
    }

    // --- one stage each -------------------------------------------------------------------------

    fn when_new(&mut self, now: Now, event: Event, out: &mut Actions<Action>) -> Stage {
        match event {
            Event::Called => match (self.settings.key.validate(), self.settings.origin) {
                (Err(e), _) => {
                    self.fail(FailureReason::Invalid, Retry::Never, e.to_string());
                    Stage::Done
                }
                (Ok(()), Origin::Call) => {
                    out.push(Action::Persist(Record::Key { key: self.settings.key.clone(), minted: self.minted }));
                    Stage::Keying
                }
                (Ok(()), Origin::Attach) => self.proceed(now, Open::followed(), out),
            },
            Event::Persisted(_)
            | Event::PersistFailed { .. }
            | Event::Linked(_)
            | Event::Unlinked
            | Event::Draining
            | Event::Report(_)
            | Event::Refused { .. }
            | Event::Cancel
            | Event::CredentialDenied
            | Event::HandleDropped
            | Event::ClientClosed
            | Event::Tick => Stage::New,
        }
    }

    fn when_keying(&mut self, now: Now, event: Event, out: &mut Actions<Action>) -> Stage {
        match event {
            Event::Persisted(Record::Key { .. }) => self.start(now, out),
            Event::PersistFailed { record: Record::Key { .. }, detail } => {
                let message = format!("the key could not be made durable, nothing was sent: {detail}");
                self.fail(FailureReason::NotPersisted, Retry::SameKey, message);
                Stage::Done
            }
            Event::Cancel => self.cancel_unsent(now, out),
            Event::Persisted(_)
            | Event::PersistFailed { .. }
            | Event::Called
            | Event::Linked(_)
            | Event::Unlinked
            | Event::Draining
            | Event::Report(_)
            | Event::Refused { .. }
            | Event::CredentialDenied
            | Event::HandleDropped
            | Event::ClientClosed
            | Event::Tick => Stage::Keying,
        }
    }

    fn when_queued(&mut self, now: Now, gate: Gate, event: Event, out: &mut Actions<Action>) -> Stage {
        match event {
            Event::Cancel => self.cancel_unsent(now, out),
            Event::Linked(_) => match gate {
                Gate::Link => self.start(now, out),
                Gate::Persisting(_) | Gate::Retry { .. } => Stage::Queued(gate),
            },
            Event::Persisted(Record::Sent { .. }) => match gate {
                Gate::Persisting(bound) => self.send_first(now, bound, out),
                Gate::Link | Gate::Retry { .. } => Stage::Queued(gate),
            },
            // Failing here would be untrue: the key is durable, and a later life of the client would send it.
            Event::PersistFailed { record: Record::Sent { .. }, detail } => {
                out.push(Action::Trace(Oddity::NotPersisted { detail }));
                Stage::Queued(Gate::Retry { until: self.back_off(now, None) })
            }
            Event::Tick => match gate {
                Gate::Retry { until } if until <= now.instant => self.start(now, out),
                Gate::Link | Gate::Persisting(_) | Gate::Retry { .. } => Stage::Queued(gate),
            },
            Event::Report(report) => {
                out.push(Action::Trace(Oddity::Unasked { got: report.status }));
                Stage::Queued(gate)
            }
            Event::Called
            | Event::Persisted(_)
            | Event::PersistFailed { .. }
            | Event::Unlinked
            | Event::Draining
            | Event::Refused { .. }
            | Event::CredentialDenied
            | Event::HandleDropped
            | Event::ClientClosed => Stage::Queued(gate),
        }
    }

    /// Row 22: nothing follows a terminal status.
    fn when_done(&mut self, event: Event, out: &mut Actions<Action>) -> Stage {
        match event {
            Event::Report(report) => {
                if report.status.is_terminal() && report.status != self.state.status {
                    out.push(Action::Trace(Oddity::OtherTerminal { kept: self.state.status, got: report.status }));
                }
            }
            Event::PersistFailed { detail, .. } => out.push(Action::Trace(Oddity::NotPersisted { detail })),
            Event::Called
            | Event::Persisted(_)
            | Event::Linked(_)
            | Event::Unlinked
            | Event::Draining
            | Event::Refused { .. }
            | Event::Cancel
            | Event::CredentialDenied
            | Event::HandleDropped
            | Event::ClientClosed
            | Event::Tick => {}
        }
        Stage::Done
    }

    // --- the way out ----------------------------------------------------------------------------

    /// Rows 3, 24 and 25: binds a queued command to the service that is there, if it takes first sends.
    fn start(&mut self, now: Now, out: &mut Actions<Action>) -> Stage {
        let Link::Up { lineage, draining: false } = &self.link else { return Stage::Queued(Gate::Link) };
        let bound = Bound::of(lineage);
        if now.wall >= self.horizon_of(&bound) || self.minted > now.wall + 2 * self.settings.sigma {
            self.minted = now.wall;
        }
        out.push(Action::Persist(Record::Sent {
            log: bound.log,
            principal: bound.principal.clone(),
            minted: self.minted,
        }));
        Stage::Queued(Gate::Persisting(bound))
    }

    /// The first send. Nothing was sent yet, so if the service has changed meanwhile it starts over.
    fn send_first(&mut self, now: Now, bound: Bound, out: &mut Actions<Action>) -> Stage {
        match &self.link {
            Link::Up { lineage, draining: false } if Bound::of(lineage) == bound => {
                let mut open = Open::sent(bound);
                self.ask(now, &mut open, Question::Call, out);
                Stage::Open(open)
            }
            Link::Up { .. } | Link::Down | Link::Denied => self.start(now, out),
        }
    }

    /// Row 4: no byte was sent, so it never runs.
    ///
    /// That is certain of a minted key only. An L2 or L3 key may have been sent by an earlier life of the
    /// client, or by another one, and its command may be running; so the cancel is sent by key (W5), and
    /// the call is not.
    fn cancel_unsent(&mut self, now: Now, out: &mut Actions<Action>) -> Stage {
        match self.settings.key.level() {
            KeyLevel::Minted => {
                self.state.status = CommandStatus::Canceled;
                out.push(Action::Persist(Record::Settled(self.state.clone())));
                Stage::Done
            }
            KeyLevel::Semantic | KeyLevel::Explicit => {
                let mut open = Open::followed();
                self.wish_cancel(&mut open, out);
                self.proceed(now, open, out)
            }
        }
    }

    fn ask(&mut self, now: Now, open: &mut Open, question: Question, out: &mut Actions<Action>) {
        let ask = self.asked.next();
        open.flight = Flight::Awaiting { question, ask, until: now.instant + self.settings.answer_within };
        out.push(match question {
            Question::Call => Action::SendCall { ask, minted: self.minted },
            Question::Attach => Action::SendAttach { ask },
            Question::Cancel => Action::SendCancel { ask, minted: self.minted },
        });
    }

    // --- bounds ---------------------------------------------------------------------------------

    /// W2: minted-at + R - 2 sigma. Before it the service still remembers a copy that was accepted.
    fn horizon_of(&self, bound: &Bound) -> Wall {
        self.minted + bound.retention.saturating_sub(2 * self.settings.sigma)
    }

    /// Row 8: max(hint, full jitter), the jitter's cap doubling with each refusal.
    fn back_off(&mut self, now: Now, hint: Option<Duration>) -> Monotonic {
        let cap = self.settings.first_backoff.saturating_mul(1 << self.refusals).min(self.settings.last_backoff);
        // Beyond 2^12 the cap has long been reached; an unbounded count would only grow the state.
        self.refusals = (self.refusals + 1).min(12);
        now.instant + now.jitter(cap).max(hint.unwrap_or_default())
    }

    // --- what is shown --------------------------------------------------------------------------

    fn fail(&mut self, reason: FailureReason, retry: Retry, message: impl Into<Arc<str>>) {
        self.state.status = CommandStatus::Failed;
        self.state.failure = Some(CommandFailure::new(reason, retry, message));
    }

    /// What the connection tells every stage.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Linked(lineage) => self.link = Link::Up { lineage: lineage.clone(), draining: false },
            Event::Unlinked => {
                if self.link != Link::Denied {
                    self.link = Link::Down;
                }
            }
            Event::CredentialDenied => self.link = Link::Denied,
            Event::Draining => {
                if let Link::Up { draining, .. } = &mut self.link {
                    *draining = true;
                }
            }
            Event::HandleDropped => self.observed = false,
            Event::Called
            | Event::Persisted(_)
            | Event::PersistFailed { .. }
            | Event::Report(_)
            | Event::Refused { .. }
            | Event::Cancel
            | Event::ClientClosed
            | Event::Tick => {}
        }
    }

    /// Brings what is shown in line with the stage.
    fn reflect(&mut self, now: Now) {
        self.horizon = None;
        match &self.stage {
            Stage::New | Stage::Keying | Stage::Queued(_) => {
                self.state.hold = (self.link == Link::Denied).then_some(Hold::Denied);
            }
            Stage::Open(open) => {
                self.state.hold = self.hold(open);
                self.state.asking = open.progress != Progress::Indeterminate { asking: false };
                self.state.delivery = match &open.progress {
                    _ if matches!(self.state.hold, Some(Hold::OtherLog | Hold::OtherPrincipal)) => {
                        Delivery::Indeterminate
                    }
                    Progress::Sent { .. } => Delivery::Sent,
                    Progress::Accepted { .. } => Delivery::Accepted,
                    Progress::Indeterminate { .. } => Delivery::Indeterminate,
                };
                if let (Progress::Sent { doubt: None }, Some(bound)) = (&open.progress, &open.bound) {
                    self.horizon = Some(now.instant + self.horizon_of(bound).since(now.wall));
                }
            }
            Stage::Done => {
                self.state.hold = None;
                self.state.asking = false;
            }
            Stage::Released => {}
        }
    }

    /// Rows 11 and 23. While the connection is down the last word stands.
    fn hold(&self, open: &Open) -> Option<Hold> {
        match (&self.link, &open.bound) {
            (Link::Down, _) => self.state.hold,
            (Link::Denied, _) => Some(Hold::Denied),
            (Link::Up { .. }, None) => None,
            (Link::Up { lineage, .. }, Some(bound)) => match bound.fit(lineage) {
                Fit::Held(hold) => Some(hold),
                Fit::Same | Fit::Forgotten => None,
            },
        }
    }

    /// Row 27: whether nothing is left to deliver of a command that nobody looks at.
    fn is_delivered(&self) -> bool {
        match &self.stage {
            Stage::New | Stage::Keying | Stage::Queued(_) => false,
            Stage::Open(open) => open.is_delivered(),
            Stage::Done | Stage::Released => true,
        }
    }
}

impl PureMachine for Machine {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        let mut out = Vec::new();
        if event == Event::ClientClosed && self.stage != Stage::Released {
            // Nothing is claimed about the work: what is shown stays, and its driver ends it as closed.
            self.stage = Stage::Released;
            self.horizon = None;
            return vec![Action::Release];
        }
        self.note(&event);
        self.stage = match mem::replace(&mut self.stage, Stage::Released) {
            Stage::New => self.when_new(now, event, &mut out),
            Stage::Keying => self.when_keying(now, event, &mut out),
            Stage::Queued(gate) => self.when_queued(now, gate, event, &mut out),
            Stage::Open(open) => self.when_open(now, open, event, &mut out),
            Stage::Done => self.when_done(event, &mut out),
            Stage::Released => return out,
        };
        self.reflect(now);
        if self.published.as_ref() != Some(&self.state) {
            self.published = Some(self.state.clone());
            out.push(Action::Publish(self.state.clone()));
        }
        if !self.observed && self.is_delivered() {
            self.stage = Stage::Released;
            self.horizon = None;
            out.push(Action::Release);
        }
        out
    }

    fn deadline(&self) -> Option<Monotonic> {
        let retry = match &self.stage {
            Stage::Open(open) => match open.flight {
                Flight::Awaiting { until, .. } | Flight::Waiting { until } => Some(until),
                Flight::Idle | Flight::Answered | Flight::Persisting(_) => None,
            },
            Stage::Queued(Gate::Retry { until }) => Some(*until),
            Stage::Queued(Gate::Link | Gate::Persisting(_))
            | Stage::New
            | Stage::Keying
            | Stage::Done
            | Stage::Released => None,
        };
        retry.into_iter().chain(self.horizon).min()
    }
}
