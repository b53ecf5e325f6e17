//! Which of several streams that tell of the same is open. Pure.
//!
//! | state | armed | left by |
//! |---|---|---|
//! | open: the first | nothing | it cannot be had: the next is open, or resting |
//! | open: another | 10 min, then the first again | it cannot be had: the next, after the last one the first, is open, or resting; the time: the first is open |
//! | resting: each has come to nothing since one was healthy, or the next is not to be asked yet | the delay by the outage, and what its service asked for (R8) | that has passed: the next is open, or the one that may be asked first |
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

use crate::connection::Backoff;
use crate::machine::{Actions, LONGEST_HINT, Machine, Monotonic, Now};

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
    /// Before what time the service of each asks not to be asked again.
    floors: Vec<Monotonic>,
    /// When the first is tried again, unless its service asks for more time.
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
        Self { config, count, state, tried: 0, outage: None, floors: vec![Monotonic::ZERO; count], back: None }
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
        if let Some(floor) = self.floors.get_mut(*index) {
            *floor = (*floor).max(now.instant + retry_after.unwrap_or_default().min(LONGEST_HINT));
        }
        let enough = if self.tried < self.count { self.config.attempts } else { 1 };
        if self.count < 2 || !(absent || *missed >= enough) {
            return;
        }
        let index = *index;
        actions.push(Action::Leave(index));
        self.tried += 1;
        let next = (index + 1) % self.count;
        if self.tried < self.count && self.floor(next) <= now.instant {
            return self.opens(now, next, 0, actions);
        }
        let delay = self.config.backoff.delay(now, outage, Duration::ZERO);
        let due = now.instant + delay;
        // The next one in turn, unless another may be asked earlier.
        let turns = (1..=self.count).map(|n| (index + n) % self.count);
        let (until, next) =
            turns.map(|n| (self.floor(n).max(due), n)).min_by_key(|(until, _)| *until).unwrap_or((due, next));
        self.state = State::Resting { next, until };
    }

    fn floor(&self, index: usize) -> Monotonic {
        self.floors.get(index).copied().unwrap_or_default()
    }

    /// When the first is tried again.
    fn back(&self) -> Option<Monotonic> {
        self.back.map(|at| at.max(self.floor(0)))
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
            State::Open { index, .. } if self.back().is_some_and(|at| at <= now.instant) => {
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
            State::Open { .. } => self.back(),
            State::Resting { until, .. } => Some(until),
        }
    }
}
