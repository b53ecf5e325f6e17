//! Logs and event streams: each item once and in order, or one explicit gap (R6).
//!
//! A [`Feed`] follows a log or an event stream of a service that knows nothing of Outlast. It recovers by itself (R8),
//! resumes where it was, and never says that the work is over or how it went: only the status channel does (R10).
//! [`Feed::finish`] tells it that the work is over; then it reads until the log is complete, and ends.
//!
//! A [`Follower`](follower::Follower) makes every decision of one feed: pure, with a [`Reader`](reader::Reader) for what is
//! particular to the kind of log. [`LogKind`] names those that are there; another one is a [reader of one's own](reader).

mod delivered;
mod driver;
mod events;
mod fetch;
pub mod follower;
mod handle;
mod item;
mod kind;
mod lines;
mod pages;
mod progressive;
pub mod reader;
mod settings;
mod stamped;
mod stretch;
#[cfg(test)]
mod tests;

pub(crate) use fetch::{FeedAsk, Fetch, FetchError, Fetched};
pub(in crate::http) use handle::Parts;
pub use handle::{Feed, Finisher};
pub use item::{FeedEnd, FeedItem, FeedState, Position};
pub use kind::{LinePages, LinesAbout, LogKind, Marked, OffsetParameter, Offsets, Stamps, TokenPages};
pub use settings::{Replay, Settings, Sizes};
