//! A WebSocket beside a read, at work: performs what its machine says.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, ACCEPT_ENCODING, SEC_WEBSOCKET_PROTOCOL};
use ::http::{HeaderMap, Response, StatusCode};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use url::Url;

use super::link::{Action, Config, Event, Link};
use super::websocket::{Said, WebSocket};
use super::{Happening, Report, as_http, backoff};
use crate::connection::close::CloseMeaning;
use crate::connection::liveness;
use crate::credential::{Held, Refusals, Scope, Unheld, Verdict};
use crate::env::{Alarm, Env};
use crate::error::{Cause, Phase};
use crate::http::answer::{self, Asked, Expected, Judgement, is_absent};
use crate::http::exchange::{Phases, Progress};
use crate::http::poll::Answer;
use crate::http::requester::{Allowed, Requester, Wanted, Wish};
use crate::http::told::Told;
use crate::machine::Machine as _;
use crate::transport::{Io, NoUpgrade, Received, Socket, Upgraded, hint};

/// Connects, and connects again.
pub(super) struct Dialing {
    websocket: WebSocket,
    url: Url,
    requester: Requester,
    env: Env,
    link: Link,
    refusals: Refusals,
    wanted: Option<Box<Wanted>>,
    /// Until the upgrade is answered.
    permission: Option<Permission>,
    /// What the present attempt was made with.
    held: Option<Held>,
    step: Option<Underway>,
    live: Option<Live>,
    alarm: Alarm,
    ready: VecDeque<Report>,
    begun: bool,
}

struct Live {
    socket: Socket<Box<dyn Io>>,
    writing: bool,
    /// No answer to a ping has come that followed the first messages.
    unanswered: bool,
}

/// The permission of one round. Dropped while no connection was made, it takes nothing of the service's rate.
struct Permission {
    allowed: Arc<Allowed>,
    /// Where the present dial is.
    progress: Option<Progress>,
    /// Whether one before it had a connection.
    reached: bool,
}

impl Permission {
    fn new(allowed: Arc<Allowed>) -> Self {
        Self { allowed, progress: None, reached: false }
    }

    fn has_reached(&self) -> bool {
        self.reached || self.progress.as_ref().is_some_and(|progress| !progress.is_connecting())
    }

    fn dials(&mut self, progress: Progress) {
        self.reached = self.has_reached();
        self.progress = Some(progress);
    }
}

impl Drop for Permission {
    fn drop(&mut self) {
        if !self.has_reached() {
            self.allowed.granted().unsent();
        }
    }
}

/// A step of an attempt.
struct Underway {
    over: BoxFuture<'static, Step>,
    phases: Phases,
}

/// What a step of an attempt came to.
enum Step {
    Resolved(std::io::Result<Vec<Arc<str>>>),
    Dialed(Box<Result<Upgraded, NoUpgrade>>),
}

impl Dialing {
    pub(super) fn new(websocket: WebSocket, url: Url, requester: Requester) -> Self {
        let env = requester.env().clone();
        let link = link(&websocket);
        Self {
            websocket,
            url,
            requester,
            link,
            refusals: Refusals::default(),
            wanted: None,
            permission: None,
            held: None,
            step: None,
            live: None,
            alarm: Alarm::new(env.clone()),
            env,
            ready: VecDeque::new(),
            begun: false,
        }
    }

    /// Lets go of it. The next [`next`](Self::next) begins anew, and knows what was refused.
    pub(super) fn stop(&mut self) {
        self.link = link(&self.websocket);
        (self.wanted, self.permission, self.held) = (None, None, None);
        (self.step, self.live) = (None, None);
        self.ready.clear();
        self.begun = false;
    }

    /// What happens next. Cancel safe.
    pub(super) async fn next(&mut self) -> Report {
        loop {
            if let Some(report) = self.ready.pop_front() {
                return report;
            }
            if !std::mem::replace(&mut self.begun, true) {
                self.tell(Event::Start);
                continue;
            }
            let deadline = self.link.deadline();
            if deadline.is_some_and(|at| at <= self.env.instant()) {
                // A peer that always has something to say does not keep its deadlines from passing.
                self.tell(Event::Tick);
                continue;
            }
            tokio::select! {
                wish = wish(&mut self.wanted) => self.on_wish(wish),
                event = step(&mut self.step) => match event {
                    Stepped::Began(phase) => self.tell(Event::Began(phase)),
                    Stepped::Over(over) => self.on_step(over),
                },
                received = received(&mut self.live) => self.on_received(received),
                () = self.alarm.wait(deadline) => self.tell(Event::Tick),
            }
        }
    }

    fn on_wish(&mut self, wish: Wish) {
        match wish {
            // The budget minds its own time.
            Wish::Held(_) => {}
            Wish::Unheld(unheld) => {
                self.wanted = None;
                self.tell(match unheld {
                    Unheld::Denied => Event::Denied,
                    Unheld::Unavailable(cause) => Event::Unheld(cause),
                });
            }
            Wish::Allowed(allowed) => {
                self.wanted = None;
                let permission = Permission::new(allowed);
                let held = permission.allowed.held.clone();
                // R3: a credential that was refused twice is not sent again. Without one there is none to spare.
                if held.credential.is_some() && self.refusals.denied(held.generation) {
                    return self.tell(Event::Denied);
                }
                self.held = Some(held);
                self.permission = Some(permission);
                self.tell(Event::Permitted);
            }
        }
    }

    fn on_step(&mut self, step: Step) {
        self.step = None;
        match step {
            Step::Resolved(Ok(addresses)) if addresses.is_empty() => {
                self.tell(Event::Unresolved("expected an address".into()));
            }
            Step::Resolved(Ok(addresses)) => self.tell(Event::Resolved(addresses)),
            Step::Resolved(Err(e)) => self.tell(Event::Unresolved(e.to_string().into())),
            Step::Dialed(dialed) => match *dialed {
                Ok(Upgraded { mut socket, headers }) => {
                    if let Some(permission) = self.permission.take() {
                        permission.allowed.told(&Told::of(StatusCode::SWITCHING_PROTOCOLS, &headers, self.env.wall()));
                    }
                    let hellos = self.websocket.hellos();
                    for hello in hellos {
                        // It may prove who says it.
                        let [a, b, c, d, ..] = self.env.draw().to_be_bytes();
                        socket.send_first(hello, [a, b, c, d]);
                    }
                    let unanswered = !hellos.is_empty() && !self.websocket.confirms();
                    self.live = Some(Live { socket, writing: false, unanswered });
                    self.tell(Event::Upgraded);
                    self.writes();
                }
                Err(NoUpgrade::Unreachable(cause)) => self.tell(Event::Unreachable(cause)),
                Err(NoUpgrade::Broken(cause)) => self.tell(Event::Failed { cause, retry_after: None, absent: false }),
                Err(NoUpgrade::Answered(response)) => {
                    let event = self.answered(&response);
                    self.tell(event);
                }
            },
        }
    }

    /// What an answer means that is no upgrade.
    fn answered(&mut self, response: &Response<Option<Vec<u8>>>) -> Event {
        let (status, headers) = (response.status(), response.headers());
        let mut told = Told::of(status, headers, self.env.wall());
        let body = response.body().as_deref().unwrap_or_default();
        told.throttled |= status == StatusCode::FORBIDDEN && answer::speaks_of_rate(body);
        if let Some(permission) = &self.permission {
            permission.allowed.told(&told);
        }
        let generation = self.held.as_ref().map(|held| held.generation).unwrap_or_default();
        let retry_after = told.wait();
        let judgement = answer::judge(status, headers, &told, Asked::new(Expected::Bytes, generation));
        let absent = is_absent(&judgement);
        let cause = match judgement {
            Judgement::Given(Answer::Refused(_)) => {
                let sent = self.held.as_ref().is_some_and(|held| held.credential.is_some());
                return Event::Refused { denied: self.refused(), sent };
            }
            Judgement::Given(Answer::Unserved(cause)) => cause,
            Judgement::Given(
                Answer::Value(_) | Answer::Same | Answer::Unchanged | Answer::Nothing | Answer::Absent | Answer::Gone,
            )
            | Judgement::Read => Cause::Status { code: status.as_u16() },
        };
        Event::Failed { cause, retry_after, absent }
    }

    /// The service refused the credential here; true for the second time. That says nothing about the read beside it: its
    /// source is asked, and nothing is counted against it.
    fn refused(&mut self) -> bool {
        let Some(held) = &self.held else { return false };
        self.requester.keeper().refused(held, Scope::Resource);
        self.refusals.refused(self.env.instant(), held.generation) == Verdict::Denied
    }

    fn on_received(&mut self, received: Received) {
        match received {
            Received::Text(text) => self.on_text(&text),
            Received::Binary => {
                if self.link.is_attached() {
                    self.ready.push_back(Happening::Hint.into());
                }
                self.tell(Event::Message);
            }
            Received::Pong(n) => {
                // The service has taken what was said first: from now on it tells.
                if n.is_some()
                    && let Some(live) = &mut self.live
                    && std::mem::take(&mut live.unanswered)
                {
                    self.ready.push_back(Happening::Hint.into());
                }
                self.tell(Event::Life(n.map_or(liveness::Event::Received, |n| liveness::Event::Pong { n })));
            }
            Received::Alive => self.tell(Event::Life(liveness::Event::Received)),
            Received::Moved { read, written } => {
                if read {
                    self.tell(Event::Life(liveness::Event::Received));
                }
                if written && self.live.as_ref().is_some_and(|live| live.writing) {
                    self.tell(Event::Life(liveness::Event::WriteProgressed));
                }
            }
            Received::Flushed => {
                if let Some(live) = &mut self.live {
                    live.writing = false;
                    self.tell(Event::Life(liveness::Event::WriteFinished));
                }
            }
            Received::Ended { cause, close } => {
                let (code, reason) = close.unzip();
                let retry_after: Option<Duration> = reason.as_deref().and_then(hint);
                let denied = CloseMeaning::of(code) == CloseMeaning::Refused && self.refused();
                self.tell(Event::Lost { cause, code, retry_after, denied });
            }
        }
    }

    fn on_text(&mut self, text: &str) {
        if !self.link.is_attached() {
            // What is said before the confirmation, the look that follows it sees.
            let confirmed = self.websocket.is_confirmation(text);
            return self.tell(if confirmed { Event::Confirmed } else { Event::Message });
        }
        match self.websocket.said(text) {
            Said::Hint => self.ready.push_back(Happening::Hint.into()),
            Said::Value(value) => self.ready.push_back(Happening::Value(value).into()),
            Said::Nothing => {}
        }
        self.tell(Event::Message);
    }

    fn tell(&mut self, event: Event) {
        for action in self.link.on_event(self.env.now(), event) {
            match action {
                Action::Want => {
                    self.wanted = Some(Box::new(self.requester.want(&as_http(&self.url), None)));
                }
                Action::Resolve => {
                    let resolved = self.requester.egress().resolve(&self.url);
                    // It is a phase of its own.
                    let (_, phases) = Progress::observed();
                    self.step = Some(Underway { over: resolved.map(Step::Resolved).boxed(), phases });
                }
                Action::Dial(address) => self.dial(address),
                Action::Abort => {
                    self.step = None;
                    self.live = None;
                }
                Action::Ping(n) => {
                    if let Some(live) = &mut self.live {
                        live.socket.ping(n);
                    }
                    self.writes();
                }
                Action::Attached => self.ready.push_back(Happening::Attached.into()),
                Action::Detached(cause) => self.ready.push_back(Happening::Detached(cause).into()),
                Action::Proven => {
                    // Before that, a service that takes the upgrade only to refuse would start a new count each time.
                    self.refusals.accepted();
                    self.ready.push_back(Report::Proven);
                }
                Action::Missed { absent, retry_after } => {
                    self.ready.push_back(Report::Missed { absent, retry_after });
                }
            }
        }
        if self.step.is_none() && self.wanted.is_none() {
            // The round is over.
            self.permission = None;
        }
    }

    fn dial(&mut self, address: Arc<str>) {
        let egress = Arc::clone(self.requester.egress());
        let (url, request) = (self.url.clone(), self.request());
        let (progress, phases) = Progress::observed();
        progress.begins(Phase::Connect);
        if let Some(permission) = &mut self.permission {
            permission.dials(progress.clone());
        }
        let dialed = async move {
            let request = request.map_err(NoUpgrade::Broken)?;
            egress.open(&url, address, request, |phase| progress.begins(phase)).await
        };
        self.step = Some(Underway { over: dialed.map(|dialed| Step::Dialed(Box::new(dialed))).boxed(), phases });
    }

    fn request(&self) -> Result<Request, Cause> {
        let bad = |e: &dyn std::fmt::Display| Cause::Refused { detail: format!("request: {e}").into() };
        let mut request = self.url.as_str().into_client_request().map_err(|e| bad(&e))?;
        let mut headers: HeaderMap = self.requester.headers().clone();
        // Those of a request whose answer is read.
        headers.remove(ACCEPT);
        headers.remove(ACCEPT_ENCODING);
        if let Some(name) = self.websocket.requested() {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, name);
        }
        if let Some(credential) = self.held.as_ref().and_then(|held| held.credential.as_ref()) {
            credential.apply(&mut headers);
        }
        let own = request.headers().clone();
        let all = request.headers_mut();
        all.extend(headers);
        // What the upgrade itself says is not the caller's to change.
        all.extend(own);
        Ok(request)
    }

    /// Something waits to be written.
    fn writes(&mut self) {
        if let Some(live) = &mut self.live
            && !live.writing
            && live.socket.is_writing()
        {
            live.writing = true;
            self.tell(Event::Life(liveness::Event::WriteStarted));
        }
    }
}

fn link(websocket: &WebSocket) -> Link {
    Link::new(Config { confirms: websocket.confirms(), backoff: backoff(), ..Config::default() })
}

enum Stepped {
    Began(Phase),
    Over(Step),
}

async fn wish(wanted: &mut Option<Box<Wanted>>) -> Wish {
    match wanted {
        Some(wanted) => wanted.next().await,
        None => std::future::pending().await,
    }
}

async fn step(step: &mut Option<Underway>) -> Stepped {
    match step {
        Some(Underway { over, phases }) => tokio::select! {
            biased; // a phase that is over when the answer is there needs no bound
            over = over => Stepped::Over(over),
            phase = phases.next() => Stepped::Began(phase),
        },
        None => std::future::pending().await,
    }
}

async fn received(live: &mut Option<Live>) -> Received {
    match live {
        Some(live) => live.socket.next().await,
        None => std::future::pending().await,
    }
}
