//! What a feed delivers.

use std::fmt;
use std::sync::Arc;

use crate::error::Cause;

/// One thing that a feed delivers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a consumer decides on each of the three")]
pub enum FeedItem<T> {
    /// The next item.
    Item(T),
    /// Between the item before and the item after, something is missing, or may be, or what follows is another log from
    /// its start (R6). Never silent, never in place of an item that could be had.
    Gap {
        /// Up to where everything was delivered; `None` where the service does not say.
        from: Option<Position>,
        /// Where what follows begins; `None` where the service does not say. Not after `from`: the log restarted.
        to: Option<Position>,
    },
    /// The last: nothing follows.
    Ended(FeedEnd),
}

impl<T> FeedItem<T> {
    /// The item, if it is one.
    pub fn item(self) -> Option<T> {
        match self {
            Self::Item(item) => Some(item),
            Self::Gap { .. } | Self::Ended(_) => None,
        }
    }

    /// The same with another item.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> FeedItem<U> {
        match self {
            Self::Item(item) => FeedItem::Item(f(item)),
            Self::Gap { from, to } => FeedItem::Gap { from, to },
            Self::Ended(end) => FeedItem::Ended(end),
        }
    }
}

/// A place in a log or an event stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Position {
    /// Before the byte of that offset in what was delivered since the log last started.
    Byte(u64),
    /// Before the line of that number, from 0.
    Line(u64),
    /// At that page's token; `None` for the first page.
    Token(Option<Arc<str>>),
    /// At that time, as the log writes it.
    Time(Arc<str>),
    /// At the event of that id.
    Event(Arc<str>),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(at) => write!(f, "byte {at}"),
            Self::Line(at) => write!(f, "line {at}"),
            Self::Token(None) => f.write_str("the first page"),
            // A token may prove something.
            Self::Token(Some(_)) => f.write_str("a later page"),
            Self::Time(at) => write!(f, "time {at}"),
            Self::Event(id) => write!(f, "event {id}"),
        }
    }
}

/// How a feed ended. None says anything about the work (R10).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FeedEnd {
    /// Everything was read: the service said that the log is complete, or the feed was told that the work is over and
    /// has read the log to its end since.
    #[non_exhaustive]
    Complete {
        /// How many bytes of items were delivered.
        bytes: u64,
        /// How many gaps.
        gaps: u64,
    },
    /// The work is over, and the rest of the log could not be had; or it cannot be read at all.
    #[non_exhaustive]
    Incomplete {
        /// How many bytes of items were delivered.
        bytes: u64,
        /// Why the rest could not be had.
        cause: Cause,
    },
    /// The service says that the log is no more (R3).
    #[non_exhaustive]
    Gone {
        /// How many bytes of items were delivered.
        bytes: u64,
    },
    /// Access to the log is denied (R3).
    #[non_exhaustive]
    Denied {
        /// How many bytes of items were delivered.
        bytes: u64,
    },
    /// The caller's limit on an outage was reached (R8), or its runtime ended.
    Closed,
}

impl FeedEnd {
    /// Whether everything was delivered, without a gap.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Complete { gaps: 0, .. })
    }
}

impl fmt::Display for FeedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete { bytes, gaps: 0 } => write!(f, "complete: {bytes} bytes"),
            Self::Complete { bytes, gaps } => write!(f, "at the end: {bytes} bytes, {gaps} gaps"),
            Self::Incomplete { bytes, cause } => write!(f, "incomplete after {bytes} bytes: {cause}"),
            Self::Gone { bytes } => write!(f, "the log is gone, after {bytes} bytes"),
            Self::Denied { bytes } => write!(f, "access to the log is denied, after {bytes} bytes"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// How a feed is doing. A failing log is seen here and nowhere else: it never touches the verdict (R10).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FeedState {
    /// No answer yet; nothing has failed.
    Opening,
    /// The last request was answered, or the stream is up.
    Following,
    /// It cannot be read now; it is tried again (R1).
    #[non_exhaustive]
    Stale {
        /// Why.
        cause: Cause,
    },
    /// It ended.
    Ended(FeedEnd),
}
