//! Credentials: what a request carries, and where it comes from. Never printed.

mod command;
mod file;
mod keeper;
mod variable;

use std::fmt;

use ::http::header::AUTHORIZATION;
use ::http::{HeaderMap, HeaderName, HeaderValue};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretString};

use crate::error::Error;
use crate::machine::Wall;

/// A header that proves who asks. It is never printed, and wiped when it is dropped.
#[derive(Clone)]
pub struct Credential {
    name: HeaderName,
    value: SecretString,
    expires: Option<Wall>,
}

impl Credential {
    /// A token that follows `Bearer` in the `Authorization` header (RFC 6750).
    ///
    /// # Errors
    /// When it is empty or holds a character that a header cannot.
    pub fn bearer(token: impl Into<String>) -> Result<Self, Error> {
        let token = SecretString::from(token.into());
        if !is_token(token.expose_secret()) {
            return Err(Error::invalid("credential", "a token of visible ASCII characters without spaces"));
        }
        Ok(Self { name: AUTHORIZATION, value: format!("Bearer {}", token.expose_secret()).into(), expires: None })
    }

    /// A header of the service's own, such as GitLab's `PRIVATE-TOKEN`.
    ///
    /// # Errors
    /// When the name is no header name, or the value is empty or holds what a header cannot.
    pub fn header(name: &str, value: impl Into<String>) -> Result<Self, Error> {
        let value = SecretString::from(value.into());
        let name = HeaderName::try_from(name).map_err(|_| Error::invalid("credential.name", "the name of a header"))?;
        let fits = value.expose_secret().bytes().all(|b| (0x20..0x7f).contains(&b));
        if value.expose_secret().trim().is_empty() || !fits {
            return Err(Error::invalid("credential", "a value of visible ASCII characters"));
        }
        Ok(Self { name, value, expires: None })
    }

    /// States when the service stops taking it: the source is asked for another one before that.
    #[must_use]
    pub fn expires_at(self, at: Wall) -> Self {
        Self { expires: Some(at), ..self }
    }

    /// When the service stops taking it, where that is known.
    pub fn expires(&self) -> Option<Wall> {
        self.expires
    }

    /// Puts it among the headers of a request, marked as sensitive.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        // Both ways to make one have checked the characters.
        if let Ok(mut value) = HeaderValue::from_str(self.value.expose_secret()) {
            value.set_sensitive(true);
            headers.insert(self.name.clone(), value);
        }
    }

    /// Whether the service would see no difference.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.name == other.name && self.value.expose_secret() == other.value.expose_secret()
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| (0x21..0x7f).contains(&b))
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// A source of credentials: asked at the start, before one expires, and after each refusal, with a bound of 5 s (R3).
///
/// A [`Credential`] is its own source; [`variable`], [`file`] and [`command`] are others, and so is a closure that
/// returns a future of a credential. An error means that the source cannot be reached now: reads are stale meanwhile,
/// nothing ends.
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
