//! Credentials: what a request carries, and where it comes from. Never printed.
//!
//! A source is asked when a credential is needed, before it expires, and after each refusal: so a token that is renewed
//! behind the program is found without a restart. In a program that watches a service:
//!
//! ```
//! use std::time::Duration;
//! use outlast::credential;
//!
//! # fn sources() -> Result<(), outlast::Error> {
//! let github = credential::variable("GITHUB_TOKEN");
//! let github = credential::command("gh", ["auth", "token"]);
//! let gitlab = credential::file("/run/secrets/gitlab").as_header("PRIVATE-TOKEN")?;
//! let jenkins = credential::variable("JENKINS_TOKEN").as_basic("ci")?;
//! let cloud = credential::command("gcloud", ["auth", "print-access-token"]).lasting(Duration::from_secs(3_000));
//! # Ok(())
//! # }
//! # sources().unwrap();
//! ```
//!
//! No secret belongs among the arguments of a program, neither of one that is run here nor of one's own: every user of the
//! machine can read them.

mod command;
mod file;
mod fingerprint;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "a client counts refusals itself"))]
mod keeper;
#[cfg(feature = "http")]
mod refusals;
mod source;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "a client counts refusals itself"))]
mod standing;
mod text;
mod variable;

pub use crate::generation::Generation;
pub(crate) use fingerprint::Fingerprint;
pub use fingerprint::Identity;
#[cfg(feature = "http")]
pub(crate) use keeper::WeakKeeper;
pub(crate) use keeper::{Held, Keeper, Unheld};
#[cfg(feature = "http")]
pub(crate) use refusals::{Refusals, Verdict};
pub use source::{Source, command, file, variable};
#[cfg(feature = "http")]
pub(crate) use standing::Scope;
#[cfg(feature = "http")]
pub(crate) use text::{MOST, room};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::AUTHORIZATION;
use ::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};

use crate::error::Error;
use crate::machine::Wall;

/// A header that proves who asks. It is never printed, and wiped when it is dropped.
#[derive(Clone)]
pub struct Credential {
    name: HeaderName,
    value: SecretString,
    /// Of the two above. Made with them, since credentials are compared far more often than they change.
    print: Fingerprint,
    expiry: Option<Expiry>,
}

/// When a service stops taking it.
#[derive(Clone, Copy)]
enum Expiry {
    At(Wall),
    /// That long after the source gave it.
    After(Duration),
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
        Ok(Self::new(AUTHORIZATION, format!("Bearer {}", token.expose_secret()).into()))
    }

    /// A user and a password, or a token in its place, in the `Authorization` header (RFC 7617), as UTF-8.
    ///
    /// Either may be empty, since some services take a token alone in one of the two places.
    ///
    /// # Errors
    /// When both are empty, the user holds a colon, or one of them holds a control character (RFC 7617, 2).
    pub fn basic(user: &str, password: impl Into<String>) -> Result<Self, Error> {
        let password = SecretString::from(password.into());
        check_user(user)?;
        if password.expose_secret().chars().any(char::is_control) {
            return Err(Error::invalid("credential.password", "no control characters"));
        }
        if user.is_empty() && password.expose_secret().is_empty() {
            return Err(Error::invalid("credential", "a user, a password, or both"));
        }
        let pair = Zeroizing::new(format!("{user}:{}", password.expose_secret()));
        let pair = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
        Ok(Self::new(AUTHORIZATION, format!("Basic {}", *pair).into()))
    }

    /// A header of the service's own, such as GitLab's `PRIVATE-TOKEN`.
    ///
    /// # Errors
    /// When the name is no header name, or the value is empty or holds what a header cannot.
    pub fn header(name: &str, value: impl Into<String>) -> Result<Self, Error> {
        let value = SecretString::from(value.into());
        let name = header_name(name)?;
        let fits = value.expose_secret().bytes().all(|b| (0x20..0x7f).contains(&b));
        if value.expose_secret().trim().is_empty() || !fits {
            return Err(Error::invalid("credential", "a value of visible ASCII characters"));
        }
        Ok(Self::new(name, value))
    }

    fn new(name: HeaderName, value: SecretString) -> Self {
        let print = Fingerprint::of(name.as_str(), value.expose_secret());
        Self { name, value, print, expiry: None }
    }

    /// States when the service stops taking it: the source is asked for another one before that.
    #[must_use]
    pub fn expires_at(self, at: Wall) -> Self {
        Self { expiry: Some(Expiry::At(at)), ..self }
    }

    /// States how long the service takes it, counted from when the source gave it.
    #[must_use]
    pub fn lasting(self, time: Duration) -> Self {
        Self { expiry: Some(Expiry::After(time)), ..self }
    }

    /// When the service stops taking it, where that is known, if the source gave it at `got`.
    pub fn expires(&self, got: Wall) -> Option<Wall> {
        self.expiry.map(|expiry| match expiry {
            Expiry::At(at) => at,
            Expiry::After(time) => got + time,
        })
    }

    /// Puts it among the headers of a request, marked as sensitive.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        // Every way to make one has checked the characters.
        if let Ok(mut value) = HeaderValue::from_str(self.value.expose_secret()) {
            value.set_sensitive(true);
            headers.insert(self.name.clone(), value);
        }
    }

    /// Names it without telling it: the same for two between which the service sees no difference. It costs nothing.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.print
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| (0x21..0x7f).contains(&b))
}

fn header_name(name: &str) -> Result<HeaderName, Error> {
    HeaderName::try_from(name).map_err(|_| Error::invalid("credential.name", "the name of a header"))
}

fn check_user(user: &str) -> Result<(), Error> {
    if user.contains(':') || user.chars().any(char::is_control) {
        return Err(Error::invalid("credential.user", "no colon and no control characters"));
    }
    Ok(())
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// A source of credentials: asked at the start, before one expires, and after each refusal (R3), with a bound that is 5 s by
/// default (R7).
///
/// A [`Credential`] is its own source; [`variable()`], [`file()`] and [`command()`] are others, and so is a closure that
/// returns a future of a credential. An error means that the source cannot be reached now: reads are stale meanwhile,
/// nothing ends. The text of the error is shown as the cause, so it is to hold no secret.
///
/// Reads whose sources have one [identity](Self::identity) ask once for all of them. A closure, or a source of one's own
/// without an identity, is shared by giving each read a clone of the same `Arc` of it:
///
/// ```no_run
/// use std::sync::Arc;
/// use outlast::Credential;
/// # async fn mint() -> Result<String, outlast::Error> { Ok("t0ken".into()) }
///
/// # fn watch() -> Result<(), outlast::Error> {
/// let minted = Arc::new(|| async { Credential::bearer(mint().await?) });
/// for run in ["https://ci.example/runs/7", "https://ci.example/runs/8"] {
///     let run = outlast::http::get(run).credential(Arc::clone(&minted)).observe::<serde_json::Value>()?;
/// }
/// # Ok(()) }
/// ```
///
/// A [`Client`](crate::Client) sends its credential only when it connects, so it asks for one that lasts before it dials
/// again. A connection that is up when its credential expires stays up until the service closes it.
pub trait Credentials: Send + Sync + 'static {
    /// The credential to use from now on.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>>;

    /// What the source is known by. Polled reads of one agent and origin whose sources have the same identity share what
    /// it gives: it is asked once for all of them. Default: none. An `Arc` of such a source is known by where it points to.
    fn identity(&self) -> Option<Identity> {
        None
    }
}

impl<S: Credentials + ?Sized> Credentials for Arc<S> {
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>> {
        (**self).credential()
    }

    fn identity(&self) -> Option<Identity> {
        let address = std::ptr::from_ref(&**self).cast::<()>();
        Some((**self).identity().unwrap_or_else(|| Identity::of("source at", &format!("{address:p}"))))
    }
}

impl Credentials for Credential {
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>> {
        std::future::ready(Ok(self.clone())).boxed()
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity(self.print))
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
mod tests;
