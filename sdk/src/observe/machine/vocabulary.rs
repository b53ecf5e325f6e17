//! What the read machine is told, and what it says.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Cause;
use crate::machine::Monotonic;
use crate::observe::End;
use crate::wire::{Cursor, EndReason, Epoch, LogId, RefusalCode, Refused, Seq};

/// The bounds of a read. [`Default`] has the documented ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Settings {
    /// From a subscription to its first answer; then it is made again (R7). Default 15 s.
    pub first_answer: Duration,
    /// How long a resource never seen may be absent, counted while the service confirms it on a live
    /// subscription, before that means that there is none (R3). Default 10 s.
    pub grace: Duration,
    /// The delay before a read is made again is uniform in `[0, c]`; `c` starts here and doubles. Default 100 ms.
    pub backoff: Duration,
    /// The largest `c`. Default 5 s.
    pub backoff_cap: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            first_answer: Duration::from_secs(15),
            grace: Duration::from_secs(10),
            backoff: Duration::from_millis(100),
            backoff_cap: Duration::from_secs(5),
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A connection is up and was welcomed.
    Linked {
        /// The welcome's log.
        log: LogId,
        /// The welcome's epoch.
        epoch: Epoch,
        /// The welcome's head of that log: what is older than it was taken before the link came up (R5).
        head: Seq,
        /// Whether that log outlives the service's process: then another log is no authority over what the first has
        /// shown (R3).
        durable: bool,
    },
    /// The connection is lost, or a round of attempts to get one failed. Every round may say a new cause.
    Unlinked {
        /// Why.
        cause: Cause,
        /// Before when the service permits no attempt, where it has said so (R9).
        not_before: Option<Monotonic>,
    },
    /// The service refuses the connection's credential for good (R3).
    Denied,
    /// The service sent a value.
    Value {
        /// How recent it is.
        at: Cursor,
        /// Whether it could be decoded; if not, what was expected.
        decoded: Result<(), Arc<str>>,
    },
    /// The service says that the value which the subscription named is the current one.
    Unchanged {
        /// As of when.
        at: Cursor,
    },
    /// The service does not know the resource.
    Absent {
        /// As of when.
        at: Cursor,
    },
    /// The service ended the read. The subscription is over.
    End {
        /// Which authority.
        reason: EndReason,
    },
    /// The service could not serve the subscription now. It is over.
    Unserved {
        /// Why.
        cause: Cause,
        /// Not before this time has passed.
        retry_after: Option<Duration>,
    },
    /// The caller closed the read, or its runtime ends.
    Close,
    /// The machine's deadline passed.
    Tick,
}

impl Event {
    /// What an `unserved` frame means: a denial is an authority's, everything else is a cause (R3).
    pub fn refused(refused: &Refused) -> Self {
        let detail = || Arc::from(refused.detail.as_str());
        let cause = match refused.code {
            RefusalCode::Denied => return Self::End { reason: EndReason::Denied },
            RefusalCode::RateLimited => Cause::RateLimited { retry_after: refused.retry_after.unwrap_or_default() },
            RefusalCode::Invalid => Cause::Refused { detail: detail() },
            RefusalCode::KeyConflict
            | RefusalCode::NotFound
            | RefusalCode::Expired
            | RefusalCode::Unavailable
            | RefusalCode::Other => Cause::Unavailable { detail: detail() },
        };
        Self::Unserved { cause, retry_after: refused.retry_after }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Subscribe under a fresh id.
    Subscribe {
        /// What is held already; `None` asks for the whole value.
        after: Option<Cursor>,
    },
    /// End the current subscription; its id is not used again.
    Unsubscribe,
    /// Show this to the observers.
    Publish(Shown),
}

/// What a read is to show: a [`Reading`](crate::Reading) without its value, which the driver holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shown {
    /// There is no value yet (R2).
    Loading {
        /// Since when it loads.
        since: Monotonic,
        /// What failed last.
        cause: Option<Cause>,
        /// Before when the service permits no attempt (R9).
        not_before: Option<Monotonic>,
    },
    /// The service confirmed the value (R5).
    Fresh {
        /// How recent it is.
        at: Cursor,
        /// Whether it is the one just decoded; else it is the one shown already.
        take: bool,
    },
    /// The value shown before, unconfirmed (R1).
    Stale {
        /// When it was last fresh.
        since: Monotonic,
        /// Why it is not now.
        cause: Cause,
        /// Before when the service permits no attempt (R9).
        not_before: Option<Monotonic>,
    },
    /// An authority or the caller ended the read. Nothing follows (R3).
    Ended(End),
}
