//! The two clients of a pool, made anew when a file has changed.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use rustls::ClientConfig;
use rustls::client::Resumption;
use url::Url;

use super::dialing::{Dialing, Sessions};
use super::failure::chain;
use super::journey::Journey;
use super::names::Names;
use super::settings::Settings;
use crate::error::{Error, Phase};
use crate::http::exchange::{Failure, FailureKind};
use crate::http::trust::{Material, Remade};
use crate::transport::tls;

/// Finds a peer that is gone where there are no pings (HTTP/1.1): after 30 s, with three probes unanswered.
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const TCP_KEEPALIVE_PROBES: u32 = 3;

/// One client that pools and one that does not.
#[derive(Clone)]
pub(super) struct Clients {
    pub(super) pooled: Client,
    pub(super) fresh: Client,
    /// Why no TLS session can be made.
    without_tls: Option<Failure>,
}

/// The clients, and what they are made from.
pub(super) enum Kept {
    Fixed(Clients),
    Files(Remade<Clients>),
}

impl Kept {
    pub(super) fn new(settings: Settings) -> Result<Self, Error> {
        let names = Names::new(Arc::clone(&settings.lookup));
        if settings.trust.reads_files() {
            // What was given as bytes is refused now, whatever the files will say.
            settings.trust.check()?;
            settings.proxies.check()?;
            let trust = Arc::new(settings.trust.clone());
            return Ok(Self::Files(Remade::new(trust, move |read| {
                let config = match read {
                    Ok(material) => config(material).map_err(|e| unusable(&e)),
                    Err(failure) => Err(failure.clone()),
                };
                Clients::new(&settings, &names, config).map_err(|e| unusable(&e))
            })));
        }
        let config = match settings.trust.material().map(|material| config(&material)) {
            Ok(Err(e)) if e.is_invalid() => return Err(e),
            Ok(Err(e)) => Err(unusable(&e)),
            Ok(Ok(config)) => Ok(config),
            Err(failure) => Err(failure),
        };
        Ok(Self::Fixed(Clients::new(&settings, &names, config)?))
    }

    /// The clients for a request of `url`.
    pub(super) async fn clients(&self, url: &Url, journey: &Journey) -> Result<Clients, Failure> {
        let secure = url.scheme() == "https";
        let clients = match self {
            Self::Fixed(clients) => clients.clone(),
            Self::Files(remade) => {
                // Files may be slow, on a network: that is bounded as the TLS session is.
                let reads = || journey.begins(Phase::Tls);
                let clients = if secure { remade.newest(reads).await? } else { remade.any(reads).await? };
                journey.begins(Phase::FirstByte);
                clients
            }
        };
        match clients.without_tls {
            Some(failure) if secure => Err(failure),
            Some(_) | None => Ok(clients),
        }
    }
}

fn unusable(e: &Error) -> Failure {
    Failure::new(FailureKind::Tls, chain(e))
}

fn config(material: &Material) -> Result<ClientConfig, Error> {
    let mut config = tls::for_requests(&material.roots, material.identity())?;
    config.resumption = Resumption::store(Arc::new(Sessions::new()));
    Ok(config)
}

impl Clients {
    fn new(settings: &Settings, names: &Names, config: Result<ClientConfig, Failure>) -> Result<Self, Error> {
        let (config, without_tls) = match config {
            Ok(config) => (config, None),
            Err(failure) => (tls::distrustful()?, Some(failure)),
        };
        let pooled = client(settings, names, config.clone(), usize::MAX)?;
        let fresh = client(settings, names, config, 0)?;
        Ok(Self { pooled, fresh, without_tls })
    }
}

fn client(settings: &Settings, names: &Names, config: ClientConfig, idle_per_host: usize) -> Result<Client, Error> {
    let (interval, timeout) = settings.pings;
    let builder = Client::builder()
        .tls_backend_preconfigured(config)
        .dns_resolver(names.clone())
        .connector_layer(Dialing { failed: Arc::clone(&names.failed) })
        .connect_timeout(settings.connect)
        .pool_idle_timeout(settings.idle)
        .pool_max_idle_per_host(idle_per_host)
        .http2_keep_alive_interval(interval)
        .http2_keep_alive_timeout(timeout)
        .http2_keep_alive_while_idle(true)
        .tcp_nodelay(true)
        .tcp_keepalive(TCP_KEEPALIVE)
        .tcp_keepalive_interval(TCP_KEEPALIVE_INTERVAL)
        .tcp_keepalive_retries(TCP_KEEPALIVE_PROBES)
        // Decided above, where redirects, credentials and repetitions are known (R9, FC-90).
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never()) // nor could it repeat a body that is a stream, as all are here
        // Whatever features of reqwest another crate has asked for.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate();
    let client = settings.proxies.set_up(builder)?.build();
    client.map_err(|e| Error::unavailable("the HTTP client is not usable").with_source(e.without_url()))
}
