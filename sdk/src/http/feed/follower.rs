//! A feed's decisions: when to ask, how long to wait, what it means that an answer breaks off, and when the feed is over. Pure.

use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;

use super::item::{FeedEnd, FeedItem, FeedState};
use super::reader::{Ask, Growth, Head, Out, Reached, Reader, Then, Trouble};
use super::settings::Settings;
use crate::connection::wake::Wake;
use crate::error::{Cause, Phase};
use crate::http::told::Told;
use crate::machine::{Actions, Monotonic, Now};

/// How long a stream must have been up, with a byte, before its failure starts a new outage (R8).
const PROVEN: Duration = Duration::from_secs(5);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "drivers and tests build them; a new one is to be a compile error")]
pub enum Event {
    /// The feed begins.
    Start,
    /// A phase of the request begins. Before the first one it waits for its budget.
    Began(Phase),
    /// The head of the answer came.
    Head {
        /// The status.
        status: StatusCode,
        /// The headers.
        headers: HeaderMap,
        /// What they say about asking again.
        told: Told,
    },
    /// A piece of the body came.
    Piece(Bytes),
    /// The body is complete.
    End,
    /// There is no answer, or no whole one.
    Broken {
        /// Why.
        cause: Cause,
        /// The service asks not to be asked before this time has passed.
        retry_after: Option<Duration>,
        /// Access is denied (R3).
        denied: bool,
    },
    /// The consumer took everything; until now nothing was read.
    Drained,
    /// The work is over.
    Finish,
    /// The machine's deadline passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver performs each; a new one is to be a compile error")]
pub enum Action<T> {
    /// Send this request. There is no other one.
    Ask(Ask),
    /// Abandon the request under way.
    Abort,
    /// Deliver these, and read nothing more until the consumer has taken them.
    Deliver(Vec<FeedItem<T>>),
    /// The feed is in this state now. After [`FeedState::Ended`] nothing follows.
    Show(FeedState),
}

/// The decisions of one feed, whatever its [`Reader`] reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follower<R> {
    reader: R,
    settings: Settings,
    state: State,
    shown: FeedState,
    /// When it was told that the work is over.
    finish: Option<Monotonic>,
    /// When something new came last.
    news: Monotonic,
    /// Since when nothing works.
    outage: Option<Monotonic>,
    /// Before when the service does not want to be asked (R8, FC-55).
    hold: Monotonic,
    /// The log has contradicted what was delivered, once.
    doubt: bool,
    /// How many bytes of items were delivered, and how many gaps.
    bytes: u64,
    gaps: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    New,
    Waiting { until: Monotonic },
    Asking { request: Request, bound: Option<Bound> },
    Reading { request: Request, up: Monotonic, bound: Bound, wake: Wake, floor: Duration },
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    growth: Growth,
    long: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bound {
    phase: Phase,
    bound: Duration,
    at: Monotonic,
}

impl<R: Reader> Follower<R> {
    /// Of a feed that has not begun.
    pub fn new(reader: R, settings: Settings) -> Self {
        Self {
            reader,
            settings,
            state: State::New,
            shown: FeedState::Opening,
            finish: None,
            news: Monotonic::ZERO,
            outage: None,
            hold: Monotonic::ZERO,
            doubt: false,
            bytes: 0,
            gaps: 0,
        }
    }

    /// The state that was last shown.
    pub fn state(&self) -> &FeedState {
        &self.shown
    }

    /// Whether nothing follows.
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    fn ask(&mut self, now: Now, actions: &mut Actions<Action<R::Item>>) {
        let growth = match self.finish {
            None => Growth::Open,
            Some(told) if now.instant < told + self.settings.settle => Growth::Settling,
            Some(_) => Growth::Over,
        };
        let ask = self.reader.ask(growth);
        self.state = State::Asking { request: Request { growth, long: ask.long }, bound: None };
        actions.push(Action::Ask(ask));
    }

    /// Asks at once, unless the service does not want that (R8).
    fn ask_soon(&mut self, now: Now, actions: &mut Actions<Action<R::Item>>) {
        if self.hold <= now.instant {
            return self.ask(now, actions);
        }
        self.state = State::Waiting { until: self.hold };
    }

    fn bound(&self, now: Now, phase: Phase, bound: Duration) -> Bound {
        Bound { phase, bound, at: now.instant + bound }
    }

    fn idle(&self, now: Now, request: Request) -> Bound {
        let idle = if request.long { self.settings.quiet } else { self.settings.bounds.idle };
        self.bound(now, Phase::Idle, idle)
    }

    fn show(&mut self, state: FeedState, actions: &mut Actions<Action<R::Item>>) {
        if self.shown != state {
            self.shown = state.clone();
            actions.push(Action::Show(state));
        }
    }

    fn deliver(&mut self, now: Now, out: Out<R::Item>, actions: &mut Actions<Action<R::Item>>) {
        if out.is_empty() {
            return;
        }
        let out = out.into_items();
        let mut brings = false;
        for item in &out {
            match item {
                FeedItem::Item(item) => {
                    brings = true;
                    self.bytes += R::size(item) as u64;
                }
                FeedItem::Gap { .. } => self.gaps += 1,
                FeedItem::Ended(_) => {}
            }
        }
        self.news = now.instant;
        self.doubt = false;
        // An answer counts once it brought something: a head may still be followed by nonsense.
        if brings {
            self.show(FeedState::Following, actions);
        }
        actions.push(Action::Deliver(out));
    }

    fn end(&mut self, end: FeedEnd, actions: &mut Actions<Action<R::Item>>) {
        if matches!(self.state, State::Asking { .. } | State::Reading { .. }) {
            actions.push(Action::Abort);
        }
        self.state = State::Ended;
        actions.push(Action::Deliver(vec![FeedItem::Ended(end.clone())]));
        self.show(FeedState::Ended(end), actions);
    }

    fn complete(&self) -> FeedEnd {
        FeedEnd::Complete { bytes: self.bytes, gaps: self.gaps }
    }

    /// The answer is dealt with; it brought the feed so far.
    fn reached(
        &mut self,
        now: Now,
        request: Request,
        floor: Duration,
        reached: Reached,
        actions: &mut Actions<Action<R::Item>>,
    ) {
        self.outage = None;
        self.doubt = false;
        self.hold = now.instant + floor;
        self.show(FeedState::Following, actions);
        self.state = State::Waiting { until: now.instant };
        match reached {
            Reached::Complete => self.end(self.complete(), actions),
            // Only a read that began when the log could not grow any more has seen all of it.
            Reached::End if request.growth == Growth::Over => self.end(self.complete(), actions),
            Reached::More => self.ask_soon(now, actions),
            Reached::End | Reached::Later => {
                let until = match self.finish {
                    Some(told) if reached == Reached::End => told + self.settings.settle,
                    Some(_) | None => now.instant + self.interval(now),
                };
                self.state = State::Waiting { until: until.max(self.hold) };
            }
        }
    }

    /// A share of the time for which nothing new came, less up to a tenth.
    fn interval(&self, now: Now) -> Duration {
        let pace = &self.settings.pace;
        let quiet = now.instant.since(self.news) / pace.share.max(1);
        let interval = quiet.min(pace.most).max(pace.least);
        interval - now.jitter(interval / 10)
    }

    /// The answer, or the request, came to nothing.
    fn failed(&mut self, now: Now, trouble: Trouble, floor: Duration, actions: &mut Actions<Action<R::Item>>) {
        self.hold = now.instant + floor;
        let cause = match trouble {
            Trouble::Gone => return self.end(FeedEnd::Gone { bytes: self.bytes }, actions),
            Trouble::Unreadable(cause) => {
                return self.end(FeedEnd::Incomplete { bytes: self.bytes, cause }, actions);
            }
            Trouble::Unserved(cause) => cause,
            Trouble::Contradiction if self.doubt => {
                let mut out = Out::new();
                self.reader.restart(&mut out);
                self.state = State::Waiting { until: now.instant };
                self.deliver(now, out, actions);
                return self.ask_soon(now, actions);
            }
            Trouble::Contradiction => {
                // One answer that shows less, or something else, may be a replica's or a proxy's. The same again is believed.
                self.doubt = true;
                Cause::Behind
            }
        };
        self.reader.failed();
        let since = *self.outage.get_or_insert(now.instant);
        let waits = if cause == Cause::NotYetVisible {
            // Nothing has failed: the log is not there yet.
            self.interval(now)
        } else {
            self.settings.backoff.delay(&now, now.instant.since(since), Duration::ZERO)
        };
        let waits = if self.doubt { waits.max(self.settings.pace.least) } else { waits };
        self.state = State::Waiting { until: (now.instant + waits.max(self.reader.least_delay())).max(self.hold) };
        self.show(FeedState::Stale { cause }, actions);
    }

    /// When the rest of the log is not tried for any more.
    fn last_chance(&self) -> Option<Monotonic> {
        let finished = self.finish.map(|told| told.max(self.news) + self.settings.finish_within);
        let given_up = match (self.settings.give_up, self.outage) {
            (Some(limit), Some(since)) => Some(since + limit),
            (None, _) | (_, None) => None,
        };
        finished.into_iter().chain(given_up).min()
    }

    /// When silence after the end of the work means that a stream has said all, or must be asked for anew as one that ends.
    fn settled(&self, request: Request, up: Monotonic) -> Option<Monotonic> {
        if !request.long || (request.growth != Growth::Open && !R::ENDLESS) {
            return None;
        }
        self.finish.map(|told| told.max(self.news).max(up) + self.settings.settle)
    }

    fn tick(&mut self, now: Now, actions: &mut Actions<Action<R::Item>>) {
        let passed = |at: Option<Monotonic>| at.is_some_and(|at| at <= now.instant);
        match self.state.clone() {
            State::New | State::Ended => {}
            State::Waiting { until } if until <= now.instant => self.ask(now, actions),
            State::Waiting { .. } => {}
            State::Asking { bound, .. } => {
                if let Some(bound) = bound.filter(|bound| bound.at <= now.instant) {
                    self.stalled(now, bound, actions);
                }
            }
            State::Reading { bound, .. } if bound.at <= now.instant => self.stalled(now, bound, actions),
            State::Reading { request, up, bound, mut wake, floor } => {
                if passed(self.settled(request, up)) {
                    if R::ENDLESS {
                        return self.end(self.complete(), actions);
                    }
                    actions.push(Action::Abort);
                    return self.ask(now, actions);
                }
                // A long answer may be half-open after a sleep: it is asked for anew (R7).
                if request.long && wake.due() <= now.instant {
                    if wake.jumped(&now) {
                        actions.push(Action::Abort);
                        return self.ask(now, actions);
                    }
                    self.state = State::Reading { request, up, bound, wake, floor };
                }
            }
        }
        if passed(self.last_chance()) && self.state != State::Ended {
            let cause = match &self.shown {
                FeedState::Stale { cause } => cause.clone(),
                FeedState::Opening => Cause::Connecting,
                FeedState::Following | FeedState::Ended(_) => Cause::Behind,
            };
            let end = match self.finish {
                Some(_) => FeedEnd::Incomplete { bytes: self.bytes, cause },
                None => FeedEnd::Closed,
            };
            self.end(end, actions);
        }
    }

    fn stalled(&mut self, now: Now, bound: Bound, actions: &mut Actions<Action<R::Item>>) {
        let cause = Cause::Stalled { phase: bound.phase, bound: bound.bound };
        actions.push(Action::Abort);
        self.failed(now, Trouble::Unserved(cause), self.asked(now), actions);
    }

    /// What is left of the time for which the head of the answer under way asks not to be asked again: it counts, whatever
    /// becomes of the body.
    fn asked(&self, now: Now) -> Duration {
        match self.state {
            State::Reading { up, floor, .. } => floor.saturating_sub(now.instant.since(up)),
            State::New | State::Waiting { .. } | State::Asking { .. } | State::Ended => Duration::ZERO,
        }
    }

    fn headed(
        &mut self,
        now: Now,
        request: Request,
        head: &Head<'_>,
        told: &Told,
        actions: &mut Actions<Action<R::Item>>,
    ) {
        let floor = told.retry_after.max(told.poll_interval).unwrap_or_default();
        let mut out = Out::new();
        let then = self.reader.head(head, &mut out);
        self.deliver(now, out, actions);
        match then {
            Ok(Then::Read) => {
                let bound = self.idle(now, request);
                self.state = State::Reading { request, up: now.instant, bound, wake: Wake::new(&now), floor };
                if request.long {
                    self.show(FeedState::Following, actions);
                }
            }
            Ok(Then::Reached(reached)) => {
                actions.push(Action::Abort);
                self.reached(now, request, floor, reached, actions);
            }
            Err(trouble) => {
                actions.push(Action::Abort);
                self.failed(now, trouble, floor, actions);
            }
        }
    }
}

impl<R: Reader> crate::machine::Machine for Follower<R> {
    type Event = Event;
    type Action = Action<R::Item>;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action<R::Item>> {
        let mut actions = Vec::new();
        match (self.state.clone(), event) {
            (State::Ended, _) => {}
            (State::New, Event::Start) => {
                self.news = now.instant;
                self.ask(now, &mut actions);
            }
            (state, Event::Finish) => {
                if self.finish.is_none() {
                    self.finish = Some(now.instant);
                    // Do not sleep through it; but what the service or an outage asks for stays.
                    if matches!(state, State::Waiting { .. }) && self.outage.is_none() {
                        self.state = State::Waiting { until: now.instant.max(self.hold) };
                    }
                }
            }
            (_, Event::Tick) => self.tick(now, &mut actions),
            (State::Asking { request, .. }, Event::Began(phase)) => {
                let bound = Some(self.bound(now, phase, self.settings.bounds.of(phase)));
                self.state = State::Asking { request, bound };
            }
            (State::Asking { request, .. }, Event::Head { status, headers, told }) => {
                self.headed(now, request, &Head::new(status, &headers), &told, &mut actions);
            }
            (State::Reading { request, up, wake, floor, .. }, Event::Piece(piece)) => {
                let mut out = Out::new();
                let taken = self.reader.piece(piece, &mut out);
                self.deliver(now, out, &mut actions);
                let bound = self.idle(now, request);
                self.state = State::Reading { request, up, bound, wake, floor };
                if now.instant.since(up) >= PROVEN {
                    self.outage = None;
                }
                if let Err(trouble) = taken {
                    actions.push(Action::Abort);
                    self.failed(now, trouble, floor, &mut actions);
                }
            }
            (State::Reading { request, floor, .. }, Event::End) => {
                let mut out = Out::new();
                let reached = self.reader.end(&mut out);
                self.deliver(now, out, &mut actions);
                match reached {
                    Ok(reached) => self.reached(now, request, floor, reached, &mut actions),
                    Err(trouble) => self.failed(now, trouble, floor, &mut actions),
                }
            }
            (State::Reading { request, up, wake, floor, .. }, Event::Drained) => {
                // Nothing was read meanwhile, so nothing can have stalled.
                let bound = self.idle(now, request);
                self.state = State::Reading { request, up, bound, wake, floor };
                self.news = now.instant;
            }
            (State::Waiting { .. } | State::Asking { .. }, Event::Drained) => self.news = now.instant,
            (State::Asking { .. } | State::Reading { .. }, Event::Broken { cause, retry_after, denied }) => {
                if denied {
                    self.state = State::Waiting { until: now.instant };
                    self.end(FeedEnd::Denied { bytes: self.bytes }, &mut actions);
                } else {
                    let floor = retry_after.unwrap_or_default().max(self.asked(now));
                    self.failed(now, Trouble::Unserved(cause), floor, &mut actions);
                }
            }
            // What belongs to a request that was abandoned.
            (
                State::New | State::Waiting { .. } | State::Asking { .. } | State::Reading { .. },
                Event::Start
                | Event::Began(_)
                | Event::Head { .. }
                | Event::Piece(_)
                | Event::End
                | Event::Broken { .. }
                | Event::Drained,
            ) => {}
        }
        actions
    }

    fn deadline(&self) -> Option<Monotonic> {
        let own = match &self.state {
            State::New | State::Ended => return None,
            State::Waiting { until } => Some(*until),
            State::Asking { bound, .. } => bound.map(|bound| bound.at),
            State::Reading { request, up, bound, wake, .. } => {
                [Some(bound.at), request.long.then(|| wake.due()), self.settled(*request, *up)]
                    .into_iter()
                    .flatten()
                    .min()
            }
        };
        own.into_iter().chain(self.last_chance()).min()
    }
}
