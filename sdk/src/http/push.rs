//! Streams that say when something changes: server-sent events and WebSockets of foreign services.
//!
//! An event is a reason to look, never the only source of a value: a read looks again at each (re)connect and at a slow
//! interval, since these streams replay nothing and end without a word (R5, FC-17, FC-23). A stream that lies, fails or
//! stays away makes a read slower and nothing else: it is polled at its usual pace meanwhile.
//!
//! ```no_run
//! use outlast::http::push::Push;
//!
//! # fn watch() -> Result<(), outlast::Error> {
//! let consume = r#"{"cmd":"startConsuming","path":"buildrequests/7/*","_id":1}"#;
//! let builds = Push::websocket("wss://ci.example/ws").hello(consume).confirmed_by(|text| text.contains("\"_id\":1"));
//! let request = outlast::http::get("https://ci.example/api/v2/buildrequests/7").push(builds);
//! let request = request.observe::<serde_json::Value>()?;
//! # Ok(())
//! # }
//! ```
//!
//! A stream has the credential and the headers of the read beside it if it is of the same origin, where `ws` counts as
//! `http` and `wss` as `https`; a stream elsewhere has no credential, and no header that looks like one. A refusal there
//! is about the stream: it never denies the credential to the read.

pub mod choice;
mod dialing;
mod events;
mod following;
pub mod link;
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod websocket;

pub use choice::Choice;
pub use events::Events;
pub use link::Link;
pub(super) use stream::Stream;
pub use websocket::WebSocket;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use url::Url;

use super::requester::Requester;
use crate::connection::Backoff;
use crate::error::{Cause, Error};

/// A stream of a service that says when something changes, with others of the same behind it.
#[derive(Clone, Debug)]
pub struct Push {
    /// The preferred one first.
    kinds: Vec<Kind>,
}

#[derive(Clone, Debug)]
enum Kind {
    Events(Events),
    WebSocket(WebSocket),
}

impl Push {
    /// Server-sent events (WHATWG HTML, 9.2) from that `http` or `https` address.
    pub fn events(url: &str) -> Events {
        Events::new(url)
    }

    /// Messages of a WebSocket (RFC 6455) at that address: `ws` or `wss`, or `http` or `https`, which mean the same.
    pub fn websocket(url: &str) -> WebSocket {
        WebSocket::new(url)
    }

    /// With another stream of the same behind it, for where this one cannot be had: a proxy may let event streams pass and
    /// no WebSocket.
    ///
    /// One is open at a time. It gives way to the next, and the last to the first, when three attempts in a row came
    /// to nothing without a healthy link (5 s), or at once when the answer says that there is no such stream: 404, 405, 410,
    /// 426, 501, another 4xx that is not about the credential, the rate or time, or 401 or 403 where no credential was sent.
    /// A refused credential is no reason. Ten minutes after the first gave way it is tried again. Each stream that is up
    /// begins with a look, so no change is missed (R5). [`Choice`] has the whole table.
    ///
    /// ```
    /// use outlast::http::push::Push;
    ///
    /// let push = Push::websocket("wss://ci.example/ws").or(Push::events("https://ci.example/sse"));
    /// ```
    #[must_use]
    pub fn or(mut self, other: impl Into<Self>) -> Self {
        self.kinds.extend(other.into().kinds);
        self
    }

    /// Whether each can be opened.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.kinds.iter().try_for_each(Kind::check)
    }

    /// Whether another one would tell of the same: all that was set up is the same, and the caller's code is shared.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.kinds.len() == other.kinds.len() && self.kinds.iter().zip(&other.kinds).all(|(one, other)| one.is(other))
    }

    /// Opens it beside the read of `read`, whose requests `requester` sends. Nothing is sent before
    /// [`next`](Stream::next) is called, inside a tokio runtime.
    pub(super) fn open(self, requester: &Requester, read: &Url) -> Stream {
        Stream::new(self, requester, read)
    }
}

impl Kind {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Events(events) => events.address().map(drop),
            Self::WebSocket(websocket) => websocket.check(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Events(one), Self::Events(other)) => one.is(other),
            (Self::WebSocket(one), Self::WebSocket(other)) => one.is(other),
            (Self::Events(_), Self::WebSocket(_)) | (Self::WebSocket(_), Self::Events(_)) => false,
        }
    }
}

/// The address of the request that opens a WebSocket (RFC 6455, 3).
fn as_http(url: &Url) -> Url {
    let mut text = url.to_string();
    if let Some(rest) = text.strip_prefix("ws") {
        text = format!("http{rest}");
    }
    Url::parse(&text).unwrap_or_else(|_| url.clone())
}

/// Reads the address of a stream.
fn address(text: &str, schemes: &[&str], expected: &str) -> Result<Url, Error> {
    let mut url = Url::parse(text).map_err(|e| Error::invalid("push.url", expected).with_source(e))?;
    if !schemes.contains(&url.scheme()) || url.host_str().is_none() {
        return Err(Error::invalid("push.url", expected));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::invalid("push.url", "no user or password; give a credential instead"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// How long a stream that is down, or does not prove healthy, stays away (R8): an outage's twentieth, up to 30 s. The read
/// beside it is polled meanwhile, so a stream that ends as often as it begins is worth no more than that (FC-49).
fn backoff() -> Backoff {
    Backoff { most_cap: Duration::from_secs(30), ..Backoff::default() }
}

/// Runs the caller's code. What it panics on says nothing, and ends no read (R1, R3).
fn guarded<R>(code: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(code)).ok()
}

/// What a stream tells.
#[derive(Debug)]
pub(super) enum Happening {
    /// It is up: whatever happens from now on is told.
    Attached,
    /// It is down. Only after `Attached`.
    Detached(Cause),
    /// Something may have changed.
    Hint,
    /// The new value, encoded.
    Value(Bytes),
}

/// What one of the streams of a [`Push`] says.
#[derive(Debug)]
enum Report {
    /// Of what it tells of.
    Happened(Happening),
    /// Of itself: an attempt came to nothing, or what it opened ended before it had proven healthy.
    Missed {
        /// The answer says that there is no such stream.
        absent: bool,
        /// The service asks not to be asked before this time has passed.
        retry_after: Option<Duration>,
    },
    /// Of itself: it has proven healthy.
    Proven,
}

impl From<Happening> for Report {
    fn from(happening: Happening) -> Self {
        Self::Happened(happening)
    }
}
