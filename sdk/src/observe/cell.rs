//! The latest reading, shared between one publisher and its observers.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use super::watermark::Watermark;
use super::{Known, Reading};

/// A reading and its place among the readings of its cell.
pub(super) struct Snapshot<T> {
    pub(super) reading: Reading<T>,
    /// Counts what was published.
    pub(super) number: u64,
    /// Counts the values: the same for two readings of one value.
    pub(super) value: u64,
    /// The number under which the value was last fresh; 0 if it never was.
    pub(super) confirmed: u64,
    /// Before when the service permits no attempt (R9).
    pub(super) not_before: Option<Instant>,
}

impl<T> Snapshot<T> {
    /// The value, if it was fresh at the number `start` or later.
    ///
    /// Numbers and not instants: they also order what happens within one tick of the clock.
    pub(super) fn fresh_since(&self, start: u64) -> Option<&Known<T>> {
        self.reading.last().filter(|_| self.confirmed >= start)
    }

    pub(super) fn with_reading<U>(&self, reading: Reading<U>) -> Snapshot<U> {
        let &Self { reading: _, number, value, confirmed, not_before } = self;
        Snapshot { reading, number, value, confirmed, not_before }
    }
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        self.with_reading(self.reading.clone())
    }
}

/// What a publication changes.
pub(super) enum Change<T> {
    /// A value, or without one the value shown before, is fresh.
    Fresh(Known<T>, NewValue),
    /// What is shown is not confirmed, or there is nothing.
    Doubtful(Reading<T>, Option<Instant>),
    /// The end.
    Ended(Reading<T>),
}

/// Whether a known value is another one than before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NewValue {
    Yes,
    No,
}

/// The publisher's side.
pub(super) struct Cell<T> {
    latest: watch::Sender<Snapshot<T>>,
    /// Whether no observer may come any more. Held while one comes through a weak handle.
    retired: Mutex<bool>,
    watermark: Option<Watermark>,
}

impl<T> Cell<T> {
    pub(super) fn new(since: Instant, watermark: Option<Watermark>) -> Self {
        let reading = Reading::Loading { since, cause: None };
        let first = Snapshot { reading, number: 1, value: 0, confirmed: 0, not_before: None };
        Self { latest: watch::Sender::new(first), retired: Mutex::new(false), watermark }
    }

    /// Publishes what `change` makes of the reading shown, unless that is an end: nothing follows one.
    pub(super) fn publish(&self, change: impl FnOnce(&Reading<T>) -> Option<Change<T>>) {
        // Whatever holds a value is dropped after the lock: a value's drop is the user's code.
        let mut change = Some(change);
        let mut before = None;
        self.latest.send_if_modified(|shown| {
            if shown.reading.is_ended() {
                return false;
            }
            let Some(change) = change.take().and_then(|change| change(&shown.reading)) else { return false };
            let number = shown.number + 1;
            let next = match change {
                Change::Fresh(known, new) => {
                    let value = shown.value + u64::from(new == NewValue::Yes);
                    let reading = Reading::Fresh(known);
                    Snapshot { reading, number, value, confirmed: number, not_before: None }
                }
                Change::Doubtful(reading, not_before) => Snapshot { number, not_before, ..shown.with_reading(reading) },
                Change::Ended(reading) => Snapshot { number, not_before: None, ..shown.with_reading(reading) },
            };
            before = Some(mem::replace(shown, next));
            true
        });
    }

    /// A reader, also of a retired cell.
    pub(super) fn read(&self) -> Reader<T> {
        Reader { latest: self.latest.subscribe(), watermark: self.watermark.clone() }
    }

    /// A reader, unless the cell is retired.
    pub(super) fn join(&self) -> Option<Reader<T>> {
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        (!*retired).then(|| self.read())
    }

    /// Lets nobody join any more; with `if_unread`, only when nobody reads it. Whether it is retired.
    pub(super) fn retire(&self, if_unread: bool) -> bool {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader comes out of another one, or through `join`: with none left, none comes while this is locked.
        *retired |= !if_unread || self.latest.receiver_count() == 0;
        *retired
    }

    pub(super) fn readers(&self) -> usize {
        self.latest.receiver_count()
    }

    /// Completes once nobody reads it.
    pub(super) async fn unread(self: Arc<Self>) {
        self.latest.closed().await;
    }
}

/// An observer's side. It never hands out a guard: one that is held would block the publisher.
pub(super) struct Reader<T> {
    latest: watch::Receiver<Snapshot<T>>,
    watermark: Option<Watermark>,
}

impl<T> Reader<T> {
    pub(super) fn snapshot(&self) -> Snapshot<T> {
        self.latest.borrow().clone()
    }

    /// The latest snapshot, and nothing up to it counts as a change any more.
    pub(super) fn observe(&mut self) -> Snapshot<T> {
        self.latest.borrow_and_update().clone()
    }

    pub(super) fn number(&self) -> u64 {
        self.latest.borrow().number
    }

    /// Completes when there is something that was not observed. Cancel safe.
    pub(super) async fn changed(&mut self) {
        if self.latest.changed().await.is_err() {
            // The publisher is gone, and its last act was observed: an end, or a reading that it left for good.
            std::future::pending().await
        }
    }

    pub(super) fn watermark(&self) -> Option<&Watermark> {
        self.watermark.as_ref()
    }
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Self { latest: self.latest.clone(), watermark: self.watermark.clone() }
    }
}
