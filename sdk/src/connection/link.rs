//! What a user is shown about the connection.

use std::fmt;
use std::sync::Arc;

use super::discover::Address;
use crate::error::Cause;
use crate::machine::Wall;
use crate::wire::Welcome;

/// Where the connection stands. It recovers by itself from everything but [`LinkState::Closed`] (R8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkState {
    /// Never up so far.
    #[non_exhaustive]
    Connecting {
        /// Since when, by the wall clock.
        since: Wall,
        /// Why not yet, if anything has failed: a wrong host name is not invisible.
        cause: Option<Cause>,
    },
    /// The service has welcomed the client.
    #[non_exhaustive]
    Up {
        /// Where.
        address: Address,
        /// What the service said of itself.
        welcome: Arc<Welcome>,
    },
    /// Up still, but the service has said that it will close soon: nothing new is sent there.
    #[non_exhaustive]
    Draining {
        /// Where.
        address: Address,
        /// What the service said of itself.
        welcome: Arc<Welcome>,
    },
    /// It was up and is not now.
    #[non_exhaustive]
    Down {
        /// Since when, by the wall clock.
        since: Wall,
        /// Why: first why it ended, then why it is not back.
        cause: Cause,
    },
    /// The service refused one credential twice, a backoff step apart (R3). It resumes with another credential.
    #[non_exhaustive]
    Denied {
        /// Since when, by the wall clock.
        since: Wall,
    },
    /// The caller closed it, or the caller's give-up limit did. Nothing follows.
    Closed,
}

impl LinkState {
    /// Whether frames can be sent.
    pub fn is_up(&self) -> bool {
        match self {
            Self::Up { .. } | Self::Draining { .. } => true,
            Self::Connecting { .. } | Self::Down { .. } | Self::Denied { .. } | Self::Closed => false,
        }
    }

    /// The service's welcome, while up.
    pub fn welcome(&self) -> Option<&Arc<Welcome>> {
        match self {
            Self::Up { welcome, .. } | Self::Draining { welcome, .. } => Some(welcome),
            Self::Connecting { .. } | Self::Down { .. } | Self::Denied { .. } | Self::Closed => None,
        }
    }

    /// Why it is not up, where something is known.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Connecting { cause, .. } => cause.as_ref(),
            Self::Down { cause, .. } => Some(cause),
            Self::Denied { .. } => Some(&Cause::Unauthorized),
            Self::Up { .. } | Self::Draining { .. } | Self::Closed => None,
        }
    }
}

impl fmt::Display for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting { cause: None, .. } => f.write_str("connecting"),
            Self::Connecting { cause: Some(cause), .. } => write!(f, "connecting ({cause})"),
            Self::Up { address, .. } => write!(f, "up, {address}"),
            Self::Draining { address, .. } => write!(f, "up and draining, {address}"),
            Self::Down { cause, .. } => write!(f, "down ({cause})"),
            Self::Denied { .. } => f.write_str("denied"),
            Self::Closed => f.write_str("closed"),
        }
    }
}
