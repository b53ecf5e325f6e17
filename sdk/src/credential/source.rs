//! A credential made of the text that something gives.

use std::fmt;
use std::time::Duration;

use ::http::HeaderName;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use secrecy::zeroize::Zeroizing;

use super::command::Command;
use super::file::File;
use super::variable::Variable;
use super::{Credential, Credentials, Identity, check_user, header_name};
use crate::error::Error;

/// The most that a source may give: 64 KiB.
pub(super) const MOST: usize = 64 << 10;

/// A source that takes its text from a [variable](super::variable()), a [file](super::file()) or a [command](super::command()).
///
/// The text without the white space around it becomes a bearer token, unless the source is told otherwise. It is read anew
/// each time that the source is asked. Text that is empty or cannot be made into a credential counts as a source that
/// cannot be reached now; what it was is not told.
#[derive(Clone, Debug)]
#[must_use = "a source is asked by what it is handed to"]
pub struct Source {
    origin: Origin,
    form: Form,
    lasts: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) enum Origin {
    Variable(Variable),
    File(File),
    Command(Command),
}

/// What is made of the text.
#[derive(Clone, Debug)]
enum Form {
    Bearer,
    Header(HeaderName),
    Basic { user: String },
}

impl Source {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, form: Form::Bearer, lasts: None }
    }

    /// Makes a token of the text that follows `Bearer` in the `Authorization` header (RFC 6750). This is the default.
    pub fn as_bearer(self) -> Self {
        Self { form: Form::Bearer, ..self }
    }

    /// Makes a header `name` of the text, such as GitLab's `PRIVATE-TOKEN`.
    ///
    /// # Errors
    /// When `name` is no header name.
    pub fn as_header(self, name: &str) -> Result<Self, Error> {
        Ok(Self { form: Form::Header(header_name(name)?), ..self })
    }

    /// Makes a password of the text, or a token in its place, for `user` (RFC 7617), as Jenkins takes API tokens.
    ///
    /// # Errors
    /// When `user` holds a colon or a control character.
    pub fn as_basic(self, user: impl Into<String>) -> Result<Self, Error> {
        let user = user.into();
        check_user(&user)?;
        Ok(Self { form: Form::Basic { user }, ..self })
    }

    /// States how long a credential of this source is good for, counted from when it was got: the source is asked again
    /// before that. Default: until it is refused.
    pub fn lasting(self, time: Duration) -> Self {
        Self { lasts: Some(time), ..self }
    }

    async fn ask(self) -> Result<Credential, Error> {
        let text = match &self.origin {
            Origin::Variable(variable) => variable.bytes(),
            Origin::File(file) => file.bytes().await,
            Origin::Command(command) => command.bytes().await,
        }?;
        let credential = self.form.make(&text).map_err(|e| Error::unavailable(format!("{}: {e}", self.origin)))?;
        Ok(match self.lasts {
            Some(time) => credential.lasting(time),
            None => credential,
        })
    }
}

impl Form {
    fn make(&self, text: &[u8]) -> Result<Credential, Error> {
        // Neither error says what the text was.
        let text = std::str::from_utf8(text).map_err(|_| Error::invalid("text", "UTF-8"))?.trim();
        if text.is_empty() {
            return Err(Error::invalid("text", "a credential, found nothing"));
        }
        match self {
            Self::Bearer => Credential::bearer(text),
            Self::Header(name) => Credential::header(name.as_str(), text),
            Self::Basic { user } => Credential::basic(user, text),
        }
    }
}

impl Credentials for Source {
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>> {
        self.clone().ask().boxed()
    }

    fn identity(&self) -> Option<Identity> {
        let Self { origin, form, lasts } = self;
        let name = match origin {
            Origin::Variable(variable) => variable.name(),
            Origin::File(file) => file.name(),
            Origin::Command(command) => command.name(),
        };
        Some(Identity::of("source", &format!("{name} {form:?} {lasts:?}")))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(variable) => variable.fmt(f),
            Self::File(file) => file.fmt(f),
            Self::Command(command) => command.fmt(f),
        }
    }
}

/// What a source gave, wiped when it is dropped.
pub(super) type Text = Zeroizing<Vec<u8>>;

/// Room for the most that is read and one byte more: what is never moved to a larger place leaves no copy behind.
pub(super) fn room() -> Text {
    Zeroizing::new(Vec::with_capacity(MOST + 1))
}

#[cfg(test)]
mod tests;
