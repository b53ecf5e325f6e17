//! The machine row by row, then its laws over random schedules.

mod laws;
mod rows;

use std::time::Duration;

use ulid::Ulid;

use super::*;
use crate::command::{CommandStatus, Delivery};
use crate::key::Principal;
use crate::wire::{CommandReport, LogId, RefusalCode, Refused, Seq, Timestamp};

pub(super) const DAY: Duration = Duration::from_secs(86_400);
pub(super) const MINTED: Wall = Wall::from_millis(1_764_500_000_000);

pub(super) fn log(n: u128) -> LogId {
    LogId::new(Ulid(n))
}

pub(super) fn lineage(n: u128) -> Lineage {
    Lineage { log: log(n), history: 0, durable: true, retention: DAY, principal: Principal::new("ci").unwrap() }
}

pub(super) fn report(status: CommandStatus, accepted: Seq) -> Event {
    Event::Report(CommandReport { status, accepted, at: accepted, failure: None })
}

pub(super) fn after(seq: Seq) -> Timestamp {
    Timestamp { log: log(1), seq }
}

/// A machine with time, and with a driver that keeps no outbox unless told.
#[derive(Clone)]
pub(super) struct Rig {
    pub(super) machine: Machine,
    pub(super) now: Now,
    /// Answer `Persist` at once.
    pub(super) durable_at_once: bool,
    /// Every action, `Persist` too.
    pub(super) trail: Vec<Action>,
    pub(super) last_ask: Ask,
}

impl Rig {
    pub(super) fn new(settings: Settings) -> Self {
        let now = Now { instant: Monotonic::new(Duration::from_secs(5)), wall: MINTED, draw: u64::MAX };
        Self {
            machine: Machine::new(settings),
            now,
            durable_at_once: true,
            trail: Vec::new(),
            last_ask: Ask::default(),
        }
    }

    pub(super) fn call() -> Self {
        Self::new(settings())
    }

    pub(super) fn unprotected() -> Self {
        Self::new(Settings { protection: Protection::Unprotected, ..settings() })
    }

    /// Called and linked to log 1.
    pub(super) fn sent() -> Self {
        Self::sent_as(Self::call(), lineage(1))
    }

    pub(super) fn sent_as(mut rig: Self, to: Lineage) -> Self {
        rig.on(Event::Called);
        assert_eq!(rig.on(Event::Linked(to)), ["call"]);
        rig
    }

    /// Accepted at 11 and running.
    pub(super) fn accepted() -> Self {
        Self::accepted_as(Self::call(), lineage(1))
    }

    pub(super) fn accepted_as(rig: Self, to: Lineage) -> Self {
        let mut rig = Self::sent_as(rig, to);
        assert_eq!(rig.on(report(CommandStatus::Running, 11)), [""; 0]);
        rig
    }

    pub(super) fn attached() -> Self {
        let mut rig = Self::new(Settings::attach(settings().key, MINTED));
        rig.on(Event::Called);
        rig
    }

    /// Takes an event, and returns what was sent and traced, in words.
    pub(super) fn on(&mut self, event: Event) -> Vec<&'static str> {
        let mut said = Vec::new();
        let mut events = vec![event];
        while !events.is_empty() {
            let actions = self.machine.on_event(self.now, events.remove(0));
            for action in actions {
                self.trail.push(action.clone());
                match action {
                    Action::Persist(record) => {
                        if self.durable_at_once {
                            events.push(Event::Persisted(record));
                        }
                    }
                    Action::SendCall { ask, .. } => {
                        self.last_ask = ask;
                        said.push("call");
                    }
                    Action::SendAttach { ask } => {
                        self.last_ask = ask;
                        said.push("attach");
                    }
                    Action::SendCancel { ask, .. } => {
                        self.last_ask = ask;
                        said.push("cancel");
                    }
                    Action::Publish(state) => assert_eq!(&state, self.machine.state()),
                    Action::Trace(_) => said.push("trace"),
                    Action::Release => said.push("release"),
                }
            }
        }
        said
    }

    pub(super) fn refuse(&mut self, code: RefusalCode) -> Vec<&'static str> {
        self.refuse_for(code, None)
    }

    pub(super) fn refuse_for(&mut self, code: RefusalCode, retry_after: Option<Duration>) -> Vec<&'static str> {
        let refused = Refused { code, detail: "in the service's words".into(), retry_after };
        self.on(Event::Refused { ask: self.last_ask, refused })
    }

    /// Time passes on both clocks, without an event.
    pub(super) fn pass(&mut self, by: Duration) {
        self.now.instant = self.now.instant + by;
        self.now.wall = self.now.wall + by;
    }

    /// Waits for the machine's deadline.
    pub(super) fn wake(&mut self) -> Vec<&'static str> {
        let at = self.machine.deadline().expect("a timer is armed");
        self.pass(at.since(self.now.instant));
        self.on(Event::Tick)
    }

    /// The link drops and comes back to the same history.
    pub(super) fn relink(&mut self) -> Vec<&'static str> {
        self.relink_to(lineage(1))
    }

    pub(super) fn relink_to(&mut self, to: Lineage) -> Vec<&'static str> {
        let mut said = self.on(Event::Unlinked);
        said.extend(self.on(Event::Linked(to)));
        said
    }

    pub(super) fn status(&self) -> CommandStatus {
        self.machine.state().status()
    }

    pub(super) fn delivery(&self) -> Delivery {
        self.machine.state().delivery()
    }

    pub(super) fn hold(&self) -> Option<Hold> {
        self.machine.state().hold()
    }

    /// The minted-at of each call, in order.
    pub(super) fn calls(&self) -> Vec<Wall> {
        let call = |action: &Action| match action {
            Action::SendCall { minted, .. } => Some(*minted),
            Action::SendAttach { .. }
            | Action::SendCancel { .. }
            | Action::Persist(_)
            | Action::Publish(_)
            | Action::Trace(_)
            | Action::Release => None,
        };
        self.trail.iter().filter_map(call).collect()
    }
}

pub(super) fn settings() -> Settings {
    Settings::call(CommandKey::explicit("release:42"), MINTED, Protection::Recorded)
}

pub(super) fn volatile(n: u128) -> Lineage {
    Lineage { durable: false, ..lineage(n) }
}
