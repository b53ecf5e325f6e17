//! Where a command stands on its way.

use crate::command::Hold;
use crate::key::Principal;
use crate::machine::{Monotonic, Wall};
use crate::wire::{CommandFailure, LogId};

use super::action::Ask;
use super::event::Lineage;

/// From the key to the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Not called yet.
    New,
    /// Its key is being made durable.
    Keying,
    /// Its key is durable and no byte of it was sent.
    Queued(Gate),
    /// Some byte of it may have been sent.
    Open(Open),
    /// It is over.
    Done,
    /// The driver was told to drop the machine.
    Released,
}

/// What a queued command waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Gate {
    /// A connection that takes first sends.
    Link,
    /// That it is durable to where it will be sent.
    Persisting(Bound),
    /// Another try to make that durable.
    Retry { until: Monotonic },
}

/// A command that may have been sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Open {
    /// Where it was sent or found. `None`: a key that is only followed and was not found yet.
    pub(super) bound: Option<Bound>,
    pub(super) progress: Progress,
    pub(super) cancel: Wish,
    pub(super) flight: Flight,
    /// No answer told the fate of some copy of it, so that copy may have been recorded.
    pub(super) lost: bool,
    /// The one resubmission of W8 is used up.
    pub(super) resubmitted: bool,
}

/// What is known of an open command's delivery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Progress {
    /// It may be resent.
    Sent {
        /// A resend was refused for good while an earlier copy's answer is lost: believed once the
        /// service says that it has no record of the key.
        doubt: Option<CommandFailure>,
    },
    /// The service has recorded it, as this client knows since `seen`.
    Accepted { seen: Wall },
    /// It may have been recorded and is not resent.
    Indeterminate {
        /// The service has not been asked since.
        asking: bool,
    },
}

/// Whether the caller wants it canceled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wish {
    None,
    /// The wish is being made durable.
    Persisting,
    /// The cancel is to be sent until it is answered.
    Wanted,
    /// The service has recorded the cancel.
    Acknowledged,
    /// The service does not take the cancel.
    Refused,
}

/// The one question that may be outstanding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flight {
    /// None; the next one goes out as soon as the connection allows.
    Idle,
    /// One is unanswered.
    Awaiting { question: Question, ask: Ask, until: Monotonic },
    /// The service asked to wait.
    Waiting { until: Monotonic },
    /// Answered; whatever changes is reported on this connection.
    Answered,
    /// The resubmission to this log is being made durable.
    Persisting(Bound),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    Call,
    Attach,
    Cancel,
}

/// The history that a command belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    pub(super) log: LogId,
    /// Which history of that name: a restored backup is another one.
    pub(super) history: u32,
    pub(super) principal: Principal,
    pub(super) durable: bool,
    pub(super) retention: std::time::Duration,
}

/// Whether a connection reaches the history that a command belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fit {
    Same,
    /// Never again for the service's own reason: its history died with its process (W8).
    Forgotten,
    /// Not now.
    Held(Hold),
}

/// The connection, as far as a command cares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Link {
    Down,
    Denied,
    Up { lineage: Lineage, draining: bool },
}

impl Bound {
    pub(super) fn of(lineage: &Lineage) -> Self {
        Self {
            log: lineage.log,
            history: lineage.history,
            principal: lineage.principal.clone(),
            durable: lineage.durable,
            retention: lineage.retention,
        }
    }

    /// W2: the same history. K1: the same principal.
    pub(super) fn fit(&self, lineage: &Lineage) -> Fit {
        let here = Self::of(lineage);
        if self.principal != here.principal {
            Fit::Held(Hold::OtherPrincipal)
        } else if (self.log, self.history) == (here.log, here.history) {
            Fit::Same
        } else if self.durable {
            Fit::Held(Hold::OtherLog)
        } else {
            Fit::Forgotten
        }
    }
}

impl Open {
    /// Sent, or about to be sent, to `bound`.
    pub(super) fn sent(bound: Bound) -> Self {
        Self { bound: Some(bound), progress: Progress::Sent { doubt: None }, ..Self::followed() }
    }

    /// A key of which only the text is known.
    pub(super) fn followed() -> Self {
        Self {
            bound: None,
            progress: Progress::Indeterminate { asking: true },
            cancel: Wish::None,
            flight: Flight::Idle,
            lost: false,
            resubmitted: false,
        }
    }

    /// Row 27: whether nobody would miss it if nobody looks at it.
    pub(super) fn is_delivered(&self) -> bool {
        match (self.cancel, &self.progress) {
            (_, Progress::Sent { .. }) | (Wish::Persisting, _) => false,
            // Answered, and not by a record: this service knows no such cancel.
            (Wish::Wanted, _) => self.flight == Flight::Answered,
            (Wish::None | Wish::Acknowledged | Wish::Refused, _) => true,
        }
    }
}
