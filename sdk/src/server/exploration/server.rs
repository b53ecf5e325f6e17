//! The server and its drivers.

use ulid::Ulid;

use super::command::{build, key};
use super::world::{MINTED, OpenCall, Operation, Question, Told, Work, World, want};
use crate::command::machine::Ask;
use crate::log::{Append, AppendId, Appended, Expect, Seq, Write};
use crate::machine::Machine as _;
use crate::server::execution::{self, Caller, Plan};
use crate::server::outcome::{Events, Outcome, Running};
use crate::server::record::{KeyEntry, KeyRecord};
use crate::wire::{CommandReport, RefusalCode, Refused};

impl World {
    pub(super) fn ask_server(&mut self, question: Question, ask: Option<Ask>) {
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
    pub(super) fn report(&mut self, ask: Ask, head: Seq, as_told: impl FnOnce(CommandReport) -> Told) {
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

    pub(super) fn tell_server(&mut self, event: execution::Event) {
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

    pub(super) fn plan(&self) -> Plan {
        // No version: only the key keeps a second effect out.
        let events = Events::on(build()).push("effect");
        Plan::of(match self.work {
            Work::AtOnce => Outcome::Events(events),
            Work::GoesOn => Outcome::Running(Running::new(events)),
        })
        .unwrap()
    }

    /// What the executor appends, by compare-and-append.
    pub(super) fn write(&mut self, record: &KeyRecord, entry: &KeyEntry) {
        let write = Write { subject: key(), expect: Expect::At(record.head), body: entry.encode() };
        let id = AppendId::new(Ulid(u128::from(self.disk.store.head_of_log()) + 1_000));
        let appended = self.disk.append(&Append { id, at: MINTED, writes: vec![write] });
        assert!(matches!(appended, Appended::Done(_)), "{appended:?}");
    }
}
