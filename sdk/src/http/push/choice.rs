//! Which of several streams that tell of the same is open. Pure.
//!
//! | state | armed | left by |
//! |---|---|---|
//! | open: the first | nothing | it cannot be had: the next is open, or resting |
//! | open: another | 10 min, then the first again | it cannot be had: the next, after the last one the first, is open, or resting; the time: the first is open |
//! | resting: each has come to nothing since one was healthy | the delay by the outage, and what the service asked for (R8) | that has passed: the next is open |
//!
//! A stream cannot be had once three attempts in a row have come to nothing, or one whose answer says that there is no such
//! stream. Of the first that is tried again, and of each once all have come to nothing, one attempt is enough: a
//! service that is down is not dialed more often with several streams than with one. A refused credential is never a
//! reason: it is refused by every stream of its origin. Where none was sent, the refusal says that there is no such stream.
//!
//! One stream alone is always open. Only one is open at a time, so a change of streams may miss events: the look at each
//! attach sees what they would have told (R5).

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::LONGEST;
use crate::connection::Backoff;
use crate::machine::{Actions, Machine, Monotonic, Now};

/// What a choice is held to. [`Default`] has the documented bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// Attempts in a row without a healthy link after which a stream gives way. 3.
    pub attempts: u32,
    /// How long another stream than the first is open before the first is tried again, less up to a tenth. 10 min.
    pub back: Duration,
    /// The delays once all have come to nothing (R8).
    pub backoff: Backoff,
}

impl Default for Config {
    fn default() -> Self {
        Self { attempts: 3, back: Duration::from_secs(600), backoff: Backoff::default() }
    }
}

/// What happened to the stream that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "drivers and tests build them; a new one is to be a compile error")]
pub enum Event {
    /// An attempt came to nothing, or its link ended before it had proven healthy.
    Missed {
        /// The answer says that there is no such stream.
        absent: bool,
        /// The service asks not to be asked before this time has passed.
        retry_after: Option<Duration>,
    },
    /// It has proven healthy.
    Proven,
    /// The machine's deadline passed.
    Tick,
}

/// What is to be done. Streams are named by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a driver performs each; a new one is to be a compile error")]
pub enum Action {
    /// Let go of this one.
    Leave(usize),
    /// Open this one.
    Open(usize),
}

/// Which of several streams is open. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    config: Config,
    count: usize,
    state: State,
    /// How many gave way since one was healthy.
    tried: usize,
    /// Since when none was.
    outage: Option<Monotonic>,
    /// Before that time the service asks not to be asked again.
    floor: Monotonic,
    /// When the first is tried again.
    back: Option<Monotonic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Open { index: usize, missed: u32 },
    Resting { next: usize, until: Monotonic },
}

impl Choice {
    /// The first of `count` streams is open.
    pub fn new(config: Config, count: usize) -> Self {
        let state = State::Open { index: 0, missed: 0 };
        Self { config, count, state, tried: 0, outage: None, floor: Monotonic::ZERO, back: None }
    }

    /// The one that is open.
    pub fn open(&self) -> Option<usize> {
        match self.state {
            State::Open { index, .. } => Some(index),
            State::Resting { .. } => None,
        }
    }

    fn missed(&mut self, now: &Now, absent: bool, retry_after: Option<Duration>, actions: &mut Actions<Action>) {
        let State::Open { index, missed } = &mut self.state else { return };
        *missed = missed.saturating_add(1);
        let outage = now.instant.since(*self.outage.get_or_insert(now.instant));
        self.floor = self.floor.max(now.instant + retry_after.unwrap_or_default().min(LONGEST));
        let enough = if self.tried < self.count { self.config.attempts } else { 1 };
        if self.count < 2 || !(absent || *missed >= enough) {
            return;
        }
        let (index, next) = (*index, (*index + 1) % self.count);
        actions.push(Action::Leave(index));
        self.tried += 1;
        if self.tried < self.count {
            return self.opens(now, next, 0, actions);
        }
        let delay = self.config.backoff.delay(now, outage, Duration::ZERO);
        self.state = State::Resting { next, until: (now.instant + delay).max(self.floor) };
    }

    fn opens(&mut self, now: &Now, index: usize, missed: u32, actions: &mut Actions<Action>) {
        actions.push(Action::Open(index));
        self.state = State::Open { index, missed };
        if index == 0 {
            self.back = None;
        } else {
            let back = self.config.back;
            self.back.get_or_insert(now.instant + (back - now.jitter(back / 10)));
        }
    }

    fn tick(&mut self, now: &Now, actions: &mut Actions<Action>) {
        match self.state {
            State::Resting { next, until } if until <= now.instant => self.opens(now, next, 0, actions),
            State::Open { index, .. } if self.back.is_some_and(|at| at.max(self.floor) <= now.instant) => {
                actions.push(Action::Leave(index));
                self.opens(now, 0, self.config.attempts.saturating_sub(1), actions);
            }
            State::Resting { .. } | State::Open { .. } => {}
        }
    }
}

impl Machine for Choice {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        let mut actions = Actions::new();
        match event {
            Event::Missed { absent, retry_after } => self.missed(&now, absent, retry_after, &mut actions),
            Event::Proven => {
                if let State::Open { missed, .. } = &mut self.state {
                    *missed = 0;
                    self.tried = 0;
                    self.outage = None;
                }
            }
            Event::Tick => self.tick(&now, &mut actions),
        }
        actions
    }

    fn deadline(&self) -> Option<Monotonic> {
        match self.state {
            State::Open { .. } => self.back.map(|at| at.max(self.floor)),
            State::Resting { until, .. } => Some(until),
        }
    }
}
