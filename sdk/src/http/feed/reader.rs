//! What is particular to one kind of log or stream: a reader of one's own.
//!
//! A [`Reader`] says what to ask for and what of an answer is new. When to ask, how long to wait, what a failure means and
//! when the feed is over is decided for it. [`Get::follow`](crate::http::Get::follow) runs one:
//!
//! ```
//! use bytes::Bytes;
//! use outlast::http::feed::Position;
//! use outlast::http::feed::reader::{Ask, Growth, Head, Out, Reached, Reader, Then, Trouble};
//! use url::Url;
//!
//! /// Entries by number, each in a line: `/log?after=41` answers `42 text`, `43 text`; with 204 if there are none yet.
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! struct Entries {
//!     url: Url,
//!     last: u64,
//!     line: Vec<u8>,
//! }
//!
//! impl Reader for Entries {
//!     type Item = String;
//!
//!     fn ask(&mut self, _: Growth) -> Ask {
//!         self.line.clear(); // of an answer that broke off
//!         Ask::log(self.url.clone()).parameter("after", &self.last.to_string())
//!     }
//!
//!     fn head(&mut self, head: &Head<'_>, _: &mut Out<String>) -> Result<Then, Trouble> {
//!         match head.status.as_u16() {
//!             200 => Ok(Then::Read),
//!             204 => Ok(Then::Reached(Reached::End)),
//!             _ => Err(head.unserved(self.last > 0)),
//!         }
//!     }
//!
//!     fn piece(&mut self, piece: Bytes, out: &mut Out<String>) -> Result<(), Trouble> {
//!         self.line.extend_from_slice(&piece);
//!         while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
//!             let line = self.line.drain(..=end).collect();
//!             let line = String::from_utf8(line).map_err(|_| Trouble::undecodable("a line of text"))?;
//!             let entry = line.trim_end().split_once(' ').and_then(|(n, text)| Some((n.parse().ok()?, text)));
//!             match entry.ok_or_else(|| Trouble::undecodable("a number and a text"))? {
//!                 (number, _) if number <= self.last => return Err(Trouble::Contradiction),
//!                 (number, text) => {
//!                     if number > self.last + 1 {
//!                         out.gap(Position::Line(self.last + 1), Position::Line(number));
//!                     }
//!                     self.last = number;
//!                     out.item(text.to_owned());
//!                 }
//!             }
//!         }
//!         Ok(())
//!     }
//!
//!     fn end(&mut self, _: &mut Out<String>) -> Result<Reached, Trouble> {
//!         Ok(Reached::End)
//!     }
//!
//!     fn restart(&mut self, out: &mut Out<String>) {
//!         out.gap(Position::Line(self.last + 1), Position::Line(1));
//!         self.last = 0;
//!     }
//!
//!     fn size(item: &String) -> usize {
//!         item.len()
//!     }
//! }
//!
//! # #[cfg(feature = "testing")]
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use outlast::http::Agent;
//! # use outlast::http::feed::FeedItem;
//! # use outlast::testing::{Net, Reply, Script, SimulatedExchange};
//! # let net = Net::new();
//! # let service = Script::serve(&net, "build.example");
//! # service.on("/log", |asked| match asked.target.split_once("after=").map(|(_, after)| after) {
//! #     Some("0") => Reply::text("1 one\n2 two\n3 thr").cut(15),
//! #     Some("2") => Reply::text("5 five\n"),
//! #     _ => Reply::status(204),
//! # });
//! # let agent = Agent::builder().exchange(SimulatedExchange::new(net.clone())).network(net.clone()).build()?;
//! let url = Url::parse("http://build.example/log")?;
//! let reader = Entries { url, last: 0, line: Vec::new() };
//! # let mut log = agent.get("http://build.example/log").follow(reader.clone())?;
//! # for expected in ["one", "two"] {
//! #     assert_eq!(log.next().await, Some(FeedItem::Item(expected.to_owned())));
//! # }
//! # let gap = FeedItem::Gap { from: Some(Position::Line(3)), to: Some(Position::Line(5)) };
//! # assert_eq!(log.next().await, Some(gap));
//! # assert_eq!(log.next().await, Some(FeedItem::Item("five".to_owned())));
//! # log.finish();
//! # assert!(matches!(log.next().await, Some(FeedItem::Ended(end)) if end.to_string() == "at the end: 10 bytes, 1 gaps"));
//! let log = outlast::http::get("http://build.example/log").follow(reader)?;
//! # Ok(()) }
//! # #[cfg(not(feature = "testing"))]
//! # fn main() {}
//! ```
//!
//! A reader is pure and has no clock: its [`Follower`](super::follower::Follower) can be asked in a test what follows from
//! which events.

use std::fmt;
use std::hash::Hash;

use ::http::header::CONTENT_ENCODING;
use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use url::Url;

use super::item::{FeedItem, Position};
use crate::error::Cause;
use crate::http::answer::Expected;
use crate::http::{fields, query};

/// Knows how to ask for the rest of one kind of log or stream, and what of an answer is new. Pure. The [module](self) has one.
///
/// A [`Follower`](super::follower::Follower) decides when. It calls [`ask`](Self::ask), then [`head`](Self::head) with the head
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

    /// How many bytes of the log an item is. The end of a feed says how many were delivered.
    fn size(item: &Self::Item) -> usize;

    /// The least time before the next request after a failure, as the service asked.
    fn least_delay(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

/// What is to be delivered, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Out<T>(Vec<FeedItem<T>>);

impl<T> Out<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// The next item.
    pub fn item(&mut self, item: T) {
        self.0.push(FeedItem::Item(item));
    }

    /// Something is missing here, or may be; or what follows is another log from its start (R6). `None` where the service
    /// does not say.
    pub fn gap(&mut self, from: impl Into<Option<Position>>, to: impl Into<Option<Position>>) {
        self.0.push(FeedItem::Gap { from: from.into(), to: to.into() });
    }

    /// How many items and gaps there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_items(self) -> Vec<FeedItem<T>> {
        self.0
    }
}

impl<T> Default for Out<T> {
    fn default() -> Self {
        Self::new()
    }
}

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

    /// A header that is text, without the spaces around it.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    /// A header that is a number, in decimal digits.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name).filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
    }

    /// Whether the body was encoded: what is counted of it in the headers is not what is read.
    pub(super) fn is_encoded(&self) -> bool {
        let mut codings = fields::lines(self.headers, CONTENT_ENCODING).flat_map(|line| fields::split(line, b','));
        codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
    }

    /// What a status comes down to that carries nothing of the log: it is gone with 410, and may come later otherwise. One
    /// that was never `seen` is not there yet with 404.
    pub fn unserved(&self, seen: bool) -> Trouble {
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

impl Trouble {
    /// It is not what was asked for, or cut: another answer may be. Says what was expected.
    pub fn undecodable(expected: impl fmt::Display) -> Self {
        Self::Unserved(Cause::Undecodable { detail: expected.to_string().into() })
    }
}
