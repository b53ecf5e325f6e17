//! What a supervisor is told and what it asks for.

use std::sync::Arc;
use std::time::Duration;

use crate::connection::backoff::{Backoff, Schedule};
use crate::connection::dial::{Attempt, DialPhase};
use crate::connection::discover::{Address, Endpoint};
use crate::connection::link::LinkState;
use crate::error::Cause;
pub use crate::generation::Generation;
use crate::wire::Welcome;

/// What happened.
///
/// An event about an attempt, link or ask that is over is dropped without effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "drivers and tests build them; a new one is to be a compile error")]
pub enum Event {
    /// Answers [`Action::Discover`]: where the service may be, the preferred first. Empty is a failed round.
    Discovered {
        /// The endpoints.
        endpoints: Vec<Endpoint>,
    },
    /// Answers [`Action::Discover`]: nobody could say.
    DiscoverFailed {
        /// Why, without secrets.
        detail: Arc<str>,
    },
    /// Answers [`Action::Resolve`]: what to dial, in the order of RFC 6724 with families interleaved (RFC 8305, 4).
    Resolved {
        /// Of which endpoint.
        endpoint: Endpoint,
        /// Its targets: for TCP the texts of socket addresses.
        targets: Vec<Arc<str>>,
    },
    /// Answers [`Action::Resolve`]: no target.
    ResolveFailed {
        /// Of which endpoint.
        endpoint: Endpoint,
        /// Why, without secrets.
        detail: Arc<str>,
    },
    /// A dial has entered a later phase. [`DialPhase::Connect`] needs no report.
    Advanced {
        /// Which.
        attempt: Attempt,
        /// What it has entered.
        phase: DialPhase,
    },
    /// A dial has ended without a welcome. Its driver has let go of it.
    Failed {
        /// Which.
        attempt: Attempt,
        /// Why. A 403 with `Retry-After` belongs here, as a rate limit (FC-55).
        cause: Cause,
        /// How long the service asked to wait, from now.
        retry_after: Option<Duration>,
    },
    /// A dial has ended because the credential was refused: 401, or 403 without `Retry-After`. Its driver has let go of it.
    Refused {
        /// Which.
        attempt: Attempt,
    },
    /// A dial has been welcomed. If it is then [`Supervisor::link`](super::Supervisor::link) it has won; if not it is to be let go.
    Welcomed {
        /// Which.
        attempt: Attempt,
        /// The service's first frame.
        welcome: Arc<Welcome>,
    },
    /// One useful exchange on the link: a pong, or an answer.
    Exchanged {
        /// On which link.
        link: Attempt,
    },
    /// The service will close the link soon.
    Draining {
        /// Which link.
        link: Attempt,
    },
    /// The service has restated its spread.
    Spread {
        /// On which link.
        link: Attempt,
        /// The first dial after a drop is uniform in [0, spread].
        spread: Duration,
    },
    /// The link has ended, or its driver has ended it because `Liveness` said so (FC-32: never for the user).
    /// Its driver has let go of it.
    Lost {
        /// Which link.
        link: Attempt,
        /// Why.
        cause: Cause,
        /// The close code that the peer sent (RFC 6455, 7.4).
        code: Option<u16>,
        /// How long the service asked to wait, from now.
        retry_after: Option<Duration>,
    },
    /// Answers [`Action::AskCredential`]: which one the next dials send, or why there is none.
    Credential(Result<Generation, Cause>),
    /// Answers [`Action::AskDelay`]. `None`: the policy has no delay left, and the default schedule goes on (R8).
    Delay(Option<Duration>),
    /// The caller closes the connection.
    Close,
    /// The deadline has come.
    Tick,
}

/// What is to be done.
///
/// An ask replaces an unanswered one of its kind (for `Resolve`: of its endpoint), which may be dropped. Once a link is
/// up, and after a close, no ask is open any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a driver performs each; a new one is to be a compile error")]
pub enum Action {
    /// Ask where the service is. Answered by `Discovered` or `DiscoverFailed`.
    Discover,
    /// Resolve an endpoint. Answered by `Resolved` or `ResolveFailed`.
    Resolve(Endpoint),
    /// Dial, with the credential that was last reported. Ends by `Welcomed`, `Failed` or `Refused`, or is aborted.
    Dial {
        /// Its name.
        attempt: Attempt,
        /// Where.
        address: Address,
    },
    /// Let go of a dial that has not ended; nothing about it is reported any more.
    Abort {
        /// Which.
        attempt: Attempt,
    },
    /// Ask for the credential to dial with, which may be one that is held, as long as it lasts. Answered by `Credential`.
    AskCredential {
        /// Whether the source itself is to be asked: it has given none yet, or the service refused what it gave (R3).
        anew: bool,
    },
    /// Ask the caller's policy for a delay (`Schedule::Asked`). Answered by `Delay`.
    AskDelay {
        /// How long the outage is so far.
        outage: Duration,
        /// How often a delay was needed in this outage, this one included.
        failures: u32,
    },
    /// Close the link, for the user. Nothing about it is reported any more.
    Disconnect {
        /// Which link.
        link: Attempt,
        /// The close code to send.
        code: u16,
    },
    /// Show this to the user.
    Publish(LinkState),
}

/// What a supervisor keeps to. Every field has a default; the manual's chapter `defaults` has them all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// Bound on an answer to `Discover`; 5 s.
    pub discover: Duration,
    /// Bound on an answer to `Resolve`; 5 s.
    pub resolve: Duration,
    /// Bound on a transport's connect; 5 s.
    pub connect: Duration,
    /// Bound on a TLS handshake; 5 s.
    pub tls: Duration,
    /// Bound on an upgrade; 5 s.
    pub upgrade: Duration,
    /// Bound on the service's welcome after the upgrade; 5 s.
    pub welcome: Duration,
    /// Bound on an answer to `AskCredential`; 5 s.
    pub credential: Duration,
    /// How long a dial has a head start over the next (RFC 8305, 5); 250 ms.
    pub stagger: Duration,
    /// How long a link must be up, with one exchange, before it counts as healthy; 5 s.
    pub proven_after: Duration,
    /// Who says how long to wait between rounds; [`Schedule::Default`].
    pub schedule: Schedule,
    /// The default schedule.
    pub backoff: Backoff,
    /// How long to keep away after a close with 1013 that states no time; 5 s.
    pub try_again_later: Duration,
    /// The outage after which the connection closes as if the caller had closed it; never.
    pub give_up_after: Option<Duration>,
    /// Whether there is a source of credentials to ask; no.
    pub credential_source: bool,
    /// How often the source is asked for another credential while access is denied; 30 s.
    pub denied_recheck: Duration,
}

impl Default for Config {
    fn default() -> Self {
        const BOUND: Duration = Duration::from_secs(5);
        Self {
            discover: BOUND,
            resolve: BOUND,
            connect: BOUND,
            tls: BOUND,
            upgrade: BOUND,
            welcome: BOUND,
            credential: BOUND,
            stagger: Duration::from_millis(250),
            proven_after: Duration::from_secs(5),
            schedule: Schedule::Default,
            backoff: Backoff::default(),
            try_again_later: Duration::from_secs(5),
            give_up_after: None,
            credential_source: false,
            denied_recheck: Duration::from_secs(30),
        }
    }
}

impl Config {
    /// The bound on a phase of a dial.
    pub fn bound(&self, phase: DialPhase) -> Duration {
        match phase {
            DialPhase::Connect => self.connect,
            DialPhase::Tls => self.tls,
            DialPhase::Upgrade => self.upgrade,
            DialPhase::Welcome => self.welcome,
        }
    }
}
