//! Connections through a proxy: `CONNECT` (RFC 9110, 9.3.6) or SOCKS (RFC 1928), as hyper-util speaks them.

use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};

use ::http::Uri;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use tower_service::Service;

use super::network::{Io, Network};
use super::tls::Tls;
use crate::error::Phase;

/// A proxy. What it wants to be told of the user is never printed.
pub(crate) struct Proxy {
    intercept: Intercept,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Http,
    Https,
    /// With names resolved here (`socks4`, `socks5`), or by the proxy (`socks4a`, `socks5h`).
    Socks4 {
        here: bool,
    },
    Socks5 {
        here: bool,
    },
}

impl Proxy {
    pub(crate) fn new(intercept: Intercept) -> Self {
        let kind = match intercept.uri().scheme_str() {
            Some("https") => Kind::Https,
            Some("socks4") => Kind::Socks4 { here: true },
            Some("socks4a") => Kind::Socks4 { here: false },
            Some("socks5") => Kind::Socks5 { here: true },
            Some("socks5h") => Kind::Socks5 { here: false },
            Some(_) | None => Kind::Http,
        };
        Self { intercept, kind }
    }

    /// Where it is; an IPv6 address without brackets.
    pub(crate) fn host(&self) -> &str {
        self.intercept.uri().host().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// Its port, by default that of its scheme.
    pub(crate) fn port(&self) -> u16 {
        self.intercept.uri().port_u16().unwrap_or(match self.kind {
            Kind::Http => 80,
            Kind::Https => 443,
            Kind::Socks4 { .. } | Kind::Socks5 { .. } => 1080,
        })
    }

    /// Whether it is spoken to over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.kind == Kind::Https
    }

    /// Asks the proxy at the other end of `io` for a connection to `to`. Unbounded in time: the caller aborts it.
    pub(crate) async fn tunnel(
        &self,
        mut io: Box<dyn Io>,
        network: &dyn Network,
        tls: Option<&Tls>,
        to: (&str, u16),
        begins: &mut impl FnMut(Phase),
    ) -> io::Result<Box<dyn Io>> {
        if self.is_secure() {
            let tls = tls.ok_or_else(|| io::Error::other("expected TLS for the proxy"))?;
            begins(Phase::Tls);
            io = Box::new(tls.connect(self.host(), io).await?);
            begins(Phase::Connect);
        }
        let to = self.target(network, to).await?;
        let (proxy, connected) = (self.intercept.uri().clone(), Connected(Some(TokioIo::new(io))));
        let tunneled = match self.kind {
            Kind::Http | Kind::Https => {
                let mut tunnel = Tunnel::new(proxy, connected);
                if let Some(authorization) = self.intercept.basic_auth() {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                tunnel.call(to).await.map_err(|e| described(&e))
            }
            Kind::Socks4 { .. } => SocksV4::new(proxy, connected).call(to).await.map_err(|e| described(&e)),
            Kind::Socks5 { .. } => {
                let mut socks = SocksV5::new(proxy, connected);
                if let Some((user, password)) = self.intercept.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                socks.call(to).await.map_err(|e| described(&e))
            }
        };
        Ok(tunneled?.into_inner())
    }

    /// What the proxy is asked for: a host, or one of its addresses.
    async fn target(&self, network: &dyn Network, (host, port): (&str, u16)) -> io::Result<Uri> {
        let authority = match self.kind {
            Kind::Socks4 { here: true } | Kind::Socks5 { here: true } => {
                let found = network.resolve(host.into(), port).await?;
                // SOCKS4 knows no IPv6.
                let four = matches!(self.kind, Kind::Socks4 { .. });
                let first = found.iter().find(|address| !four || !address.starts_with('['));
                let kind = if four { "an IPv4 address" } else { "an address" };
                first
                    .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("expected {kind} of {host}")))?
                    .to_string()
            }
            Kind::Http | Kind::Https | Kind::Socks4 { .. } | Kind::Socks5 { .. } if host.contains(':') => {
                format!("[{host}]:{port}")
            }
            Kind::Http | Kind::Https | Kind::Socks4 { .. } | Kind::Socks5 { .. } => format!("{host}:{port}"),
        };
        Uri::builder().scheme("http").authority(authority).path_and_query("/").build().map_err(io::Error::other)
    }
}

/// An error and what is underneath it, as one text: the outer ones say only that there was one.
fn described(e: &dyn std::error::Error) -> io::Error {
    let mut text = e.to_string();
    let mut source = e.source();
    while let Some(e) = source {
        text = format!("{text}: {e}");
        source = e.source();
    }
    io::Error::other(text)
}

/// What hyper-util's proxies connect with: a connection that is there already.
struct Connected(Option<TokioIo<Box<dyn Io>>>);

impl Service<Uri> for Connected {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<Box<dyn Io>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}
