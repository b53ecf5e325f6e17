//! How WebSockets get out: by which network, through which proxy, with which TLS.

use std::sync::Arc;

use ::http::Uri;
use futures::future::BoxFuture;
use hyper_util::client::proxy::matcher::Matcher;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use url::Url;

use super::exchange::{Failure, FailureKind};
use super::proxies::Proxies;
use super::trust::{Remade, Trust};
use crate::error::{Cause, Error, Phase};
use crate::transport::{Network, NoUpgrade, Proxy, Tls, Upgraded, upgrade};

/// The way out of one agent.
pub(super) struct Egress {
    network: Arc<dyn Network>,
    proxies: Matcher,
    tls: Remade<Tls>,
}

impl Egress {
    pub(super) fn new(network: Arc<dyn Network>, proxies: &Proxies, trust: Trust) -> Result<Self, Error> {
        trust.check()?;
        let tls = Remade::new(Arc::new(trust), |read| {
            let material = read.as_ref().map_err(Failure::clone)?;
            let tls = Tls::identified(&material.roots, material.identity());
            tls.map_err(|e| Failure::new(FailureKind::Tls, e.to_string()))
        });
        Ok(Self { network, proxies: proxies.matcher()?, tls })
    }

    /// The addresses to connect to for `url`: those of its host, or of the proxy before it.
    pub(super) fn resolve(&self, url: &Url) -> BoxFuture<'static, std::io::Result<Vec<Arc<str>>>> {
        match self.proxy(url) {
            Some(proxy) => self.network.resolve(proxy.host().into(), proxy.port()),
            None => {
                let (host, port) = target(url);
                self.network.resolve(host.into(), port)
            }
        }
    }

    /// Connects to `address`, one of those, and opens the WebSocket of `request` there. Each step says that it begins.
    /// Unbounded in time: the caller aborts it.
    pub(super) async fn open(
        &self,
        url: &Url,
        address: Arc<str>,
        request: Request,
        mut begins: impl FnMut(Phase),
    ) -> Result<Upgraded, NoUpgrade> {
        let proxy = self.proxy(url);
        let secure = url.scheme() == "wss";
        let tls = if secure || proxy.as_ref().is_some_and(Proxy::is_secure) {
            // Files may be slow, on a network: that is bounded as the session is.
            let tls = self.tls.newest(|| begins(Phase::Tls)).await;
            Some(tls.map_err(|failure| NoUpgrade::Broken(failure.cause()))?)
        } else {
            None
        };
        begins(Phase::Connect);
        let unreachable = |place: &str, e: &std::io::Error| {
            NoUpgrade::Unreachable(Cause::Unreachable { detail: format!("{place}: {e}").into() })
        };
        let io = self.network.connect(Arc::clone(&address)).await.map_err(|e| unreachable(&address, &e))?;
        let (io, place) = match proxy {
            Some(proxy) => {
                let (host, port) = target(url);
                let place = format!("{host}:{port} through the proxy {address}");
                let through = proxy.tunnel(io, &*self.network, tls.as_ref(), (host, port), &mut begins).await;
                (through.map_err(|e| unreachable(&place, &e))?, place.into())
            }
            None => (io, address),
        };
        let host = url.host_str().unwrap_or_default();
        upgrade(io, tls.filter(|_| secure), host, &place, request, begins).await
    }

    /// The proxy before `url`, as for a request there: `ws` counts as `http`, `wss` as `https` (RFC 6455, 4.1).
    fn proxy(&self, url: &Url) -> Option<Proxy> {
        let scheme = if url.scheme() == "wss" { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(url.authority()).path_and_query("/").build().ok()?;
        self.proxies.intercept(&uri).map(Proxy::new)
    }
}

/// Host and port of `url`, an IPv6 address without brackets.
fn target(url: &Url) -> (&str, u16) {
    (url.host_str().unwrap_or_default().trim_matches(['[', ']']), url.port_or_known_default().unwrap_or(80))
}

#[cfg(test)]
mod tests;
