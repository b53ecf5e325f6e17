//! Credentials from a variable.

use std::sync::Arc;

use super::Credential;
use crate::error::Error;

/// Makes a credential of the text that a source gave, without the white space around it.
pub(crate) type Make = Arc<dyn Fn(&str) -> Result<Credential, Error> + Send + Sync>;
