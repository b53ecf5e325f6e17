//! Streams that say when something changes: server-sent events and WebSockets of foreign services.
//!
//! An event is a reason to look, never the only source of a value: a read looks again at each (re)connect and at a slow
//! interval, since these streams replay nothing and end without a word (R5, FC-17, FC-23).

use bytes::Bytes;

use super::requester::Requester;
use crate::error::Cause;

/// A stream of a service that says when something changes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Push {}

/// What a stream tells.
#[derive(Debug)]
pub(super) enum Happening {
    /// It is up: whatever happens from now on is told.
    Attached,
    /// It is down.
    Detached(Cause),
    /// Something may have changed.
    Hint,
    /// The new value, encoded.
    Value(Bytes),
}

/// An open stream; it reconnects by itself.
pub(super) struct Stream {}

impl Push {
    pub(super) fn open(self, _: &Requester) -> Stream {
        Stream {}
    }
}

impl Stream {
    pub(super) async fn next(&mut self) -> Happening {
        std::future::pending().await
    }
}
