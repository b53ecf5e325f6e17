//! Does the supervisor's and the liveness machine's I/O: builds an event, asks the machine, performs.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use url::Url;

use super::supervisor::{self, Attempt, DialPhase};
use super::{Address, Discover, Endpoint, LinkState, Liveness, Supervisor, backoff, liveness};
use crate::credential::{Credentials, Held, Keeper, Unheld};
use crate::env::{Alarm, Env};
use crate::error::{Cause, Error, Phase};
use crate::machine::{Machine, Monotonic};
use crate::transport::{DialFailure, Dialed, Io, Network, Received, Socket, Tls, dial, hint};
use crate::wire::{ClientFrame, ServerFrame};

/// The most frames that one look at the clock is for. What has arrived with a frame is taken with it.
const AT_ONCE: usize = 32;

/// The bytes after which no more frames are taken at once: 64 KiB.
const AT_ONCE_BYTES: usize = 64 << 10;

/// How long a close may keep its caller waiting.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a connection is made of.
pub(crate) struct Parts {
    pub(crate) env: Env,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) discover: Arc<dyn Discover>,
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    pub(crate) root_certificates: Vec<u8>,
    pub(crate) supervisor: supervisor::Config,
    pub(crate) liveness: liveness::Config,
    pub(crate) schedule: Option<Schedule>,
}

/// The caller's policy: from the outage so far and how often a delay was needed in it, the next delay.
pub(crate) type Schedule = Box<dyn FnMut(Duration, u32) -> Option<Duration> + Send>;

/// What [`Driver::next`] has to tell.
#[derive(Debug)]
pub(crate) enum Happening {
    /// The connection is in another state, or in the same for another cause or with another time before which no
    /// attempt is made.
    State(LinkState),
    /// A frame of the live link. Say [`Driver::note`] or [`Driver::reject`] of it.
    Frame(Utf8Bytes),
}

/// One client's connection, for its whole life.
pub(crate) struct Driver {
    parts: Parts,
    tls: Option<Tls>,
    supervisor: Supervisor,
    live: Option<Live>,
    closing: Option<Socket<Box<dyn Io>>>,
    tasks: JoinSet<Step>,
    running: HashMap<Ask, AbortHandle>,
    phases: Phases,
    keeper: Keeper,
    /// What the keeper gave last: what the next dial sends.
    held: Option<Held>,
    ready: VecDeque<Happening>,
    /// What [`not_before`](Self::not_before) was when a state was told last.
    told_not_before: Option<Monotonic>,
    alarm: Alarm,
}

/// Dials say here which phase they enter; few by construction.
struct Phases {
    entered: mpsc::UnboundedSender<(Attempt, DialPhase)>,
    reported: mpsc::UnboundedReceiver<(Attempt, DialPhase)>,
}

struct Live {
    link: Attempt,
    socket: Socket<Box<dyn Io>>,
    liveness: Liveness,
    writing: bool,
    /// Whether the supervisor knows of an exchange on it.
    exchanged: bool,
}

/// What a task was started for; a later ask of the same name replaces it.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Ask {
    Discover,
    Resolve(Endpoint),
    Dial(Attempt),
    Credential,
}

/// What a task came back with.
enum Step {
    Discovered(Result<Vec<String>, Error>),
    Resolved(Endpoint, Result<Vec<Arc<str>>, Arc<str>>),
    Dialed(Attempt, Box<Result<Dialed, DialFailure>>),
    Credential(Result<Held, Unheld>),
}

impl Driver {
    /// Starts to connect. Inside a tokio runtime.
    pub(crate) fn start(mut parts: Parts) -> Self {
        parts.supervisor.credential_source = parts.credentials.is_some();
        parts.supervisor.schedule =
            if parts.schedule.is_some() { backoff::Schedule::Asked } else { backoff::Schedule::Default };
        // It only asks: refusals are counted by the supervisor, which knows of replicas and rounds (R3).
        let keeper = match parts.credentials.take() {
            Some(source) => Keeper::new(source, parts.env.clone(), parts.supervisor.credential),
            None => Keeper::none(parts.env.clone()),
        };
        let now = parts.env.now();
        let (entered, reported) = mpsc::unbounded_channel();
        Self {
            supervisor: Supervisor::new(&now, parts.supervisor.clone()),
            alarm: Alarm::new(parts.env.clone()),
            parts,
            tls: None,
            live: None,
            closing: None,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            phases: Phases { entered, reported },
            keeper,
            held: None,
            ready: VecDeque::new(),
            told_not_before: None,
        }
    }

    /// The next thing that happens.
    ///
    /// Cancel safe: everything begun stays in the driver.
    pub(crate) async fn next(&mut self) -> Happening {
        loop {
            if let Some(happening) = self.ready.pop_front() {
                return happening;
            }
            let deadline = self.deadline();
            tokio::select! {
                received = next_of(&mut self.live) => {
                    self.on_received(received);
                    self.take_arrived();
                }
                Some(step) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    if let Ok(step) = step {
                        self.on_step(step);
                    }
                }
                Some((attempt, phase)) = self.phases.reported.recv() => {
                    self.tell(supervisor::Event::Advanced { attempt, phase }, None);
                }
                () = self.alarm.wait(deadline) => self.on_deadline(),
            }
        }
    }

    /// What [`next`](Self::next) would give without waiting for anything.
    pub(crate) fn ready(&mut self) -> Option<Happening> {
        self.ready.pop_front()
    }

    /// Sends a frame on the live link. Without one it is dropped: whoever sent it sends it again when a link is up.
    pub(crate) fn send(&mut self, frame: &ClientFrame<'_>) {
        if let Some(live) = &mut self.live {
            live.socket.send(frame.to_text());
            if !live.writing {
                live.writing = true;
                self.tell_liveness(liveness::Event::WriteStarted);
            }
        }
    }

    /// Takes note of a frame that [`next`](Self::next) gave and that could be read.
    pub(crate) fn note(&mut self, frame: &ServerFrame<'_>) {
        let Some(link) = self.supervisor.link() else { return };
        match frame {
            ServerFrame::Pong { n, spread, .. } => {
                self.tell_liveness(liveness::Event::Pong { n: *n });
                self.exchanged(link);
                self.tell(supervisor::Event::Spread { link, spread: *spread }, None);
            }
            ServerFrame::Drain => self.tell(supervisor::Event::Draining { link }, None),
            ServerFrame::Value { .. }
            | ServerFrame::Unchanged { .. }
            | ServerFrame::Absent { .. }
            | ServerFrame::End { .. }
            | ServerFrame::Report { .. }
            | ServerFrame::Refused { .. } => self.exchanged(link),
            ServerFrame::Welcome(_)
            | ServerFrame::Unserved { .. }
            | ServerFrame::Watermark { .. }
            | ServerFrame::Fault { .. } => {}
        }
    }

    /// Tells the supervisor of a link's first exchange; more of them prove nothing more.
    fn exchanged(&mut self, link: Attempt) {
        if let Some(live) = self.live.as_mut().filter(|live| live.link == link && !live.exchanged) {
            live.exchanged = true;
            self.tell(supervisor::Event::Exchanged { link }, None);
        }
    }

    /// Ends the link because of a frame that could not be read: what it said would be missing for good otherwise.
    pub(crate) fn reject(&mut self, detail: Arc<str>) {
        // What came behind it counts no more: a watermark there would vouch for the value that is missing.
        self.ready.retain(|happening| matches!(happening, Happening::State(_)));
        self.lose(Cause::Undecodable { detail }, None, None);
    }

    /// Before when no attempt is made, because the service said so (R9).
    pub(crate) fn not_before(&self) -> Option<Monotonic> {
        self.supervisor.not_before()
    }

    /// Closes the connection for the caller.
    pub(crate) fn close(&mut self) {
        self.tell(supervisor::Event::Close, None);
    }

    /// Hands the close frame of [`close`](Self::close) to the transport; the peer may miss it.
    pub(crate) async fn goodbye(&mut self) {
        let Some(socket) = &mut self.closing else { return };
        let bound = Some(self.parts.env.instant() + GOODBYE);
        tokio::select! {
            () = self.parts.env.sleep_until(bound) => {}
            () = async {
                while socket.is_writing() && !matches!(socket.next().await, Received::Ended { .. }) {}
            } => {}
        }
    }

    fn deadline(&self) -> Option<Monotonic> {
        let liveness = self.live.as_ref().and_then(|live| live.liveness.deadline());
        [self.supervisor.deadline(), liveness].into_iter().flatten().min()
    }

    fn on_deadline(&mut self) {
        let now = self.parts.env.instant();
        if self.live.as_ref().is_some_and(|live| live.liveness.deadline().is_some_and(|at| at <= now)) {
            self.tell_liveness(liveness::Event::Tick);
        }
        if self.supervisor.deadline().is_some_and(|at| at <= now) {
            self.tell(supervisor::Event::Tick, None);
        }
    }

    /// Takes the frames that have arrived by now: under a flood the loop around this costs more than the frames.
    fn take_arrived(&mut self) {
        let mut bytes = 0;
        for _ in 1..AT_ONCE {
            // What is pending here is polled again, with a waker, before anybody waits.
            let Some(received) = next_of(&mut self.live).now_or_never() else { return };
            match received {
                // The link was heard with the first one, just now.
                Received::Text(text) => {
                    bytes += text.len();
                    self.ready.push_back(Happening::Frame(text));
                }
                Received::Alive | Received::Pong(_) => {}
                Received::Binary | Received::Flushed | Received::Moved { .. } | Received::Ended { .. } => {
                    self.on_received(received)
                }
            }
            if bytes > AT_ONCE_BYTES {
                return;
            }
        }
    }

    fn on_received(&mut self, received: Received) {
        match received {
            Received::Text(text) => {
                self.tell_liveness(liveness::Event::Received);
                if self.live.is_some() {
                    self.ready.push_back(Happening::Frame(text));
                }
            }
            Received::Binary => self.lose(Received::binary(), None, None),
            Received::Alive | Received::Pong(_) => self.tell_liveness(liveness::Event::Received),
            Received::Moved { read, written } => {
                if read {
                    self.tell_liveness(liveness::Event::Received);
                }
                if written && self.live.as_ref().is_some_and(|live| live.writing) {
                    self.tell_liveness(liveness::Event::WriteProgressed);
                }
            }
            Received::Flushed => {
                if let Some(live) = &mut self.live {
                    live.writing = false;
                    self.tell_liveness(liveness::Event::WriteFinished);
                }
            }
            Received::Ended { cause, close } => {
                let (code, reason) = close.unzip();
                self.lose(cause, code, reason.as_deref().and_then(hint));
            }
        }
    }

    fn on_step(&mut self, step: Step) {
        let event = match step {
            Step::Discovered(Ok(endpoints)) => {
                self.running.remove(&Ask::Discover);
                supervisor::Event::Discovered { endpoints: endpoints.into_iter().map(Endpoint::new).collect() }
            }
            Step::Discovered(Err(e)) => {
                self.running.remove(&Ask::Discover);
                supervisor::Event::DiscoverFailed { detail: e.to_string().into() }
            }
            Step::Resolved(endpoint, resolved) => {
                self.running.remove(&Ask::Resolve(endpoint.clone()));
                match resolved {
                    Ok(targets) => supervisor::Event::Resolved { endpoint, targets },
                    Err(detail) => supervisor::Event::ResolveFailed { endpoint, detail },
                }
            }
            Step::Credential(Ok(held)) => {
                self.running.remove(&Ask::Credential);
                let generation = held.generation;
                self.held = Some(held);
                supervisor::Event::Credential(Ok(generation))
            }
            Step::Credential(Err(unheld)) => {
                self.running.remove(&Ask::Credential);
                supervisor::Event::Credential(Err(match unheld {
                    Unheld::Denied => Cause::Unauthorized,
                    Unheld::Unavailable(cause) => cause,
                }))
            }
            Step::Dialed(attempt, dialed) => {
                self.running.remove(&Ask::Dial(attempt));
                match *dialed {
                    Ok(Dialed { socket, welcome }) => {
                        let welcome = Arc::new(welcome);
                        let event = supervisor::Event::Welcomed { attempt, welcome: Arc::clone(&welcome) };
                        return self.tell(event, Some((socket, welcome.heartbeat)));
                    }
                    Err(DialFailure::Refused) => supervisor::Event::Refused { attempt },
                    Err(DialFailure::Failed { cause, retry_after }) => {
                        supervisor::Event::Failed { attempt, cause, retry_after }
                    }
                }
            }
        };
        self.tell(event, None);
    }

    /// Lets go of the live link and says so.
    fn lose(&mut self, cause: Cause, code: Option<u16>, retry_after: Option<Duration>) {
        if let Some(live) = self.live.take() {
            tracing::debug!(%cause, ?code, "link lost");
            self.tell(supervisor::Event::Lost { link: live.link, cause, code, retry_after }, None);
        }
    }

    fn tell_liveness(&mut self, event: liveness::Event) {
        let now = self.parts.env.now();
        let Some(live) = &mut self.live else { return };
        for action in live.liveness.on_event(now, event) {
            match action {
                liveness::Action::Ping { n } => self.send(&ClientFrame::Ping { n }),
                liveness::Action::Dead(cause) => return self.lose(cause, None, None),
            }
        }
    }

    fn tell(&mut self, event: supervisor::Event, offered: Option<(Socket<Box<dyn Io>>, Duration)>) {
        let actions = self.supervisor.on_event(self.parts.env.now(), event);
        self.perform(actions, offered);
        if self.supervisor.not_before() != self.told_not_before {
            self.told_not_before = self.supervisor.not_before();
            self.ready.push_back(Happening::State(self.supervisor.shown().clone()));
        }
    }

    /// Performs `actions`; `offered` is the socket of the dial that the event was about.
    fn perform(&mut self, actions: Vec<supervisor::Action>, offered: Option<(Socket<Box<dyn Io>>, Duration)>) {
        if let (Some((socket, heartbeat)), Some(link)) = (offered, self.supervisor.link())
            && self.live.as_ref().is_none_or(|live| live.link != link)
        {
            let liveness = Liveness::client(&self.parts.env.now(), heartbeat, self.parts.liveness);
            self.live = Some(Live { link, socket, liveness, writing: false, exchanged: false });
        }
        for action in actions {
            match action {
                supervisor::Action::Discover => {
                    // Called in the task, so that a panic of the caller's code is a stalled ask and no more.
                    let discover = Arc::clone(&self.parts.discover);
                    self.start_task(Ask::Discover, async move { Step::Discovered(discover.endpoints().await) });
                }
                supervisor::Action::Resolve(endpoint) => self.resolve(endpoint),
                supervisor::Action::Dial { attempt, address } => self.dial(attempt, address),
                supervisor::Action::Abort { attempt } => self.stop_task(&Ask::Dial(attempt)),
                supervisor::Action::AskCredential { anew } => self.ask_credential(anew),
                supervisor::Action::AskDelay { outage, failures } => {
                    let delay = self.parts.schedule.as_mut().and_then(|schedule| schedule(outage, failures));
                    self.tell(supervisor::Event::Delay(delay), None);
                }
                supervisor::Action::Disconnect { link, code } => self.disconnect(link, code),
                supervisor::Action::Publish(state) => self.ready.push_back(Happening::State(state)),
            }
        }
    }

    fn ask_credential(&mut self, anew: bool) {
        let keeper = self.keeper.clone();
        if let Some(held) = self.held.as_ref().filter(|_| anew) {
            keeper.doubt(held.generation);
        }
        self.start_task(Ask::Credential, async move { Step::Credential(keeper.held().await) });
    }

    fn resolve(&mut self, endpoint: Endpoint) {
        let resolved = parse(&endpoint).and_then(|url| {
            let host = url.host_str().ok_or("expected a host")?.trim_matches(['[', ']']).into();
            Ok(self.parts.network.resolve(host, url.port_or_known_default().unwrap_or(80)))
        });
        let ask = Ask::Resolve(endpoint.clone());
        self.start_task(ask, async {
            let resolved = match resolved {
                Ok(found) => found.await.map_err(|e| e.to_string().into()),
                Err(detail) => Err(detail),
            };
            Step::Resolved(endpoint, resolved)
        });
    }

    fn dial(&mut self, attempt: Attempt, address: Address) {
        let prepared = parse(&address.endpoint).and_then(|url| {
            let tls = if url.scheme() == "wss" { Some(self.tls()?) } else { None };
            Ok((url, tls))
        });
        let network = Arc::clone(&self.parts.network);
        let credential = self.held.as_ref().and_then(|held| held.credential.clone());
        let phases = self.phases.entered.clone();
        self.start_task(Ask::Dial(attempt), async move {
            let dialed = match prepared {
                Err(detail) => Err(DialFailure::Failed { cause: Cause::Unresolved { detail }, retry_after: None }),
                Ok((url, tls)) => {
                    let begins = |phase| {
                        if let Some(phase) = dial_phase(phase) {
                            // Fails only when the driver is gone, and then nobody bounds it nor waits for it.
                            let _ = phases.send((attempt, phase));
                        }
                    };
                    dial(network, tls, url, address.target, credential, begins).await
                }
            };
            Step::Dialed(attempt, Box::new(dialed))
        });
    }

    fn tls(&mut self) -> Result<Tls, Arc<str>> {
        if let Some(tls) = &self.tls {
            return Ok(tls.clone());
        }
        let tls = Tls::new(&self.parts.root_certificates).map_err(|e| Arc::from(e.to_string()))?;
        self.tls = Some(tls.clone());
        Ok(tls)
    }

    fn disconnect(&mut self, link: Attempt, code: u16) {
        let Some(mut live) = self.live.take_if(|live| live.link == link) else { return };
        live.socket.close(code);
        self.closing = Some(live.socket);
    }

    fn start_task(&mut self, ask: Ask, task: impl Future<Output = Step> + Send + 'static) {
        let handle = self.tasks.spawn(task);
        if let Some(replaced) = self.running.insert(ask, handle) {
            replaced.abort();
        }
    }

    fn stop_task(&mut self, ask: &Ask) {
        if let Some(handle) = self.running.remove(ask) {
            handle.abort();
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("supervisor", &self.supervisor).finish_non_exhaustive()
    }
}

async fn next_of(live: &mut Option<Live>) -> Received {
    match live {
        Some(live) => live.socket.next().await,
        None => std::future::pending().await,
    }
}

fn parse(endpoint: &Endpoint) -> Result<Url, Arc<str>> {
    check_url(endpoint.as_str()).map_err(|e| e.to_string().into())
}

/// Reads the URL of an endpoint.
pub(crate) fn check_url(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).map_err(|e| Error::invalid("url", "a ws:// or wss:// URL").with_source(e))?;
    if !matches!(url.scheme(), "ws" | "wss") || url.host_str().is_none() {
        return Err(Error::invalid("url", "a ws:// or wss:// URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::invalid("url", "no user or password; give a credential instead"));
    }
    Ok(url)
}

fn dial_phase(phase: Phase) -> Option<DialPhase> {
    match phase {
        Phase::Connect => Some(DialPhase::Connect),
        Phase::Tls => Some(DialPhase::Tls),
        Phase::Upgrade => Some(DialPhase::Upgrade),
        Phase::Welcome => Some(DialPhase::Welcome),
        Phase::Discover | Phase::Resolve | Phase::FirstByte | Phase::Idle | Phase::Write | Phase::Credential => None,
    }
}
