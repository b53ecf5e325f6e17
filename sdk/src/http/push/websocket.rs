//! A WebSocket beside a read.

use std::fmt;
use std::sync::Arc;

use ::http::HeaderValue;
use bytes::Bytes;
use url::Url;

use super::{Kind, Push, address, guarded};
use crate::connection::Endpoint;
use crate::error::Error;

/// A WebSocket of a service that says when something changes, being set up; it becomes a [`Push`].
///
/// By default each message is a reason to look. Messages are at most 1 MiB long. The peer is asked for a sign of life
/// each 10 s, and is gone if none comes within 5 s. Each of name, connection, TLS session, upgrade and confirmation may
/// take 5 s. A close code never ends the stream: 1013 keeps it away for a while, those that refuse the credential have
/// its source asked, and no credential is sent again after two refusals (FC-50, FC-51).
///
/// Proxies and certificates are those of the agent, as for requests: `ws` counts as `http`, `wss` as `https`, and either
/// goes through an `http` or `https` proxy by `CONNECT` (RFC 6455, 4.1). Names are resolved anew for each attempt, by the
/// [network](crate::http::AgentBuilder::network) of the agent; those behind a proxy by the proxy, except for `socks4` and
/// `socks5`.
#[derive(Clone)]
#[must_use = "it is given to a read"]
pub struct WebSocket {
    url: Arc<str>,
    subprotocol: Option<Arc<str>>,
    hello: Vec<Arc<str>>,
    confirmed_by: Option<Arc<Confirms>>,
    values: Option<Arc<Values>>,
}

type Confirms = dyn Fn(&str) -> bool + Send + Sync;
type Values = dyn Fn(&str) -> Option<Bytes> + Send + Sync;

impl WebSocket {
    pub(super) fn new(url: &str) -> Self {
        Self { url: url.into(), subprotocol: None, hello: Vec::new(), confirmed_by: None, values: None }
    }

    /// A text message to send after each connect, such as a subscription. Several are sent in this order.
    pub fn hello(mut self, text: impl Into<Arc<str>>) -> Self {
        self.hello.push(text.into());
        self
    }

    /// The subscription is confirmed, within 5 s, by a message for which this is true: what happens from then on is told.
    /// Default: by the upgrade itself. The message is not looked at otherwise.
    pub fn confirmed_by(mut self, confirms: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.confirmed_by = Some(Arc::new(confirms));
        self
    }

    /// Takes the new value as a whole, as the read itself would answer it, out of a text message. `None`: the message says
    /// nothing of the value. Default: every message is a reason to look.
    ///
    /// Messages come late and twice. So the value is shown at once only where its [marks](crate::http::Read::marks) prove
    /// that it is later than what is shown: a higher version, or a higher attempt. Any other one is a reason to look (R4),
    /// as is a binary message, and one on which this code panics.
    pub fn values(mut self, values: impl Fn(&str) -> Option<Bytes> + Send + Sync + 'static) -> Self {
        self.values = Some(Arc::new(values));
        self
    }

    /// The subprotocol to ask for (RFC 6455, 1.9). A service that does not agree on it is none. Default: none is asked for.
    pub fn subprotocol(mut self, name: impl Into<Arc<str>>) -> Self {
        self.subprotocol = Some(name.into());
        self
    }

    /// With another stream of the same, for where this one cannot be had; see [`Push::or`].
    pub fn or(self, other: impl Into<Push>) -> Push {
        Push::from(self).or(other)
    }

    pub(super) fn address(&self) -> Result<Url, Error> {
        let expected = "an absolute ws://, wss://, http:// or https:// URL";
        let url = address(&self.url, &["ws", "wss", "http", "https"], expected)?;
        match url.as_str().strip_prefix("http") {
            Some(rest) => {
                Url::parse(&format!("ws{rest}")).map_err(|e| Error::invalid("push.url", expected).with_source(e))
            }
            None => Ok(url),
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        self.address()?;
        let is_token = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(&b))
        };
        match &self.subprotocol {
            Some(name) if !is_token(name) => Err(Error::invalid("push.subprotocol", "a token (RFC 6455, 4.1)")),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.url, &self.subprotocol, &self.hello) == (&other.url, &other.subprotocol, &other.hello)
            && is_shared(self.confirmed_by.as_ref(), other.confirmed_by.as_ref())
            && is_shared(self.values.as_ref(), other.values.as_ref())
    }

    pub(super) fn requested(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(&**self.subprotocol.as_ref()?).ok()
    }

    pub(super) fn hellos(&self) -> &[Arc<str>] {
        &self.hello
    }

    pub(super) fn confirms(&self) -> bool {
        self.confirmed_by.is_some()
    }

    pub(super) fn is_confirmation(&self, text: &str) -> bool {
        self.confirmed_by.as_ref().is_some_and(|confirms| guarded(|| confirms(text)).unwrap_or(false))
    }

    /// What a message says: a value, nothing, or without [`values`](Self::values) that something may have changed.
    pub(super) fn said(&self, text: &str) -> Said {
        match &self.values {
            Some(values) => match guarded(|| values(text)) {
                Some(said) => said.map_or(Said::Nothing, Said::Value),
                // There was something that is not understood.
                None => Said::Hint,
            },
            None => Said::Hint,
        }
    }
}

/// Whether it is the same code of the caller. What was written twice is not: nobody knows what it does.
fn is_shared<T: ?Sized>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// What a message says.
pub(super) enum Said {
    Hint,
    Value(Bytes),
    Nothing,
}

impl From<WebSocket> for Push {
    fn from(websocket: WebSocket) -> Self {
        Self { kinds: vec![Kind::WebSocket(websocket)] }
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is said first may prove who says it.
        let url = Endpoint::new(Arc::clone(&self.url));
        f.debug_struct("WebSocket").field("url", &url).field("subprotocol", &self.subprotocol).finish_non_exhaustive()
    }
}
