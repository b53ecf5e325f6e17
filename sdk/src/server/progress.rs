//! How far the projections have come: the watermark of every connection.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::log::Seq;

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
