//! The polled read's decisions; the tables are in the [module above](super).

mod absence;
mod answers;
mod face;
#[cfg(test)]
mod model;
mod order;
#[cfg(test)]
mod tests;
mod turns;

use std::time::Duration;

use self::absence::Absence;
use self::face::Face;
use super::settings::Settings;
use super::vocabulary::{Action, Event, Marks};
use crate::error::{Cause, Phase};
use crate::http::exchange::Connection;
use crate::machine::{Actions, LONGEST_HINT, Monotonic, Now};
use crate::observe::End;
use crate::observe::machine::Shown;
use crate::wire::{Cursor, Epoch};

/// The least time between two requests for one reason, whatever the settings and the draw. Only a pace of zero has none
/// after a good answer.
const LEAST: Duration = Duration::from_millis(10);

/// A polled read. See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    settings: Settings,
    epoch: Epoch,
    state: State,
    /// The number of the last request, or of the last pushed value that was shown.
    count: u64,
    held: Option<Held>,
    face: Face,
    /// Since when the value has been the same.
    changed: Monotonic,
    outage: Option<Outage>,
    /// Since when no answer was a good one: the backoff grows with it. Unlike an outage, it lasts while a service answers
    /// with what is of no use.
    rough: Option<Monotonic>,
    /// Since when there were answers, and none of use; `None` once there was no answer.
    useless: Option<Monotonic>,
    absence: Absence,
    /// When an answer first said that what is over goes on.
    reopening: Option<Monotonic>,
    /// Since when all answers are values of a lower version.
    lower: Option<Monotonic>,
    stream: Stream,
    /// Before when the service does not want to be asked (R8, FC-55).
    hold: Monotonic,
    /// When a look out of turn was made last, or will be.
    urged: Option<Monotonic>,
    /// When a clock's jump last led to a look, or will.
    woken: Option<Monotonic>,
    /// Whether something happened after the request under way was sent that its answer may not show.
    again: bool,
    /// Whether the service may be another life of itself, whose `unchanged` says nothing (FC-21).
    doubted: bool,
    /// Which connection the next request may use.
    connection: Connection,
}

/// The value shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Held {
    /// The highest that was shown.
    marks: Marks,
    /// Whether it was pushed: then there is no validator for it.
    pushed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Outage {
    since: Monotonic,
    /// Whether a request was sent after the first failure (FC-45).
    retried: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stream {
    Down,
    Up {
        /// Requests of a higher number were sent while it was up.
        after: u64,
        /// Whether one of them was answered (R5).
        confirmed: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    New {
        since: Monotonic,
    },
    Idle {
        /// The next look.
        at: Monotonic,
        /// The next look in its turn; `at` is no later.
        due: Monotonic,
    },
    Wanting {
        /// When this look is due in its turn.
        due: Monotonic,
        /// Before when the budget permits nothing; `None` once that is shown.
        held: Option<Monotonic>,
        /// Whether this is the second attempt of one look (FC-90).
        second: bool,
    },
    Sending(Flight),
    Ended,
}

/// The request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flight {
    number: u64,
    validate: bool,
    second: bool,
    sent: Monotonic,
    phase: Phase,
    bound: Duration,
    by: Monotonic,
    /// When the body must have come to its end.
    body_by: Option<Monotonic>,
    /// Whether a pushed value was shown since it was sent (FC-88).
    overtaken: bool,
}

impl Flight {
    /// What expires next: the phase, its bound, and when.
    fn timer(&self, body: Duration) -> (Phase, Duration, Monotonic) {
        match self.body_by {
            Some(by) if by < self.by => (self.phase, body, by),
            Some(_) | None => (self.phase, self.bound, self.by),
        }
    }
}

impl crate::machine::Machine for Machine {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        let mut out = Actions::new();
        match self.state {
            State::Ended => {}
            State::New { .. } | State::Idle { .. } | State::Wanting { .. } | State::Sending(_) => {
                self.take(now, event, &mut out);
            }
        }
        out
    }

    fn deadline(&self) -> Option<Monotonic> {
        match self.state {
            State::New { since } => Some(since),
            State::Idle { at, .. } => Some(self.gives_up_at().map_or(at, |end| end.min(at))),
            State::Wanting { due, held, .. } => held.map(|_| due).into_iter().chain(self.gives_up_at()).min(),
            State::Sending(flight) => Some(flight.timer(self.settings.bounds.body).2),
            State::Ended => None,
        }
    }
}

impl Machine {
    /// A read that has not begun, and shows [`Shown::Loading`] without a cause.
    /// Its cursors are of `epoch`, one for each machine.
    pub fn new(settings: Settings, epoch: Epoch, now: Now) -> Self {
        Self {
            settings,
            epoch,
            state: State::New { since: now.instant },
            count: 0,
            held: None,
            face: Face::new(now.instant),
            changed: now.instant,
            outage: None,
            rough: None,
            useless: None,
            absence: Absence::default(),
            reopening: None,
            lower: None,
            stream: Stream::Down,
            hold: now.instant,
            urged: None,
            woken: None,
            again: false,
            doubted: false,
            connection: Connection::Any,
        }
    }

    /// Whether nothing follows.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    fn take(&mut self, now: Now, event: Event, out: &mut Actions<Action>) {
        match event {
            Event::Start => {
                if let State::New { .. } = self.state {
                    self.want(now.instant, false, out);
                }
            }
            Event::Permitted => {
                if let State::Wanting { second, .. } = self.state {
                    self.send(now, second, out);
                }
            }
            Event::Held { until } => {
                if let State::Wanting { due, second, .. } = self.state {
                    self.state = State::Wanting { due, held: Some(until), second };
                    self.show_held(now, out);
                }
            }
            Event::Began(phase) => {
                if let State::Sending(flight) = self.state {
                    self.began(now, flight, phase);
                }
            }
            Event::Told(wait) => {
                if let State::Sending(_) = self.state {
                    self.hold_until(now, wait);
                }
            }
            Event::Answered { answer, retry_after, holds } => {
                if let State::Sending(flight) = self.state {
                    self.hold_until(now, retry_after.unwrap_or_default());
                    self.answered(now, flight, answer, holds.unwrap_or_default().min(LONGEST_HINT), out);
                }
            }
            Event::Failed { cause, again } => match self.state {
                State::Sending(flight) if again && !flight.second && self.hold <= now.instant => {
                    // The service may have restarted between two requests on one connection (FC-21).
                    self.doubted = true;
                    self.connection = Connection::Fresh;
                    self.absence.interrupt(self.held.is_some());
                    self.want(now.instant, true, out);
                }
                State::Sending(_) => self.fail(now, cause, out),
                State::Wanting { .. } => self.unsent(now, cause, out),
                State::New { .. } | State::Idle { .. } | State::Ended => {}
            },
            Event::Denied => self.end(End::Denied, out),
            Event::Attached => {
                self.stream = Stream::Up { after: self.count, confirmed: false };
                self.urge(now, now.instant, out);
            }
            Event::Detached(cause) => {
                tracing::debug!(%cause, "the stream of events is down");
                self.stream = Stream::Down;
                // The service may have restarted, though no request has noticed (FC-21).
                self.doubted |= matches!(cause, Cause::Dropped { .. } | Cause::Stalled { .. });
                // What happened while it went down is told by nobody else; and not all look at one instant (FC-48).
                self.urge(now, now.instant + now.jitter(self.least()), out);
            }
            Event::Hint => self.urge(now, now.instant, out),
            Event::Pushed(pushed) => self.pushed(now, pushed, out),
            Event::Woke => self.woke(now, out),
            Event::Close => self.end(End::Closed, out),
            Event::Tick => self.tick(now, out),
        }
    }

    /// Never shortens what was asked for before: the head of a redirect may say more than what it leads to.
    fn hold_until(&mut self, now: Now, wait: Duration) {
        self.hold = self.hold.max(now.instant + wait.min(LONGEST_HINT));
    }

    fn tick(&mut self, now: Now, out: &mut Actions<Action>) {
        match self.state {
            State::New { .. } => self.want(now.instant, false, out),
            State::Idle { .. } | State::Wanting { .. } if self.gives_up_at().is_some_and(|at| at <= now.instant) => {
                self.end(End::Closed, out);
            }
            State::Idle { at, due } => {
                if at <= now.instant {
                    self.want(due, false, out);
                }
            }
            State::Wanting { .. } => self.show_held(now, out),
            State::Sending(flight) => {
                let (phase, bound, by) = flight.timer(self.settings.bounds.body);
                if by <= now.instant {
                    out.push(Action::Abort);
                    self.fail(now, Cause::Stalled { phase, bound }, out);
                }
            }
            State::Ended => {}
        }
    }

    fn want(&mut self, due: Monotonic, second: bool, out: &mut Actions<Action>) {
        // Whatever has happened until now happened before this request.
        self.again = false;
        self.state = State::Wanting { due, held: None, second };
        out.push(Action::Want);
    }

    fn send(&mut self, now: Now, second: bool, out: &mut Actions<Action>) {
        self.count += 1;
        if let Some(outage) = &mut self.outage {
            outage.retried = true;
        }
        let validate = self.may_validate();
        let connection = std::mem::replace(&mut self.connection, Connection::Any);
        let (phase, bound) = (Phase::FirstByte, self.bound(Phase::FirstByte));
        self.state = State::Sending(Flight {
            number: self.count,
            validate,
            second,
            sent: now.instant,
            phase,
            bound,
            by: now.instant + bound,
            body_by: None,
            overtaken: false,
        });
        out.push(Action::Send { validate, connection });
    }

    /// Whether the request may name the value that is shown. Not after a failure: the service may be another life of
    /// itself, which takes the name for one of its own (FC-21). And not where a long poll would keep back what is needed now.
    fn may_validate(&self) -> bool {
        let awaited = match self.stream {
            Stream::Down => false,
            Stream::Up { confirmed, .. } => !confirmed,
        };
        let now = !self.face.is_fresh() || awaited;
        self.held.is_some_and(|held| !held.pushed) && !self.doubted && !(now && self.settings.wait.is_some())
    }

    fn began(&mut self, now: Now, flight: Flight, phase: Phase) {
        let bound = self.bound(phase);
        let body_by = match phase {
            Phase::Idle => Some(flight.body_by.unwrap_or(now.instant + self.settings.bounds.body)),
            // A redirect's next request.
            Phase::Discover
            | Phase::Resolve
            | Phase::Connect
            | Phase::Tls
            | Phase::Upgrade
            | Phase::Welcome
            | Phase::FirstByte
            | Phase::Write
            | Phase::Credential => None,
        };
        self.state = State::Sending(Flight { phase, bound, by: now.instant + bound, body_by, ..flight });
    }

    fn bound(&self, phase: Phase) -> Duration {
        let held = match phase {
            Phase::Upgrade | Phase::Welcome | Phase::FirstByte => self.settings.wait.unwrap_or_default(),
            Phase::Credential
            | Phase::Discover
            | Phase::Resolve
            | Phase::Connect
            | Phase::Tls
            | Phase::Write
            | Phase::Idle => Duration::ZERO,
        };
        self.settings.bounds.of(phase).saturating_add(held)
    }

    /// When the outage has lasted for as long as the caller bears. Never before one retry (FC-45).
    fn gives_up_at(&self) -> Option<Monotonic> {
        let outage = self.outage.filter(|outage| outage.retried)?;
        self.settings.give_up.map(|bears| outage.since + bears)
    }

    fn pushed(&mut self, now: Now, marks: Option<Marks>, out: &mut Actions<Action>) {
        let counts = match self.stream {
            Stream::Down => false,
            Stream::Up { confirmed, .. } => confirmed,
        };
        let next = self
            .held
            .zip(marks)
            .filter(|_| counts)
            .map(|(held, marks)| (marks, order::is_pushed_next(held.marks, marks)));
        match next {
            Some((marks, true)) => {
                self.hold_value(now, marks, true, true);
                self.count += 1;
                self.outage = None;
                self.absence = Absence::default();
                self.reopening = None;
                out.push(Action::Publish(self.face.confirm(self.cursor(self.count), true)));
                if let State::Sending(flight) = &mut self.state {
                    flight.overtaken = true;
                }
            }
            // An event may come late, or twice. Where the value does not prove its place, what the service answers decides.
            Some((_, false)) | None => self.urge(now, now.instant, out),
        }
    }

    fn hold_value(&mut self, now: Now, marks: Marks, changed: bool, pushed: bool) {
        let marks = order::raise(self.held.map(|held| held.marks), marks);
        self.held = Some(Held { marks, pushed });
        if changed {
            self.changed = now.instant;
        }
    }

    /// The answer to this request says that the value is the current one.
    fn confirm(&mut self, flight: Flight, take: bool, out: &mut Actions<Action>) {
        self.outage = None;
        self.rough = None;
        self.useless = None;
        self.absence = Absence::default();
        self.reopening = None;
        self.lower = None;
        self.doubted = false;
        match &mut self.stream {
            Stream::Down => {}
            Stream::Up { after, confirmed } => *confirmed |= flight.number > *after,
        }
        // What proves to be later than a pushed value stands after it, though it was asked for before.
        self.count += u64::from(flight.overtaken);
        let at = self.cursor(if flight.overtaken { self.count } else { flight.number });
        out.push(Action::Publish(self.face.confirm(at, take)));
    }

    fn cursor(&self, count: u64) -> Cursor {
        Cursor::Epoch { epoch: self.epoch, count }
    }

    fn doubt(&mut self, now: Now, cause: Cause, out: &mut Actions<Action>) {
        let not_before = (self.hold > now.instant).then_some(self.hold);
        out.extend(self.face.doubt(now.instant, cause, not_before).map(Action::Publish));
    }

    /// Shows that the budget permits no look, once one is due (R9).
    fn show_held(&mut self, now: Now, out: &mut Actions<Action>) {
        let State::Wanting { due, held: Some(until), second } = self.state else { return };
        if due > now.instant {
            return;
        }
        self.state = State::Wanting { due, held: None, second };
        if until > now.instant {
            let cause = Cause::RateLimited { retry_after: until.since(now.instant) };
            out.extend(self.face.doubt(now.instant, cause, Some(until)).map(Action::Publish));
        }
    }

    fn end(&mut self, end: End, out: &mut Actions<Action>) {
        match self.state {
            State::Wanting { .. } => out.push(Action::Withdraw),
            State::Sending(_) => out.push(Action::Abort),
            State::New { .. } | State::Idle { .. } | State::Ended => {}
        }
        self.end_with(end, out);
    }

    /// Ends it when no request is under way.
    fn end_with(&mut self, end: End, out: &mut Actions<Action>) {
        self.state = State::Ended;
        out.push(Action::Publish(Shown::Ended(end)));
    }
}
