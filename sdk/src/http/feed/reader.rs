//! What is particular to one kind of log or stream.

use std::fmt;
use std::hash::Hash;

use ::http::header::CONTENT_ENCODING;
use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use url::Url;

use super::item::FeedItem;
use crate::error::Cause;
use crate::http::answer::Expected;
use crate::http::{fields, query};

/// Knows how to ask for the rest of one kind of log or stream, and what of an answer is new. Pure.
///
/// A [`Follower`](super::Follower) decides when. It calls [`ask`](Self::ask), then [`head`](Self::head) with the head
/// of the answer, [`piece`](Self::piece) with each piece of its body and [`end`](Self::end) at its complete end. An answer that
/// breaks off is just not ended: the next `ask` goes on from what was delivered.
pub trait Reader: Clone + Eq + Hash + fmt::Debug + Send + 'static {
    /// What the feed delivers.
    type Item: Send + 'static;

    /// Whether it has no end of its own: nothing but silence says that all was had.
    const ENDLESS: bool = false;

    /// What to ask for.
    fn ask(&mut self, growth: Growth) -> Ask;

    /// Judges the head of the answer.
    ///
    /// # Errors
    /// When it is not what was asked for.
    fn head(&mut self, head: &Head<'_>, out: &mut Out<Self::Item>) -> Result<Then, Trouble>;

    /// Takes a piece of the body.
    ///
    /// # Errors
    /// When it contradicts what was delivered, or cannot be decoded.
    fn piece(&mut self, piece: Bytes, out: &mut Out<Self::Item>) -> Result<(), Trouble>;

    /// The body is complete.
    ///
    /// # Errors
    /// When it contradicts what was delivered, or cannot be decoded.
    fn end(&mut self, out: &mut Out<Self::Item>) -> Result<Reached, Trouble>;

    /// The request, or its answer, came to nothing: whoever answers the next may know nothing of this one.
    fn failed(&mut self) {}

    /// The log contradicts what was delivered, and did so again: goes on with the log as it is, after a gap.
    fn restart(&mut self, out: &mut Out<Self::Item>);

    /// How many bytes of items were delivered.
    fn bytes(&self) -> u64;

    /// The least time before the next request after a failure, as the service asked.
    fn least_delay(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

/// What is delivered.
pub type Out<T> = Vec<FeedItem<T>>;

/// Whether the log may still grow, as far as the feed was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a reader decides on each")]
pub enum Growth {
    /// The work may go on.
    Open,
    /// The work is over, since less than [`settle`](super::Settings::settle): its last lines may not be there yet.
    Settling,
    /// The work is over, and what the log has now is all.
    Over,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// The whole URL.
    pub url: Url,
    /// The headers. `Accept` is added, and `Accept-Encoding: identity`: offsets count what is sent.
    pub headers: HeaderMap,
    /// Whether the answer goes on as long as there is something to say.
    pub long: bool,
    pub(in crate::http) expected: Expected,
}

impl Ask {
    /// A request for bytes of a log, whatever their type: only a web page is none (R3).
    pub fn log(url: Url) -> Self {
        Self::new(url, Expected::Log)
    }

    /// A request for JSON.
    pub fn json(url: Url) -> Self {
        Self::new(url, Expected::Json)
    }

    /// A request for a stream of events, `text/event-stream`, which goes on.
    pub fn events(url: Url) -> Self {
        Self::new(url, Expected::EventStream).going_on()
    }

    fn new(url: Url, expected: Expected) -> Self {
        Self { url, headers: HeaderMap::new(), long: false, expected }
    }

    /// The answer goes on as long as there is something to say.
    #[must_use]
    pub fn going_on(self) -> Self {
        Self { long: true, ..self }
    }

    /// With a parameter of the query. One of that name in the URL is replaced.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        query::set(&mut self.url, [(name, value)]);
        self
    }

    /// With a header; left out if the value cannot be one.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            self.headers.insert(name, value);
        }
        self
    }
}

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Head<'a> {
    /// The status.
    pub status: StatusCode,
    /// The headers. Where `Content-Encoding` is among them, the body is decoded all the same.
    pub headers: &'a HeaderMap,
}

impl<'a> Head<'a> {
    /// A head.
    pub fn new(status: StatusCode, headers: &'a HeaderMap) -> Self {
        Self { status, headers }
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name).filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
    }

    /// Whether the body was encoded: what is counted of it in the headers is not what is read.
    pub(super) fn is_encoded(&self) -> bool {
        let mut codings = fields::lines(self.headers, CONTENT_ENCODING).flat_map(|line| fields::split(line, b','));
        codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
    }

    /// What a status comes down to that carries nothing of the log.
    pub(super) fn unserved(&self, seen: bool) -> Trouble {
        match self.status {
            StatusCode::GONE => Trouble::Gone,
            StatusCode::NOT_FOUND if !seen => Trouble::Unserved(Cause::NotYetVisible),
            StatusCode::UNAUTHORIZED => Trouble::Unserved(Cause::Unauthorized),
            other => Trouble::Unserved(Cause::Status { code: other.as_u16() }),
        }
    }
}

/// What to do with an answer after its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the machine decides on each")]
pub enum Then {
    /// Read its body.
    Read,
    /// It has none, or none that matters.
    Reached(Reached),
}

/// How far an answer brought the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the machine decides on each")]
pub enum Reached {
    /// To the end of what there is now.
    End,
    /// There is more to ask for at once.
    More,
    /// As far as this answer goes; the service says that the log is not complete, or does not say where its end is.
    Later,
    /// To the end of the log: the service says that it is complete.
    Complete,
}

/// Why an answer is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the machine decides on each")]
pub enum Trouble {
    /// It may be served later.
    Unserved(Cause),
    /// It shows less than what was delivered, or something else.
    Contradiction,
    /// It can never be read.
    Unreadable(Cause),
    /// The service says that the log is no more.
    Gone,
}

pub(super) fn undecodable(expected: &str) -> Trouble {
    Trouble::Unserved(Cause::Undecodable { detail: expected.into() })
}
