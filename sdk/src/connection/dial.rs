//! One dial: its name and its phases.

use crate::error::Phase;

/// Names one dial and, once it is welcomed, the link that came of it. Never reused by one supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub(super) u64);

/// The phases of one dial, in order. Each has a bound of its own (R7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "four in all; a driver reports each")]
pub enum DialPhase {
    /// The transport's connect. A dial begins here.
    Connect,
    /// The TLS handshake.
    Tls,
    /// The WebSocket upgrade.
    Upgrade,
    /// From the upgrade to the service's welcome.
    Welcome,
}

impl From<DialPhase> for Phase {
    fn from(phase: DialPhase) -> Self {
        match phase {
            DialPhase::Connect => Self::Connect,
            DialPhase::Tls => Self::Tls,
            DialPhase::Upgrade => Self::Upgrade,
            DialPhase::Welcome => Self::Welcome,
        }
    }
}
