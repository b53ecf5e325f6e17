//! Is the peer still there? One machine for each live link (R7).

use std::time::Duration;

use super::timers::LivenessTimer;
use super::wake::{self, Wake};
use crate::error::{Cause, Phase};
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

impl Config {
    /// The heartbeat that is kept to where the service states `heartbeat`.
    fn heartbeat(&self, heartbeat: Duration) -> Duration {
        heartbeat.min(self.most_heartbeat).max(self.least_heartbeat)
    }
}

/// Pings, bounds silence and stalled writes, and says when a link is dead.
///
/// The client's end sends a ping each heartbeat, whatever else is sent, and waits for its answer. A half-open link is
/// found within heartbeat + answer of its last byte (FC-26). A missed answer while other bytes still arrive (a large
/// frame on a thin line) is probed once more, then the link is dead (FC-29). The server's end sends nothing and drops a
/// peer that is silent for two heartbeats.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Liveness {
    config: Config,
    heartbeat: Duration,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Client(Pinging, Writing),
    Server(Listening, Writing),
    Dead,
}

/// The bound on the write that is under way, if one is.
type Writing = Option<Monotonic>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pinging {
    wake: Wake,
    received: Monotonic,
    next: Monotonic,
    sent: u64,
    awaited: Option<Awaited>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Awaited {
    /// The oldest ping without an answer. The answer to any later one is as good.
    n: u64,
    asked: Monotonic,
    /// `None` while the ping waits behind a write: then the write has the armed bound.
    bound: Option<Monotonic>,
    /// Whether this is the second chance.
    again: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Listening {
    bound: Monotonic,
    /// Whether this is the second chance.
    again: bool,
}

/// A tick that comes this much after its deadline means that this process did not run: bytes may be waiting unread, so
/// the silence may be ours.
const LATE: Duration = wake::CHECK_EVERY;

impl Liveness {
    /// For the client's end of a link that came up at `now`. The first ping is due at once: it is the first exchange.
    pub fn client(now: &Now, heartbeat: Duration, config: Config) -> Self {
        let pinging =
            Pinging { wake: Wake::new(now), received: now.instant, next: now.instant, sent: 0, awaited: None };
        Self { heartbeat: config.heartbeat(heartbeat), config, state: State::Client(pinging, None) }
    }

    /// For the server's end of a link that came up at `now`.
    pub fn server(now: &Now, heartbeat: Duration, config: Config) -> Self {
        let heartbeat = config.heartbeat(heartbeat);
        let listening = Listening { bound: now.instant + heartbeat * 2, again: false };
        Self { heartbeat, config, state: State::Server(listening, None) }
    }

    /// The named timers that are armed, for traces and tests. None once the link is dead.
    pub fn armed(&self) -> Vec<(LivenessTimer, Monotonic)> {
        let mut armed = Vec::new();
        self.visit(&mut |timer, at| armed.push((timer, at)));
        armed
    }

    fn visit(&self, see: &mut dyn FnMut(LivenessTimer, Monotonic)) {
        let writing = match &self.state {
            State::Client(pinging, writing) => {
                see(LivenessTimer::Wake, pinging.wake.due());
                see(LivenessTimer::Ping, pinging.next);
                if let Some(bound) = pinging.awaited.as_ref().and_then(|awaited| awaited.bound) {
                    see(LivenessTimer::Pong, bound);
                }
                writing
            }
            State::Server(listening, writing) => {
                see(LivenessTimer::Silence, listening.bound);
                writing
            }
            State::Dead => &None,
        };
        if let Some(bound) = writing {
            see(LivenessTimer::Write, *bound);
        }
    }

    fn client_event(
        &self,
        now: &Now,
        mut pinging: Pinging,
        mut writing: Writing,
        event: &Event,
        actions: &mut Actions<Action>,
    ) -> State {
        let jumped = pinging.wake.jumped(now);
        let mut ping = jumped;
        match *event {
            Event::Received => pinging.received = now.instant,
            Event::Pong { n } => {
                pinging.received = now.instant;
                // An answer to a ping before the awaited one, or to none of ours, answers nothing.
                pinging.awaited = pinging.awaited.filter(|awaited| n < awaited.n || n > pinging.sent);
            }
            Event::WriteStarted | Event::WriteProgressed | Event::WriteFinished => {
                writing = self.write(now, writing, event);
                if let (None, Some(awaited)) = (writing, &mut pinging.awaited) {
                    awaited.bound.get_or_insert(now.instant + self.config.answer);
                }
            }
            Event::Probe => ping |= pinging.awaited.is_none(),
            Event::Tick => {}
        }
        // Bounds are looked at on every event: a flood of events must not hide them.
        if let Some(dead) = self.stalled(now, writing) {
            actions.push(dead);
            return State::Dead;
        }
        if let Some(awaited) = &mut pinging.awaited
            && let Some(bound) = awaited.bound.filter(|bound| *bound <= now.instant)
        {
            let ours = now.instant.since(bound) > LATE;
            let traffic = pinging.received > awaited.asked;
            let second = match (ours, traffic) {
                (true, _) => now.instant + self.config.answer,
                // Never later than heartbeat + answer after the last byte (FC-26).
                (false, true) => {
                    (now.instant + self.config.answer).min(pinging.received + self.heartbeat + self.config.answer)
                }
                (false, false) => bound,
            };
            if awaited.again || second <= now.instant {
                actions.push(Action::Dead(Cause::Stalled { phase: Phase::Idle, bound: self.config.answer }));
                return State::Dead;
            }
            *awaited = Awaited { bound: Some(second), again: true, ..awaited.clone() };
            ping = true;
        }
        if ping || pinging.next <= now.instant {
            pinging.sent += 1;
            pinging.next = now.instant + self.heartbeat;
            let bound = writing.is_none().then(|| now.instant + self.config.answer);
            pinging.awaited.get_or_insert(Awaited { n: pinging.sent, asked: now.instant, bound, again: false });
            actions.push(Action::Ping { n: pinging.sent });
        }
        State::Client(pinging, writing)
    }

    fn server_event(
        &self,
        now: &Now,
        mut listening: Listening,
        mut writing: Writing,
        event: &Event,
        actions: &mut Actions<Action>,
    ) -> State {
        match event {
            Event::Received | Event::Pong { .. } => {
                listening = Listening { bound: now.instant + self.heartbeat * 2, again: false };
            }
            Event::WriteStarted | Event::WriteProgressed | Event::WriteFinished => {
                writing = self.write(now, writing, event);
            }
            Event::Probe | Event::Tick => {}
        }
        if let Some(dead) = self.stalled(now, writing) {
            actions.push(dead);
            return State::Dead;
        }
        if listening.bound <= now.instant {
            if listening.again || now.instant.since(listening.bound) <= LATE {
                actions.push(Action::Dead(Cause::Stalled { phase: Phase::Idle, bound: self.heartbeat * 2 }));
                return State::Dead;
            }
            listening = Listening { bound: now.instant + self.config.answer, again: true };
        }
        State::Server(listening, writing)
    }

    /// The write bound after a write event.
    fn write(&self, now: &Now, writing: Writing, event: &Event) -> Writing {
        let fresh = now.instant + self.config.write_stall;
        match event {
            // A write that is under way is not extended by more work for it.
            Event::WriteStarted => writing.or(Some(fresh)),
            Event::WriteProgressed => writing.map(|_| fresh),
            Event::WriteFinished => None,
            Event::Received | Event::Pong { .. } | Event::Probe | Event::Tick => writing,
        }
    }

    fn stalled(&self, now: &Now, writing: Writing) -> Option<Action> {
        let bound = self.config.write_stall;
        writing
            .is_some_and(|at| at <= now.instant)
            .then_some(Action::Dead(Cause::Stalled { phase: Phase::Write, bound }))
    }
}

impl Machine for Liveness {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        let mut actions = Vec::new();
        self.state = match std::mem::replace(&mut self.state, State::Dead) {
            State::Client(pinging, writing) => self.client_event(&now, pinging, writing, &event, &mut actions),
            State::Server(listening, writing) => self.server_event(&now, listening, writing, &event, &mut actions),
            State::Dead => State::Dead,
        };
        actions
    }

    fn deadline(&self) -> Option<Monotonic> {
        let mut first: Option<Monotonic> = None;
        self.visit(&mut |_, at| first = Some(first.map_or(at, |first| first.min(at))));
        first
    }
}

#[cfg(test)]
mod tests;
