//! Lazy views of a read: computed by the observer that looks, without a task.
#![expect(clippy::disallowed_methods, reason = "stamps since when `at_least` is asked for, on tokio's clock")]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use super::cell::Snapshot;
use super::source::{Source, View};
use super::watermark::Watermark;
use super::{Known, Reading};
use crate::error::Cause;
use crate::wire::Timestamp;

/// [`Observable::map`](super::Observable::map).
pub(super) struct Mapped<T, U> {
    source: Source<T>,
    shared: Arc<Mapping<T, U>>,
}

/// What all clones of a mapped view share.
struct Mapping<T, U> {
    f: Box<dyn Fn(&T) -> U + Send + Sync>,
    memo: Mutex<Memo<U>>,
}

/// The newest value that any clone has looked at, mapped once.
struct Memo<U> {
    value: u64,
    mapped: Arc<OnceLock<Arc<U>>>,
}

impl<T: Send + Sync + 'static, U: Send + Sync + 'static> Mapped<T, U> {
    pub(super) fn new(source: Source<T>, f: Box<dyn Fn(&T) -> U + Send + Sync>) -> Self {
        let memo = Mutex::new(Memo { value: 0, mapped: Arc::default() });
        Self { source, shared: Arc::new(Mapping { f, memo }) }
    }
}

impl<T, U> Mapping<T, U> {
    /// `None` if another observer has already looked at a newer value: there is one to be had.
    fn apply(&self, snapshot: &Snapshot<T>) -> Option<Snapshot<U>> {
        let known =
            |known: &Known<T>| Some(Known::with_cursor(self.value(snapshot.value, known)?, Known::cursor(known)));
        Some(snapshot.with_reading(match &snapshot.reading {
            Reading::Loading { since, cause } => Reading::Loading { since: *since, cause: cause.clone() },
            Reading::Fresh(last) => Reading::Fresh(known(last)?),
            Reading::Stale { last, since, cause } => {
                Reading::Stale { last: known(last)?, since: *since, cause: cause.clone() }
            }
            Reading::Ended { last, end } => {
                let last = match last {
                    Some(last) => Some(known(last)?),
                    None => None,
                };
                Reading::Ended { last, end: *end }
            }
        }))
    }

    fn value(&self, value: u64, of: &T) -> Option<Arc<U>> {
        let mapped = {
            let mut memo = self.memo.lock().unwrap_or_else(PoisonError::into_inner);
            if memo.value > value {
                return None;
            }
            if memo.value < value {
                *memo = Memo { value, mapped: Arc::default() };
            }
            Arc::clone(&memo.mapped)
        };
        // Outside the lock: `f` is the user's. If it panics the memo stays empty and the next look tries again.
        Some(Arc::clone(mapped.get_or_init(|| Arc::new((self.f)(of)))))
    }
}

impl<T: Send + Sync + 'static, U: Send + Sync + 'static> View<U> for Mapped<T, U> {
    fn snapshot(&self) -> Snapshot<U> {
        loop {
            if let Some(snapshot) = self.shared.apply(&self.source.snapshot()) {
                return snapshot;
            }
        }
    }

    fn observe(&mut self) -> Snapshot<U> {
        loop {
            if let Some(snapshot) = self.shared.apply(&self.source.observe()) {
                return snapshot;
            }
        }
    }

    fn number(&self) -> u64 {
        self.source.number()
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.source.changed())
    }

    fn fork(&self) -> Box<dyn View<U>> {
        Box::new(Self { source: self.source.fork(), shared: Arc::clone(&self.shared) })
    }

    fn watermark(&self) -> Option<&Watermark> {
        self.source.watermark()
    }
}

/// [`Observable::at_least`](super::Observable::at_least).
pub(super) struct AtLeast<T> {
    source: Source<T>,
    least: Timestamp,
    asked: Instant,
    watermark: Option<watch::Receiver<Option<Timestamp>>>,
    /// Whether what was observed last lacks only a watermark: then one is a change.
    behind: bool,
}

impl<T: Send + Sync + 'static> AtLeast<T> {
    pub(super) fn new(source: Source<T>, least: Timestamp) -> Self {
        let watermark = source.watermark().map(Watermark::follow);
        Self { source, least, asked: Instant::now(), watermark, behind: false }
    }

    /// Whether `known` is new enough, or nothing changed it up to a watermark that is.
    fn reaches(&self, known: &Known<T>, watermark: Option<Timestamp>) -> bool {
        Known::timestamp(known)
            .is_some_and(|at| at.log == self.least.log && (at >= self.least || watermark >= Some(self.least)))
    }

    fn judge(&self, snapshot: Snapshot<T>, watermark: Option<Timestamp>) -> Snapshot<T> {
        let reading = match &snapshot.reading {
            Reading::Loading { .. } => return snapshot,
            Reading::Fresh(last) if self.reaches(last, watermark) => return snapshot,
            Reading::Fresh(last) => Reading::Stale { last: last.clone(), since: self.asked, cause: Cause::Behind },
            // A watermark vouches only for a read that is live.
            Reading::Stale { last, .. } | Reading::Ended { last: Some(last), .. } if self.reaches(last, None) => {
                return snapshot;
            }
            Reading::Stale { .. } | Reading::Ended { .. } => snapshot.reading.clone(),
        };
        // Too old: in this view it was never fresh, so that no wait accepts it.
        Snapshot { confirmed: 0, ..snapshot.with_reading(reading) }
    }
}

impl<T: Send + Sync + 'static> View<T> for AtLeast<T> {
    // The watermark is read before the value: whatever it vouches for was published before it.

    fn snapshot(&self) -> Snapshot<T> {
        let watermark = self.watermark.as_ref().and_then(|watermark| *watermark.borrow());
        self.judge(self.source.snapshot(), watermark)
    }

    fn observe(&mut self) -> Snapshot<T> {
        let watermark = self.watermark.as_mut().and_then(|watermark| *watermark.borrow_and_update());
        let snapshot = self.source.observe();
        let same_log = |known: &Known<T>| Known::timestamp(known).is_some_and(|at| at.log == self.least.log);
        self.behind = match &snapshot.reading {
            Reading::Fresh(known) => same_log(known) && !self.reaches(known, watermark),
            Reading::Loading { .. } | Reading::Stale { .. } | Reading::Ended { .. } => false,
        };
        self.judge(snapshot, watermark)
    }

    fn number(&self) -> u64 {
        self.source.number()
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let Some(watermark) = self.watermark.as_mut().filter(|_| self.behind) else {
                return self.source.changed().await;
            };
            tokio::select! {
                () = self.source.changed() => {}
                // When it was observed it did not reach far enough, so this does not complete at once for ever.
                _ = watermark.wait_for(|through| *through >= Some(self.least)) => {}
            }
        })
    }

    fn fork(&self) -> Box<dyn View<T>> {
        Box::new(Self {
            source: self.source.fork(),
            least: self.least,
            asked: self.asked,
            watermark: self.watermark.clone(),
            behind: false,
        })
    }

    fn watermark(&self) -> Option<&Watermark> {
        self.source.watermark()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::observe::cell::{Cell, Change, NewValue};

    /// R4 and "once for each value": a look at an old value after another observer's look at a newer one looks again.
    #[test]
    fn map_does_not_go_back_to_a_value_older_than_another_observer_has_seen() {
        let cell = Cell::new(Instant::now(), None);
        let fresh = |n: u32| cell.publish(|_| Some(Change::Fresh(Known::new(n), NewValue::Yes)));
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let f = move |n: &u32| {
            counted.fetch_add(1, Ordering::SeqCst);
            *n
        };
        let source = Source::Cell(cell.read());
        let view = Mapped::new(source.fork(), Box::new(f));
        fresh(1);
        let old = source.snapshot();
        fresh(2);
        assert_eq!(view.snapshot().reading.last().map(|n| **n), Some(2));
        assert!(view.shared.apply(&old).is_none());
        assert_eq!(view.snapshot().reading.last().map(|n| **n), Some(2));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}
