//! What all reads of one agent share.

use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::budgets::Budgets;
use super::exchange::Exchange;
use super::keepers::Keepers;
use crate::env::Env;
use crate::error::Cause;
use crate::transport::{Network, Tls};

/// One for each [`Agent`](super::Agent).
pub(super) struct Shared {
    pub(super) env: Env,
    pub(super) exchange: Arc<dyn Exchange>,
    pub(super) budgets: Budgets,
    pub(super) keepers: Keepers,
    /// Where WebSockets connect.
    pub(super) network: Arc<dyn Network>,
    pub(super) root_certificates: Vec<u8>,
    pub(super) tls: OnceLock<Tls>,
    pub(super) runtime: Handle,
    /// Counts the jumps of the clock.
    pub(super) woke: watch::Receiver<u64>,
}

impl Shared {
    /// TLS for WebSockets, set up when it is first needed: it reads the platform's certificates.
    pub(super) fn tls(&self) -> Result<Tls, Cause> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls.clone());
        }
        let tls = Tls::new(&self.root_certificates).map_err(|e| Cause::Unreachable { detail: e.to_string().into() })?;
        Ok(self.tls.get_or_init(|| tls).clone())
    }
}
