//! The one who says what a read shows.
#![expect(clippy::disallowed_methods, reason = "stamps when a value stopped being fresh, on tokio's clock")]

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::time::Instant;

use super::cell::{Cell, Change, NewValue};
use super::machine::Shown;
use super::watermark::Watermark;
use super::{End, Known, Observable, Reading};
use crate::env::Env;
use crate::error::Cause;
use crate::wire::Cursor;

/// A read that one's own code publishes: for tests, and for gateways to other sources.
///
/// It starts as [`Reading::Loading`]. Dropping the publisher ends it as [`End::Closed`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (publisher, builds) = outlast::observe::channel::<u32>();
/// publisher.fresh(7);
/// assert_eq!(*builds.until(|n| *n > 5).await.unwrap(), 7);
/// # });
/// ```
pub fn channel<T: Send + Sync + 'static>() -> (Publisher<T>, Observable<T>) {
    let publisher = Publisher::new(None);
    let observable = publisher.subscribe();
    (publisher, observable)
}

/// Publishes the readings of its [`Observable`]s. Dropping it ends them as [`End::Closed`].
///
/// No call waits for an observer, and after an end every call does nothing (R3).
pub struct Publisher<T> {
    cell: Arc<Cell<T>>,
    /// Whether its drop leaves the last reading as it is.
    leaves: bool,
}

impl<T> Publisher<T> {
    /// Shows a new value as fresh.
    pub fn fresh(&self, value: T) {
        self.fresh_known(Known::new(value));
    }

    /// Shows a new value as fresh, as of `at`.
    pub fn fresh_at(&self, value: T, at: Cursor) {
        self.fresh_known(Known::with_cursor(Arc::new(value), Some(at)));
    }

    /// Shows a new value that is shared already as fresh.
    pub fn fresh_known(&self, known: Known<T>) {
        self.cell.publish(|_| Some(Change::Fresh(known, NewValue::Yes)));
    }

    /// Shows the last value as fresh again. Does nothing while there is none.
    pub fn confirm(&self) {
        self.cell.publish(|shown| shown.last().cloned().map(|last| Change::Fresh(last, NewValue::No)));
    }

    /// Shows the last value as stale, or, while there is none, `Loading` with this cause (R1, R2).
    pub fn stale(&self, cause: Cause) {
        let now = Instant::now();
        self.cell.publish(|shown| Some(Change::Doubtful(doubtful(shown, Some(cause), now), None)));
    }

    /// Ends the read. The last value stays readable.
    pub fn end(&self, end: End) {
        self.cell.publish(|shown| Some(Change::Ended(Reading::Ended { last: shown.last().cloned(), end })));
    }
}

/// The reading after `shown` that has no confirmed value, with `since` only if it just lost it.
fn doubtful<T>(shown: &Reading<T>, cause: Option<Cause>, now: Instant) -> Reading<T> {
    match (shown, cause) {
        (Reading::Loading { since, .. }, cause) => Reading::Loading { since: *since, cause },
        (Reading::Stale { last, since, .. }, Some(cause)) => {
            Reading::Stale { last: last.clone(), since: *since, cause }
        }
        (Reading::Fresh(last), Some(cause)) => Reading::Stale { last: last.clone(), since: now, cause },
        (Reading::Stale { .. } | Reading::Fresh(_), None) | (Reading::Ended { .. }, _) => shown.clone(),
    }
}

impl<T: Send + Sync + 'static> Publisher<T> {
    pub(super) fn new(watermark: Option<Watermark>) -> Self {
        Self { cell: Arc::new(Cell::new(Instant::now(), watermark)), leaves: false }
    }

    /// One more observable of the same read.
    pub fn subscribe(&self) -> Observable<T> {
        Observable::from_reader(self.cell.read())
    }

    /// A handle that keeps nothing alive, for a registry of shared reads.
    pub fn downgrade(&self) -> WeakObservable<T> {
        WeakObservable { cell: Arc::downgrade(&self.cell) }
    }

    /// How many observables, streams and waits there are, clones and views included.
    pub fn observers(&self) -> usize {
        self.cell.readers()
    }

    /// Completes once there is no observer; at once, if there is none now.
    ///
    /// One may come again through a [`WeakObservable`]: [`retire`](Self::retire) decides.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub fn unobserved(&self) -> impl Future<Output = ()> + Send + 'static {
        Arc::clone(&self.cell).unread()
    }

    /// If there is no observer, lets none come any more through a [`WeakObservable`], and says whether that is so.
    ///
    /// The two are one step: an observer either came before, and the answer is `false`, or cannot come.
    pub fn retire(&self) -> bool {
        self.cell.retire(true)
    }
}

/// What the client's driver needs beside.
#[allow(dead_code, reason = "the client's; a build without it has no use for them")]
impl<T: Send + Sync + 'static> Publisher<T> {
    /// A read of a connection, whose watermark satisfies `at_least`.
    pub(crate) fn of_connection(watermark: &Watermark) -> Self {
        Self::new(Some(watermark.clone()))
    }

    /// Leaves the last reading as it is, for good: it is what will always be true.
    pub(crate) fn leave(mut self) {
        self.leaves = true;
    }

    /// Performs [`Action::Publish`](super::machine::Action::Publish); `taken` is the value that was just decoded.
    pub(crate) fn show(&self, shown: Shown, mut taken: Option<Arc<T>>, env: &Env) {
        let instant = |at| env.tokio_instant(at);
        self.cell.publish(|before| {
            Some(match shown {
                Shown::Loading { since, cause, not_before } => {
                    let reading = Reading::Loading { since: instant(since), cause };
                    Change::Doubtful(reading, not_before.map(instant))
                }
                Shown::Fresh { at, take } => {
                    let (value, new) = match if take { taken.take() } else { None } {
                        Some(value) => (value, NewValue::Yes),
                        None => (Known::into_arc(before.last()?.clone()), NewValue::No),
                    };
                    Change::Fresh(Known::with_cursor(value, Some(at)), new)
                }
                Shown::Stale { since, cause, not_before } => {
                    let reading = Reading::Stale { last: before.last()?.clone(), since: instant(since), cause };
                    Change::Doubtful(reading, not_before.map(instant))
                }
                Shown::Ended(end) => Change::Ended(Reading::Ended { last: before.last().cloned(), end }),
            })
        });
    }
}

impl<T> Drop for Publisher<T> {
    fn drop(&mut self) {
        self.cell.retire(false);
        if !self.leaves {
            self.end(End::Closed);
        }
    }
}

impl<T> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("observers", &self.cell.readers()).finish_non_exhaustive()
    }
}

/// Leads to the observables of a read as long as its publisher keeps it.
pub struct WeakObservable<T> {
    cell: Weak<Cell<T>>,
}

impl<T: Send + Sync + 'static> WeakObservable<T> {
    /// One more observable; `None` once the publisher is dropped or has [retired](Publisher::retire).
    pub fn upgrade(&self) -> Option<Observable<T>> {
        Some(Observable::from_reader(self.cell.upgrade()?.join()?))
    }
}

impl<T> Clone for WeakObservable<T> {
    fn clone(&self) -> Self {
        Self { cell: Weak::clone(&self.cell) }
    }
}

impl<T> fmt::Debug for WeakObservable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakObservable").finish_non_exhaustive()
    }
}
