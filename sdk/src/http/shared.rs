//! What all reads of one agent share.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::budgets::Budgets;
use super::egress::Egress;
use super::exchange::Exchange;
use super::keepers::Keepers;
use crate::env::Env;

/// One for each [`Agent`](super::Agent).
pub(super) struct Shared {
    pub(super) env: Env,
    pub(super) exchange: Arc<dyn Exchange>,
    pub(super) budgets: Budgets,
    pub(super) keepers: Keepers,
    /// The way out of WebSockets.
    pub(super) egress: Arc<Egress>,
    pub(super) runtime: Handle,
    /// Counts the jumps of the clock.
    pub(super) woke: watch::Receiver<u64>,
}
