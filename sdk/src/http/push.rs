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

mod driver;
mod events;
pub mod link;
#[cfg(test)]
mod tests;
mod websocket;

pub use events::Events;
pub use link::Link;
pub use websocket::WebSocket;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use url::Url;

use self::driver::Dialing;
use self::events::Following;
use super::requester::Requester;
use crate::connection::Backoff;
use crate::error::{Cause, Error};

/// A stream of a service that says when something changes. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Push {
    kind: Kind,
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

    /// Whether it can be opened.
    pub(super) fn check(&self) -> Result<(), Error> {
        match &self.kind {
            Kind::Events(events) => events.address().map(drop),
            Kind::WebSocket(websocket) => websocket.check(),
        }
    }

    /// Whether another one would tell of the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Events(one), Kind::Events(other)) => one.is(other),
            (Kind::WebSocket(one), Kind::WebSocket(other)) => one.is(other),
            (Kind::Events(_), Kind::WebSocket(_)) | (Kind::WebSocket(_), Kind::Events(_)) => false,
        }
    }

    /// Opens it beside the read of `read`, whose requests `requester` sends. Nothing is sent before
    /// [`next`](Stream::next) is called, inside a tokio runtime.
    pub(super) fn open(self, requester: &Requester, read: &Url) -> Stream {
        let opened = match self.kind {
            Kind::Events(events) => events.address().map(|url| {
                let requester = beside(requester, &url, read);
                Source::Events(Box::new(Following::new(events, url, requester)))
            }),
            Kind::WebSocket(websocket) => websocket.address().map(|url| {
                let requester = beside(requester, &url, read);
                Source::WebSocket(Box::new(Dialing::new(websocket, url, requester)))
            }),
        };
        // It was checked before.
        Stream { source: opened.unwrap_or(Source::None), attached: false }
    }
}

/// What sends the requests of a stream at `url` beside a read of `read`.
fn beside(requester: &Requester, url: &Url, read: &Url) -> Requester {
    if as_http(url).origin() == read.origin() { requester.clone() } else { requester.without_secrets() }
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

/// An open stream; it reconnects by itself.
pub(super) struct Stream {
    source: Source,
    attached: bool,
}

enum Source {
    Events(Box<Following>),
    WebSocket(Box<Dialing>),
    None,
}

impl Stream {
    /// What happens next. Cancel safe.
    pub(super) async fn next(&mut self) -> Happening {
        let happening = match &mut self.source {
            Source::Events(following) => following.next().await,
            Source::WebSocket(dialing) => dialing.next().await,
            Source::None => std::future::pending().await,
        };
        match happening {
            Happening::Attached => self.attached = true,
            Happening::Detached(_) => self.attached = false,
            Happening::Hint | Happening::Value(_) => {}
        }
        happening
    }

    /// Whether it is up, as far as it was told.
    pub(super) fn is_attached(&self) -> bool {
        self.attached
    }
}
