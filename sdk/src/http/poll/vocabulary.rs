//! What the machine of a polled read is told, and what it says.

use std::time::Duration;

use crate::connection::Backoff;
pub use crate::credential::Generation;
use crate::error::{Cause, Phase};
use crate::http::exchange::Connection;
use crate::machine::Monotonic;
use crate::observe::machine::Shown;

/// The bounds of a polled read. [`Default`] has the documented ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Settings {
    /// How often to look.
    pub pace: Pace,
    /// What each phase of a request may take (R7).
    pub bounds: Bounds,
    /// How long the service is asked to hold a request open until something changes: added to the bound on the first
    /// byte. Default: not at all.
    pub wait: Option<Duration>,
    /// How long a resource never seen may be answered 404 before that means that there is none (R3, FC-14). Default 10 s.
    pub grace: Duration,
    /// The delays after failures (R8).
    pub backoff: Backoff,
    /// Ends the read as closed once an outage has lasted this long, counted from its first failure (R8, FC-45).
    /// Default: never.
    pub give_up: Option<Duration>,
    /// Whether the service reopens what was terminal without another attempt number. Default no.
    pub reopens: bool,
    /// How often to look all the same while a stream of events says when something changes. Default 60 s.
    pub reread: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pace: Pace::default(),
            bounds: Bounds::default(),
            wait: None,
            grace: Duration::from_secs(10),
            backoff: Backoff::default(),
            give_up: None,
            reopens: false,
            reread: Duration::from_secs(60),
        }
    }
}

/// How often to look: a share of the time for which nothing has changed, between two bounds, less up to a tenth at random.
///
/// What the service states (`Cache-Control`, `X-Poll-Interval`, `Retry-After`) is a floor under it, and what a shared
/// budget permits comes on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Pace {
    /// The shortest interval. Default 1 s.
    pub least: Duration,
    /// The longest. Default 30 s.
    pub most: Duration,
    /// The interval is the time since the last change divided by this. Default 10. Zero is taken for one.
    pub share: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { least: Duration::from_secs(1), most: Duration::from_secs(30), share: 10 }
    }
}

impl Pace {
    /// From `least` soon after a change to `most`.
    pub fn between(least: Duration, most: Duration) -> Self {
        Self { least, most: most.max(least), ..Self::default() }
    }

    /// One interval for all. Zero looks again as soon as a good answer is there, for a service of one's own that bears it;
    /// after anything else the backoff holds.
    pub fn every(interval: Duration) -> Self {
        Self::between(interval, interval)
    }
}

/// What each phase of a request may take (R7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Bounds {
    /// The credential. Default 5 s. Reads of one agent and origin that share a source share its answers, too, and the bound of
    /// the first of them is that of all.
    pub credential: Duration,
    /// The name. Default 5 s.
    pub resolve: Duration,
    /// The connection. Default 5 s.
    pub connect: Duration,
    /// The TLS session. Default 5 s.
    pub tls: Duration,
    /// Sending the request. Default 10 s.
    pub write: Duration,
    /// From the request to the head of its answer, beside the time for which it asked to be held. Default 15 s.
    pub first_byte: Duration,
    /// Between two pieces of the body. Default 10 s.
    pub idle: Duration,
    /// From the head of the answer to the end of its body, however steadily it drips. Default 60 s.
    pub body: Duration,
}

impl Bounds {
    /// What a phase may take.
    pub(crate) const fn of(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Credential => self.credential,
            Phase::Discover | Phase::Resolve => self.resolve,
            Phase::Connect => self.connect,
            Phase::Tls => self.tls,
            Phase::Write => self.write,
            Phase::Upgrade | Phase::Welcome | Phase::FirstByte => self.first_byte,
            Phase::Idle => self.idle,
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        let five = Duration::from_secs(5);
        Self {
            credential: five,
            resolve: five,
            connect: five,
            tls: five,
            write: Duration::from_secs(10),
            first_byte: Duration::from_secs(15),
            idle: Duration::from_secs(10),
            body: Duration::from_secs(60),
        }
    }
}

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
