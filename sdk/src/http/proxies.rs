//! Which proxy is between here and a service.

use ::http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{ClientBuilder, Proxy};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::error::Error;

/// The kinds of proxies that requests and WebSockets can use.
const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// The proxies to use.
#[derive(Clone, Debug)]
pub(super) enum Proxies {
    /// Those of the variables.
    Usual,
    None,
    /// This one; its URL may hold a password.
    One(SecretString),
}

impl Proxies {
    /// For requests.
    pub(super) fn set_up(&self, builder: ClientBuilder) -> Result<ClientBuilder, Error> {
        Ok(match self {
            Self::Usual => builder,
            Self::None => builder.no_proxy(),
            Self::One(url) => builder.proxy(Proxy::all(address(url)?).map_err(|_| unusable())?),
        })
    }

    /// Says for each address which one it is; variables are read now.
    pub(super) fn matcher(&self) -> Result<Matcher, Error> {
        Ok(match self {
            Self::Usual => Matcher::from_system(),
            Self::None => Matcher::builder().build(),
            Self::One(url) => Matcher::builder().all(String::from(address(url)?)).build(),
        })
    }

    /// Whether the one that was given is usable.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            Self::One(url) => address(url).map(drop),
            Self::Usual | Self::None => Ok(()),
        }
    }
}

/// The address of a proxy. Without a scheme it is an `http` proxy, as in the variables.
fn address(text: &SecretString) -> Result<Url, Error> {
    let text = text.expose_secret();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&with_scheme).map_err(|_| unusable())?;
    let usable = SCHEMES.contains(&url.scheme()) && url.host_str().is_some_and(|host| !host.is_empty());
    if usable && is_taken(&url) { Ok(url) } else { Err(unusable()) }
}

/// Whether requests would go through it: what a matcher cannot read is no proxy to it, and requests would go without.
fn is_taken(url: &Url) -> bool {
    let matcher = Matcher::builder().all(url.as_str()).build();
    let is_taken = |uri| matcher.intercept(&Uri::from_static(uri)).is_some();
    is_taken("http://service.example/") && is_taken("https://service.example/")
}

/// Without a source: it may quote the URL, and that may hold a password.
fn unusable() -> Error {
    Error::invalid("proxy", "a URL such as http://proxy.example:3128")
}
