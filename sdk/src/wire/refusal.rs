//! Why there is no answer, or no further one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::millis;

/// Which authority ended a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The resource is no more.
    Gone,
    /// Access is denied.
    Denied,
}

/// An answer without a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the frame; unknown fields are ignored when read")]
pub struct Refused {
    /// Why, for machines.
    pub code: RefusalCode,
    /// Why, for people; names the field where there is one. Never holds a secret.
    pub detail: String,
    /// Not before this time has passed.
    #[serde(rename = "retry_after_ms", with = "millis::option", skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

/// Why a call left no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalCode {
    /// The frame, method or arguments are not acceptable.
    Invalid,
    /// The key is bound to another fingerprint (K1).
    KeyConflict,
    /// The key was never accepted here (W8).
    NotFound,
    /// The key's minted-at lies outside retention (S3).
    Expired,
    /// The log is unavailable, or it is in flight elsewhere: the same key may be sent again (S4).
    Unavailable,
    /// Too many requests: the same key may be sent again.
    RateLimited,
    /// The principal may not do this.
    Denied,
    /// A code of a later version: taken for `Unavailable`.
    #[serde(other)]
    Other,
}
