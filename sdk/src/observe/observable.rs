//! A read, as its observers hold it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt as _, stream};

use super::cell::{Reader, Snapshot};
use super::source::{Snapshots, Source, View};
use super::view::{AtLeast, Mapped};
use super::{Reading, Until};
use crate::wire::Timestamp;

/// A read that outlasts the connection: it shows a [`Reading`] at every moment and recovers by itself (R1, R8).
///
/// Cloning is cheap and shares the upstream. Every clone, stream and wait is an observer of its own:
/// a slow one delays no other, sees the newest reading and never misses the last one (R6).
/// Recovery goes on whether or not anybody looks.
pub struct Observable<T> {
    progress: Progress<T>,
}

impl<T: Send + Sync + 'static> Observable<T> {
    pub(super) fn from_reader(reader: Reader<T>) -> Self {
        Self { progress: Progress::new(Source::Cell(reader)) }
    }

    fn from_view(view: impl View<T> + 'static) -> Self {
        Self { progress: Progress::new(Source::View(Box::new(view))) }
    }

    /// What it shows now. A snapshot: holding it blocks nobody.
    pub fn latest(&self) -> Reading<T> {
        self.progress.source.snapshot().reading
    }

    /// The next reading that this handle has not returned: at first the current one, then each change.
    /// `None` once it has returned [`Reading::Ended`].
    ///
    /// Readings that come faster than they are asked for coalesce into the newest (R6).
    ///
    /// # Cancel safety
    /// Dropping the future loses no reading.
    pub async fn next(&mut self) -> Option<Reading<T>> {
        self.progress.due().await.then(|| self.progress.look().reading)
    }

    /// The current reading and every change after it, as a stream that ends after [`Reading::Ended`].
    pub fn readings(&self) -> Readings<T> {
        Readings { snapshots: self.snapshots() }
    }

    /// Waits for a value for which `accept` is true.
    ///
    /// A value counts if it is fresh, or was at any moment since this call; a stale value older than
    /// that does not. No transport fault ends the wait (R1); bound it with [`Until::within`].
    pub fn until(&self, accept: impl FnMut(&T) -> bool + Send + 'static) -> Until<T> {
        Until::new(self.snapshots(), self.progress.source.number(), Box::new(accept))
    }

    /// A view of it through `f`. No task, and `f` is called once for each value, whatever the number of clones.
    ///
    /// `f` runs in the observer that first looks at a value, while others that need it wait. It must not observe this view itself.
    pub fn map<U: Send + Sync + 'static>(&self, f: impl Fn(&T) -> U + Send + Sync + 'static) -> Observable<U> {
        Observable::from_view(Mapped::new(self.progress.source.fork(), Box::new(f)))
    }

    /// A view of it that is fresh only with a state at least as new as `least`: read your writes (W9).
    ///
    /// What is older is shown as stale, with the cause [`Behind`](crate::Cause::Behind), and so is a
    /// value of another log or of a source without one.
    #[must_use]
    pub fn at_least(&self, least: Timestamp) -> Self {
        Self::from_view(AtLeast::new(self.progress.source.fork(), least))
    }

    fn snapshots(&self) -> Snapshots<T> {
        // Boxed once for each stream or wait; nothing is allocated when it wakes.
        let progress = Progress::new(self.progress.source.fork());
        stream::unfold(
            progress,
            |mut progress| async move { progress.due().await.then(|| (progress.look(), progress)) },
        )
        .fuse()
        .boxed()
    }
}

impl<T: Send + Sync + 'static> Clone for Observable<T> {
    /// The clone's [`next`](Self::next) starts with the current reading.
    fn clone(&self) -> Self {
        Self { progress: Progress::new(self.progress.source.fork()) }
    }
}

impl<T> fmt::Debug for Observable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observable").finish_non_exhaustive()
    }
}

/// The readings of an [`Observable`]: the current one, then every change. Ends after [`Reading::Ended`].
#[must_use = "a stream does nothing unless polled"]
pub struct Readings<T> {
    snapshots: Snapshots<T>,
}

impl<T> Stream for Readings<T> {
    type Item = Reading<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Reading<T>>> {
        self.snapshots.poll_next_unpin(cx).map(|snapshot| snapshot.map(|snapshot| snapshot.reading))
    }
}

impl<T> fmt::Debug for Readings<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readings").finish_non_exhaustive()
    }
}

/// How far one observer has come.
struct Progress<T> {
    source: Source<T>,
    at: At,
}

#[derive(Clone, Copy)]
enum At {
    Start,
    Under,
    End,
}

impl<T: Send + Sync + 'static> Progress<T> {
    fn new(source: Source<T>) -> Self {
        Self { source, at: At::Start }
    }

    /// Completes when there is something to look at, or with `false` after the end.
    ///
    /// It is to look before it waits, so that a state reached before is seen (R5, FC-17). Cancel safe.
    async fn due(&mut self) -> bool {
        match self.at {
            At::Start => true,
            At::Under => {
                self.source.changed().await;
                // If the user's code panics in the look that follows, the next call looks again instead of waiting.
                self.at = At::Start;
                true
            }
            At::End => false,
        }
    }

    fn look(&mut self) -> Snapshot<T> {
        let snapshot = self.source.observe();
        self.at = if snapshot.reading.is_ended() { At::End } else { At::Under };
        snapshot
    }
}
