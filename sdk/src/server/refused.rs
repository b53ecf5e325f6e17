//! The words of answers without a record. None shows anything of another call, or of a credential.

use std::time::Duration;

use crate::wire::{MESSAGE, RefusalCode, Refused, cut};

/// Cut to what is for people: it may repeat what the client said, and travels in one frame.
fn new(code: RefusalCode, detail: String) -> Refused {
    let detail = if detail.len() > MESSAGE { cut(&detail, MESSAGE).to_owned() } else { detail };
    Refused { code, detail, retry_after: None }
}

pub(crate) fn invalid(detail: impl Into<String>) -> Refused {
    new(RefusalCode::Invalid, detail.into())
}

/// The method is not a `what` of any service here.
pub(crate) fn unknown_method(what: &str, method: &str) -> Refused {
    let shown: String = method.chars().take(100).collect(); // it may be as long as a frame
    invalid(format!("method: expected a {what} of this service, got {shown}"))
}

pub(crate) fn key_conflict() -> Refused {
    new(RefusalCode::KeyConflict, "key: expected one that is not bound to another command".into())
}

pub(crate) fn not_found() -> Refused {
    new(RefusalCode::NotFound, "no command of this key was accepted".into())
}

pub(crate) fn expired() -> Refused {
    new(RefusalCode::Expired, "minted: expected a time within the service's retention".into())
}

/// The client's clock is further ahead than the service allows for.
pub(crate) fn from_the_future(ahead: Duration, allowed: Duration) -> Refused {
    let (ahead, allowed) = (ahead.as_secs(), allowed.as_secs());
    invalid(format!(
        "minted: expected at most {allowed} s ahead of the service's clock, got {ahead} s; set the client's clock"
    ))
}

pub(crate) fn denied(detail: impl Into<String>) -> Refused {
    new(RefusalCode::Denied, detail.into())
}

pub(crate) fn unavailable(detail: impl Into<String>) -> Refused {
    new(RefusalCode::Unavailable, detail.into())
}

pub(crate) fn log_unavailable() -> Refused {
    unavailable("the log is unavailable")
}

/// More than a connection may have of `what`.
pub(crate) fn over_limit(what: &str, limit: usize) -> Refused {
    let detail = format!("{what}: expected at most {limit} on one connection");
    Refused { retry_after: Some(Duration::from_secs(1)), ..new(RefusalCode::RateLimited, detail) }
}
