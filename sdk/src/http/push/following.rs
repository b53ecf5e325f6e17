//! Server-sent events beside a read, at work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::http::StatusCode;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use url::Url;

use super::events::Events;
use super::{Happening, Report, backoff};
use crate::env::{Alarm, Env};
use crate::error::{Cause, Phase};
use crate::http::answer;
use crate::http::feed::{self, Feed, FeedAsk, FeedEnd, FeedItem, FeedState, Fetch, FetchError, Fetched, Replay};
use crate::http::fetcher::Fetcher;
use crate::http::requester::Requester;
use crate::http::sse;
use crate::machine::Monotonic;
use crate::observe::{Observable, Reading};

/// How long after an end that only time can mend (access denied, gone, an event that is too long) it is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// How long an answer must go on before it counts as healthy (FC-49).
const PROVEN: Duration = Duration::from_secs(5);

/// How many attempts may wait to be told of; more say nothing new.
const ATTEMPTS: usize = 16;

/// Follows the stream, whatever it does.
pub(super) struct Following {
    events: Events,
    url: Url,
    fetch: Watched,
    attempts: mpsc::Receiver<Attempt>,
    env: Env,
    runtime: Handle,
    alarm: Alarm,
    stage: Stage,
    /// The number of the answer whose stream was told to be up.
    attached: Option<u64>,
    /// Since when the present answer goes on, until it is known whether that is for long enough.
    up: Option<Monotonic>,
    ready: VecDeque<Report>,
}

enum Stage {
    Opening,
    Open(Feed<sse::Event>, Observable<FeedState>),
    /// Until then; `None`: for good.
    Resting(Option<Monotonic>),
}

impl Following {
    pub(super) fn new(events: Events, url: Url, requester: Requester) -> Self {
        let (env, runtime) = (requester.env().clone(), requester.runtime().clone());
        let (sender, attempts) = mpsc::channel(ATTEMPTS);
        let fetch =
            Watched { fetch: Fetcher::beside(requester), env: env.clone(), answers: Arc::default(), attempts: sender };
        Self {
            events,
            url,
            fetch,
            attempts,
            alarm: Alarm::new(env.clone()),
            env,
            runtime,
            stage: Stage::Opening,
            attached: None,
            up: None,
            ready: VecDeque::new(),
        }
    }

    /// Lets go of it. The next [`next`](Self::next) begins anew, unless it rests, and knows what was refused.
    pub(super) fn stop(&mut self) {
        if matches!(self.stage, Stage::Open(..)) {
            self.stage = Stage::Opening;
        }
        // What the feed that is gone may still tell is told to nobody.
        (self.fetch.attempts, self.attempts) = mpsc::channel(ATTEMPTS);
        (self.attached, self.up) = (None, None);
        self.ready.clear();
    }

    /// What happens next. Cancel safe.
    pub(super) async fn next(&mut self) -> Report {
        loop {
            if let Some(report) = self.ready.pop_front() {
                return report;
            }
            match &mut self.stage {
                Stage::Opening => self.stage = self.open(),
                Stage::Resting(until) => {
                    self.alarm.wait(*until).await;
                    self.stage = Stage::Opening;
                }
                Stage::Open(feed, state) => {
                    let proven = self.up.map(|since| since + PROVEN);
                    tokio::select! {
                        // How an attempt went before what came of it, and whatever an answer brings once it is known that
                        // there is an answer.
                        biased;
                        Some(attempt) = self.attempts.recv() => self.on_attempt(attempt),
                        Some(reading) = state.next() => self.on_state(&reading),
                        () = self.alarm.wait(proven) => self.judged(),
                        item = feed.next() => self.on_item(item),
                    }
                }
            }
        }
    }

    fn open(&self) -> Stage {
        let replay = if self.events.replays { Replay::AfterId } else { Replay::Nothing };
        let settings =
            feed::Settings::default().with_quiet(self.events.quiet).with_backoff(backoff()).with_replay(replay);
        let (fetch, env, runtime) = (self.fetch.clone(), self.env.clone(), self.runtime.clone());
        let feed = Feed::events(feed::Parts { fetch, settings, env, runtime }, self.url.clone());
        let state = feed.state();
        Stage::Open(feed, state)
    }

    fn on_attempt(&mut self, attempt: Attempt) {
        // The one before is over, whether or not its end was seen.
        self.judged();
        match attempt {
            Attempt::Up(at) => self.up = Some(at),
            Attempt::Missed { absent, retry_after } => self.ready.push_back(Report::Missed { absent, retry_after }),
        }
    }

    /// The present answer does not go on, or has gone on for long enough.
    fn judged(&mut self) {
        if let Some(since) = self.up.take() {
            let proven = self.env.instant().since(since) >= PROVEN;
            self.ready.push_back(match proven {
                true => Report::Proven,
                false => Report::Missed { absent: false, retry_after: None },
            });
        }
    }

    fn on_state(&mut self, reading: &Reading<FeedState>) {
        // Whatever led to it.
        while let Ok(attempt) = self.attempts.try_recv() {
            self.on_attempt(attempt);
        }
        match reading.last().map(|known| &**known) {
            Some(FeedState::Following) => {
                let answer = self.fetch.answers.load(Ordering::Relaxed);
                // States that follow each other quickly are seen as one: the number tells a new stream.
                if self.attached != Some(answer) {
                    self.detach(Cause::Dropped { code: None });
                    self.attached = Some(answer);
                    self.ready.push_back(Happening::Attached.into());
                }
            }
            Some(FeedState::Stale { cause }) => {
                tracing::debug!(%cause, "a stream of events is down");
                self.detach(cause.clone());
                self.judged();
            }
            // The last item says so, too.
            Some(FeedState::Opening | FeedState::Ended(_)) | None => {}
        }
    }

    fn detach(&mut self, cause: Cause) {
        if self.attached.take().is_some() {
            self.ready.push_back(Happening::Detached(cause).into());
        }
    }

    fn on_item(&mut self, item: Option<FeedItem<sse::Event>>) {
        match item {
            Some(FeedItem::Item(event)) => self.ready.extend(self.events.happening(&event).map(Report::from)),
            Some(FeedItem::Gap { .. }) => self.ready.push_back(Happening::Hint.into()),
            Some(FeedItem::Ended(end)) => self.on_end(end),
            None => self.on_end(FeedEnd::Closed),
        }
    }

    fn on_end(&mut self, end: FeedEnd) {
        tracing::debug!(%end, "a stream of events has ended");
        let again = Some(self.env.instant() + AGAIN + self.env.now().jitter(AGAIN / 10));
        let (cause, until) = match end {
            FeedEnd::Complete { .. } => (Cause::Status { code: 204 }, None),
            FeedEnd::Incomplete { cause, .. } => (cause, again),
            FeedEnd::Gone { .. } => (Cause::Status { code: 410 }, again),
            FeedEnd::Denied { .. } => (Cause::Unauthorized, again),
            FeedEnd::Closed => (Cause::Dropped { code: None }, again),
        };
        self.detach(cause);
        self.judged();
        self.stage = Stage::Resting(until);
    }
}

/// How a request of the stream went.
#[derive(Debug)]
enum Attempt {
    /// The stream is there, since then.
    Up(Monotonic),
    /// It is not, and not for the credential or the rate.
    Missed { absent: bool, retry_after: Option<Duration> },
}

/// Asks, and tells how it went: the states of a feed that follow each other quickly, or say the same, are seen as one.
#[derive(Clone)]
struct Watched {
    fetch: Fetcher,
    env: Env,
    /// How many streams there were.
    answers: Arc<AtomicU64>,
    attempts: mpsc::Sender<Attempt>,
}

impl Watched {
    fn attempt(&self, fetched: &Result<Fetched, FetchError>) -> Option<Attempt> {
        match fetched {
            Ok(fetched) => match fetched.answer.status {
                StatusCode::OK => {
                    self.answers.fetch_add(1, Ordering::Relaxed);
                    Some(Attempt::Up(self.env.instant()))
                }
                // It is over for good: nothing has failed (WHATWG HTML, 9.2.3).
                StatusCode::NO_CONTENT => None,
                status => {
                    let absent = matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE);
                    Some(Attempt::Missed { absent, retry_after: fetched.told.wait() })
                }
            },
            Err(e) => {
                // Without a credential it is the stream that is refused.
                let refused = matches!(e.cause, Cause::Unauthorized) && !self.fetch.has_credential();
                let blameless = matches!(
                    e.cause,
                    Cause::Unauthorized
                        | Cause::CredentialUnavailable { .. }
                        | Cause::Stalled { phase: Phase::Credential, .. }
                        | Cause::RateLimited { .. }
                );
                let absent = refused || answer::says_absent(&e.cause);
                (refused || !blameless).then_some(Attempt::Missed { absent, retry_after: e.retry_after })
            }
        }
    }
}

impl Fetch for Watched {
    fn fetch(&self, ask: FeedAsk) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        let fetched = self.fetch.fetch(ask);
        let mut underway = Underway(Some(self.clone()));
        async move {
            let fetched = fetched.await;
            if let Some(watched) = underway.0.take()
                && let Some(attempt) = watched.attempt(&fetched)
            {
                let _full = watched.attempts.try_send(attempt);
            }
            fetched
        }
        .boxed()
    }
}

/// A request that is abandoned before it is answered has come to nothing.
struct Underway(Option<Watched>);

impl Drop for Underway {
    fn drop(&mut self) {
        if let Some(watched) = self.0.take() {
            let _full = watched.attempts.try_send(Attempt::Missed { absent: false, retry_after: None });
        }
    }
}
