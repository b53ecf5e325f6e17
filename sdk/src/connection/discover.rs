//! Where a service may be: endpoints, and the addresses that they resolve to.

use std::fmt;
use std::sync::Arc;

/// Where a service may be: the text of a URL, as discovery gave it.
///
/// `Display` and `Debug` leave out what may be a secret (user, password, query, fragment), so that an endpoint can
/// stand in a cause or a log line. [`Endpoint::as_str`] is the whole text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint(Arc<str>);

impl Endpoint {
    /// An endpoint of that text. It is read when it is resolved; what cannot be read is a failed round, never an error.
    pub fn new(url: impl Into<Arc<str>>) -> Self {
        Self(url.into())
    }

    /// The whole text, secrets included.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Endpoint {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl fmt::Display for Endpoint {
    /// Scheme, host, port and path only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if !scheme.is_empty() {
            write!(f, "{scheme}://")?;
        }
        write!(f, "{host}{path}")
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

/// One place to dial: an endpoint and one of the targets that it resolved to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "an address is these two and nothing else")]
pub struct Address {
    /// The endpoint, which says the name for TLS and the upgrade's host and path.
    pub endpoint: Endpoint,
    /// What the network dials: for TCP the text of a socket address.
    pub target: Arc<str>,
}

impl Address {
    /// `target` as an address of `endpoint`.
    pub fn new(endpoint: Endpoint, target: impl Into<Arc<str>>) -> Self {
        Self { endpoint, target: target.into() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.endpoint, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_shows_no_secret() {
        let shown = |text: &str| Endpoint::new(text).to_string();
        assert_eq!(shown("wss://user:pw@builds.example:8443/v1?token=abc#x"), "wss://builds.example:8443/v1");
        assert_eq!(shown("ws://a@b@host"), "ws://host");
        assert_eq!(shown("ws://host?user@x/y"), "ws://host");
        assert_eq!(shown("host:1"), "host:1");
        assert_eq!(format!("{:?}", Endpoint::new("ws://u:p@h/?t")), "Endpoint(ws://h/)");
        assert_eq!(Endpoint::new("ws://h?t=1").as_str(), "ws://h?t=1");
    }
}
