//! What the headers of an answer say about asking again. Pure.

mod freshness;
mod when;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{CACHE_CONTROL, EXPIRES, RETRY_AFTER};
use ::http::{HeaderMap, HeaderName, StatusCode};

use super::fields;
use crate::machine::Wall;

const X_POLL_INTERVAL: HeaderName = HeaderName::from_static("x-poll-interval");

/// What an answer says about asking again. The times are from its receipt, and none is longer than 24 h.
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

impl Told {
    /// What an answer of `status` with `headers`, received at `wall`, says. What cannot be read is left out.
    ///
    /// Dates are compared with the answer's own `Date`, where it has one, because the service's clock and ours differ;
    /// else with `wall`.
    pub fn of(status: StatusCode, headers: &HeaderMap, wall: Wall) -> Self {
        Self::read(status, headers, || wall)
    }

    /// The same; the clock is read where something needs it.
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap, wall: impl Fn() -> Wall) -> Self {
        // Most answers say nothing of it, and are many.
        if !headers.keys().any(says) {
            return Self { throttled: status == StatusCode::TOO_MANY_REQUESTS, ..Self::default() };
        }
        let clock = when::Clock::of(headers, &wall);
        let windows = windows::of(headers, clock);
        Self {
            retry_after: retry_after(headers, clock),
            throttled: is_throttled(status, headers, &windows),
            poll_interval: fields::lines(headers, X_POLL_INTERVAL).filter_map(when::seconds).max(),
            fresh_for: freshness::of(headers, clock),
            windows,
        }
    }

    /// How long the service asks to wait: `Retry-After`, else until the last of its used up windows starts anew.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let used_up = self.windows.iter().filter(|window| window.remaining == 0);
        self.retry_after.or_else(|| used_up.map(|window| window.reset).max())
    }
}

/// Whether a header may say something of asking again.
fn says(name: &HeaderName) -> bool {
    *name == RETRY_AFTER
        || *name == CACHE_CONTROL
        || *name == EXPIRES
        || *name == X_POLL_INTERVAL
        || windows::is_of_rate(name.as_str())
}

/// The longest that any line of `Retry-After` asks for, in seconds or as a date (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap, clock: when::Clock<'_>) -> Option<Duration> {
    fields::lines(headers, RETRY_AFTER)
        .filter_map(|line| match when::date(line) {
            Some(date) => Some(clock.until(date)),
            // Not what the RFC allows, but what proxies make of two lines.
            None => fields::split(line, b',').into_iter().filter_map(when::seconds).max(),
        })
        .max()
}

fn is_throttled(status: StatusCode, headers: &HeaderMap, windows: &[Window]) -> bool {
    // Whoever asks to come back later has not refused for good, even if it cannot be read when (FC-55).
    let later = headers.contains_key(RETRY_AFTER);
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => later,
        StatusCode::FORBIDDEN => later || windows.iter().any(|window| window.remaining == 0),
        _ => false,
    }
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

#[cfg(test)]
mod tests;
