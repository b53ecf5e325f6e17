//! How far the projections have come: the watermark of every connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use tokio::sync::watch;

use super::core::{Core, Stage};
use super::projection::{Projection, fold};
use super::record::all_keys;
use crate::log::{Log, Seq};

/// Appends folded before other tasks of the runtime get their turn.
const STRIDE: u32 = 64;

/// The sequence through which every follower of the log has come.
#[derive(Debug)]
pub(crate) struct Progress {
    each: Vec<AtomicU64>,
    through: watch::Sender<Seq>,
}

impl Progress {
    /// Of this many followers, all at the log's beginning; at least one.
    pub(crate) fn new(followers: usize) -> Self {
        Self { each: (0..followers).map(|_| AtomicU64::new(0)).collect(), through: watch::Sender::new(0) }
    }

    /// A follower's changes up to `seq` are visible.
    pub(crate) fn advance(&self, follower: usize, seq: Seq) {
        if let Some(position) = self.each.get(follower) {
            position.fetch_max(seq, Ordering::AcqRel);
        }
        let slowest = self.each.iter().map(|position| position.load(Ordering::Acquire)).min().unwrap_or(seq);
        self.through.send_if_modified(|through| {
            let advanced = slowest > *through;
            *through = slowest.max(*through);
            advanced
        });
    }

    /// Every change up to here is visible in the cells.
    pub(crate) fn through(&self) -> Seq {
        *self.through.borrow()
    }

    /// Follows [`through`](Self::through).
    pub(crate) fn watch(&self) -> watch::Receiver<Seq> {
        self.through.subscribe()
    }
}

/// Folds the log into one projection's cells, for ever: cells first, then the watermark.
///
/// A projection that panics ends the serving: its cells would stay as they are and be called fresh (R5).
/// Connections are closed and new ones answered with 503, so its reads are stale and say so.
pub(crate) async fn follow(core: Arc<Core>, mut projection: Box<dyn Projection>, follower: usize) {
    let prefix = projection.prefix();
    let mut tail = core.log.tail(&prefix, 0);
    let mut folded: u32 = 0;
    while let Some(append) = tail.next().await {
        if catch_unwind(AssertUnwindSafe(|| fold(&mut *projection, &append))).is_err() {
            tracing::error!(seq = append.through, %prefix, "a projection panicked");
            break;
        }
        core.saw(append.through);
        core.progress.advance(follower, append.through);
        folded = folded.wrapping_add(1);
        if folded.is_multiple_of(STRIDE) {
            tokio::task::yield_now().await;
        }
    }
    stop(&core);
}

/// What is shown would stay as it is and be called fresh (R5): the server serves no more.
fn stop(core: &Core) {
    tracing::error!("the log is not followed any more; the server stops serving");
    core.stage.send_replace(Stage::Closing);
}

/// Tells the observers of running commands what anybody appended to their keys, for ever. Where there
/// is no projection it is the follower whose position is the watermark.
pub(crate) async fn follow_keys(core: Arc<Core>, follower: Option<usize>) {
    let mut tail = core.log.tail(&all_keys(), core.floor);
    while let Some(append) = tail.next().await {
        for entry in append.entries {
            core.keys.appended(entry);
        }
        core.saw(append.through);
        if let Some(follower) = follower {
            core.progress.advance(follower, append.through);
        }
    }
    stop(&core);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R4: the watermark is the slowest follower's position, and never goes back.
    #[test]
    fn r4_the_watermark_is_the_slowest_followers() {
        let progress = Progress::new(2);
        let watch = progress.watch();
        progress.advance(0, 7);
        assert_eq!((progress.through(), watch.has_changed().unwrap()), (0, false));
        progress.advance(1, 5);
        assert_eq!((progress.through(), watch.has_changed().unwrap()), (5, true));
        progress.advance(1, 4);
        progress.advance(1, 9);
        assert_eq!(progress.through(), 7);
    }
}
