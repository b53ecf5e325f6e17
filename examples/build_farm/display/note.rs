//! What happens in the story, beside what the poller sees of it.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// One event of the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Note {
    /// All processes run.
    Started {
        /// Where the server listens.
        server: SocketAddr,
        /// Where the relay listens.
        relay: SocketAddr,
    },
    /// The build is submitted.
    Submitting {
        /// Its id.
        build: String,
    },
    /// The relay cut the connection instead of passing on the answer to the submit.
    AnswerSwallowed,
    /// The server was killed.
    ServerKilled {
        /// How long it will be gone.
        #[serde(rename = "gone_ms", serialize_with = "millis")]
        gone: Duration,
    },
    /// The server listens again.
    ServerBack {
        /// Where.
        server: SocketAddr,
    },
    /// The user wants the build stopped.
    Canceling,
    /// Everything was ended without waiting for the build.
    Interrupted,
    /// The build failed.
    BuildFailed {
        /// Why.
        why: String,
    },
}

fn millis<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).serialize(serializer)
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { server, relay } => write!(f, "started: a server at {server}, a relay at {relay}, a worker"),
            Self::Submitting { build } => write!(f, "submitting build {build}"),
            Self::AnswerSwallowed => f.write_str("the relay swallowed the answer to the submit"),
            Self::ServerKilled { gone } => write!(f, "the server was killed (SIGKILL); it comes back in {gone:?}"),
            Self::ServerBack { server } => write!(f, "the server is back, now at {server}"),
            Self::Canceling => f.write_str("canceling the build; press Ctrl-C again to end everything at once"),
            Self::Interrupted => f.write_str("ended everything; there is no verdict"),
            Self::BuildFailed { why } => write!(f, "the build failed: {why}"),
        }
    }
}
