//! The newest position shown of each history: what makes R4 hold across restarts and log changes.

use crate::wire::{Cursor, Epoch, LogId};

/// Within what positions can be compared: a log, or one life of a server for a source without a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum History {
    Log(LogId),
    Epoch(Epoch),
}

impl History {
    pub(super) fn of(cursor: Cursor) -> Self {
        match cursor {
            Cursor::Log(timestamp) => Self::Log(timestamp.log),
            Cursor::Epoch { epoch, .. } => Self::Epoch(epoch),
        }
    }
}

/// How many histories are remembered. A client meets a new epoch at each restart, so there is a bound.
const REMEMBERED: usize = 4;

/// The newest position shown of each of the last few histories; the last one is that of the shown value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Floors {
    shown: Vec<Cursor>,
}

impl Floors {
    /// The newest position shown of `history`.
    pub(super) fn of(&self, history: History) -> Option<Cursor> {
        self.shown.iter().copied().find(|&floor| History::of(floor) == history)
    }

    /// Whether something newer of the same history was shown already.
    pub(super) fn exceed(&self, at: Cursor) -> bool {
        self.of(History::of(at)).is_some_and(|floor| at < floor)
    }

    /// Notes that `at` is shown.
    pub(super) fn raise(&mut self, at: Cursor) {
        self.forget(History::of(at));
        if self.shown.len() == REMEMBERED {
            self.shown.remove(0);
        }
        self.shown.push(at);
    }

    /// Forgets a history that turned out to be another one.
    pub(super) fn forget(&mut self, history: History) {
        self.shown.retain(|&floor| History::of(floor) != history);
    }
}
