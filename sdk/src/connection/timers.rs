//! The named timers of a connection: at every instant one of them is armed (R7).

use super::dial::{Attempt, DialPhase};
use super::discover::Endpoint;

/// What expires at a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SupervisorTimer {
    /// The wall and the monotonic clock are compared again.
    Wake,
    /// The bound on an answer from discovery.
    Discover,
    /// The bound on an answer from the source of credentials.
    Credential,
    /// The bound on an answer from the resolver.
    Resolve(Endpoint),
    /// The bound on a phase of a dial.
    Dial(Attempt, DialPhase),
    /// The head start of the newest dial is over.
    Stagger,
    /// The next round of discovery and dials begins.
    NextRound,
    /// The link has been up long enough to count as healthy.
    Proven,
    /// The caller's give-up limit.
    GiveUp,
    /// The source of credentials is asked whether it has another.
    DeniedRecheck,
}

/// What expires on a live link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LivenessTimer {
    /// The wall and the monotonic clock are compared again.
    Wake,
    /// The next ping is due.
    Ping,
    /// The bound on the answer to a ping.
    Pong,
    /// The bound on a write without progress.
    Write,
    /// The bound on the peer's silence.
    Silence,
}
