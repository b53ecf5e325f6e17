//! A credential made of the text that something gives.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ::http::HeaderName;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::command::Command;
use super::file::File;
use super::variable::Variable;
use super::{Credential, Credentials, Identity, check_user, header_name};
use crate::error::Error;

/// Credentials from the environment variable `name` of this process.
///
/// The environment of a process seldom changes while it runs: for a token that is renewed, [`file()`] and [`command()`] are
/// better. Programs that this one starts inherit the variable.
pub fn variable(name: impl Into<OsString>) -> Source {
    Source::new(Origin::Variable(Variable::new(name.into())))
}

/// Credentials from the file at `path`, which is read anew each time, so a token that is renewed there is found.
///
/// At most 64 KiB. Whoever renews it replaces the file (a rename over it), as Kubernetes does with its secrets: a file that is
/// written in place can be read half.
///
/// A path that hangs, as on a dead network mount, is a source that does not answer, and keeps one thread for blocking tasks
/// however often it is asked. The end of a tokio runtime waits for that thread, unless it is
/// [shut down with a bound](tokio::runtime::Runtime::shutdown_timeout).
pub fn file(path: impl Into<PathBuf>) -> Source {
    Source::new(Origin::File(File::new(path.into())))
}

/// Credentials from what `program` prints with `args`, run anew each time: `gh auth token`, `vault read -field=token ..`.
///
/// No shell is involved. Its input is empty, its errors are not shown: when it fails, only its name and its exit status are
/// told, so run it by hand to see more. It has not answered while a program that it started keeps its output open.
///
/// It is killed when it has no answer within its bound, is not needed any more, or prints more than 64 KiB. On Unix it runs
/// in a process group of its own, and what it started is killed with it, unless that has left the group. So it neither hears
/// of Ctrl-C at the terminal nor may it ask there. What it leaves behind when it ends by itself stays.
///
/// Put no secret among `args`: every user of the machine can read them.
pub fn command<A: Into<OsString>>(program: impl Into<OsString>, args: impl IntoIterator<Item = A>) -> Source {
    Source::new(Origin::Command(Command::new(program.into(), args.into_iter().map(Into::into).collect())))
}

/// A source that takes its text from a [variable](variable()), a [file](file()) or a [command](command()).
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
enum Origin {
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
    fn new(origin: Origin) -> Self {
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
        // No header has a space in its name, and a credential is known by its header.
        Some(Identity::of("source of", &format!("{name} {form:?} {lasts:?}")))
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

#[cfg(test)]
mod tests;
