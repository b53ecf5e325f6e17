//! A graceful end (S6).

use std::time::Duration;

use super::core::{Core, Stage};

/// How long connections have to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);

/// Tells everybody, waits for what is in flight while everything else goes on, then closes.
pub(crate) async fn drain(core: &Core) {
    advance(core, Stage::Draining);
    let mut flights = core.executions.count();
    // Errors cannot be: the senders are in `core`.
    if core.within(core.settings.drain, flights.wait_for(|count| *count == 0)).await.is_none() {
        tracing::warn!(limit = ?core.settings.drain, "calls are still in flight at the end of a drain");
    }
    advance(core, Stage::Closing);
    let mut connections = core.connections.subscribe();
    let _ = core.within(GOODBYE, connections.wait_for(|count| *count == 0)).await;
}

/// Forward only.
fn advance(core: &Core, to: Stage) {
    core.stage.send_if_modified(|stage| {
        let forward = to > *stage;
        *stage = to.max(*stage);
        forward
    });
}
