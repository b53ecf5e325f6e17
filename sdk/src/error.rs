//! Errors: opaque outside, with predicates that answer what a caller decides.

mod cause;

pub use cause::{Cause, Phase};

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Why an operation of this library was refused or could not be done.
///
/// Transport faults of a read are never an `Error`: they are a [`Cause`] of staleness (R1).
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// What the caller gave is not acceptable; the message names the field and what was expected.
    Invalid,
    /// A key is bound to another command (K1), or a write met a newer version.
    Conflict,
    /// Try again later, nothing happened.
    Unavailable,
    /// It may or may not have happened.
    Indeterminate,
    /// The caller may not do this.
    Denied,
    /// The thing was closed by its owner.
    Closed,
    /// Stored or received data is not what this version can read.
    Corrupt,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Bad input: `field` and what was expected there.
    pub fn invalid(field: &str, expected: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Invalid, format!("{field}: expected {expected}"))
    }

    /// Nothing happened and it may be tried again.
    pub fn unavailable(what: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Unavailable, what)
    }

    /// The caller may not do this.
    pub fn denied(what: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Denied, what)
    }

    /// Attaches the error underneath.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Whether the same call may succeed later without a change by the caller.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable)
    }

    /// Whether the operation may have happened all the same.
    pub fn may_have_taken_effect(&self) -> bool {
        matches!(self.kind, ErrorKind::Indeterminate)
    }

    /// Whether something else holds the key or the version.
    pub fn is_conflict(&self) -> bool {
        matches!(self.kind, ErrorKind::Conflict)
    }

    /// Whether the caller's input was refused; the message names the field and what was expected.
    pub fn is_invalid(&self) -> bool {
        matches!(self.kind, ErrorKind::Invalid)
    }

    /// Whether an authority denied access.
    pub fn is_denied(&self) -> bool {
        matches!(self.kind, ErrorKind::Denied)
    }

    /// Whether the owner closed it.
    pub fn is_closed(&self) -> bool {
        matches!(self.kind, ErrorKind::Closed)
    }

    /// Whether stored or received data could not be read.
    pub fn is_corrupt(&self) -> bool {
        matches!(self.kind, ErrorKind::Corrupt)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.kind).field("message", &self.message);
        if let Some(source) = &self.source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn StdError + 'static))
    }
}
