//! Performs what the machine of a polled read says.

mod look;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use futures::stream::{self, Stream, StreamExt as _};
use tokio::sync::watch;
use url::Url;

use self::look::{Flight, Flown, Identity, Missed, Outcome, Reading};
use super::budgets::Budget;
use super::exchange::{Connection, Progress};
use super::guide::{Guide, Guided, Turn};
use super::intake::ERROR_PATIENCE;
use super::poll::{Action, Answer, Event, Machine, Settings};
use super::push::{self, Happening, Push};
use super::query;
use super::reader::{Query, Reader};
use super::redirect::Trail;
use super::requester::{Allowed, Ask, Requester, Wanted, Wish};
use super::shared::Shared;
use crate::credential::{Refusals, Scope, Unheld, Verdict};
use crate::env::{Alarm, Env};
use crate::error::Cause;
use crate::machine::Machine as _;
use crate::observe::machine::Shown;
use crate::observe::{Observable, Publisher, channel};
use crate::wire::Epoch;

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// A read, set up.
pub(super) struct Parts<T> {
    pub(super) requester: Requester,
    pub(super) url: Url,
    pub(super) reader: Reader<T>,
    pub(super) settings: Settings,
    pub(super) push: Option<Push>,
    pub(super) guide: Option<Box<dyn Guide<T>>>,
}

/// One look at a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Look {
    /// Counts the requests of the read; 1 for the first.
    pub number: u64,
    /// The status of its answer; `None` if there was none.
    pub status: Option<u16>,
    /// When the next look is planned, from now: the interval that the read has chosen or that the service states, the
    /// jitter included.
    pub next: Duration,
}

/// Starts to read. The task ends with its last observer, with an end of the read, or with the agent's runtime.
pub(super) fn start<T: Send + Sync + 'static>(agent: &Shared, parts: Parts<T>) -> Observable<T> {
    spawn(agent, parts, None)
}

/// The same, with what each look came to.
pub(super) fn start_with_looks<T: Send + Sync + 'static>(
    agent: &Shared,
    parts: Parts<T>,
) -> (Observable<T>, Observable<Look>) {
    let (looks, seen) = channel();
    (spawn(agent, parts, Some(looks)), seen)
}

fn spawn<T: Send + Sync + 'static>(agent: &Shared, parts: Parts<T>, looks: Option<Publisher<Look>>) -> Observable<T> {
    let (publisher, readings) = channel();
    let mut poller = Poller::new(parts, publisher, looks);
    let jumps = jumps(agent.woke.clone());
    // Lent, because a future that owns it would hold it twice.
    drop(agent.runtime.spawn(async move { poller.run(jumps).await }));
    readings
}

struct Poller<T> {
    env: Env,
    requester: Requester,
    url: Url,
    reader: Arc<Reader<T>>,
    machine: Machine,
    /// The longest interval.
    most: Duration,
    /// For how long the body of an answer is waited for that is known without it.
    patience: Duration,
    /// How long the service is asked to hold a request.
    wait: Option<Duration>,
    publisher: Publisher<T>,
    /// If anybody wants to know.
    looks: Option<Publisher<Look>>,
    alarm: Alarm,
    push: Option<Box<push::Stream>>,
    /// The stream that the guide gave, unless the caller has set one.
    led: Led,
    wanted: Option<Wanted>,
    allowed: Option<Arc<Allowed>>,
    flight: Option<Flight<T>>,
    /// The value that was just decoded, until the machine says to show it.
    taken: Option<Arc<T>>,
    /// Of the value that the machine is about to show, or to confirm.
    learned: Option<Identity>,
    /// Of the value that is shown.
    shown: Identity,
    /// Where the next request continues.
    query: Query,
    guide: Option<Box<dyn Guide<T>>>,
    refusals: Refusals,
    budget: Option<Budget>,
    number: u64,
    status: Option<StatusCode>,
    ended: bool,
}

/// Who says which stream is open.
enum Led {
    ByCaller,
    ByGuide(Option<Push>),
}

impl<T: Send + Sync + 'static> Poller<T> {
    fn new(parts: Parts<T>, publisher: Publisher<T>, looks: Option<Publisher<Look>>) -> Self {
        let Parts { requester, url, reader, settings, push, guide } = parts;
        let env = requester.env().clone();
        let epoch = Epoch::new(env.ulid());
        let (most, wait) = (settings.pace.most, settings.wait);
        // Before the machine takes it for a stall: the head has said what counts.
        let patience = ERROR_PATIENCE.min(settings.bounds.idle.min(settings.bounds.body) / 2);
        let machine = Machine::new(settings, epoch, env.now());
        let (push, led) = match push {
            Some(push) => (Some(push), Led::ByCaller),
            None => {
                let push = guide.as_ref().and_then(|guide| guide.push());
                (push.clone(), Led::ByGuide(push))
            }
        };
        let push = push.map(|push| Box::new(push.open(&requester, &url)));
        Self {
            alarm: Alarm::new(env.clone()),
            env,
            requester,
            url,
            reader: Arc::new(reader),
            machine,
            most,
            patience,
            wait,
            publisher,
            looks,
            push,
            led,
            wanted: None,
            allowed: None,
            flight: None,
            taken: None,
            learned: None,
            shown: Identity::default(),
            query: Query::new(),
            guide,
            refusals: Refusals::default(),
            budget: None,
            number: 0,
            status: None,
            ended: false,
        }
    }

    async fn run(&mut self, jumps: impl Stream<Item = ()> + Send) {
        let unobserved = self.publisher.unobserved();
        tokio::pin!(unobserved, jumps);
        self.tell(Event::Start);
        while !self.ended {
            let deadline = self.machine.deadline();
            tokio::select! {
                biased; // what comes of a request first, which comes rarely; a stream that never rests last
                wish = of(self.wanted.as_mut(), |wanted| wanted.next()) => self.on_wish(wish),
                step = of(self.flight.as_mut(), Flight::next) => match step {
                    Flown::Began(phase) => self.tell(Event::Began(phase)),
                    Flown::Told(until) => self.tell(Event::Told(until.since(self.env.instant()))),
                    Flown::Landed(outcome) => self.on_outcome(outcome),
                },
                () = self.alarm.wait(deadline) => self.tell(Event::Tick),
                () = &mut unobserved => self.tell(Event::Close),
                Some(()) = jumps.next() => {
                    // Whoever holds the other end of it may have restarted meanwhile.
                    self.query.clear();
                    self.tell(Event::Woke);
                }
                happening = of(self.push.as_mut(), |push| push.next()) => self.on_push(happening),
            }
        }
    }

    fn on_wish(&mut self, wish: Wish) {
        match wish {
            Wish::Held(until) => self.tell(Event::Held { until }),
            Wish::Unheld(unheld) => {
                self.wanted = None;
                self.tell(match unheld {
                    Unheld::Denied => Event::Denied,
                    Unheld::Unavailable(cause) => Event::Failed { cause, again: false },
                });
            }
            Wish::Allowed(allowed) => {
                self.wanted = None;
                if self.refusals.denied(allowed.held.generation) {
                    return self.tell(Event::Denied);
                }
                if !self.budget.as_ref().is_some_and(|budget| budget.is(allowed.budget())) {
                    self.budget = Some(allowed.budget().clone());
                }
                self.allowed = Some(allowed);
                self.tell(Event::Permitted);
            }
        }
    }

    fn on_outcome(&mut self, outcome: Outcome<T>) {
        let Some(allowed) = self.flight.take().map(Flight::into_allowed) else { return };
        let Outcome { status, result } = outcome;
        self.status = status;
        if let Some(until) = allowed.asked_until() {
            // The last head may have come together with its end.
            self.tell(Event::Told(until.since(self.env.instant())));
        }
        match result {
            Err(Missed { cause, again }) => {
                drop(allowed);
                self.query.clear();
                self.unanswered();
                self.tell(Event::Failed { cause, again });
            }
            Ok(got) => {
                self.judge_credential(&allowed, status, &got.answer);
                drop(allowed);
                self.go_on(&got.answer, got.query);
                (self.taken, self.learned) = (got.value, got.identity);
                let (answer, turn) = self.guided(got.answer);
                let served = matches!(answer, Answer::Value(_) | Answer::Same | Answer::Unchanged | Answer::Nothing);
                let retry_after = if served { got.told.retry_after } else { got.told.wait() };
                // A cache's freshness stretches the interval, but not beyond what the caller has set.
                let fresh_for = got.told.fresh_for.map(|fresh| fresh.min(self.most));
                let holds = fresh_for.max(got.told.poll_interval);
                self.tell(Event::Answered { answer, retry_after, holds });
                if turn.is_some() {
                    self.turn_push();
                }
                if turn == Some(Turn::AtOnce) {
                    self.tell(Event::Hint);
                }
            }
        }
    }

    /// What the guide makes of an answer, if there is one.
    fn guided(&mut self, answer: Answer) -> (Answer, Option<Turn>) {
        let Some(guide) = &mut self.guide else { return (answer, None) };
        let Guided { answer, turn } = guide.judge(self.env.now(), answer, self.taken.as_deref());
        if turn.is_some() {
            self.url = guide.url().clone();
            // What was shown came from elsewhere: nothing there is compared with it.
            self.shown = Identity::default();
            self.learned = None;
        }
        let decode = guide.decode();
        self.reader = Arc::new(Reader { decode, ..Reader::clone(&self.reader) });
        (answer, turn)
    }

    /// Opens the stream that tells of what is read now, in place of the one that told of what was read before.
    fn turn_push(&mut self) {
        let (Led::ByGuide(open), Some(guide)) = (&mut self.led, &self.guide) else { return };
        let push = guide.push();
        let same = match (&*open, &push) {
            (Some(open), Some(push)) => open.is(push),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if same {
            return;
        }
        open.clone_from(&push);
        let attached = self.push.as_ref().is_some_and(|stream| stream.is_attached());
        self.push = push.map(|push| Box::new(push.open(&self.requester, &self.url)));
        if attached {
            // The new one is not up yet.
            self.tell(Event::Detached(Cause::Connecting));
        }
    }

    /// Where the next request continues. What no answer of use came to may be a cursor of a former life of the service, or
    /// one that it cannot serve: the next request is for the whole (R4, FC-19, FC-21).
    fn go_on(&mut self, answer: &Answer, query: Option<Query>) {
        match answer {
            Answer::Value(_) | Answer::Nothing => self.query = query.unwrap_or_else(|| std::mem::take(&mut self.query)),
            Answer::Same | Answer::Unchanged | Answer::Refused(_) | Answer::Unserved(Cause::RateLimited { .. }) => {}
            Answer::Absent | Answer::Gone | Answer::Unserved(_) => self.query.clear(),
        }
    }

    /// A request came to no answer.
    fn unanswered(&mut self) {
        if let Some(guide) = &mut self.guide {
            guide.unanswered(self.env.now());
        }
    }

    /// R3: what the answer says about the credential.
    fn judge_credential(&mut self, allowed: &Allowed, status: Option<StatusCode>, answer: &Answer) {
        match answer {
            Answer::Refused(generation) => {
                let scope = if status == Some(StatusCode::UNAUTHORIZED) { Scope::Credential } else { Scope::Resource };
                self.requester.keeper().refused(&allowed.held, scope);
                if self.refusals.refused(self.env.instant(), *generation) == Verdict::Denied {
                    tracing::debug!(url = %self.shown_url(), "the service refused the credential twice");
                }
            }
            Answer::Value(_) | Answer::Same | Answer::Unchanged => {
                self.requester.keeper().accepted(&allowed.held);
                self.refusals.accepted();
            }
            Answer::Nothing | Answer::Absent | Answer::Gone | Answer::Unserved(_) => {}
        }
    }

    fn on_push(&mut self, happening: Happening) {
        match happening {
            Happening::Attached => self.tell(Event::Attached),
            Happening::Detached(cause) => self.tell(Event::Detached(cause)),
            Happening::Hint => self.tell(Event::Hint),
            Happening::Value(body) => {
                let pushed = self.reader.pushed(&body).map(|(value, marks)| {
                    (self.taken, self.learned) = (Some(Arc::new(value)), Some(Identity::default()));
                    marks
                });
                self.tell(Event::Pushed(pushed));
            }
        }
    }

    fn tell(&mut self, event: Event) {
        let actions = self.machine.on_event(self.env.now_without_wall(), event);
        for action in actions {
            match action {
                Action::Want => {
                    self.wanted = Some(self.requester.want(&self.url, self.budget.clone()));
                }
                Action::Withdraw => {
                    self.wanted = None;
                    self.allowed = None;
                }
                Action::Send { validate, connection } => self.send(validate, connection),
                Action::Abort => {
                    self.flight = None;
                    self.query.clear();
                    self.unanswered();
                }
                Action::Scheduled(next) => {
                    let status = self.status.map(|status| status.as_u16());
                    tracing::trace!(url = %self.shown_url(), ?next, "the next look is planned");
                    if let Some(looks) = &self.looks {
                        looks.fresh(Look { number: self.number, status, next });
                    }
                }
                Action::Publish(shown) => {
                    self.ended |= matches!(shown, Shown::Ended(_));
                    let mut value = None;
                    if let Shown::Fresh { take, .. } = shown {
                        value = if take { self.taken.take() } else { None };
                        if let (Some(guide), Some(value)) = (&mut self.guide, &value) {
                            guide.shown(self.env.now(), value);
                        }
                        if let Some(identity) = self.learned.take() {
                            self.shown = identity;
                        }
                    }
                    // Whatever it replaces is dropped there, after it was replaced.
                    contained(|| self.publisher.show(shown, value, &self.env));
                }
            }
        }
        // What the machine did not take is not shown later.
        self.learned = None;
        let unused = self.taken.take();
        contained(|| drop(unused));
    }

    fn send(&mut self, validate: bool, connection: Connection) {
        let Some(allowed) = self.allowed.take() else { return };
        self.number += 1;
        let mut url = self.url.clone();
        if !self.query.is_empty() {
            query::set(&mut url, self.query.iter().map(|(name, value)| (&**name, &**value)));
        }
        let (progress, phases) = Progress::observed();
        let validator = if validate { self.shown.validator.clone() } else { None };
        // Only what names a state, or a page, is held open until something changes; anything else is answered at once.
        let continues = validator.is_some() || !self.query.is_empty();
        let prefer = self.wait.filter(|_| continues).and_then(prefer);
        let held = prefer.is_some() || !self.query.is_empty();
        let headers = prefer.map(|value| Box::new(HeaderMap::from_iter([(PREFER, value)])));
        let ask = Ask { trail: Trail::new(url), headers, validator, connection, progress };
        let reading =
            Reading { reader: Arc::clone(&self.reader), held, shown: self.shown.digest, patience: self.patience };
        self.flight = Some(Flight::new(self.requester.clone(), allowed, ask, phases, reading));
    }

    fn shown_url(&self) -> crate::connection::Endpoint {
        crate::connection::Endpoint::new(self.url.as_str())
    }
}

/// `Prefer: wait` (RFC 7240, 4.3): whole seconds.
fn prefer(wait: Duration) -> Option<HeaderValue> {
    let seconds = Some(wait.as_secs()).filter(|seconds| *seconds > 0)?;
    HeaderValue::try_from(format!("wait={seconds}")).ok()
}

/// Runs what drops a value: that is the caller's code, and its panic no end of the read (R1, R3).
fn contained(code: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(code)).is_err() {
        tracing::debug!("the drop of a value panicked");
    }
}

/// Each jump of the clocks, and what waits for it all the time.
fn jumps(woke: watch::Receiver<u64>) -> impl Stream<Item = ()> {
    stream::unfold(woke, |mut woke| async move { woke.changed().await.ok().map(|()| ((), woke)) }).fuse()
}

/// The next step of something that may not be there; then never.
async fn of<'a, S, F: Future>(source: Option<&'a mut S>, next: impl FnOnce(&'a mut S) -> F) -> F::Output {
    match source {
        Some(source) => next(source).await,
        None => std::future::pending().await,
    }
}
