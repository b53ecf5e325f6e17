//! Where a redirect leads, and what may go along (RFC 9110, 15.4). Pure.
//!
//! Only for `GET`: each of 301, 302, 303, 307 and 308 means the same then.

use std::fmt;
use std::sync::Arc;

use ::http::header::LOCATION;
use ::http::{HeaderMap, HeaderName, StatusCode};
use url::{Position, Url};

use crate::error::Cause;

/// How many redirects are followed for one request.
pub(crate) const MAX_HOPS: usize = 10;

/// What of a caller's headers goes to another origin. Of any other nobody knows that it holds no secret, whatever its name.
const HARMLESS: [&str; 6] = ["accept", "accept-encoding", "accept-language", "cache-control", "prefer", "user-agent"];

/// The way of one request from the URL that was asked for to the one that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trail {
    /// Every URL asked before the present one.
    visited: Vec<Url>,
    url: Url,
    keeps_credentials: bool,
}

impl Trail {
    /// Begins at `start`.
    pub(crate) fn new(start: Url) -> Self {
        Self { visited: Vec::new(), url: start, keeps_credentials: true }
    }

    /// The URL to ask now; after the last redirect, the one that answered.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Takes an answer's status and headers: true when they lead on, to [`url`](Self::url), and false when the answer is the last one.
    ///
    /// # Errors
    /// When they lead to where nothing may follow.
    pub(crate) fn follow(&mut self, status: StatusCode, headers: &HeaderMap) -> Result<bool, Misdirected> {
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(false);
        }
        let next = self.resolve(headers)?;
        if self.visited.len() >= MAX_HOPS {
            return Err(Misdirected::TooMany);
        }
        if self.visited.iter().chain([&self.url]).any(|url| is_same_resource(url, &next)) {
            return Err(Misdirected::Loop(shown(&next)));
        }
        // For good: the way back to the first origin is one that another origin has chosen.
        self.keeps_credentials &= next.origin() == self.url.origin();
        self.visited.push(std::mem::replace(&mut self.url, next));
        Ok(true)
    }

    /// Whether the credential goes along. Not after another origin (scheme, host and port) was asked, also not back at the first.
    pub(crate) fn keeps_credentials(&self) -> bool {
        self.keeps_credentials
    }

    /// Whether another host answers than the one that was asked: it is no authority about the resource (R3).
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.visited.first().is_some_and(|start| start.host() != self.url.host())
    }

    /// Removes from a caller's headers what may not go along: after another origin was asked, all but a few harmless ones.
    pub(crate) fn carry(&self, headers: &mut HeaderMap) {
        if self.keeps_credentials {
            return;
        }
        keep_harmless(headers);
    }

    fn resolve(&self, headers: &HeaderMap) -> Result<Url, Misdirected> {
        let mut locations = headers.get_all(LOCATION).iter();
        let location = locations.next().ok_or(Misdirected::Unstated)?;
        if locations.any(|other| other != location) {
            return Err(Misdirected::Malformed);
        }
        let text = std::str::from_utf8(location.as_bytes()).map_err(|_| Misdirected::Malformed)?.trim();
        if text.is_empty() {
            return Err(Misdirected::Unstated);
        }
        let mut next = self.url.join(text).map_err(|_| Misdirected::Malformed)?;
        if !matches!(next.scheme(), "http" | "https") {
            return Err(Misdirected::Scheme(shown(&next)));
        }
        if self.url.scheme() == "https" && next.scheme() == "http" {
            return Err(Misdirected::Downgrade(shown(&next)));
        }
        // What a service writes there is no credential of ours. Neither fails on a URL with a host.
        let _ = next.set_username("");
        let _ = next.set_password(None);
        if next.fragment().is_none() {
            // 10.2.2: the fragment of the URL that was asked is inherited.
            next.set_fragment(self.url.fragment());
        }
        Ok(next)
    }
}

/// Why a redirect is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Misdirected {
    /// There is no `Location`.
    Unstated,
    /// `Location` is no URL, or there are several.
    Malformed,
    /// It leads to something other than HTTP.
    Scheme(Arc<str>),
    /// It leads from TLS to plain text.
    Downgrade(Arc<str>),
    /// It leads to where this request has been.
    Loop(Arc<str>),
    /// It would be one more than are followed.
    TooMany,
}

impl Misdirected {
    /// Why a read is stale then.
    pub(crate) fn cause(&self) -> Cause {
        Cause::Misdirected { detail: self.to_string().into() }
    }
}

impl fmt::Display for Misdirected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unstated => f.write_str("expected a Location in a redirect, got none"),
            Self::Malformed => f.write_str("expected one URL as the Location of a redirect, got something else"),
            Self::Scheme(to) => write!(f, "expected a redirect to http or https, got {to}"),
            Self::Downgrade(to) => write!(f, "expected a redirect from https to https, got {to}"),
            Self::Loop(to) => write!(f, "expected redirects to come to an end, got back to {to}"),
            Self::TooMany => write!(f, "expected at most {MAX_HOPS} redirects, got more"),
        }
    }
}

impl std::error::Error for Misdirected {}

/// Removes what may not go to another origin: all but a few harmless headers, and of those what is marked as sensitive.
pub(crate) fn keep_harmless(headers: &mut HeaderMap) {
    let others: Vec<HeaderName> = headers
        .iter()
        .filter(|(name, value)| value.is_sensitive() || !HARMLESS.contains(&name.as_str()))
        .map(|(name, _)| name.clone())
        .collect();
    for name in others {
        headers.remove(name);
    }
}

/// Whether the same request would be sent: a fragment is not.
fn is_same_resource(one: &Url, other: &Url) -> bool {
    one[..Position::AfterQuery] == other[..Position::AfterQuery]
}

/// What of a URL holds no secret: its scheme and host. The path may be one as well, as in signed links.
fn shown(url: &Url) -> Arc<str> {
    let origin = url.origin();
    if origin.is_tuple() { origin.ascii_serialization().into() } else { url.scheme().into() }
}

#[cfg(test)]
mod tests;
