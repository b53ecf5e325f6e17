//! What the machine of a polled read is told, and what it says.

use std::time::Duration;

pub use crate::credential::Generation;
use crate::error::{Cause, Phase};
use crate::http::exchange::Connection;
use crate::machine::Monotonic;
use crate::observe::machine::Shown;

/// What a value says about its place among others (R4, R10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Marks {
    /// Which attempt it tells of, where the service counts them.
    pub attempt: Option<u64>,
    /// A version that never goes back within an attempt, where the service has one: a counter, a time in ms.
    pub version: Option<u64>,
    /// Whether the work is over in that attempt.
    pub terminal: bool,
}

impl Marks {
    /// A value of work that is over, or not.
    pub const fn terminal(terminal: bool) -> Self {
        Self { attempt: None, version: None, terminal }
    }

    /// Of attempt `attempt`.
    #[must_use]
    pub const fn of_attempt(self, attempt: u64) -> Self {
        Self { attempt: Some(attempt), ..self }
    }

    /// As of `version`.
    #[must_use]
    pub const fn at_version(self, version: u64) -> Self {
        Self { version: Some(version), ..self }
    }
}

/// What an answer comes down to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// A value that could be decoded.
    Value(Marks),
    /// A whole value that equals, byte by byte, the one that is shown. It confirms it and is no change.
    Same,
    /// The value that the request named is the current one: 304.
    Unchanged,
    /// The time for which the request was held is over and nothing has happened, or a page without a result came: no
    /// value, and no failure (FC-07). The next request continues where this one ended.
    Nothing,
    /// The service does not know the resource: 404.
    Absent,
    /// The service knows that the resource is no more: 410.
    Gone,
    /// The service refuses the credential of that generation: 401, or 403 that is no rate limit.
    Refused(Generation),
    /// Anything else: no value, no authority.
    Unserved(Cause),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The read begins.
    Start,
    /// The budget permits a request, as [`Action::Want`] asked.
    Permitted,
    /// The budget permits none before that time: the service's limit is used up, or it asked to wait (R9).
    Held {
        /// When it will.
        until: Monotonic,
    },
    /// A phase of the request begins.
    Began(Phase),
    /// The head of an answer on the way, a redirect's too, asks not to be asked again before this time has passed
    /// (`Retry-After`, `X-Poll-Interval`). It counts, whatever becomes of the rest.
    Told(Duration),
    /// The whole answer to the request is there.
    Answered {
        /// What it comes down to.
        answer: Answer,
        /// The service asks not to be asked before this time has passed (`Retry-After`).
        retry_after: Option<Duration>,
        /// The answer holds for this long, or the service states a least interval (`max-age`, `X-Poll-Interval`).
        holds: Option<Duration>,
    },
    /// There is no whole answer; or, before `Permitted`, no credential to ask with.
    Failed {
        /// Why.
        cause: Cause,
        /// Whether one more attempt on a fresh connection may be made at once: a pooled connection ended, or the service
        /// said that it did not process the request (FC-90).
        again: bool,
    },
    /// No request can be sent with a credential that the service has not refused twice (R3).
    Denied,
    /// A stream of events says when something changes. It is up, and whatever happens from now on is told.
    Attached,
    /// That stream is down.
    Detached(Cause),
    /// The stream says that something may have changed.
    Hint,
    /// The stream brought a value, with these marks; or one that could not be decoded.
    Pushed(Option<Marks>),
    /// The machine has slept, or its clock was set: what is known may be old (R7).
    Woke,
    /// The caller closed the read, or its runtime ends.
    Close,
    /// The machine's deadline passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Ask the budget for one request.
    Want,
    /// Take that back, or give back what was permitted and not used.
    Withdraw,
    /// Send the request.
    Send {
        /// Whether to name the value that is shown, so that the service can answer 304.
        validate: bool,
        /// On which connection.
        connection: Connection,
    },
    /// Abandon the request under way.
    Abort,
    /// The next interval is this long, from now.
    Scheduled(Duration),
    /// Show this. A value to take is the one just decoded.
    Publish(Shown),
}
