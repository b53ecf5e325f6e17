//! One client's connection over its whole life.

mod vocabulary;

pub use vocabulary::{Action, Attempt, Config, DialPhase, Event, Generation};

use crate::machine::{Actions, Machine, Monotonic, Now};

/// Finds the service, dials it, and brings the connection back for as long as the caller does not close it (R8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Supervisor {
    config: Config,
    deadline: Monotonic,
}

impl Supervisor {
    /// A supervisor whose first round is due at `now`: its driver hands it a `Tick`.
    pub fn new(now: &Now, config: Config) -> Self {
        Self { config, deadline: now.instant }
    }

    /// The live link, if there is one.
    pub fn link(&self) -> Option<Attempt> {
        let _ = &self.config;
        None
    }
}

impl Machine for Supervisor {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, _now: Now, _event: Event) -> Actions<Action> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Monotonic> {
        Some(self.deadline)
    }
}
