//! The two clients of a pool, made anew when a file has changed.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, Proxy};
use rustls::ClientConfig;
use rustls::client::Resumption;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::dialing::{Dialing, Sessions};
use super::failure::chain;
use super::journey::Journey;
use super::names::Names;
use super::settings::{Material, Proxies, Settings};
use crate::error::{Error, Phase};
use crate::http::exchange::{Failure, FailureKind};
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
pub(super) struct Kept {
    settings: Arc<Settings>,
    names: Names,
    source: Source,
}

enum Source {
    Fixed(Clients),
    Files(Mutex<Held>),
}

#[derive(Default)]
struct Held {
    checked: Option<Instant>,
    made: Option<Made>,
}

#[derive(Clone)]
struct Made {
    from: Arc<Result<Material, Failure>>,
    clients: Clients,
}

impl Kept {
    pub(super) fn new(settings: Settings) -> Result<Self, Error> {
        let names = Names::new(Arc::clone(&settings.lookup));
        let source = if settings.reads_files() {
            // What was given as bytes is refused now, whatever the files will say.
            tls::roots(&settings.roots)?;
            if let Proxies::One(url) = &settings.proxies {
                proxy(url)?;
            }
            Source::Files(Mutex::default())
        } else {
            let config = match settings.material().map(|material| config(&material)) {
                Ok(Err(e)) if e.is_invalid() => return Err(e),
                Ok(Err(e)) => Err(Failure::new(FailureKind::Tls, chain(&e))),
                Ok(Ok(config)) => Ok(config),
                Err(failure) => Err(failure),
            };
            Source::Fixed(Clients::new(&settings, &names, config)?)
        };
        Ok(Self { settings: Arc::new(settings), names, source })
    }

    /// The clients for a request of `url`.
    pub(super) async fn clients(&self, url: &Url, journey: &Journey) -> Result<Clients, Failure> {
        let clients = match &self.source {
            Source::Fixed(clients) => clients.clone(),
            Source::Files(held) => self.checked(held, url, journey).await?,
        };
        match clients.without_tls {
            Some(failure) if url.scheme() == "https" => Err(failure),
            Some(_) | None => Ok(clients),
        }
    }

    async fn checked(&self, held: &Mutex<Held>, url: &Url, journey: &Journey) -> Result<Clients, Failure> {
        let mut held = held.lock().await;
        #[expect(clippy::disallowed_methods, reason = "how often a file is read decides on no read of a service")]
        let now = Instant::now();
        let due = held.checked.is_none_or(|at| now.duration_since(at) >= self.settings.recheck);
        if let Some(made) = &held.made
            && (!due || url.scheme() != "https")
        {
            return Ok(made.clients.clone());
        }
        // Files may be slow, on a network: that is bounded as the TLS session is.
        journey.begins(Phase::Tls);
        let (settings, names, before) = (Arc::clone(&self.settings), self.names.clone(), held.made.clone());
        let made = tokio::task::spawn_blocking(move || remade(&settings, &names, before)).await;
        let made = made.map_err(|e| Failure::new(FailureKind::Tls, chain(&e)))??;
        journey.begins(Phase::FirstByte);
        held.checked = Some(now);
        let clients = made.clients.clone();
        held.made = Some(made);
        Ok(clients)
    }
}

/// Reads the files, and makes clients when that gives anything else than `before`.
fn remade(settings: &Settings, names: &Names, before: Option<Made>) -> Result<Made, Failure> {
    let material = settings.material();
    if let Some(before) = before
        && *before.from == material
    {
        return Ok(before);
    }
    let unusable = |e: &Error| Failure::new(FailureKind::Tls, chain(e));
    let config = match &material {
        Ok(material) => config(material).map_err(|e| unusable(&e)),
        Err(failure) => Err(failure.clone()),
    };
    let clients = Clients::new(settings, names, config).map_err(|e| unusable(&e))?;
    Ok(Made { from: Arc::new(material), clients })
}

fn config(material: &Material) -> Result<ClientConfig, Error> {
    let identity = material.identity.as_ref();
    let identity = identity.map(|(chain, key)| tls::Identity { chain, key: key.expose_secret() });
    let mut config = tls::for_requests(&material.roots, identity)?;
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
    let client = proxied(builder, &settings.proxies)?.build();
    client.map_err(|e| Error::unavailable("the HTTP client is not usable").with_source(e.without_url()))
}

fn proxied(builder: ClientBuilder, proxies: &Proxies) -> Result<ClientBuilder, Error> {
    Ok(match proxies {
        Proxies::Usual => builder,
        Proxies::None => builder.no_proxy(),
        Proxies::One(url) => builder.proxy(proxy(url)?),
    })
}

fn proxy(url: &SecretString) -> Result<Proxy, Error> {
    // Without the source: it may quote the URL, and that may hold a password.
    Proxy::all(url.expose_secret()).map_err(|_| Error::invalid("proxy", "a URL such as http://proxy.example:3128"))
}
