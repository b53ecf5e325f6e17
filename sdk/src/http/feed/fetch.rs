//! How a feed asks: one request, with everything that is decided for all requests behind it.

use std::time::Duration;

use futures::future::BoxFuture;

use super::reader::Ask;
use crate::error::Cause;
use crate::http::exchange::{Answer, Progress};
use crate::http::told::Told;

/// Sends the requests of a feed.
///
/// An implementation waits until the budget permits the request, adds the credential, follows redirects (without the
/// credential to another origin, R3) and decodes content codings. What is no answer of the resource it gives as an
/// error: 401, a refusal for the rate, 5xx, and a 200 or 206 of another type than was asked for, such as a login page.
/// Every other status is the feed's to judge, 304, 403, 404, 410 and 416 too.
/// It bounds nothing in time and repeats nothing, beside one more attempt on a fresh connection (FC-90).
pub(crate) trait Fetch: Clone + Send + Sync + 'static {
    /// Sends one request; ready with the head of the answer.
    ///
    /// # Cancel safety
    /// Dropping the future, or the answer before its end, abandons the request.
    fn fetch(&self, ask: FeedAsk) -> BoxFuture<'static, Result<Fetched, FetchError>>;
}

/// One request of a feed: a `GET`.
#[derive(Clone, Debug)]
pub(crate) struct FeedAsk {
    /// The request.
    pub(crate) ask: Ask,
    /// Told of each phase: [`FirstByte`](crate::error::Phase::FirstByte) when the budget permits the request, then
    /// whatever the exchange says. The feed bounds each (R7); before the first, nothing is bounded.
    pub(crate) progress: Progress,
}

/// The head of an answer that came.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The answer; its body is decoded.
    pub(crate) answer: Answer,
    /// What its headers say about asking again.
    pub(crate) told: Told,
}

/// Why no answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchError {
    /// Why.
    pub(crate) cause: Cause,
    /// The service asks not to be asked before this time has passed.
    pub(crate) retry_after: Option<Duration>,
    /// No request can be sent with a credential that the service has not refused twice (R3).
    pub(crate) denied: bool,
}

impl FetchError {
    /// A failure that another attempt may mend.
    pub(crate) fn new(cause: Cause) -> Self {
        Self { cause, retry_after: None, denied: false }
    }

    /// Not before `delay` has passed.
    #[must_use]
    pub(crate) fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), ..self }
    }

    /// Access is denied.
    pub(crate) fn denied(cause: Cause) -> Self {
        Self { cause, retry_after: None, denied: true }
    }
}
