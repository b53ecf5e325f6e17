//! How far a connection has come, told once for all its reads.

use tokio::sync::watch;

use crate::wire::Timestamp;

/// All values of one connection up to here have been published. Cloning shares it.
///
/// It satisfies [`at_least`](super::Observable::at_least) and wakes nobody else. The client publishes
/// the values of a frame before it advances the watermark, and publishes what a lost connection
/// means to its reads before it resets the watermark.
#[derive(Clone, Debug)]
pub(crate) struct Watermark {
    through: watch::Sender<Option<Timestamp>>,
}

#[allow(dead_code, reason = "the client advances it; a build without the client only has the type")]
impl Watermark {
    /// Of a connection that is not there yet.
    pub(crate) fn new() -> Self {
        Self { through: watch::Sender::new(None) }
    }

    /// All values up to `through` have been published. Never goes back within one log.
    pub(crate) fn advance(&self, through: Timestamp) {
        self.through.send_if_modified(|shown| {
            let behind = shown.is_some_and(|shown| through <= shown);
            if !behind {
                *shown = Some(through);
            }
            !behind
        });
    }

    /// The connection is lost: the next one starts without a watermark.
    pub(crate) fn reset(&self) {
        self.through.send_if_modified(|shown| shown.take().is_some());
    }
}

impl Watermark {
    pub(super) fn follow(&self) -> watch::Receiver<Option<Timestamp>> {
        self.through.subscribe()
    }
}
