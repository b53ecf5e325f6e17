//! Server-sent events beside a read.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use url::Url;

use super::{Happening, Kind, Push, address, backoff};
use crate::connection::Endpoint;
use crate::env::{Alarm, Env};
use crate::error::{Cause, Error};
use crate::http::feed::{self, EventStream, Feed, FeedAsk, FeedEnd, FeedItem, FeedState, Fetch, FetchError, Fetched};
use crate::http::fetcher::Fetcher;
use crate::http::requester::Requester;
use crate::http::sse;
use crate::machine::Monotonic;
use crate::observe::{Observable, Reading};

/// How long after an end that only time can mend (access denied, gone, an event that is too long) it is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// An event stream of a service that says when something changes, being set up; it becomes a [`Push`].
///
/// By default each event is a reason to look. A stream that is silent for a minute, comments included, is asked for anew,
/// with a look. After 204 it is not asked for any more (WHATWG HTML, 9.2.3): the read is polled.
#[derive(Clone)]
#[must_use = "it is given to a read"]
pub struct Events {
    url: Arc<str>,
    /// `None`: all of them count.
    named: Option<Arc<[Arc<str>]>>,
    values: bool,
    replays: bool,
    quiet: Duration,
}

impl Events {
    pub(super) fn new(url: &str) -> Self {
        let quiet = feed::Settings::default().quiet;
        Self { url: url.into(), named: None, values: false, replays: false, quiet }
    }

    /// Only events of these types count; one that states none is a `message`. Default: all.
    pub fn named(mut self, types: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.named = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// The data of an event is the new value as a whole, as the read itself would answer it. Default: it is not looked at.
    ///
    /// Events come late and twice. So the value is shown at once only where its [marks](crate::http::Read::marks) prove
    /// that it is later than what is shown: a higher version, or a higher attempt. Any other one is a reason to look (R4).
    pub fn values(mut self) -> Self {
        self.values = true;
        self
    }

    /// Whether the service gives the events after `Last-Event-ID` when it is asked again. Default no.
    pub fn replays(mut self, replays: bool) -> Self {
        self.replays = replays;
        self
    }

    /// How long it may be silent, comments included, before it is asked for anew (R7). Default 60 s.
    pub fn quiet(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    pub(super) fn address(&self) -> Result<Url, Error> {
        address(&self.url, &["http", "https"], "an absolute http:// or https:// URL")
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.url, &self.named, self.values) == (&other.url, &other.named, other.values)
    }

    fn happening(&self, event: &sse::Event) -> Option<Happening> {
        let counts = self.named.as_ref().is_none_or(|types| types.iter().any(|kind| **kind == *event.kind));
        counts.then(|| match self.values {
            true => Happening::Value(event.data.as_bytes().to_vec().into()),
            false => Happening::Hint,
        })
    }
}

impl From<Events> for Push {
    fn from(events: Events) -> Self {
        Self { kind: Kind::Events(events) }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = Endpoint::new(Arc::clone(&self.url));
        f.debug_struct("Events").field("url", &url).field("named", &self.named).finish_non_exhaustive()
    }
}

/// Follows the stream, whatever it does.
pub(super) struct Following {
    events: Events,
    url: Url,
    fetch: Counted,
    env: Env,
    alarm: Alarm,
    stage: Stage,
    /// The number of the answer whose stream was told to be up.
    attached: Option<u64>,
    ready: VecDeque<Happening>,
}

enum Stage {
    Opening,
    Open(Feed<sse::Event>, Observable<FeedState>),
    /// Until then; `None`: for good.
    Resting(Option<Monotonic>),
}

impl Following {
    pub(super) fn new(events: Events, url: Url, requester: Requester) -> Self {
        let env = requester.env().clone();
        let fetch = Counted { fetch: Fetcher::beside(requester), answers: Arc::default() };
        let alarm = Alarm::new(env.clone());
        Self { events, url, fetch, env, alarm, stage: Stage::Opening, attached: None, ready: VecDeque::new() }
    }

    /// What happens next. Cancel safe.
    pub(super) async fn next(&mut self) -> Happening {
        loop {
            if let Some(happening) = self.ready.pop_front() {
                return happening;
            }
            match &mut self.stage {
                Stage::Opening => self.stage = self.open(),
                Stage::Resting(until) => {
                    self.alarm.wait(*until).await;
                    self.stage = Stage::Opening;
                }
                Stage::Open(feed, state) => {
                    // Whatever an answer brings counts once it is known that there is an answer.
                    tokio::select! {
                        biased;
                        Some(reading) = state.next() => self.on_state(&reading),
                        item = feed.next() => self.on_item(item),
                    }
                }
            }
        }
    }

    fn open(&self) -> Stage {
        let stream = EventStream::new(self.url.clone());
        let stream = if self.events.replays { stream } else { stream.without_replay() };
        let settings = feed::Settings { quiet: self.events.quiet, backoff: backoff(), ..feed::Settings::default() };
        let feed = Feed::events(self.fetch.clone(), stream, settings, self.env.clone());
        let state = feed.state();
        Stage::Open(feed, state)
    }

    fn on_state(&mut self, reading: &Reading<FeedState>) {
        match reading.last().map(|known| &**known) {
            Some(FeedState::Following) => {
                let answer = self.fetch.answers.load(Ordering::Relaxed);
                // States that follow each other quickly are seen as one: the number tells a new stream.
                if self.attached != Some(answer) {
                    self.detach(Cause::Dropped { code: None });
                    self.attached = Some(answer);
                    self.ready.push_back(Happening::Attached);
                }
            }
            Some(FeedState::Stale { cause }) => {
                tracing::debug!(%cause, "a stream of events is down");
                self.detach(cause.clone());
            }
            // The last item says so, too.
            Some(FeedState::Opening | FeedState::Ended(_)) | None => {}
        }
    }

    fn detach(&mut self, cause: Cause) {
        if self.attached.take().is_some() {
            self.ready.push_back(Happening::Detached(cause));
        }
    }

    fn on_item(&mut self, item: Option<FeedItem<sse::Event>>) {
        match item {
            Some(FeedItem::Item(event)) => self.ready.extend(self.events.happening(&event)),
            Some(FeedItem::Gap { .. }) => self.ready.push_back(Happening::Hint),
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
        self.stage = Stage::Resting(until);
    }
}

/// Counts the answers that came.
#[derive(Clone)]
struct Counted {
    fetch: Fetcher,
    answers: Arc<AtomicU64>,
}

impl Fetch for Counted {
    fn fetch(&self, ask: FeedAsk) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        let answers = Arc::clone(&self.answers);
        let fetched = self.fetch.fetch(ask);
        async move {
            let fetched = fetched.await?;
            answers.fetch_add(1, Ordering::Relaxed);
            Ok(fetched)
        }
        .boxed()
    }
}
