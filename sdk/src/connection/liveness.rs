//! Is the peer still there? One machine for each live link (R7).

use std::time::Duration;

use crate::error::Cause;
use crate::machine::{Actions, Machine, Monotonic, Now};

/// What happened on the link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "drivers and tests build them; a new one is to be a compile error")]
pub enum Event {
    /// Bytes or a frame arrived. A pong needs no `Received` beside it.
    Received,
    /// The answer to a ping arrived.
    Pong {
        /// The ping's number.
        n: u64,
    },
    /// Frames are being handed to the transport, and it has not taken them all.
    WriteStarted,
    /// The transport took some of them.
    WriteProgressed,
    /// The transport has taken them all.
    WriteFinished,
    /// The caller wants to know now whether the link lives.
    Probe,
    /// The deadline has come.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a driver performs each; a new one is to be a compile error")]
pub enum Action {
    /// Send a ping.
    Ping {
        /// Its number, one more than the last.
        n: u64,
    },
    /// The link is dead: let go of it and tell the supervisor `Lost` with this cause. The last action of the machine.
    Dead(Cause),
}

/// What a link is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// Bound on the answer to a ping; 5 s.
    pub answer: Duration,
    /// Bound on a write without progress; 10 s.
    pub write_stall: Duration,
    /// The least heartbeat that is kept to, whatever the service says; 10 ms.
    pub least_heartbeat: Duration,
    /// The greatest heartbeat that is kept to, whatever the service says; 60 s.
    pub most_heartbeat: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(5),
            write_stall: Duration::from_secs(10),
            least_heartbeat: Duration::from_millis(10),
            most_heartbeat: Duration::from_secs(60),
        }
    }
}

/// Pings, bounds silence and stalled writes, and says when a link is dead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Liveness {
    config: Config,
    heartbeat: Duration,
}

impl Liveness {
    /// For the client's end of a link that came up at `now`. The first ping is due at once: it is the first exchange.
    pub fn client(_now: &Now, heartbeat: Duration, config: Config) -> Self {
        Self { config, heartbeat }
    }

    /// For the server's end: it sends no pings, and drops a peer silent for two heartbeats.
    pub fn server(_now: &Now, heartbeat: Duration, config: Config) -> Self {
        Self { config, heartbeat }
    }
}

impl Machine for Liveness {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, _now: Now, _event: Event) -> Actions<Action> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Monotonic> {
        None
    }
}
