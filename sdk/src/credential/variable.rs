//! The text of a variable of the environment.

use std::ffi::OsString;
use std::fmt;

use secrecy::zeroize::Zeroizing;

use super::text::Text;
use crate::error::Error;

#[derive(Clone, Debug)]
pub(super) struct Variable {
    name: OsString,
}

impl Variable {
    pub(super) fn new(name: OsString) -> Self {
        Self { name }
    }

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
