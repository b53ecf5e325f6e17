//! What a pool is built from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::names::{Lookup, system};
use crate::http::proxies::Proxies;
use crate::http::trust::Trust;

/// What a pool is built from.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) trust: Trust,
    pub(super) proxies: Proxies,
    pub(super) idle: Duration,
    /// Interval and time-out.
    pub(super) pings: (Duration, Duration),
    pub(super) connect: Duration,
    pub(super) lookup: Lookup,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            trust: Trust::default(),
            proxies: Proxies::Usual,
            idle: Duration::from_secs(50),
            pings: (Duration::from_secs(10), Duration::from_secs(5)),
            connect: Duration::from_secs(15),
            lookup: Arc::new(system),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBuilder")
            .field("trust", &self.trust)
            .field("idle_timeout", &self.idle)
            .field("pings", &self.pings)
            .field("connect_timeout", &self.connect)
            .finish_non_exhaustive()
    }
}
