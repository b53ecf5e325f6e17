//! Why a read is stale, or not loaded yet.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a read is [`Stale`](crate::Reading::Stale) or still [`Loading`](crate::Reading::Loading).
///
/// A cause is never an end (R1). It holds no secret: credentials and query strings are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// No answer yet; nothing has failed.
    Connecting,
    /// The list of endpoints could not be had, was empty, or a name did not resolve.
    Unresolved {
        /// What failed.
        detail: Arc<str>,
    },
    /// No connection could be made: refused, reset, unreachable, TLS failed.
    Unreachable {
        /// What failed, with the address.
        detail: Arc<str>,
    },
    /// A connection was made and then ended.
    Dropped {
        /// The WebSocket close code, where the peer sent one (RFC 6455, 7.4).
        code: Option<u16>,
    },
    /// Something took longer than its stated bound (R7).
    Stalled {
        /// In which phase.
        phase: Phase,
        /// The bound that passed.
        bound: Duration,
    },
    /// The peer answered with an HTTP status that is no authority about the resource (5xx, a login page, ..).
    Status {
        /// The status code.
        code: u16,
    },
    /// The service asked to wait.
    RateLimited {
        /// How long it asked to wait, from when it said so.
        retry_after: Duration,
    },
    /// The service refused the credential; it is asked for again (R3).
    Unauthorized,
    /// The source of credentials could not be reached.
    CredentialUnavailable {
        /// What failed.
        detail: Arc<str>,
    },
    /// The service says that it cannot answer now.
    Unavailable {
        /// In the service's words.
        detail: Arc<str>,
    },
    /// The service refuses the request as malformed or unknown.
    Refused {
        /// In the service's words; names the field.
        detail: Arc<str>,
    },
    /// A value arrived that could not be decoded.
    Undecodable {
        /// What was expected.
        detail: Arc<str>,
    },
    /// The service redirects to where a read does not follow: from TLS to plain text, in a circle, to another scheme.
    Misdirected {
        /// Where to, without what may be secret in it.
        detail: Arc<str>,
    },
    /// The service does not know the resource yet (R3: inside the grace window).
    NotYetVisible,
    /// What the service shows is older than what was shown, or than what was asked for (R4).
    Behind,
    /// The service speaks from another log than before.
    OtherLog,
}

/// The phases of a connection; each has a stated bound (R7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Asking where the service is.
    Discover,
    /// Resolving a name into addresses.
    Resolve,
    /// The transport's connect.
    Connect,
    /// The TLS handshake.
    Tls,
    /// The WebSocket upgrade.
    Upgrade,
    /// From the upgrade to the service's welcome.
    Welcome,
    /// From a request to the first byte of its answer.
    FirstByte,
    /// Between two bytes of an open connection.
    Idle,
    /// Handing bytes to the transport.
    Write,
    /// Asking the source of credentials.
    Credential,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discover => "discover",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "TLS handshake",
            Self::Upgrade => "upgrade",
            Self::Welcome => "welcome",
            Self::FirstByte => "first byte",
            Self::Idle => "idle",
            Self::Write => "write",
            Self::Credential => "credential",
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("connecting"),
            Self::Unresolved { detail } => write!(f, "unresolved: {detail}"),
            Self::Unreachable { detail } => write!(f, "unreachable: {detail}"),
            Self::Dropped { code: None } => f.write_str("connection dropped"),
            Self::Dropped { code: Some(code) } => write!(f, "connection closed with code {code}"),
            Self::Stalled { phase, bound } => write!(f, "stalled: {phase} took longer than {bound:?}"),
            Self::Status { code } => write!(f, "HTTP status {code}"),
            Self::RateLimited { retry_after } => write!(f, "rate limited for {retry_after:?}"),
            Self::Unauthorized => f.write_str("credential refused"),
            Self::CredentialUnavailable { detail } => write!(f, "credential unavailable: {detail}"),
            Self::Unavailable { detail } => write!(f, "service unavailable: {detail}"),
            Self::Refused { detail } => write!(f, "refused: {detail}"),
            Self::Undecodable { detail } => write!(f, "undecodable: {detail}"),
            Self::Misdirected { detail } => write!(f, "misdirected: {detail}"),
            Self::NotYetVisible => f.write_str("not visible yet"),
            Self::Behind => f.write_str("behind"),
            Self::OtherLog => f.write_str("another log"),
        }
    }
}
