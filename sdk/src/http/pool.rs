//! The shipped exchange: pooled connections by reqwest.
//!
//! reqwest follows no redirect, decodes nothing and repeats nothing here. What it tells of a failure is mapped onto
//! [`FailureKind`](super::exchange::FailureKind), so that a request that was certainly not processed is known as such.

mod clients;
mod dialing;
mod failure;
mod journey;
mod names;
mod settings;
#[cfg(test)]
pub(super) mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::CONTENT_LENGTH;
use ::http::{HeaderValue, Method};
use futures::future::BoxFuture;
use futures::stream;

use self::clients::Kept;
use self::journey::{Journey, Sent};
use self::settings::Settings;
use super::exchange::{Answer, Connection, Exchange, Failure, FailureKind, Request, may_have_body};
use super::proxies::Proxies;
use super::trust::{Identity, Trust};
use crate::error::Error;

/// Sends requests over pooled connections: HTTP/1.1, and HTTP/2 where the service offers it in TLS.
///
/// TLS trusts what the platform trusts, and what the builder is given beside it. Proxies are those of the usual
/// variables (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) as they are when the pool is built, unless the
/// builder says otherwise; with certificates from files they are read anew each time that the files are used for the first
/// time or have changed. Cloning is cheap and shares the connections.
///
/// [`Connection::Fresh`] makes a connection for one request, which is not pooled afterwards. An HTTP/2 connection is
/// asked for a sign of life, so a dead one is found while nothing is sent on it, too, and leaves the pool (FC-91).
///
/// Requests need a tokio runtime with I/O and time.
#[derive(Clone)]
pub struct Pool {
    kept: Arc<Kept>,
}

impl Pool {
    /// A pool with the defaults.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up on this system.
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// A pool with other settings.
    pub fn builder() -> PoolBuilder {
        PoolBuilder { settings: Settings::default() }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Exchange for Pool {
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Answer, Failure>> {
        let kept = Arc::clone(&self.kept);
        Box::pin(send(kept, request))
    }
}

async fn send(kept: Arc<Kept>, request: Request) -> Result<Answer, Failure> {
    let Request { method, mut url, mut headers, body, connection, progress } = request;
    // An authority with a user in it would be sent as such over HTTP/2.
    if !url.username().is_empty() || url.password().is_some() {
        let stripped = url.set_username("").and_then(|()| url.set_password(None));
        stripped.map_err(|()| {
            let place = failure::place(&url);
            Failure::new(FailureKind::Request, format!("{place}: expected a URL with a host"))
        })?;
    }
    url.set_fragment(None);
    if body.is_empty() && matches!(method, Method::POST | Method::PUT | Method::PATCH) {
        // RFC 9110, 8.6: without it some services answer 411.
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let journey = Journey::new(progress);
    let clients = kept.clients(&url, &journey).await?;
    let client = match connection {
        Connection::Any => clients.pooled,
        Connection::Fresh => clients.fresh,
    };
    let mut out = reqwest::Request::new(method, url);
    *out.headers_mut() = headers;
    *out.body_mut() = Some(reqwest::Body::wrap(Sent::new(body, Arc::clone(&journey))));
    let sent = Journey::scope(Arc::clone(&journey), client.execute(out)).await;
    let phase = journey.over();
    let mut response =
        sent.map_err(|e| failure::before_head(&e, phase, &e.url().map(failure::place).unwrap_or_default()))?;
    let (status, version) = (response.status(), response.version());
    let headers = std::mem::take(response.headers_mut());
    if !may_have_body(status) {
        return Ok(Answer::new(status, version, headers, stream::empty()));
    }
    let body = stream::unfold(Some(response), |response| async {
        let mut response = response?;
        match response.chunk().await {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(response))),
            Ok(None) => None,
            Err(e) => Some((Err(failure::in_body(&e, &failure::place(response.url()))), None)),
        }
    });
    Ok(Answer::new(status, version, headers, body))
}

/// Settings of a [`Pool`]; each has a default.
#[must_use]
#[derive(Clone)]
pub struct PoolBuilder {
    settings: Settings,
}

impl PoolBuilder {
    /// With what an agent was given.
    pub(super) fn with(mut self, trust: Trust, proxies: Proxies) -> Self {
        (self.settings.trust, self.settings.proxies) = (trust, proxies);
        self
    }

    /// Trusts the certificates in `pem` beside what the platform trusts. Replaces those given before.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.settings.trust.roots = pem.into();
        self
    }

    /// Trusts the certificates in the PEM file at `path`, too.
    ///
    /// The file is read again while requests are sent (see [`recheck`](Self::recheck)). When it has changed, new
    /// connections are made by what it says now and old ones are not used again. A file that cannot be read or used is
    /// a failure of [`FailureKind::Tls`] for each `https` request until it can be.
    pub fn root_certificates_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.trust.roots_file = Some(path.into());
        self
    }

    /// Shows services that ask for one the certificate at the start of `chain`, with its private key; both in PEM.
    pub fn client_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.settings.trust.identity = Identity::Pem { chain: chain.into(), key: key.into().into() };
        self
    }

    /// The same from two PEM files, read again as [`root_certificates_file`](Self::root_certificates_file) is. That of the key
    /// is at most 64 KiB long.
    pub fn client_certificate_files(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.settings.trust.identity = Identity::Files { chain: chain.into(), key: key.into() };
        self
    }

    /// How often the files given are read again, at most, and only before a request. Default 1 s.
    pub fn recheck(mut self, every: Duration) -> Self {
        self.settings.trust.recheck = every;
        self
    }

    /// Sends everything through the proxy at `url` (`http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`, with user and
    /// password where it wants them) and looks at no variable. Default: what the variables say.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.settings.proxies = Proxies::One(url.into().into());
        self
    }

    /// Uses no proxy, whatever the variables say.
    pub fn no_proxy(mut self) -> Self {
        self.settings.proxies = Proxies::None;
        self
    }

    /// How long an unused connection is kept. Default 50 s: less than the 60 s and 75 s after which common services and
    /// balancers close one, so that fewer are closed just when they are used again (FC-90).
    pub fn idle_timeout(mut self, after: Duration) -> Self {
        self.settings.idle = after;
        self
    }

    /// Asks an HTTP/2 connection for a sign of life each `interval`, used or not, and gives it up when none comes within
    /// `timeout`. Default 10 s and 5 s.
    pub fn pings(mut self, interval: Duration, timeout: Duration) -> Self {
        self.settings.pings = (interval, timeout);
        self
    }

    /// What name, connection and TLS session may take in all, whatever the caller's bounds on each are. Default 15 s.
    pub fn connect_timeout(mut self, bound: Duration) -> Self {
        self.settings.connect = bound;
        self
    }

    /// The pool. It connects to nothing yet. It reads the platform's certificates, which takes some milliseconds,
    /// unless files were given: those are read before the first request.
    ///
    /// # Errors
    /// When a certificate or key given as bytes, or the proxy, is not usable; the message names which. No usable
    /// certificates on the platform are no error here, but one of each `https` request.
    pub fn build(self) -> Result<Pool, Error> {
        Ok(Pool { kept: Arc::new(Kept::new(self.settings)?) })
    }
}

impl fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}
