//! What a service pushes by itself.

use ::http::HeaderName;

/// How a service's webhooks come. A description: nothing acts upon it yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Webhook {
    /// How their sender is proved.
    pub scheme: Scheme,
    /// The header that holds the proof.
    pub header: HeaderName,
    /// The header that names a delivery, the same for each of its copies.
    pub delivery_id: Option<HeaderName>,
    /// Whether a delivery that was not acknowledged comes again by itself.
    pub redelivers: bool,
    /// How they may be answered.
    pub replies: Replies,
}

/// How the sender of a webhook is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// HMAC-SHA-256 of the body, in hexadecimal digits after `sha256=`.
    HmacSha256,
    /// HMAC-SHA-256 of a timestamp, a dot and the body, as `timestamp=..,signature=..`.
    TimestampedHmacSha256,
    /// A shared secret as it is.
    Token,
}

/// How a webhook may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Replies {
    /// By what became of it: another status makes the sender try again.
    Status,
    /// 2xx once it is stored, whatever becomes of it: the sender never tries again, or gives up after some failures.
    Accept,
}
