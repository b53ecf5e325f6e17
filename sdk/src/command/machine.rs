//! The decisions of one command, from its key to its end: MACHINES, `command::Machine`.

mod action;
mod event;

pub use action::{Action, Ask, Oddity, Record};
pub use event::{Event, Lineage};

use std::time::Duration;

use super::{CommandState, Protection};
use crate::key::CommandKey;
use crate::machine::{Actions, Machine as PureMachine, Monotonic, Now, Wall};

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
}

impl Machine {
    /// A command of which nothing has happened. Its driver shows [`state`](Self::state) and then says
    /// [`Event::Called`]; if a connection is up, it says [`Event::Linked`] next.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// What the handle shows. Every change of it is also an [`Action::Publish`].
    pub fn state(&self) -> CommandState {
        CommandState::queued(self.settings.protection)
    }

    /// The command's key.
    pub fn key(&self) -> &CommandKey {
        &self.settings.key
    }
}

impl PureMachine for Machine {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        let _ = (now, event);
        Vec::new()
    }

    fn deadline(&self) -> Option<Monotonic> {
        None
    }
}
