//! What an answer, or its lack, leads to.

use std::time::Duration;

use super::order::{self, Place};
use super::{Absence, Flight, LEAST, Machine, Outage, State};
use crate::error::{Cause, Phase};
use crate::http::exchange::Connection;
use crate::http::poll::{Action, Answer, Marks};
use crate::machine::{Actions, Now};
use crate::observe::End;

/// How long what contradicts the value shown must last before it is believed: that what was over goes on (FC-88), or that
/// what was seen is no more.
const CONFIRM: Duration = Duration::from_secs(1);

/// The longest time between two looks for what is not visible yet.
const ABSENT_STEP: Duration = Duration::from_secs(1);

/// The least time before a refused credential, or another one, is tried; and at most that much more.
const REFUSED: Duration = Duration::from_secs(1);

impl Machine {
    pub(super) fn answered(
        &mut self,
        now: Now,
        flight: Flight,
        answer: Answer,
        holds: Duration,
        out: &mut Actions<Action>,
    ) {
        match answer {
            Answer::Refused(_) => {
                // A source may have another credential each time, of which none is good.
                let delay = (REFUSED + now.jitter(REFUSED)).max(self.backoff_from_answers(now));
                self.fail_for(now, Cause::Unauthorized, delay, out);
            }
            Answer::Unserved(cause) => self.fail(now, cause, out),
            Answer::Value(marks) if flight.overtaken && self.is_provably_later(marks) => {
                self.value(now, flight, marks, holds, out);
            }
            Answer::Value(_) | Answer::Same | Answer::Unchanged | Answer::Nothing | Answer::Absent | Answer::Gone
                if flight.overtaken =>
            {
                self.overtaken(now, out);
            }
            Answer::Value(marks) => self.value(now, flight, marks, holds, out),
            Answer::Unchanged if flight.validate => self.unchanged(now, flight, holds, out),
            Answer::Same if self.held.is_some() => self.unchanged(now, flight, holds, out),
            Answer::Unchanged | Answer::Same => {
                self.fail(now, Cause::Undecodable { detail: "expected a value, got `unchanged`".into() }, out);
            }
            Answer::Nothing => self.nothing(now, flight, holds, out),
            Answer::Absent => self.absent(now, out),
            Answer::Gone => self.end_with(End::Gone, out),
        }
    }

    fn is_provably_later(&self, marks: Marks) -> bool {
        self.held.is_some_and(|held| order::is_provably_later(held.marks, marks))
    }

    fn value(&mut self, now: Now, flight: Flight, marks: Marks, holds: Duration, out: &mut Actions<Action>) {
        let place = self.held.map_or(Place::Next { changed: true }, |held| order::place(held.marks, marks));
        let changed = match place {
            Place::Next { changed } => changed,
            Place::Before if self.is_another_life(now, marks) => true,
            Place::Before => return self.behind(now, Duration::ZERO, out),
            Place::Reopens { same_attempt: true } if !self.settings.reopens => {
                return self.behind(now, Duration::ZERO, out);
            }
            Place::Reopens { .. } => {
                let said = now.instant.since(*self.reopening.get_or_insert(now.instant));
                if said < CONFIRM {
                    return self.behind(now, CONFIRM.saturating_sub(said), out);
                }
                true
            }
        };
        self.hold_value(now, marks, changed, false);
        self.confirm(flight, true, out);
        self.rest_for_interval(now, holds, out);
    }

    /// Whether the service has begun to count anew: it may be another life of itself, and has said nothing but lower versions
    /// for the grace (FC-21). Without that its verdict would never be seen. What is over is not reopened by it.
    fn is_another_life(&mut self, now: Now, marks: Marks) -> bool {
        let lower = self.held.is_some_and(|held| order::is_lower_version(held.marks, marks));
        if !lower || !self.doubted {
            self.lower = None;
            return false;
        }
        let said = now.instant.since(*self.lower.get_or_insert(now.instant));
        said >= self.settings.grace.max(CONFIRM)
    }

    fn unchanged(&mut self, now: Now, flight: Flight, holds: Duration, out: &mut Actions<Action>) {
        if let Some(held) = &mut self.held {
            held.pushed = false;
        }
        self.confirm(flight, false, out);
        if flight.validate && self.was_held_open(now, flight) {
            // The service waited for a change until its time was over: the long poll goes on.
            self.rest_to_continue(now, flight, holds, out);
        } else {
            self.rest_for_interval(now, holds, out);
        }
    }

    fn nothing(&mut self, now: Now, flight: Flight, holds: Duration, out: &mut Actions<Action>) {
        self.outage = None;
        self.lower = None;
        self.absence = Absence::default();
        let waited = self.was_held_open(now, flight);
        let (rough, useless) = (self.rough.take(), self.useless.take());
        if self.held.is_some() && (flight.validate || waited) {
            self.confirm(flight, false, out);
        }
        if waited {
            self.rest_to_continue(now, flight, holds, out);
        } else {
            (self.rough, self.useless) = (rough, useless);
            // A service that answers a resumption with nothing at once may not know what to resume (FC-19).
            self.doubted = true;
            let delay = self.backoff_from_answers(now);
            self.rest(now, now.instant + delay.max(holds), out);
        }
    }

    fn absent(&mut self, now: Now, out: &mut Actions<Action>) {
        self.doubted = true;
        self.lower = None;
        let confirmed = self.absence.confirm(now.instant);
        let step = ABSENT_STEP.saturating_sub(now.jitter(ABSENT_STEP / 2));
        let needed = match self.held {
            // A proxy in front of a service that restarts answers 404 as well.
            Some(_) => self.settings.grace.max(CONFIRM),
            None => self.settings.grace,
        };
        if confirmed >= needed {
            return self.end_with(End::Gone, out);
        }
        self.doubt(now, Cause::NotYetVisible, out);
        let step = step.min(needed.saturating_sub(confirmed)).max(LEAST);
        self.rest(now, now.instant + step, out);
    }

    /// The answer was asked for before the value that is shown was pushed (FC-88).
    fn overtaken(&mut self, now: Now, out: &mut Actions<Action>) {
        self.outage = None;
        self.lower = None;
        // A stream that is faster than the requests must not turn each of its values into one.
        let delay = self.backoff_from_answers(now);
        self.again = false;
        let at = self.urgent_at(now.instant).max(now.instant + delay);
        self.urged = Some(at);
        self.rest(now, at, out);
    }

    /// The answer is older than what is shown (R4): it is not shown, and the read is made again no sooner than `least`.
    fn behind(&mut self, now: Now, least: Duration, out: &mut Actions<Action>) {
        self.outage = None;
        self.absence = Absence::default();
        self.doubt(now, Cause::Behind, out);
        let delay = self.backoff_from_answers(now).max(least);
        self.again = false;
        self.rest(now, now.instant + delay, out);
    }

    /// The request could not be sent, since there is no credential for it just now. The service was not asked: nothing is
    /// said about it or its connection.
    pub(super) fn unsent(&mut self, now: Now, cause: Cause, out: &mut Actions<Action>) {
        if let Some(outage) = &mut self.outage {
            outage.retried = true;
        }
        let (connection, doubted) = (self.connection, self.doubted);
        self.fail(now, cause, out);
        (self.connection, self.doubted) = (connection, doubted);
    }

    pub(super) fn fail(&mut self, now: Now, cause: Cause, out: &mut Actions<Action>) {
        // A body that is cut or stalls has a head that somebody sent.
        let has_head = matches!(self.state, State::Sending(flight) if flight.body_by.is_some());
        let delay = if has_head || is_answer(&cause) {
            self.backoff_from_answers(now)
        } else {
            self.useless = None;
            self.rough.get_or_insert(now.instant);
            self.backoff(now)
        };
        self.fail_for(now, cause, delay, out);
    }

    /// No answer of use; the next look is after `delay`, or after what the service asked for.
    fn fail_for(&mut self, now: Now, cause: Cause, delay: Duration, out: &mut Actions<Action>) {
        self.rough.get_or_insert(now.instant);
        self.outage.get_or_insert(Outage { since: now.instant, retried: false });
        self.absence.interrupt(self.held.is_some());
        self.lower = None;
        // The connection is of no use, though it may look so. Of a write too: nobody takes what is written.
        let suspect = matches!(
            cause,
            Cause::Dropped { .. } | Cause::Stalled { phase: Phase::FirstByte | Phase::Idle | Phase::Write, .. }
        );
        self.connection = if suspect { Connection::Fresh } else { Connection::Any };
        // A service that counts requests has not restarted.
        self.doubted |= !matches!(cause, Cause::RateLimited { .. });
        if self.gives_up_at().is_some_and(|at| at <= now.instant) {
            return self.end_with(End::Closed, out);
        }
        self.doubt(now, cause, out);
        let due = now.instant + delay;
        // What happened while it was under way is looked for as soon as an outage permits, however slow the looks have become.
        let soon = if std::mem::take(&mut self.again) { self.urgent_at(now.instant + self.backoff(now)) } else { due };
        if soon < due {
            self.urged = Some(soon);
        }
        self.rest(now, soon.min(due), out);
    }
}

/// Whether somebody answered who can be asked again: what is away costs nothing by being asked for, and is to be found again
/// soon.
fn is_answer(cause: &Cause) -> bool {
    match cause {
        Cause::Status { .. }
        | Cause::RateLimited { .. }
        | Cause::Unauthorized
        | Cause::Unavailable { .. }
        | Cause::Refused { .. }
        | Cause::Undecodable { .. }
        | Cause::Misdirected { .. }
        | Cause::NotYetVisible
        | Cause::Behind
        | Cause::OtherLog => true,
        Cause::Connecting
        | Cause::Unresolved { .. }
        | Cause::Unreachable { .. }
        | Cause::Dropped { .. }
        | Cause::Stalled { .. }
        | Cause::CredentialUnavailable { .. } => false,
    }
}
