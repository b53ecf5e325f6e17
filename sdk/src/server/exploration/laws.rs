//! The promises: what holds in every state, and at the end.

use super::world::{Executor, World};
use crate::command::machine as client;
use crate::command::{CommandStatus, Delivery};

impl World {
    pub(super) fn check(&self) {
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
    pub(super) fn check_end(&self) {
        assert!(self.client.state().status().is_terminal(), "the wait never ends: {:?}", self.client.state());
        assert_eq!((self.operation.as_ref(), self.callers.len()), (None, 0), "S6: somebody is not answered");
        assert_ne!(self.executor, Executor::Works);
        if let Some(record) = self.record() {
            assert!(record.status.is_terminal(), "{record:?}");
        }
    }
}
