//! Why there is no verdict: something of the farm is missing or broke. Never that a build failed.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use crate::build_farm::program::ProgramError;

/// What is missing or broke.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The operating system refused something.
    Io(io::Error),
    /// The SDK refused something.
    Sdk(outlast::Error),
    /// The build could not be prepared.
    Program(ProgramError),
    /// A process of the farm did not do its part.
    Process {
        /// Which, and what it did.
        what: String,
        /// What it said on stderr.
        said: String,
    },
    /// The command that submitted the build ended without a verdict.
    Unsettled(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => chain(f, e),
            Self::Sdk(e) => chain(f, e),
            Self::Program(e) => e.fmt(f),
            Self::Process { what, said } if said.is_empty() => f.write_str(what),
            Self::Process { what, said } => write!(f, "{what}; it said:\n{said}"),
            Self::Unsettled(why) => write!(f, "no verdict: {why}"),
        }
    }
}

/// An error and what is underneath it.
fn chain(f: &mut fmt::Formatter<'_>, error: &dyn StdError) -> fmt::Result {
    write!(f, "{error}")?;
    let mut source = error.source();
    while let Some(error) = source {
        write!(f, ": {error}")?;
        source = error.source();
    }
    Ok(())
}

impl StdError for Failure {}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl From<outlast::Error> for Failure {
    fn from(e: outlast::Error) -> Self {
        Self::Sdk(e)
    }
}

impl From<ProgramError> for Failure {
    fn from(e: ProgramError) -> Self {
        Self::Program(e)
    }
}
