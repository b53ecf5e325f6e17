//! When it looks next.

use std::time::Duration;

use super::{Flight, LEAST, Machine, State, Stream};
use crate::http::exchange::Connection;
use crate::http::poll::Action;
use crate::machine::{Actions, Monotonic, Now};

/// After a clock's jump has led to a look, no other jump does so for this long: a clock that flaps must not become a loop.
const BETWEEN_WAKES: Duration = Duration::from_secs(5);

impl Machine {
    pub(super) fn woke(&mut self, now: Now, out: &mut Actions<Action>) {
        self.doubted = true;
        self.connection = Connection::Fresh;
        let at = self.woken.map_or(now.instant, |woken| now.instant.max(woken + BETWEEN_WAKES));
        match self.state {
            State::Idle { at: next, due } => {
                let at = at.max(self.hold);
                if at < next {
                    self.woken = Some(at);
                    self.idle(now, at, due, out);
                }
            }
            State::Sending(_) if at.max(self.hold) <= now.instant => {
                self.woken = Some(at);
                out.push(Action::Abort);
                self.want(now.instant, false, out);
            }
            State::Sending(_) => self.again = true,
            State::New { .. } | State::Wanting { .. } | State::Ended => {}
        }
    }

    /// Looks out of turn at `from`, or as soon after it as the pace and the service permit.
    pub(super) fn urge(&mut self, now: Now, from: Monotonic, out: &mut Actions<Action>) {
        match self.state {
            State::Idle { at, due } => {
                let soon = self.urgent_at(from).max(self.hold);
                if soon < at {
                    self.urged = Some(soon);
                    self.idle(now, soon, due, out);
                }
            }
            // The answer may be older than this.
            State::Sending(_) => self.again = true,
            // The request starts later than this.
            State::New { .. } | State::Wanting { .. } | State::Ended => {}
        }
    }

    pub(super) fn urgent_at(&self, from: Monotonic) -> Monotonic {
        self.urged.map_or(from, |urged| from.max(urged + self.least()))
    }

    pub(super) fn least(&self) -> Duration {
        self.settings.pace.least.max(LEAST)
    }

    pub(super) fn backoff(&self, now: Now) -> Duration {
        let rough = self.rough.map_or(Duration::ZERO, |since| now.instant.since(since));
        self.settings.backoff.delay(&now, rough, Duration::ZERO).max(LEAST)
    }

    /// The same after an answer of no use. Who answers is there, and gets no better by being asked again and again: the
    /// delay is a quarter of the time for which all answers were like that, up to the interval at which a healthy service is
    /// asked (R8).
    pub(super) fn backoff_from_answers(&mut self, now: Now) -> Duration {
        self.rough.get_or_insert(now.instant);
        let since = *self.useless.get_or_insert(now.instant);
        let ceiling = (now.instant.since(since) / 4).min(self.interval(now));
        self.backoff(now).max(ceiling.saturating_sub(now.jitter(ceiling / 4)))
    }

    fn interval(&self, now: Now) -> Duration {
        let pace = self.settings.pace;
        match self.stream {
            Stream::Up { .. } => self.settings.reread,
            Stream::Down => {
                let unchanged = now.instant.since(self.changed);
                (unchanged / pace.share.max(1)).min(pace.most).max(pace.least)
            }
        }
    }

    pub(super) fn rest_for_interval(&mut self, now: Now, holds: Duration, out: &mut Actions<Action>) {
        let interval = self.interval(now);
        // A pace of zero is the caller's own wish not to wait. What failed waits all the same (R8).
        let least = if interval.is_zero() && self.settings.pace.most.is_zero() { Duration::ZERO } else { LEAST };
        let interval = interval.saturating_sub(now.jitter(interval / 10)).max(least);
        // What the service states is a floor that no jitter goes under.
        self.rest(now, now.instant + interval.max(holds), out);
    }

    /// The next look in its turn is at `due`, or when the service permits it, and sooner if something calls for another one.
    pub(super) fn rest(&mut self, now: Now, due: Monotonic, out: &mut Actions<Action>) {
        let due = due.max(self.hold);
        let soon = self.urgent_at(now.instant).max(self.hold);
        if self.again && soon < due {
            self.urged = Some(soon);
            self.idle(now, soon, due, out);
        } else {
            self.idle(now, due, due, out);
        }
    }

    fn idle(&mut self, now: Now, at: Monotonic, due: Monotonic, out: &mut Actions<Action>) {
        self.again = false;
        if at <= now.instant {
            self.want(due, false, out);
        } else {
            self.state = State::Idle { at, due };
            out.push(Action::Scheduled(at.since(now.instant)));
        }
    }

    /// Whether the service held the request open as it was asked to, and did not answer at once. It may keep to a shorter
    /// time than it was asked for.
    pub(super) fn was_held_open(&self, now: Now, flight: Flight) -> bool {
        self.settings.wait.is_some_and(|wait| now.instant.since(flight.sent) >= (wait / 2).min(self.least()))
    }

    /// A long poll goes on at once, and starts no more often than the pace permits.
    pub(super) fn rest_to_continue(&mut self, now: Now, flight: Flight, holds: Duration, out: &mut Actions<Action>) {
        self.rest(now, (now.instant + holds).max(flight.sent + self.least()), out);
    }
}
