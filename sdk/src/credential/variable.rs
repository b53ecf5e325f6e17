//! Credentials from a variable of the environment.

use std::ffi::OsString;
use std::fmt;

use secrecy::zeroize::Zeroizing;

use super::source::{Origin, Source, Text};
use crate::error::Error;

/// Credentials from the environment variable `name` of this process.
///
/// The environment of a process seldom changes while it runs: for a token that is renewed, [`file`](super::file()) and
/// [`command`](super::command()) are better. Programs that this one starts inherit the variable.
pub fn variable(name: impl Into<OsString>) -> Source {
    Source::new(Origin::Variable(Variable { name: name.into() }))
}

#[derive(Clone, Debug)]
pub(super) struct Variable {
    name: OsString,
}

impl Variable {
    /// What tells it from others.
    pub(super) fn name(&self) -> String {
        format!("variable {:?}", self.name)
    }

    pub(super) fn bytes(&self) -> Result<Text, Error> {
        match std::env::var_os(&self.name) {
            Some(value) => Ok(Zeroizing::new(value.into_encoded_bytes())),
            None => Err(Error::unavailable(format!("{self}: not set"))),
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "variable {}", self.name.display())
    }
}
