//! What can happen next.

use std::collections::VecDeque;

use super::command::principal;
use super::world::{Connection, Executor, Luck, NOON, OpenCall, Operation, RETENTION, Told, Work, World};
use crate::command::CommandStatus;
use crate::command::machine::{self as client, Lineage};
use crate::log::Appended;
use crate::machine::Machine as _;
use crate::server::execution;
use crate::server::record::{KeyEntry, Settled};

impl World {
    pub(super) fn moves(&self) -> Vec<(&'static str, Self)> {
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
}
