//! Waiting for a state.
#![expect(clippy::disallowed_methods, reason = "a budget is the caller's own clock: tokio's")]

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::{Instant, Sleep, sleep_until};

use super::cell::Snapshot;
use super::source::Snapshots;
use super::{End, Known, Reading};
use crate::error::Cause;

/// Waits for a state of a read: the future of [`Observable::until`](super::Observable::until).
///
/// # Cancel safety
/// Dropping it ends only this wait. Polled again after a result, it waits for the next acceptable value.
#[must_use = "a future does nothing unless awaited"]
pub struct Until<T> {
    snapshots: Snapshots<T>,
    /// The number of the reading that was current when the wait began.
    start: u64,
    accept: Box<dyn FnMut(&T) -> bool + Send>,
    last: Option<Snapshot<T>>,
    budget: Option<Budget>,
}

struct Budget {
    until: Instant,
    /// Made by the first poll, which is inside a runtime.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<T> Until<T> {
    pub(super) fn new(snapshots: Snapshots<T>, start: u64, accept: Box<dyn FnMut(&T) -> bool + Send>) -> Self {
        Self { snapshots, start, accept, last: None, budget: None }
    }

    /// Gives the wait a budget, from now on: then it says [`WaitError::StillPending`], which is no failure of the work (R9).
    ///
    /// It says so at once if the service permits no further attempt within the budget. The wait must
    /// then be polled inside a tokio runtime. Without this call, a wait has no bound.
    pub fn within(mut self, budget: Duration) -> Self {
        // A budget beyond what the clock can count is none.
        self.budget = Instant::now().checked_add(budget).map(|until| Budget { until, timer: None });
        self
    }

    fn poll_budget(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(budget) = &mut self.budget else { return Poll::Pending };
        // A hint counts only for what is not fresh, and what is fresh has none.
        if self.last.as_ref().and_then(|last| last.not_before).is_some_and(|at| at > budget.until) {
            return Poll::Ready(());
        }
        let until = budget.until;
        budget.timer.get_or_insert_with(|| Box::pin(sleep_until(until))).as_mut().poll(cx)
    }
}

impl<T> Future for Until<T> {
    type Output = Result<Known<T>, WaitError<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        while let Poll::Ready(Some(snapshot)) = this.snapshots.poll_next_unpin(cx) {
            let accepted = snapshot.fresh_since(this.start).filter(|known| (this.accept)(known)).cloned();
            let ended = snapshot.reading.is_ended();
            this.last = Some(snapshot);
            if let Some(known) = accepted {
                return Poll::Ready(Ok(known));
            }
            if ended {
                break;
            }
        }
        if let Some(last) = this.last.as_ref().map(|last| &last.reading)
            && let &Reading::Ended { end, .. } = last
        {
            return Poll::Ready(Err(WaitError::Ended { last: last.clone(), end }));
        }
        match (this.poll_budget(cx), &this.last) {
            (Poll::Ready(()), Some(last)) => Poll::Ready(Err(WaitError::StillPending { last: last.reading.clone() })),
            (Poll::Ready(()), None) | (Poll::Pending, _) => Poll::Pending,
        }
    }
}

impl<T> fmt::Debug for Until<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.budget.as_ref().map(|budget| budget.until);
        f.debug_struct("Until").field("budget_until", &until).finish_non_exhaustive()
    }
}

/// Why a wait ended without the state it was for. Neither says that the work failed.
#[non_exhaustive]
pub enum WaitError<T> {
    /// The wait's own budget is used up, or no attempt is permitted within it (R9).
    #[non_exhaustive]
    StillPending {
        /// What the read showed last; its cause says what is in the way.
        last: Reading<T>,
    },
    /// An authority or the caller ended the read (R3).
    #[non_exhaustive]
    Ended {
        /// What the read showed last.
        last: Reading<T>,
        /// Which of them.
        end: End,
    },
}

impl<T> WaitError<T> {
    /// What the read showed last.
    pub fn last(&self) -> &Reading<T> {
        match self {
            Self::StillPending { last } | Self::Ended { last, .. } => last,
        }
    }

    /// What the read showed last.
    pub fn into_last(self) -> Reading<T> {
        match self {
            Self::StillPending { last } | Self::Ended { last, .. } => last,
        }
    }

    /// Which authority ended the read, if one did.
    pub fn end(&self) -> Option<End> {
        match self {
            Self::StillPending { .. } => None,
            Self::Ended { end, .. } => Some(*end),
        }
    }

    /// Why there was no fresh value, if there was none.
    pub fn cause(&self) -> Option<&Cause> {
        self.last().cause()
    }

    /// Whether another wait for the same may succeed.
    pub fn is_still_pending(&self) -> bool {
        matches!(self, Self::StillPending { .. })
    }
}

impl<T> Clone for WaitError<T> {
    fn clone(&self) -> Self {
        match self {
            Self::StillPending { last } => Self::StillPending { last: last.clone() },
            Self::Ended { last, end } => Self::Ended { last: last.clone(), end: *end },
        }
    }
}

impl<T> fmt::Debug for WaitError<T> {
    /// Without the value, which need not be printable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StillPending { last } => {
                f.debug_struct("StillPending").field("last", &format_args!("{}", State(last))).finish()
            }
            Self::Ended { end, .. } => f.debug_struct("Ended").field("end", end).finish_non_exhaustive(),
        }
    }
}

impl<T> fmt::Display for WaitError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StillPending { last } => write!(f, "still pending, the read is {}", State(last)),
            Self::Ended { end: End::Gone, .. } => f.write_str("the read ended: the resource is gone"),
            Self::Ended { end: End::Denied, .. } => f.write_str("the read ended: access is denied"),
            Self::Ended { end: End::Closed, .. } => f.write_str("the read ended: it was closed"),
        }
    }
}

impl<T> std::error::Error for WaitError<T> {}

/// A reading in words, without its value.
struct State<'a, T>(&'a Reading<T>);

impl<T> fmt::Display for State<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Reading::Loading { cause: None, .. } => f.write_str("loading"),
            Reading::Loading { cause: Some(cause), .. } => write!(f, "loading ({cause})"),
            Reading::Fresh(_) => f.write_str("fresh"),
            Reading::Stale { cause, .. } => write!(f, "stale ({cause})"),
            Reading::Ended { end, .. } => write!(f, "ended ({end:?})"),
        }
    }
}
