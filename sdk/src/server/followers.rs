//! The followers of the log: one task for each projection, and one for the keys of running commands.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::StreamExt;

use super::core::{Core, Stage};
use super::projection::{Projection, fold};
use super::record::all_keys;
use crate::log::Log;

/// Appends folded before other tasks of the runtime get their turn.
const STRIDE: u32 = 64;

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

/// What is shown would stay as it is and be called fresh (R5): the server serves no more.
fn stop(core: &Core) {
    tracing::error!("the log is not followed any more; the server stops serving");
    core.stage.send_replace(Stage::Closing);
}
