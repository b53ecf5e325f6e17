//! A cut, and the crash of either side.

use super::world::{World, settings};
use crate::command::machine::{self as client, Ask};

impl World {
    pub(super) fn cut(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        self.late.extend(connection.to_server.into_iter().map(|(_, question)| question));
        self.callers.iter_mut().for_each(|(_, ask)| *ask = None);
        self.tell_client(client::Event::Unlinked);
    }

    pub(super) fn crash_server(&mut self) {
        self.cut();
        self.up = false;
        self.late.clear();
        self.operation = None;
        self.orphans.clear();
        self.callers.clear();
        self.next_caller = 0;
        self.execution = Self::idle(self.bound);
    }

    pub(super) fn crash_client(&mut self, origin: client::Origin) {
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
}
