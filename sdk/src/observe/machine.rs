//! The read's decisions: one pure machine for each shared upstream, whatever the number of its observers.
//!
//! The driver tells it about the link and hands it the answers to its *current* subscription; answers
//! with an older subscription's id are dropped before. It says when to subscribe, with which cursor,
//! and what to show. Three rules carry the rest:
//! - only [`Shown::Fresh`] changes the value, so what was shown stays until something newer is confirmed (R1, R4);
//! - while it is linked and not fresh, one of its timers is armed; while it is not linked, the
//!   supervisor's is (R7);
//! - only an authority or the caller ends it (R3).

mod floors;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use vocabulary::{Action, Event, Settings, Shown};

use std::sync::Arc;
use std::time::Duration;

use self::floors::{Floors, History};
use super::End;
use crate::error::{Cause, Phase};
use crate::machine::{Actions, Monotonic, Now};
use crate::wire::{Cursor, EndReason, Epoch, LogId, Seq};

/// A read. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    settings: Settings,
    state: State,
    /// The position of the value shown.
    held: Option<Cursor>,
    floors: Floors,
    /// Whether the last thing published was `Fresh`.
    fresh: bool,
    /// Since when it is not.
    since: Monotonic,
    cause: Option<Cause>,
    not_before: Option<Monotonic>,
    /// When the service will serve the read again, as it said.
    retry_hint: Option<Monotonic>,
    /// Answers in a row that could not be shown.
    failures: u32,
    /// For how long this history has confirmed that the resource is absent.
    absent: Option<(History, Duration)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// No connection. No timer: the supervisor has one armed in each of its phases (R7).
    Unlinked,
    Linked(Link, Sub),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Link {
    log: LogId,
    epoch: Epoch,
    /// The newest sequence of `log` known to exist.
    head: Seq,
    /// Whether that log outlives the service's process.
    durable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sub {
    /// Subscribed, without an answer yet.
    Asked { after: Option<Cursor>, answer_by: Monotonic },
    /// Subscribed, and the newest answer is shown. The link's liveness has a timer armed.
    Live,
    /// Subscribed, and the service does not know the resource.
    Absent { since: Monotonic, gone_at: Monotonic },
    /// Subscribed, and the newest answer cannot be shown.
    Doubtful { reread_at: Monotonic, whole: bool },
    /// Not subscribed: the service did not serve it.
    Unserved { retry_at: Monotonic },
}

/// What expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// There was no answer to the subscription.
    FirstAnswer,
    /// It is time to read again.
    Reread,
    /// The resource has been absent for too long.
    Grace,
}

impl Link {
    fn speaks_for(self, history: History) -> bool {
        match history {
            History::Log(log) => log == self.log,
            History::Epoch(epoch) => epoch == self.epoch,
        }
    }

    /// Whether `at` lacks something that the link's log is known to hold: it was taken before the link came up.
    fn is_ahead_of(self, at: Cursor) -> bool {
        at < Cursor::log(self.log, self.head)
    }

    /// Whether `floor` is newer than the head of the link's log.
    fn is_before(self, floor: Cursor) -> bool {
        Cursor::log(self.log, self.head) < floor
    }

    fn with_seen(self, at: Cursor) -> Self {
        match at {
            Cursor::Log(t) if t.log == self.log => Self { head: self.head.max(t.seq), ..self },
            Cursor::Log(_) | Cursor::Epoch { .. } => self,
        }
    }
}

impl Sub {
    fn is_open(self) -> bool {
        match self {
            Self::Asked { .. } | Self::Live | Self::Absent { .. } | Self::Doubtful { .. } => true,
            Self::Unserved { .. } => false,
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
            State::Unlinked => match event {
                Event::Linked { log, epoch, head, durable } => {
                    self.link(now, Link { log, epoch, head, durable }, &mut out);
                }
                Event::Unlinked { cause, not_before } => self.doubt(now, cause, not_before, &mut out),
                Event::Denied => self.end(End::Denied, &mut out),
                Event::Close => self.end(End::Closed, &mut out),
                // Answers and timers of a connection that is no more.
                Event::Value { .. }
                | Event::Unchanged { .. }
                | Event::Absent { .. }
                | Event::End { .. }
                | Event::Unserved { .. }
                | Event::Tick => {}
            },
            State::Linked(link, sub) => match event {
                Event::Linked { log, epoch, head, durable } => {
                    // Another connection took the place of this one: what it confirmed counts no more (R5).
                    self.unlink(now, sub, Cause::Dropped { code: None }, None, &mut out);
                    self.link(now, Link { log, epoch, head, durable }, &mut out);
                }
                Event::Unlinked { cause, not_before } => self.unlink(now, sub, cause, not_before, &mut out),
                Event::Denied => self.end(End::Denied, &mut out),
                Event::Close => {
                    if sub.is_open() {
                        out.push(Action::Unsubscribe);
                    }
                    self.end(End::Closed, &mut out);
                }
                Event::Value { at, decoded } if sub.is_open() => self.value(now, link, sub, at, decoded, &mut out),
                Event::Unchanged { at } if sub.is_open() => self.unchanged(now, link, sub, at, &mut out),
                Event::Absent { at } if sub.is_open() => self.absent(now, link, sub, at, &mut out),
                Event::End { reason } if sub.is_open() => {
                    let end = match reason {
                        EndReason::Gone => End::Gone,
                        EndReason::Denied => End::Denied,
                    };
                    self.end(end, &mut out);
                }
                Event::Unserved { cause, retry_after } if sub.is_open() => {
                    self.unserved(now, link, sub, cause, retry_after, &mut out);
                }
                // Answers to a subscription that is over.
                Event::Value { .. }
                | Event::Unchanged { .. }
                | Event::Absent { .. }
                | Event::End { .. }
                | Event::Unserved { .. } => {}
                Event::Tick => self.tick(now, link, sub, &mut out),
            },
        }
        out
    }

    fn deadline(&self) -> Option<Monotonic> {
        match self.state {
            State::Unlinked | State::Ended => None,
            State::Linked(_, sub) => timer(sub).map(|(_, at)| at),
        }
    }
}

fn timer(sub: Sub) -> Option<(Timer, Monotonic)> {
    match sub {
        Sub::Asked { answer_by, .. } => Some((Timer::FirstAnswer, answer_by)),
        Sub::Live => None,
        Sub::Absent { gone_at, .. } => Some((Timer::Grace, gone_at)),
        Sub::Doubtful { reread_at, .. } => Some((Timer::Reread, reread_at)),
        Sub::Unserved { retry_at } => Some((Timer::Reread, retry_at)),
    }
}

impl Machine {
    /// A read that has not been asked for yet and shows [`Shown::Loading`] without a cause.
    pub fn new(settings: Settings, now: Now) -> Self {
        Self {
            settings,
            state: State::Unlinked,
            held: None,
            floors: Floors::default(),
            fresh: false,
            since: now.instant,
            cause: None,
            not_before: None,
            retry_hint: None,
            failures: 0,
            absent: None,
        }
    }

    /// Whether nothing follows.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    fn link(&mut self, now: Now, link: Link, out: &mut Actions<Action>) {
        let history = History::Log(link.log);
        if self.floors.of(history).is_some_and(|floor| link.is_before(floor)) {
            // A log whose head is below what it has shown was restored without a new id: it is another log (R4).
            self.floors.forget(history);
        }
        if let Some(Cursor::Log(held)) = self.held
            && self.resumable(link).is_none()
        {
            tracing::debug!(shown = %held, log = %link.log, head = link.head, "the service speaks from another log");
            self.doubt(now, Cause::OtherLog, None, out);
        }
        match self.retry_hint.filter(|&at| at > now.instant) {
            // The service's hint outlives the connection (R8).
            Some(retry_at) => self.state = State::Linked(link, Sub::Unserved { retry_at }),
            None => self.subscribe(now, link, false, out),
        }
    }

    fn unlink(&mut self, now: Now, sub: Sub, cause: Cause, not_before: Option<Monotonic>, out: &mut Actions<Action>) {
        self.count_absence(now, sub);
        self.doubt(now, cause, not_before, out);
        self.state = State::Unlinked;
    }

    fn subscribe(&mut self, now: Now, link: Link, whole: bool, out: &mut Actions<Action>) {
        let after = if whole { None } else { self.resumable(link) };
        let answer_by = now.instant + self.settings.first_answer;
        self.state = State::Linked(link, Sub::Asked { after, answer_by });
        out.push(Action::Subscribe { after });
    }

    /// The cursor of what is shown, if the link can compare with it: one of another history is never sent (R4).
    fn resumable(&self, link: Link) -> Option<Cursor> {
        self.held.filter(|&held| {
            let history = History::of(held);
            link.speaks_for(history) && self.floors.of(history) == Some(held)
        })
    }

    fn value(
        &mut self,
        now: Now,
        link: Link,
        sub: Sub,
        at: Cursor,
        decoded: Result<(), Arc<str>>,
        out: &mut Actions<Action>,
    ) {
        self.absent = None;
        match decoded {
            Err(detail) => {
                self.distrust(now, link.with_seen(at), sub, Cause::Undecodable { detail }, false, out);
            }
            Ok(()) if self.floors.exceed(at) || link.is_ahead_of(at) => {
                self.distrust(now, link, sub, Cause::Behind, false, out);
            }
            Ok(()) => self.confirm(link, at, true, out),
        }
    }

    fn unchanged(&mut self, now: Now, link: Link, sub: Sub, at: Cursor, out: &mut Actions<Action>) {
        // It speaks of the cursor that the subscription named, and only as long as nothing else came after.
        let same = |of: Option<Cursor>| of.is_some_and(|of| History::of(of) == History::of(at));
        let credible = match sub {
            Sub::Asked { after, .. } => same(after),
            Sub::Live => same(self.held),
            Sub::Absent { .. } | Sub::Doubtful { .. } | Sub::Unserved { .. } => false,
        };
        if !credible {
            let cause = if link.speaks_for(History::of(at)) {
                Cause::Undecodable { detail: "expected a value, got `unchanged`".into() }
            } else {
                Cause::OtherLog
            };
            self.distrust(now, link, sub, cause, true, out);
        } else if self.floors.exceed(at) || link.is_ahead_of(at) {
            self.distrust(now, link, sub, Cause::Behind, false, out);
        } else {
            self.confirm(link, at, false, out);
        }
    }

    fn absent(&mut self, now: Now, link: Link, sub: Sub, at: Cursor, out: &mut Actions<Action>) {
        let history = History::of(at);
        if self.floors.exceed(at) || link.is_ahead_of(at) {
            // It may have been created since. That is no statement about the present.
            let cause = if self.held.is_some() { Cause::Behind } else { Cause::NotYetVisible };
            self.distrust(now, link, sub, cause, false, out);
            return;
        }
        let link = link.with_seen(at);
        if self.floors.of(history).is_some() {
            // This history has shown it: it was there and is no more (FC-14).
            out.push(Action::Unsubscribe);
            self.end(End::Gone, out);
            return;
        }
        if link.durable && self.held.is_some() && matches!(history, History::Log(_)) {
            // Another durable log, such as a wrong volume, is no authority over what this one has shown (R3); the
            // original may come back. Commands are held then, too (W2).
            self.distrust(now, link, sub, Cause::OtherLog, false, out);
            return;
        }
        self.failures = 0;
        self.count_absence(now, sub);
        let used = match self.absent {
            Some((of, used)) if of == history => used,
            Some(_) | None => Duration::ZERO,
        };
        self.absent = Some((history, used));
        let gone_at = now.instant + self.settings.grace.saturating_sub(used);
        self.state = State::Linked(link, Sub::Absent { since: now.instant, gone_at });
        self.doubt(now, Cause::NotYetVisible, None, out);
    }

    fn unserved(
        &mut self,
        now: Now,
        link: Link,
        sub: Sub,
        cause: Cause,
        retry_after: Option<Duration>,
        out: &mut Actions<Action>,
    ) {
        self.count_absence(now, sub);
        let hint = retry_after.map(|d| now.instant + d);
        let retry_at = (now.instant + self.delay(now)).max(hint.unwrap_or_default());
        self.retry_hint = hint;
        self.doubt(now, cause, hint, out);
        self.state = State::Linked(link, Sub::Unserved { retry_at });
    }

    fn tick(&mut self, now: Now, link: Link, sub: Sub, out: &mut Actions<Action>) {
        let Some((timer, _)) = timer(sub).filter(|&(_, at)| at <= now.instant) else { return };
        if sub.is_open() {
            out.push(Action::Unsubscribe);
        }
        match timer {
            Timer::FirstAnswer => {
                let cause = Cause::Stalled { phase: Phase::FirstByte, bound: self.settings.first_answer };
                self.doubt(now, cause, None, out);
                self.subscribe(now, link, false, out);
            }
            Timer::Reread => {
                let whole = matches!(sub, Sub::Doubtful { whole: true, .. });
                self.subscribe(now, link, whole, out);
            }
            Timer::Grace => self.end(End::Gone, out),
        }
    }

    /// The newest answer cannot be shown: what is shown stays, and the read is made again after a delay (R4).
    fn distrust(&mut self, now: Now, link: Link, sub: Sub, cause: Cause, whole: bool, out: &mut Actions<Action>) {
        self.count_absence(now, sub);
        self.doubt(now, cause, None, out);
        let sub = match sub {
            // A fast stream of such answers does not put off the next read.
            Sub::Doubtful { reread_at, whole: before } => Sub::Doubtful { reread_at, whole: before || whole },
            Sub::Asked { .. } | Sub::Live | Sub::Absent { .. } | Sub::Unserved { .. } => {
                Sub::Doubtful { reread_at: now.instant + self.delay(now), whole }
            }
        };
        self.state = State::Linked(link, sub);
    }

    /// An answer on the live subscription, not older than anything known: the only way to be fresh (R5).
    fn confirm(&mut self, link: Link, at: Cursor, take: bool, out: &mut Actions<Action>) {
        self.floors.raise(at);
        self.held = Some(at);
        self.fresh = true;
        self.cause = None;
        self.not_before = None;
        self.retry_hint = None;
        self.failures = 0;
        self.absent = None;
        self.state = State::Linked(link.with_seen(at), Sub::Live);
        out.push(Action::Publish(Shown::Fresh { at, take }));
    }

    /// Shows that the read is not confirmed, and why; says nothing twice.
    fn doubt(&mut self, now: Now, cause: Cause, not_before: Option<Monotonic>, out: &mut Actions<Action>) {
        if self.fresh {
            self.fresh = false;
            self.since = now.instant;
        } else if self.cause.as_ref() == Some(&cause) && self.not_before == not_before {
            return;
        }
        self.cause = Some(cause.clone());
        self.not_before = not_before;
        let since = self.since;
        out.push(Action::Publish(match self.held {
            Some(_) => Shown::Stale { since, cause, not_before },
            None => Shown::Loading { since, cause: Some(cause), not_before },
        }));
    }

    fn end(&mut self, end: End, out: &mut Actions<Action>) {
        self.state = State::Ended;
        out.push(Action::Publish(Shown::Ended(end)));
    }

    /// The grace runs only while the service confirms the absence.
    fn count_absence(&mut self, now: Now, sub: Sub) {
        if let (Sub::Absent { since, .. }, Some((_, used))) = (sub, &mut self.absent) {
            *used = used.saturating_add(now.instant.since(since));
        }
    }

    /// Full jitter that grows with each answer in a row that could not be shown.
    fn delay(&mut self, now: Now) -> Duration {
        let cap = self.settings.backoff.saturating_mul(1 << self.failures).min(self.settings.backoff_cap);
        self.failures = (self.failures + 1).min(16);
        now.jitter(cap)
    }
}
