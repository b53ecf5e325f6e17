//! Who is asking: decided before the upgrade, from the request's headers.

use std::fmt;

use futures::future::{BoxFuture, ready};
use http::HeaderMap;

use crate::key::Principal;

/// Tells who a connection belongs to.
///
/// Implemented for closures `Fn(&HeaderMap) -> Result<Principal, Unauthenticated>`; implement it by hand
/// to ask somewhere else. The same caller must be the same principal on every connection: keys are
/// scoped by it (K1). It has 5 s for an answer.
pub trait Authenticate: Send + Sync + 'static {
    /// The principal of the request with these headers.
    fn authenticate<'a>(&'a self, headers: &'a HeaderMap) -> BoxFuture<'a, Result<Principal, Unauthenticated>>;
}

impl<F> Authenticate for F
where
    F: Fn(&HeaderMap) -> Result<Principal, Unauthenticated> + Send + Sync + 'static,
{
    fn authenticate<'a>(&'a self, headers: &'a HeaderMap) -> BoxFuture<'a, Result<Principal, Unauthenticated>> {
        Box::pin(ready(self(headers)))
    }
}

/// Why there is no principal. It says nothing of the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unauthenticated {
    /// No credential, or one that is not accepted: answered with 401.
    Refused,
    /// It cannot be told now: answered with 503, which is no authority about the caller (R3).
    Unavailable,
}

impl fmt::Display for Unauthenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "credential refused",
            Self::Unavailable => "credential cannot be checked now",
        })
    }
}

impl std::error::Error for Unauthenticated {}
