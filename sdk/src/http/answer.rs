//! What an answer comes down to: a value, an authority, or a cause. Pure.
//!
//! [`judge`] decides by the head. What it lets pass is read into a [`Body`], which is complete and within its bound or an
//! error, and then decoded with [`json`] or [`text`]. None of them ever makes a value of a part (R3).

mod body;
mod media;

pub(crate) use body::{Body, MAX_BODY, json, text};
pub(crate) use media::Expected;

use std::sync::Arc;

use ::http::header::CONTENT_LENGTH;
use ::http::{HeaderMap, StatusCode};

use super::fields;
use super::poll::{Answer, Generation};
use super::redirect::Trail;
use super::told::Told;
use crate::error::Cause;

/// What a request asked for, as far as it bears on the meaning of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    /// What the body is to be.
    pub(crate) expected: Expected,
    /// Which credential was sent.
    pub(crate) generation: Generation,
    /// A validator was sent, so that 304 has a meaning.
    pub(crate) validated: bool,
    /// It asked to be held until something happens, so that 204 has a meaning.
    pub(crate) held: bool,
    /// It asked for a part, so that 206 has a meaning.
    pub(crate) ranged: bool,
    /// Another host answered than the one that was asked.
    pub(crate) elsewhere: bool,
    /// The credential was left behind at a redirect.
    pub(crate) stripped: bool,
}

impl Asked {
    /// A plain request, answered by whom it was sent to.
    pub(crate) fn new(expected: Expected, generation: Generation) -> Self {
        let (validated, held, ranged) = (false, false, false);
        Self { expected, generation, validated, held, ranged, elsewhere: false, stripped: false }
    }

    /// The same after the redirects of `trail`.
    pub(crate) fn along(self, trail: &Trail) -> Self {
        Self { elsewhere: trail.is_elsewhere(), stripped: !trail.keeps_credentials(), ..self }
    }
}

/// What is to be done with an answer of which the head is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Read the body, whole: it may be a value.
    Read,
    /// It comes down to this, whatever its body.
    Given(Answer),
}

/// Decides by the head of an answer. Redirects have been followed: one that comes here was not to be.
pub(crate) fn judge(status: StatusCode, headers: &HeaderMap, told: &Told, asked: Asked) -> Judgement {
    if told.throttled {
        let retry_after = told.wait().unwrap_or_default();
        return unserved(Cause::RateLimited { retry_after });
    }
    match status.as_u16() {
        200 => readable(headers, asked),
        206 if asked.ranged => readable(headers, asked),
        // The service has taken note and will know later (RFC 9110, 15.3.3).
        202 => unserved(Cause::Unavailable { detail: "202: accepted, not ready yet".into() }),
        204 if asked.held => Judgement::Given(Answer::Nothing),
        304 if asked.validated => Judgement::Given(Answer::Unchanged),
        // From here on the answer is an authority, if the one who gives it is.
        401 | 403 | 404 | 410 if is_relay(headers) => unserved_as(status),
        401 | 403 if asked.stripped || asked.elsewhere => unserved(Cause::Misdirected {
            detail: format!("expected no credential to be needed after a redirect, got {}", status.as_u16()).into(),
        }),
        404 | 410 if asked.elsewhere => unserved_as(status),
        401 | 403 => Judgement::Given(Answer::Refused(asked.generation)),
        404 => Judgement::Given(Answer::Absent),
        410 => Judgement::Given(Answer::Gone),
        // The proxy's refusal, not the service's; and what says of itself that another attempt may do better.
        407 | 408 | 421 | 425 | 429 => unserved_as(status),
        400..=499 => unserved(Cause::Refused { detail: refusal(status) }),
        // 203 among them: a proxy has changed what the service said (15.3.4).
        _ => unserved_as(status),
    }
}

/// Whether an answer says that what was asked for is not there, and will not be for the same request.
pub(crate) fn is_absent(judgement: &Judgement) -> bool {
    match judgement {
        Judgement::Given(Answer::Absent | Answer::Gone) => true,
        Judgement::Given(Answer::Unserved(cause)) => says_absent(cause),
        Judgement::Given(_) | Judgement::Read => false,
    }
}

/// The same of what an answer came down to: 501, and what is said to a request that is wrong there, such as 405 or 426.
pub(crate) fn says_absent(cause: &Cause) -> bool {
    matches!(cause, Cause::Refused { .. } | Cause::Status { code: 501 })
}

/// Whether the body of a 403 says that it refuses for the rate, as GitHub's secondary limits do without any header.
///
/// Only the first 8 KiB are looked at.
pub(crate) fn speaks_of_rate(body: &[u8]) -> bool {
    const SIGNS: [&str; 5] = ["rate limit", "rate-limit", "ratelimit", "too many requests", "abuse detection"];
    let start = body.get(..body.len().min(8 * 1024)).unwrap_or_default();
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    SIGNS.iter().any(|sign| text.contains(sign))
}

fn readable(headers: &HeaderMap, asked: Asked) -> Judgement {
    if let Err(detail) = media::check(headers, asked.expected, asked.elsewhere) {
        return unserved(Cause::Undecodable { detail });
    }
    let empty = headers.get_all(CONTENT_LENGTH).iter().any(|length| length == "0");
    if empty && asked.expected == Expected::Json {
        return unserved(Cause::Undecodable { detail: body::EMPTY.into() });
    }
    Judgement::Read
}

/// Whether a hop in front of the service says that it speaks for itself: nothing is behind it just now.
fn is_relay(headers: &HeaderMap) -> bool {
    // Cloud Foundry's router, ngrok, Render.
    headers.contains_key("x-cf-routererror")
        || headers.contains_key("ngrok-error-code")
        || fields::lines(headers, "x-render-routing").any(|line| line.starts_with("no-server"))
}

fn refusal(status: StatusCode) -> Arc<str> {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()).into(),
        None => status.as_u16().to_string().into(),
    }
}

fn unserved_as(status: StatusCode) -> Judgement {
    unserved(Cause::Status { code: status.as_u16() })
}

fn unserved(cause: Cause) -> Judgement {
    Judgement::Given(Answer::Unserved(cause))
}

#[cfg(test)]
mod tests;
