//! What the headers of an answer say about asking again. Pure.

use std::sync::Arc;
use std::time::Duration;

/// What an answer says about asking again. The times are from its receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Told {
    /// Not before this time has passed: `Retry-After` in either form (RFC 9110, 10.2.3).
    pub retry_after: Option<Duration>,
    /// The service refused for the rate: 429, a 403 or 503 that carries `Retry-After`, a 403 with nothing remaining (FC-55).
    pub throttled: bool,
    /// The windows that the service counts requests in.
    pub windows: Vec<Window>,
    /// The least time between two requests of this resource: `X-Poll-Interval`.
    pub poll_interval: Option<Duration>,
    /// How long the answer stays fresh by `Cache-Control` or `Expires`, less its `Age` (RFC 9111, 4.2).
    pub fresh_for: Option<Duration>,
}

/// One window in which a service counts requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Window {
    /// Which of the service's windows: the policy's name, or the resource's.
    pub name: Arc<str>,
    /// How many requests it holds, where that is said.
    pub limit: Option<u64>,
    /// How many are left in it.
    pub remaining: u64,
    /// When it starts anew.
    pub reset: Duration,
}

impl Window {
    /// A window.
    pub fn new(name: impl Into<Arc<str>>, limit: Option<u64>, remaining: u64, reset: Duration) -> Self {
        Self { name: name.into(), limit, remaining, reset }
    }
}
