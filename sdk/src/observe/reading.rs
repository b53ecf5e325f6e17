//! What a read shows.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::time::Instant;

use crate::error::Cause;
use crate::wire::{Cursor, Timestamp};

/// A value that a read has loaded, shared and immutable. Cloning is cheap.
pub struct Known<T> {
    value: Arc<T>,
    at: Option<Cursor>,
}

impl<T> Known<T> {
    /// A value without a version.
    pub fn new(value: T) -> Self {
        Self { value: Arc::new(value), at: None }
    }

    /// A value as of `at`.
    pub fn with_cursor(value: Arc<T>, at: Option<Cursor>) -> Self {
        Self { value, at }
    }

    /// How recent the value is, where its source says so.
    pub fn cursor(this: &Self) -> Option<Cursor> {
        this.at
    }

    /// How recent the value is, where its source has a log.
    pub fn timestamp(this: &Self) -> Option<Timestamp> {
        this.at.and_then(Cursor::timestamp)
    }

    /// The shared value.
    pub fn into_arc(this: Self) -> Arc<T> {
        this.value
    }
}

impl<T> Clone for Known<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), at: self.at }
    }
}

impl<T> Deref for Known<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// What a read shows at one moment. Exhaustive on purpose: there is no error (R1).
#[expect(clippy::exhaustive_enums, reason = "a reader decides on each of the four")]
pub enum Reading<T> {
    /// No value yet, however often the attempts have failed (R2).
    #[non_exhaustive]
    Loading {
        /// Since when it loads.
        since: Instant,
        /// Why there is none yet, if anything has failed: a wrong host name is not invisible.
        cause: Option<Cause>,
    },
    /// The value, confirmed by the service on a live subscription (R5).
    Fresh(Known<T>),
    /// The last value, and why it may be out of date (R1). It recovers by itself.
    #[non_exhaustive]
    Stale {
        /// The last value known.
        last: Known<T>,
        /// When it was last fresh.
        since: Instant,
        /// Why it is not now.
        cause: Cause,
    },
    /// An authority ended the read (R3). Nothing follows.
    #[non_exhaustive]
    Ended {
        /// The last value known.
        last: Option<Known<T>>,
        /// Which authority.
        end: End,
    },
}

/// Which authority ended a read (R3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "three authorities in all")]
pub enum End {
    /// The service: the resource is no more.
    Gone,
    /// The service: access is denied.
    Denied,
    /// The caller, or the end of its runtime.
    Closed,
}

impl<T> Reading<T> {
    /// The last value known, fresh or not.
    pub fn last(&self) -> Option<&Known<T>> {
        match self {
            Self::Loading { .. } => None,
            Self::Fresh(known) => Some(known),
            Self::Stale { last, .. } => Some(last),
            Self::Ended { last, .. } => last.as_ref(),
        }
    }

    /// Whether the value is confirmed.
    pub fn is_fresh(&self) -> bool {
        matches!(self, Self::Fresh(_))
    }

    /// Whether nothing follows.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Ended { .. })
    }

    /// Why there is no fresh value, if there is none.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Loading { cause, .. } => cause.as_ref(),
            Self::Stale { cause, .. } => Some(cause),
            Self::Fresh(_) | Self::Ended { .. } => None,
        }
    }
}

impl<T> Clone for Reading<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Loading { since, cause } => Self::Loading { since: *since, cause: cause.clone() },
            Self::Fresh(known) => Self::Fresh(known.clone()),
            Self::Stale { last, since, cause } => {
                Self::Stale { last: last.clone(), since: *since, cause: cause.clone() }
            }
            Self::Ended { last, end } => Self::Ended { last: last.clone(), end: *end },
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Reading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loading { since, cause } => {
                f.debug_struct("Loading").field("since", since).field("cause", cause).finish()
            }
            Self::Fresh(known) => f.debug_tuple("Fresh").field(known).finish(),
            Self::Stale { last, since, cause } => {
                f.debug_struct("Stale").field("last", last).field("since", since).field("cause", cause).finish()
            }
            Self::Ended { last, end } => f.debug_struct("Ended").field("last", last).field("end", end).finish(),
        }
    }
}
