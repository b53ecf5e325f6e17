//! Where an observer's snapshots come from.

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use super::cell::{Reader, Snapshot};
use super::watermark::Watermark;

/// One observer's snapshots: the current one, then those after it.
pub(super) type Snapshots<T> = BoxStream<'static, Snapshot<T>>;

/// Where an observer's snapshots come from: a cell, or a view of one.
pub(super) enum Source<T> {
    Cell(Reader<T>),
    View(Box<dyn View<T>>),
}

/// Another look at one cell, for one observer. It has no task: it computes when it is looked at.
pub(super) trait View<T>: Send + Sync {
    /// The latest snapshot.
    fn snapshot(&self) -> Snapshot<T>;
    /// The latest snapshot, and nothing up to it counts as a change any more.
    fn observe(&mut self) -> Snapshot<T>;
    /// The latest snapshot's number.
    fn number(&self) -> u64;
    /// Completes when there is something that was not observed. Cancel safe.
    fn changed(&mut self) -> BoxFuture<'_, ()>;
    /// For another observer.
    fn fork(&self) -> Box<dyn View<T>>;
    /// The watermark of the cell's connection.
    fn watermark(&self) -> Option<&Watermark>;
}

impl<T: Send + Sync + 'static> Source<T> {
    pub(super) fn snapshot(&self) -> Snapshot<T> {
        match self {
            Self::Cell(reader) => reader.snapshot(),
            Self::View(view) => view.snapshot(),
        }
    }

    pub(super) fn observe(&mut self) -> Snapshot<T> {
        match self {
            Self::Cell(reader) => reader.observe(),
            Self::View(view) => view.observe(),
        }
    }

    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Cell(reader) => reader.number(),
            Self::View(view) => view.number(),
        }
    }

    pub(super) async fn changed(&mut self) {
        match self {
            Self::Cell(reader) => reader.changed().await,
            Self::View(view) => view.changed().await,
        }
    }

    pub(super) fn fork(&self) -> Self {
        match self {
            Self::Cell(reader) => Self::Cell(reader.clone()),
            Self::View(view) => Self::View(view.fork()),
        }
    }

    pub(super) fn watermark(&self) -> Option<&Watermark> {
        match self {
            Self::Cell(reader) => reader.watermark(),
            Self::View(view) => view.watermark(),
        }
    }
}
