//! One client's connection over its whole life.
//!
//! | state | left by |
//! |---|---|
//! | down: a race of discovery, resolution and dials | a welcome: up; the credential's second refusal: denied |
//! | up: one link | its end: down; a second refusal by close code: denied |
//! | denied | another credential: down |
//! | closed | nothing |
//!
//! Only the caller closes, or the caller's give-up limit. Everything else recovers (R8).

mod credential;
mod denied;
mod down;
mod holds;
mod race;
mod up;
mod vocabulary;

pub use super::dial::{Attempt, DialPhase};
pub use vocabulary::{Action, Config, Event, Generation};

use std::sync::Arc;
use std::time::Duration;

use self::credential::Credential;
use self::holds::Holds;
use self::race::{Flight, Race, Why};
use super::discover::Address;
use super::link::LinkState;
use super::timers::SupervisorTimer;
use super::wake::Wake;
use crate::error::Cause;
use crate::machine::{Actions, Machine, Monotonic, Now, Wall};
use crate::wire::Welcome;

/// The longest spread that is kept to, whatever the service says.
const LONGEST_SPREAD: Duration = Duration::from_secs(300);

/// After a clock's jump has restarted the dials, no other jump does so for this long: a clock that flaps must not become
/// a loop of dials.
const BETWEEN_WAKES: Duration = Duration::from_secs(5);

/// Finds the service, dials it, and brings the connection back for as long as the caller does not close it (R8).
///
/// It is driven by a `connection::Driver`, or by a test. A fresh one wants a `Tick` at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Supervisor {
    config: Config,
    wake: Wake,
    woken: Option<Monotonic>,
    state: State,
    /// Since when no link has proven healthy.
    outage_since: Monotonic,
    /// How many backoff steps this outage has taken.
    failures: u32,
    round: u64,
    attempts: u64,
    spread: Duration,
    credential: Credential,
    /// Who refused the credential last.
    suspect: Option<Address>,
    holds: Holds,
    /// Set while the last round found nobody who had not asked to be left alone.
    held_until: Option<Monotonic>,
    /// Since when there is no link, for people.
    down_since: Wall,
    ever_up: bool,
    /// Set while the user is shown `Denied`, which also lasts through the dials of a client without a source.
    denied_since: Option<Wall>,
    cause: Option<Cause>,
    /// How much `cause` tells, within one round.
    loudness: u8,
    shown: LinkState,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Down(Race),
    Up(Link),
    Denied(Recheck),
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Link {
    id: Attempt,
    flight: Flight,
    welcome: Arc<Welcome>,
    health: Health,
    draining: bool,
}

/// Whether the link has shown that it works: up for a while, and one exchange (FC-49).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Health {
    /// Not up for long enough, which it will be at `at`.
    Young {
        at: Monotonic,
        exchanged: bool,
    },
    /// Up for long enough, without an exchange.
    Silent,
    Proven,
}

/// What is awaited while access is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Recheck {
    At(Monotonic),
    Asking { bound: Monotonic },
}

impl Supervisor {
    /// A supervisor whose first round is due at `now`.
    pub fn new(now: &Now, config: Config) -> Self {
        Self {
            credential: Credential::new(config.credential_source),
            config,
            wake: Wake::new(now),
            woken: None,
            state: State::Down(Race::new(now.instant, Why::Fresh)),
            outage_since: now.instant,
            failures: 0,
            round: 0,
            attempts: 0,
            spread: Duration::ZERO,
            suspect: None,
            holds: Holds::default(),
            held_until: None,
            down_since: now.wall,
            ever_up: false,
            denied_since: None,
            cause: None,
            loudness: 0,
            shown: LinkState::Connecting { since: now.wall, cause: None },
        }
    }

    /// Before when no attempt is made, because every endpoint asked to be left alone until then (R9).
    pub fn not_before(&self) -> Option<Monotonic> {
        match &self.state {
            State::Down(_) => self.held_until,
            State::Up(_) | State::Denied(_) | State::Closed => None,
        }
    }

    /// The live link, if there is one.
    pub fn link(&self) -> Option<Attempt> {
        match &self.state {
            State::Up(link) => Some(link.id),
            State::Down(_) | State::Denied(_) | State::Closed => None,
        }
    }

    /// What the user is shown: the last [`Action::Publish`], and `Connecting` before the first.
    pub fn shown(&self) -> &LinkState {
        &self.shown
    }

    /// The named timers that are armed, for traces and tests. None once closed.
    pub fn armed(&self) -> Vec<(SupervisorTimer, Monotonic)> {
        let mut armed = Vec::new();
        self.visit(&mut |timer, at| armed.push((timer, at)));
        armed
    }

    fn visit(&self, see: &mut dyn FnMut(SupervisorTimer, Monotonic)) {
        let give_up = self.config.give_up_after.map(|limit| self.outage_since + limit);
        let give_up = match &self.state {
            State::Down(race) => {
                race.visit(see);
                give_up
            }
            State::Up(link) => {
                if let Health::Young { at, .. } = link.health {
                    see(SupervisorTimer::Proven, at);
                }
                None
            }
            State::Denied(Recheck::At(at)) => {
                see(SupervisorTimer::DeniedRecheck, *at);
                give_up
            }
            State::Denied(Recheck::Asking { bound }) => {
                see(SupervisorTimer::Credential, *bound);
                give_up
            }
            State::Closed => return,
        };
        see(SupervisorTimer::Wake, self.wake.due());
        if let Some(at) = give_up {
            see(SupervisorTimer::GiveUp, at);
        }
    }
}

impl Machine for Supervisor {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        let mut actions = Vec::new();
        let jumped = self.wake.jumped(&now);
        let mut state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Down(race) => self.while_down(&now, race, event, &mut actions),
            State::Up(link) => self.while_up(&now, link, event, &mut actions),
            State::Denied(recheck) => self.while_denied(&now, recheck, event, &mut actions),
            State::Closed => State::Closed,
        };
        if jumped {
            state = self.wake_up(&now, state, &mut actions);
        }
        state = self.give_up(&now, state, &mut actions);
        if let State::Down(race) = &mut state {
            self.proceed(&now, race, &mut actions);
        }
        self.state = state;
        let showing = self.showing();
        if showing != self.shown {
            self.shown = showing.clone();
            actions.push(Action::Publish(showing));
        }
        actions
    }

    fn deadline(&self) -> Option<Monotonic> {
        let mut first: Option<Monotonic> = None;
        self.visit(&mut |_, at| first = Some(first.map_or(at, |first| first.min(at))));
        first
    }
}

impl Supervisor {
    /// The clocks have come apart: whatever was under way may be stale, so dial at once (R7). A live link is probed by
    /// its own liveness.
    fn wake_up(&mut self, now: &Now, state: State, actions: &mut Actions<Action>) -> State {
        if self.woken.is_some_and(|at| now.instant.since(at) < BETWEEN_WAKES) {
            return state;
        }
        match state {
            State::Down(race) if race.next.is_none_or(|next| next.why != Why::Refusal) => {
                self.woken = Some(now.instant);
                abort_all(&race, actions);
                State::Down(Race::new(now.instant, Why::Fresh))
            }
            State::Denied(Recheck::At(_)) => {
                self.woken = Some(now.instant);
                self.recheck(now, actions)
            }
            State::Down(_) | State::Denied(Recheck::Asking { .. }) | State::Up(_) | State::Closed => state,
        }
    }

    /// The caller's limit on an outage counts as the caller's close (R8).
    fn give_up(&self, now: &Now, state: State, actions: &mut Actions<Action>) -> State {
        if self.config.give_up_after.is_none_or(|limit| self.outage(now) < limit) {
            return state;
        }
        match state {
            State::Down(race) => close(&race, actions),
            State::Denied(_) => State::Closed,
            State::Up(_) | State::Closed => state,
        }
    }

    fn showing(&self) -> LinkState {
        match &self.state {
            State::Down(_) | State::Denied(_) => match (self.denied_since, self.ever_up) {
                (Some(since), _) => LinkState::Denied { since },
                (None, true) => {
                    let cause = self.cause.clone().unwrap_or(Cause::Connecting);
                    LinkState::Down { since: self.down_since, cause }
                }
                (None, false) => LinkState::Connecting { since: self.down_since, cause: self.cause.clone() },
            },
            State::Up(link) => {
                let address = link.flight.address.clone();
                let welcome = Arc::clone(&link.welcome);
                if link.draining {
                    LinkState::Draining { address, welcome }
                } else {
                    LinkState::Up { address, welcome }
                }
            }
            State::Closed => LinkState::Closed,
        }
    }
}

fn close(race: &Race, actions: &mut Actions<Action>) -> State {
    abort_all(race, actions);
    State::Closed
}

fn abort_all(race: &Race, actions: &mut Actions<Action>) {
    actions.extend(race.flights.keys().map(|attempt| Action::Abort { attempt: *attempt }));
}

#[cfg(test)]
mod herd;
#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "a test looks at the one thing it is about")]
mod model;
#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "a test looks at the one thing it is about")]
mod rig;
#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "a test looks at the one thing it is about")]
mod tests;
