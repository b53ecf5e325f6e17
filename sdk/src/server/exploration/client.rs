//! The client and its driver.

use std::collections::VecDeque;

use super::world::{MINTED, Question, Told, World};
use crate::command::CommandStatus;
use crate::command::machine::{self as client, Ask, Oddity};
use crate::machine::Machine as _;

impl World {
    pub(super) fn tell_client(&mut self, event: client::Event) {
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

    pub(super) fn hear(&mut self, ask: Ask, told: Told) {
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
    pub(super) fn is_on_its_way(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| {
            connection.to_server.iter().any(|(ask, _)| *ask == self.asked)
                || self.callers.iter().any(|(_, ask)| *ask == Some(self.asked))
                || connection.to_client.iter().any(|(ask, told)| *ask == self.asked && !matches!(told, Told::News(_)))
        })
    }
}
