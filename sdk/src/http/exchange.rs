//! One request out, one answer in: the only way in which this library speaks HTTP as a client.
//!
//! [`Pool`](super::Pool) is the shipped one. Redirects, decompression, retries, credentials and bounds are decided
//! above it, so that another one, such as the simulated one of `outlast::testing`, needs nothing but bytes.

mod progress;

pub use progress::{Phases, Progress};

use std::fmt;
use std::sync::Arc;

use ::http::{HeaderMap, Method, StatusCode, Version};
use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use url::Url;

use crate::error::Cause;

/// Sends requests.
///
/// An implementation follows no redirect, decodes no content coding, repeats nothing, adds no credential and bounds
/// nothing in time: its caller does. It reuses connections unless the request asks for a fresh one.
pub trait Exchange: Send + Sync + 'static {
    /// Sends `request`; ready once the head of the final answer has come (1xx answers are skipped).
    ///
    /// # Cancel safety
    /// Dropping the future, or the answer before its end, abandons the request; its connection is not used again
    /// where the protocol needs that (HTTP/1.1).
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Answer, Failure>>;
}

/// A request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The whole URL; a fragment is not sent, user and password neither.
    pub url: Url,
    /// The headers, without `Host` and what frames the body.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// Which connection may carry it.
    pub connection: Connection,
    /// Told what the exchange is doing.
    pub progress: Progress,
}

impl Request {
    /// A `GET` of `url` on any connection.
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            connection: Connection::Any,
            progress: Progress::ignored(),
        }
    }
}

/// Which connection may carry a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "an exchange decides on each")]
pub enum Connection {
    /// A pooled one, or a new one.
    Any,
    /// A new one: what was pooled before is not trusted (FC-90).
    Fresh,
}

/// The head of an answer, and its body in chunks.
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The protocol that it came over.
    pub version: Version,
    /// The headers.
    pub headers: HeaderMap,
    body: BoxStream<'static, Result<Bytes, Failure>>,
}

impl Answer {
    /// An answer whose body is `body`, still encoded as `Content-Encoding` says. The stream must fail with
    /// [`FailureKind::Incomplete`] when the connection ends before the length that was announced, or before the last chunk.
    pub fn new(
        status: StatusCode,
        version: Version,
        headers: HeaderMap,
        body: impl Stream<Item = Result<Bytes, Failure>> + Send + 'static,
    ) -> Self {
        Self { status, version, headers, body: body.boxed() }
    }

    pub(super) fn may_have_body(&self) -> bool {
        may_have_body(self.status)
    }

    /// The next piece of the body; `None` at its complete end.
    ///
    /// # Errors
    /// When the body cannot be had to its end.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        self.body.next().await.transpose()
    }
}

/// Whether a body may follow a head with that status (RFC 9110, 6.4.1).
pub(super) fn may_have_body(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No headers: they may hold cookies.
        f.debug_struct("Answer").field("status", &self.status).field("version", &self.version).finish_non_exhaustive()
    }
}

/// Why there is no answer, or no whole one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What failed, without secrets: no header value, no user, password, query or fragment of a URL.
    pub detail: Arc<str>,
}

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The name did not resolve.
    Resolve,
    /// No connection: refused, reset, unreachable, or the proxy refused.
    Connect,
    /// No TLS session.
    Tls,
    /// The service said that it did not process the request: a refused stream, or one past a GOAWAY (RFC 9113, 6.8 and 8.7).
    NotProcessed,
    /// The connection ended before the head of the answer. It may have been a pooled one that the service was about to
    /// close (FC-90): whether the request was processed is not known.
    Closed,
    /// The body ended before its end.
    Incomplete,
    /// What came is not HTTP, or its head is too large.
    Malformed,
    /// The request cannot be sent as it is.
    Request,
}

impl Failure {
    /// A failure.
    pub fn new(kind: FailureKind, detail: impl Into<Arc<str>>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Whether the request was certainly not processed.
    pub fn is_unsent(&self) -> bool {
        match self.kind {
            FailureKind::Resolve
            | FailureKind::Connect
            | FailureKind::Tls
            | FailureKind::NotProcessed
            | FailureKind::Request => true,
            FailureKind::Closed | FailureKind::Incomplete | FailureKind::Malformed => false,
        }
    }

    /// Why a read is stale then.
    pub fn cause(&self) -> Cause {
        let detail = Arc::clone(&self.detail);
        match self.kind {
            FailureKind::Resolve => Cause::Unresolved { detail },
            FailureKind::Connect | FailureKind::Tls => Cause::Unreachable { detail },
            FailureKind::NotProcessed => Cause::Unavailable { detail },
            FailureKind::Closed | FailureKind::Incomplete => Cause::Dropped { code: None },
            FailureKind::Malformed => Cause::Undecodable { detail },
            FailureKind::Request => Cause::Refused { detail },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Failure {}
