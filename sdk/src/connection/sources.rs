//! What a connection asks: where the service is, and with which credential. Asked anew, so what moves is found (R8).

use std::fmt;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::error::Error;

/// Tells where the service is. Asked before every round of dials, with a bound of 5 s.
///
/// A list is given as `"wss://a.example"`, or as a `Vec` of such texts; anything else as a closure that
/// returns a future of a `Vec<String>`. An error or an empty list is a failed round, never an end.
pub trait Discover: Send + Sync + 'static {
    /// The endpoints, best first, as `ws://` or `wss://` URLs.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>>;
}

impl Discover for &'static str {
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        std::future::ready(Ok(vec![(*self).to_owned()])).boxed()
    }
}

impl Discover for String {
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        std::future::ready(Ok(vec![self.clone()])).boxed()
    }
}

impl Discover for Vec<String> {
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        std::future::ready(Ok(self.clone())).boxed()
    }
}

impl<F, Fut> Discover for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<String>, Error>> + Send + 'static,
{
    fn endpoints(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        self().boxed()
    }
}

/// A bearer token. It is never printed.
#[derive(Clone)]
pub struct Credential(secrecy::SecretString);

impl Credential {
    /// The token that follows `Bearer` in the `Authorization` header (RFC 6750).
    ///
    /// # Errors
    /// When it is empty or holds a character that a header cannot.
    pub fn bearer(token: impl Into<String>) -> Result<Self, Error> {
        let token = token.into();
        if token.is_empty() || !token.bytes().all(|b| (0x21..0x7f).contains(&b)) {
            return Err(Error::invalid("credential", "a token of visible ASCII characters without spaces"));
        }
        Ok(Self(token.into()))
    }

    pub(crate) fn secret(&self) -> &secrecy::SecretString {
        &self.0
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        use secrecy::ExposeSecret;
        self.0.expose_secret() == other.0.expose_secret()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// A source of credentials: asked at the start and again after each refusal, with a bound of 5 s (R3).
///
/// An error means that the source cannot be reached now: reads are stale meanwhile, nothing ends.
pub trait Credentials: Send + Sync + 'static {
    /// The credential to use from now on.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>>;
}

impl Credentials for Credential {
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>> {
        std::future::ready(Ok(self.clone())).boxed()
    }
}

impl<F, Fut> Credentials for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Credential, Error>> + Send + 'static,
{
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>> {
        self().boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_never_printed() {
        let credential = Credential::bearer("s3cret").unwrap();
        assert!(!format!("{credential:?}").contains("s3cret"));
        let e = Credential::bearer("s3cret with space").unwrap_err();
        assert!(!format!("{e} {e:?}").contains("s3cret"));
    }
}
