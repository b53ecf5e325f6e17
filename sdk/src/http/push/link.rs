//! The decisions of one WebSocket that tells of changes: when to connect, whether it lives, when to come back. Pure.
//!
//! | state | armed | left by |
//! |---|---|---|
//! | new | nothing; it begins with `Start` | wanting |
//! | wanting a credential and a place in the budget | those have timers of their own | `Permitted`: resolving; none to be had: waiting |
//! | resolving, anew in each round (FC-42) | 5 s | the addresses: dialing the first |
//! | dialing: connect, TLS, upgrade | 5 s each | not reached: the next address, after the last one waiting; upgraded |
//! | confirming, where the service says so | 5 s, and the link's pings | `Confirmed`: up |
//! | up | pings, writes, the look for sleep | its end, or none of a peer that is gone (FC-26): waiting |
//! | waiting | the next round | that is due: wanting |
//!
//! What matters to the [choice](super::choice) among several streams is told once: `Proven` by a link that is healthy,
//! `Missed` by an attempt, or a link that was not, that came to nothing for another reason than its credential or the rate.
//! A refusal where no credential was sent is about the stream.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::connection::Backoff;
use crate::connection::close::CloseMeaning;
use crate::connection::liveness::{self, Liveness};
use crate::error::{Cause, Phase};
use crate::machine::{Actions, LONGEST_HINT, Machine, Monotonic, Now};

/// How many addresses of a name are tried in one round.
const MOST_ADDRESSES: usize = 8;

/// The least time before a refused credential, or another one, is sent; and at most that much more.
const REFUSED: Duration = Duration::from_secs(1);

/// How long to keep away after a close with 1013 that states no time.
const TRY_AGAIN_LATER: Duration = crate::transport::TRY_AGAIN_LATER;

/// What a link is held to. [`Default`] has the documented bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// Bound on each of: name, connection, TLS session, upgrade, confirmation. 5 s.
    pub phase: Duration,
    /// How often the peer is asked for a sign of life. 10 s.
    pub heartbeat: Duration,
    /// Bounds on its answer, and on writes. 5 s and 10 s.
    pub liveness: liveness::Config,
    /// The delays after failures (R8).
    pub backoff: Backoff,
    /// How long a link must have been open, confirmed and with a message or an answer to a ping, before it counts as
    /// healthy, and its end starts a new outage (FC-49). 5 s.
    pub proven: Duration,
    /// How often it is looked whether there is another credential, once the present one was refused twice (R3). 30 s.
    pub recheck: Duration,
    /// Whether the service confirms: then the link is up with the confirmation, else with the upgrade.
    pub confirms: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            phase: Duration::from_secs(5),
            heartbeat: Duration::from_secs(10),
            liveness: liveness::Config::default(),
            backoff: Backoff::default(),
            proven: Duration::from_secs(5),
            recheck: Duration::from_secs(30),
            confirms: false,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "drivers and tests build them; a new one is to be a compile error")]
pub enum Event {
    /// It begins.
    Start,
    /// There is a credential to send, or none is needed, and the budget permits a request.
    Permitted,
    /// There is no credential to be had.
    Unheld(Cause),
    /// The only credential there is was refused twice.
    Denied,
    /// The addresses of the name, best first.
    Resolved(Vec<Arc<str>>),
    /// The name did not resolve.
    Unresolved(Arc<str>),
    /// A phase of the dial begins.
    Began(Phase),
    /// There is no connection to that address.
    Unreachable(Cause),
    /// The service refused the upgrade because of the credential.
    Refused {
        /// Whether that was the second time for that credential, or nothing will send another one.
        denied: bool,
        /// Whether a credential was sent. Without one it is the stream that is refused: by a proxy that lets no upgrade pass,
        /// or to everybody.
        sent: bool,
    },
    /// The upgrade came to nothing.
    Failed {
        /// Why.
        cause: Cause,
        /// The service asks not to be asked before this time has passed.
        retry_after: Option<Duration>,
        /// The answer says that there is no such stream.
        absent: bool,
    },
    /// The WebSocket is open, and all that is to be said at first is queued.
    Upgraded,
    /// The service confirmed.
    Confirmed,
    /// A message came.
    Message,
    /// Something else about the life of the link. A pong proves it healthy, too.
    Life(liveness::Event),
    /// The link has ended.
    Lost {
        /// Why.
        cause: Cause,
        /// The peer's close code.
        code: Option<u16>,
        /// The service asks to stay away for this long.
        retry_after: Option<Duration>,
        /// For a code that refuses the credential: whether that was the second time.
        denied: bool,
    },
    /// The machine's deadline passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a driver performs each; a new one is to be a compile error")]
pub enum Action {
    /// Ask for a credential and for one request of the budget.
    Want,
    /// Resolve the name.
    Resolve,
    /// Connect to this address and upgrade.
    Dial(Arc<str>),
    /// Abandon what is under way, or let go of the link.
    Abort,
    /// Send a ping of this number.
    Ping(u64),
    /// It is up: whatever happens from now on is told.
    Attached,
    /// It is down. Only after `Attached`.
    Detached(Cause),
    /// It has proven healthy. Once for each link.
    Proven,
    /// The attempt came to nothing, or its link ended before it had proven healthy, and not for its credential or the rate.
    Missed {
        /// The answer says that there is no such stream.
        absent: bool,
        /// The service asks not to be asked before this time has passed.
        retry_after: Option<Duration>,
    },
}

/// One WebSocket of a service that says when something changes. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    config: Config,
    state: State,
    /// Since when it has not been healthy.
    outage: Option<Monotonic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    New,
    Waiting { until: Monotonic },
    Wanting,
    Resolving { by: Monotonic },
    Dialing { rest: VecDeque<Arc<str>>, phase: Phase, by: Monotonic },
    Open(Box<Open>),
}

/// After the upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    liveness: Liveness,
    since: Monotonic,
    /// A message or a pong has come.
    heard: bool,
    /// It was told that it is healthy.
    proven: bool,
    /// By when the service has to confirm; `None` once it is up.
    confirm_by: Option<Monotonic>,
}

impl Link {
    /// One that has not begun.
    pub fn new(config: Config) -> Self {
        Self { config, state: State::New, outage: None }
    }

    /// Whether it is up.
    pub fn is_attached(&self) -> bool {
        matches!(&self.state, State::Open(open) if open.confirm_by.is_none())
    }

    fn proves(&self, open: &Open, now: Monotonic) -> bool {
        open.heard && open.confirm_by.is_none() && now.since(open.since) >= self.config.proven
    }

    fn resolved(&self, now: &Now, addresses: Vec<Arc<str>>, actions: &mut Actions<Action>) -> State {
        let mut rest: VecDeque<Arc<str>> = addresses.into_iter().take(MOST_ADDRESSES).collect();
        match rest.pop_front() {
            Some(first) => self.dial(now, first, rest, actions),
            None => self.missed(now, actions),
        }
    }

    fn dial(&self, now: &Now, address: Arc<str>, rest: VecDeque<Arc<str>>, actions: &mut Actions<Action>) -> State {
        actions.push(Action::Dial(address));
        State::Dialing { rest, phase: Phase::Connect, by: now.instant + self.config.phase }
    }

    /// That address is of no use; the next one may be.
    fn unreachable(
        &self,
        now: &Now,
        mut rest: VecDeque<Arc<str>>,
        cause: &Cause,
        actions: &mut Actions<Action>,
    ) -> State {
        tracing::debug!(%cause, "a stream of events is not reached there");
        match rest.pop_front() {
            Some(next) => self.dial(now, next, rest, actions),
            None => self.missed(now, actions),
        }
    }

    /// The attempt came to nothing, and nobody says more.
    fn missed(&self, now: &Now, actions: &mut Actions<Action>) -> State {
        actions.push(Action::Missed { absent: false, retry_after: None });
        self.waits(now, Duration::ZERO)
    }

    /// The next round: full jitter under a ceiling that grows with the outage (R8), and never before `floor`.
    fn waits(&self, now: &Now, floor: Duration) -> State {
        let outage = self.outage.map_or(Duration::ZERO, |since| now.instant.since(since));
        let delay = self.config.backoff.delay(now, outage, Duration::ZERO);
        State::Waiting { until: now.instant + delay.max(floor.min(LONGEST_HINT)) }
    }

    fn after_refusal(&self, now: &Now, denied: bool, floor: Duration) -> State {
        let least = if denied { self.config.recheck } else { REFUSED + now.jitter(REFUSED) };
        self.waits(now, floor.max(least))
    }

    fn upgraded(&self, now: &Now, actions: &mut Actions<Action>) -> State {
        let confirm_by = self.config.confirms.then(|| now.instant + self.config.phase);
        if confirm_by.is_none() {
            actions.push(Action::Attached);
        }
        let liveness = Liveness::client(now, self.config.heartbeat, self.config.liveness);
        State::Open(Box::new(Open { liveness, since: now.instant, heard: false, proven: false, confirm_by }))
    }

    /// The link is over; whether it had proven healthy. Only then it ends an outage (FC-49).
    fn lost(&mut self, now: &Now, open: &Open, cause: Cause, actions: &mut Actions<Action>) -> bool {
        if open.proven {
            self.outage = None;
        }
        self.outage.get_or_insert(now.instant);
        tracing::debug!(%cause, "a stream of events has ended");
        actions.push(Action::Abort);
        if open.confirm_by.is_none() {
            actions.push(Action::Detached(cause));
        }
        open.proven
    }

    /// The peer does not do what it has to.
    fn dead(&mut self, now: &Now, open: &Open, cause: Cause, actions: &mut Actions<Action>) -> State {
        if self.lost(now, open, cause, actions) { self.waits(now, Duration::ZERO) } else { self.missed(now, actions) }
    }

    fn live(&mut self, now: &Now, mut open: Box<Open>, event: liveness::Event, actions: &mut Actions<Action>) -> State {
        let late = open.confirm_by.is_some_and(|by| by <= now.instant);
        if late {
            return self.dead(now, &open, stalled(Phase::Welcome, self.config.phase), actions);
        }
        for action in open.liveness.on_event(*now, event) {
            match action {
                liveness::Action::Ping { n } => actions.push(Action::Ping(n)),
                liveness::Action::Dead(cause) => return self.dead(now, &open, cause, actions),
            }
        }
        State::Open(open)
    }

    fn while_open(&mut self, now: &Now, mut open: Box<Open>, event: Event, actions: &mut Actions<Action>) -> State {
        match event {
            Event::Confirmed => {
                if open.confirm_by.take().is_some() {
                    actions.push(Action::Attached);
                }
                open.heard = true;
                self.live(now, open, liveness::Event::Received, actions)
            }
            Event::Message => {
                open.heard = true;
                self.live(now, open, liveness::Event::Received, actions)
            }
            Event::Life(life) => {
                open.heard |= matches!(life, liveness::Event::Pong { .. });
                self.live(now, open, life, actions)
            }
            Event::Tick => self.live(now, open, liveness::Event::Tick, actions),
            Event::Lost { cause, code, retry_after, denied } => {
                let proven = self.lost(now, &open, cause, actions);
                let floor = match CloseMeaning::of(code) {
                    CloseMeaning::Recover => retry_after,
                    CloseMeaning::RecoverLater => Some(retry_after.unwrap_or(TRY_AGAIN_LATER)),
                    CloseMeaning::Refused => {
                        return self.after_refusal(now, denied, retry_after.unwrap_or_default());
                    }
                };
                if !proven {
                    actions.push(Action::Missed { absent: false, retry_after: floor });
                }
                self.waits(now, floor.unwrap_or_default())
            }
            // Of a dial that is over.
            Event::Start
            | Event::Permitted
            | Event::Unheld(_)
            | Event::Denied
            | Event::Resolved(_)
            | Event::Unresolved(_)
            | Event::Began(_)
            | Event::Unreachable(_)
            | Event::Refused { .. }
            | Event::Failed { .. }
            | Event::Upgraded => State::Open(open),
        }
    }

    fn tick(&mut self, now: &Now, state: State, actions: &mut Actions<Action>) -> State {
        match state {
            State::Waiting { until } if until <= now.instant => {
                actions.push(Action::Want);
                State::Wanting
            }
            State::Resolving { by } if by <= now.instant => {
                tracing::debug!("the name of a stream of events does not resolve in time");
                actions.push(Action::Abort);
                self.missed(now, actions)
            }
            State::Dialing { rest, phase, by } if by <= now.instant => {
                actions.push(Action::Abort);
                match phase {
                    Phase::Connect | Phase::Tls => {
                        self.unreachable(now, rest, &stalled(phase, self.config.phase), actions)
                    }
                    Phase::Discover
                    | Phase::Resolve
                    | Phase::Upgrade
                    | Phase::Welcome
                    | Phase::FirstByte
                    | Phase::Idle
                    | Phase::Write
                    | Phase::Credential => self.missed(now, actions),
                }
            }
            State::New
            | State::Waiting { .. }
            | State::Wanting
            | State::Resolving { .. }
            | State::Dialing { .. }
            | State::Open(_) => state,
        }
    }

    fn on(&mut self, now: &Now, state: State, event: Event, actions: &mut Actions<Action>) -> State {
        match (state, event) {
            (State::New, Event::Start) => {
                self.outage = Some(now.instant);
                actions.push(Action::Want);
                State::Wanting
            }
            (State::Open(mut open), event) => {
                if !open.proven && self.proves(&open, now.instant) {
                    open.proven = true;
                    actions.push(Action::Proven);
                }
                self.while_open(now, open, event, actions)
            }
            (state, Event::Tick) => self.tick(now, state, actions),
            (State::Wanting, Event::Permitted) => {
                actions.push(Action::Resolve);
                State::Resolving { by: now.instant + self.config.phase }
            }
            (State::Wanting, Event::Unheld(cause)) => {
                tracing::debug!(%cause, "a stream of events has no credential");
                self.waits(now, REFUSED)
            }
            (State::Wanting, Event::Denied) => self.after_refusal(now, true, Duration::ZERO),
            (State::Resolving { .. }, Event::Resolved(addresses)) => self.resolved(now, addresses, actions),
            (State::Resolving { .. }, Event::Unresolved(detail)) => {
                tracing::debug!(%detail, "the name of a stream of events does not resolve");
                self.missed(now, actions)
            }
            (State::Dialing { rest, .. }, Event::Began(phase)) => {
                State::Dialing { rest, phase, by: now.instant + self.config.phase }
            }
            (State::Dialing { rest, .. }, Event::Unreachable(cause)) => self.unreachable(now, rest, &cause, actions),
            (State::Dialing { .. }, Event::Refused { denied, sent }) => {
                if !sent {
                    actions.push(Action::Missed { absent: true, retry_after: None });
                }
                self.after_refusal(now, denied, Duration::ZERO)
            }
            (State::Dialing { .. }, Event::Failed { cause, retry_after, absent }) => {
                tracing::debug!(%cause, ?retry_after, "a stream of events is not served");
                // A limit of the rate is no fault of the stream.
                if !matches!(cause, Cause::RateLimited { .. }) {
                    actions.push(Action::Missed { absent, retry_after });
                }
                self.waits(now, retry_after.unwrap_or_default())
            }
            (State::Dialing { .. }, Event::Upgraded) => self.upgraded(now, actions),
            // What belongs to an attempt that was abandoned.
            (
                state @ (State::New
                | State::Waiting { .. }
                | State::Wanting
                | State::Resolving { .. }
                | State::Dialing { .. }),
                Event::Start
                | Event::Permitted
                | Event::Unheld(_)
                | Event::Denied
                | Event::Resolved(_)
                | Event::Unresolved(_)
                | Event::Began(_)
                | Event::Unreachable(_)
                | Event::Refused { .. }
                | Event::Failed { .. }
                | Event::Upgraded
                | Event::Confirmed
                | Event::Message
                | Event::Life(_)
                | Event::Lost { .. },
            ) => state,
        }
    }
}

fn stalled(phase: Phase, bound: Duration) -> Cause {
    Cause::Stalled { phase, bound }
}

impl Machine for Link {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        let mut actions = Actions::new();
        let state = std::mem::replace(&mut self.state, State::New);
        self.state = self.on(&now, state, event, &mut actions);
        actions
    }

    fn deadline(&self) -> Option<Monotonic> {
        match &self.state {
            State::New | State::Wanting => None,
            State::Waiting { until: at } | State::Resolving { by: at } | State::Dialing { by: at, .. } => Some(*at),
            State::Open(open) => open.confirm_by.into_iter().chain(open.liveness.deadline()).min(),
        }
    }
}
