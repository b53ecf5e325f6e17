//! HTTP over a network in memory.

mod failure;
mod one;
mod two;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ::http::{Uri, header};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::Full;
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use crate::error::Phase;
use crate::http::exchange::{Answer, Exchange, Failure, FailureKind, Progress, Request};
use crate::transport::{Io, Network};

/// An [`Exchange`] over a network in memory, with hyper's client connections.
///
/// It speaks HTTP/1.1 and keeps connections for the next request, as the shipped one does; [`http2`](Self::http2) speaks HTTP/2.
/// It knows `http://` only. The port of a URL is handed to the network, and [`Net`](super::Net) does not look at it.
///
/// Clones share their connections. Once the last one is dropped all connections end, those of unfinished answers too.
#[derive(Clone)]
pub struct SimulatedExchange {
    shared: Arc<Shared>,
}

impl SimulatedExchange {
    /// One that speaks HTTP/1.1 over `network`. An idle connection is kept for 90 s, the newest is used first.
    pub fn new(network: impl Network) -> Self {
        Self::over(Arc::new(network), false)
    }

    /// One that speaks HTTP/2 with prior knowledge (RFC 9113, 3.3), over one connection for each host and port.
    /// It pings each 10 s, also without a request, and ends a connection that does not answer within 5 s.
    /// It shares nothing with `self`.
    #[must_use]
    pub fn http2(self) -> Self {
        Self::over(Arc::clone(&self.shared.network), true)
    }

    fn over(network: Arc<dyn Network>, http2: bool) -> Self {
        let (one, two) = Default::default();
        Self { shared: Arc::new(Shared { network, http2, one, two, tasks: Mutex::default() }) }
    }
}

impl Exchange for SimulatedExchange {
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Answer, Failure>> {
        // Weak: whoever still waits for an answer does not keep the exchange alive.
        let home = Arc::downgrade(&self.shared);
        let network = Arc::clone(&self.shared.network);
        if self.shared.http2 {
            Box::pin(two::send(home, network, request))
        } else {
            Box::pin(one::send(home, network, request))
        }
    }
}

impl fmt::Debug for SimulatedExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedExchange").finish_non_exhaustive()
    }
}

/// What all requests of an exchange share.
struct Shared {
    network: Arc<dyn Network>,
    http2: bool,
    one: one::Pool,
    two: two::Pool,
    /// Every connection of the exchange, so that they end with it.
    tasks: Mutex<JoinSet<()>>,
}

impl Shared {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }
}

/// The exchange, unless it has been dropped.
fn alive(home: &Weak<Shared>) -> Result<Arc<Shared>, Failure> {
    home.upgrade().ok_or_else(|| Failure::new(FailureKind::Connect, "the exchange has been dropped"))
}

/// Where a request goes.
struct Target {
    host: Arc<str>,
    port: u16,
    /// As the `Host` header has it; without user and password.
    authority: Arc<str>,
}

impl Target {
    fn of(url: &Url) -> Result<Self, Failure> {
        if url.scheme() != "http" {
            let detail = format!("url: expected http://, found {}://", url.scheme());
            return Err(Failure::new(FailureKind::Request, detail));
        }
        let Some(host) = url.host_str() else {
            return Err(Failure::new(FailureKind::Request, "url: expected a host"));
        };
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}").into(),
            None => host.into(),
        };
        Ok(Self { host: host.into(), port: url.port_or_known_default().unwrap_or(80), authority })
    }

    async fn connect(&self, network: &dyn Network, progress: &Progress) -> Result<Box<dyn Io>, Failure> {
        progress.begins(Phase::Resolve);
        let addresses = match network.resolve(Arc::clone(&self.host), self.port).await {
            Ok(addresses) => addresses,
            Err(e) => return Err(Failure::new(FailureKind::Resolve, format!("{}: {e}", self.host))),
        };
        progress.begins(Phase::Connect);
        let mut failure = Failure::new(FailureKind::Resolve, format!("{}: no address", self.host));
        for address in addresses {
            match network.connect(Arc::clone(&address)).await {
                Ok(io) => return Ok(io),
                Err(e) => failure = Failure::new(FailureKind::Connect, format!("{address}: {e}")),
            }
        }
        Err(failure)
    }
}

/// The request as hyper takes it: HTTP/1.1 with a path and `Host`, HTTP/2 with the whole URI.
fn outgoing(request: &Request, target: &Target, whole: bool) -> Result<::http::Request<Full<Bytes>>, Failure> {
    let path = &request.url[url::Position::BeforePath..url::Position::AfterQuery];
    let uri = if whole { Uri::try_from(format!("http://{}{path}", target.authority)) } else { Uri::try_from(path) };
    let refused = |what: &str| Failure::new(FailureKind::Request, format!("{what}: {} does not fit", target.authority));
    let mut outgoing = ::http::Request::new(Full::new(request.body.clone()));
    *outgoing.method_mut() = request.method.clone();
    *outgoing.uri_mut() = uri.map_err(|_| refused("url"))?;
    *outgoing.headers_mut() = request.headers.clone();
    if !whole {
        let host = (*target.authority).try_into().map_err(|_| refused("url"))?;
        outgoing.headers_mut().insert(header::HOST, host);
    }
    Ok(outgoing)
}

#[cfg(test)]
mod tests;
