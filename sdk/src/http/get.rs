//! A polled read, being set up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use ::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use url::Url;

use super::agent::Agent;
use super::answer::{self, Expected};
use super::decode;
use super::feed::{self, Feed, LogKind};
use super::fetcher::Fetcher;
use super::fields::is_framing;
use super::guide::Guide;
use super::poll::{Answer, Bounds, Marks, Pace, Settings};
use super::poller::{self, Look, Parts};
use super::push::Push;
use super::reader::{Page, Reader};
use super::requester::Requester;
use super::sse;
use crate::connection::Backoff;
use crate::credential::{Credentials, Keeper};
use crate::error::{Cause, Error};
use crate::observe::Observable;

/// A read of `url` by the present runtime's shared [`Agent`]: an [`Observable`] of whatever an HTTP service answers.
///
/// ```no_run
/// # #[derive(serde::Deserialize)] struct Run { status: String }
/// # impl Run { fn done(&self) -> bool { self.status == "completed" } }
/// # async fn wait(url: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let run = outlast::http::get(url).observe::<Run>()?;
/// let run = run.until(|r| r.done()).within(std::time::Duration::from_secs(3600)).await?;
/// # Ok(()) }
/// ```
pub fn get(url: &str) -> Get {
    Get::new(None, url)
}

/// A read of an HTTP service, being set up. Nothing is sent before it is observed.
#[must_use = "nothing is read before it is observed"]
#[derive(Clone)]
pub struct Get {
    agent: Option<Agent>,
    url: String,
    headers: HeaderMap,
    credentials: Option<Arc<dyn Credentials>>,
    chosen: Chosen,
    /// What holds where nothing was chosen.
    usual: Settings,
    push: Option<Push>,
    /// The first thing that was wrong.
    refused: Option<Error>,
}

/// What was set up, and only that.
#[derive(Clone, Default)]
struct Chosen {
    pace: Option<Pace>,
    bounds: Option<Bounds>,
    wait: Option<Duration>,
    grace: Option<Duration>,
    backoff: Option<Backoff>,
    give_up: Option<Duration>,
    reopens: bool,
    reread: Option<Duration>,
}

impl Chosen {
    /// The settings of a read.
    fn over(&self, usual: Settings) -> Settings {
        Settings {
            pace: self.pace.unwrap_or(usual.pace),
            bounds: self.bounds.unwrap_or(usual.bounds),
            wait: self.wait.or(usual.wait),
            grace: self.grace.unwrap_or(usual.grace),
            backoff: self.backoff.unwrap_or(usual.backoff),
            give_up: self.give_up.or(usual.give_up),
            reopens: self.reopens || usual.reopens,
            reread: self.reread.unwrap_or(usual.reread),
        }
    }

    /// The settings of a feed.
    fn over_feed(&self, usual: feed::Settings) -> feed::Settings {
        feed::Settings {
            pace: self.pace.unwrap_or(usual.pace),
            bounds: self.bounds.unwrap_or(usual.bounds),
            backoff: self.backoff.unwrap_or(usual.backoff),
            give_up: self.give_up.or(usual.give_up),
            ..usual
        }
    }
}

impl Agent {
    /// A read of `url`, being set up. Nothing is sent before it is observed.
    pub fn get(&self, url: &str) -> Get {
        Get::new(Some(self.clone()), url)
    }
}

impl Get {
    fn new(agent: Option<Agent>, url: &str) -> Self {
        Self {
            agent,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            credentials: None,
            chosen: Chosen::default(),
            usual: Settings::default(),
            push: None,
            refused: None,
        }
    }

    /// Where the credential comes from: a [`Credential`](crate::Credential), a source in
    /// [`credential`](crate::credential), or a closure that returns a future of one. Default: none is sent.
    ///
    /// A redirect to another origin is followed without it.
    pub fn credential(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// A header of each request. One that holds a secret is better given as a [credential](Self::credential).
    ///
    /// One that frames or routes a request, such as `Host`, `Content-Length`, `Transfer-Encoding`, `Connection` or `Upgrade`, is
    /// refused when the read is observed. To another origin, after a redirect or of a [push](Self::push), none goes along but
    /// `Accept`, `Accept-Encoding`, `Accept-Language`, `Cache-Control`, `Prefer` and `User-Agent`.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::try_from(name).map_err(|_| Error::invalid("header.name", "the name of a header"));
        let name = name.and_then(|name| {
            if is_framing(&name) {
                let expected = format!("none that frames or routes a request, unlike {name}");
                return Err(Error::invalid("header.name", expected));
            }
            Ok(name)
        });
        let value = HeaderValue::try_from(value)
            .map_err(|_| Error::invalid("header.value", "text without line breaks and control characters"));
        match name.and_then(|name| Ok((name, value?))) {
            Ok((name, value)) => drop(self.headers.append(name, value)),
            Err(e) => self.refuse(e),
        }
        self
    }

    /// All bounds and intervals at once.
    pub fn settings(mut self, settings: Settings) -> Self {
        let Settings { pace, bounds, wait, grace, backoff, give_up, reopens, reread } = settings;
        self.chosen = Chosen {
            pace: Some(pace),
            bounds: Some(bounds),
            wait,
            grace: Some(grace),
            backoff: Some(backoff),
            give_up,
            reopens,
            reread: Some(reread),
        };
        self
    }

    /// How often to look. Default: from 1 s soon after a change to 30 s.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.chosen.pace = Some(pace);
        self
    }

    /// Asks the service to hold each request open for so long, until something changes: `Prefer: wait` (RFC 7240, 4.3).
    /// Whole seconds. It is asked once there is a value to compare with, or a [page](Read::pages) to continue. A service that does not know it answers at once, and is polled.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.chosen.wait = Some(wait);
        self
    }

    /// What each phase of a request may take (R7).
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.chosen.bounds = Some(bounds);
        self
    }

    /// For how long 404s mean "not yet", or are taken for those of a proxy whose service restarts (R3, FC-14): of what was seen
    /// at least 1 s. Default 10 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.chosen.grace = Some(grace);
        self
    }

    /// The delays after failures (R8). What answers, and answers nothing of use, is not asked as often as that: the delay grows
    /// to the interval of the [pace](Self::pace).
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.chosen.backoff = Some(backoff);
        self
    }

    /// Ends the read as [`Closed`](crate::End::Closed) once an outage has lasted so long, counted from its first failure
    /// (R8). Answers that it does not know the resource go on counting, a value that is older than the one shown is no outage.
    /// Default: it never gives up.
    pub fn give_up_after(mut self, outage: Duration) -> Self {
        self.chosen.give_up = Some(outage);
        self
    }

    /// A stream of the service that says when something changes. Each event leads to a look; the looks go on at
    /// [`Settings::reread`] in any case, and follow each (re)connect: no event is trusted to be the only one.
    ///
    /// A stream of the same origin has the credential and the headers of the read.
    pub fn push(mut self, push: impl Into<Push>) -> Self {
        let push = push.into();
        if let Err(e) = push.check() {
            self.refuse(e);
        }
        self.push = Some(push);
        self
    }

    /// Reads JSON, and goes on to set up what depends on its type.
    pub fn json<T: DeserializeOwned + Send + Sync + 'static>(self) -> Read<T> {
        self.read(Expected::Json, |body| answer::json(body).map_err(Answer::Unserved))
    }

    /// Reads text.
    pub fn text(self) -> Read<String> {
        self.read(Expected::Text, |body| answer::text(body.clone()).map_err(Answer::Unserved))
    }

    /// Reads what `decode` makes of a whole body, whatever its content type. An error says what was expected.
    pub fn decoded<T: Send + Sync + 'static>(
        self,
        decode: impl Fn(&[u8]) -> Result<T, String> + Send + Sync + 'static,
    ) -> Read<T> {
        self.read(Expected::Bytes, move |body| {
            decode(body).map_err(|detail| Answer::Unserved(Cause::Undecodable { detail: detail.into() }))
        })
    }

    /// Starts to read JSON in the background and returns at once: `json::<T>().observe()`.
    ///
    /// # Errors
    /// What [`Read::observe`] says.
    pub fn observe<T: DeserializeOwned + Send + Sync + 'static>(self) -> Result<Observable<T>, Error> {
        self.json().observe()
    }

    /// Follows the log there: each byte once and in order, or one explicit gap (R6).
    ///
    /// ```no_run
    /// # use outlast::http::feed::LogKind;
    /// # async fn log(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut log = outlast::http::get(url).log(LogKind::jenkins())?;
    /// while let Some(item) = log.next().await {
    ///     println!("{item:?}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the URL, a header or a setting of `kind` is malformed, without an agent outside a tokio runtime, or when no
    /// TLS can be had.
    pub fn log(self, kind: LogKind) -> Result<Feed<Bytes>, Error> {
        self.log_with(kind, feed::Settings::default())
    }

    /// The same with other settings than the usual ones.
    ///
    /// Pace, bounds, backoff and when to give up are those of `settings` unless they were set here, one by one or
    /// [all at once](Self::settings). A feed knows no grace, no long poll and no [stream beside it](Self::push): what is set
    /// up here of these says nothing to it.
    ///
    /// # Errors
    /// What [`log`](Self::log) says.
    pub fn log_with(self, kind: LogKind, settings: feed::Settings) -> Result<Feed<Bytes>, Error> {
        let (parts, url) = self.parts(Expected::Log, settings)?;
        Feed::log(parts, url, kind)
    }

    /// Follows the event stream there (WHATWG HTML, 9.2), on from the last id after each reconnect.
    ///
    /// Of a service that does not go by that id say so with [`Replay`](feed::Replay):
    ///
    /// ```no_run
    /// # use outlast::http::feed::{Replay, Settings};
    /// # fn events(url: &str) -> Result<(), outlast::Error> {
    /// let events = outlast::http::get(url).events()?;
    /// let others = outlast::http::get(url).events_with(Settings::default().with_replay(Replay::Nothing))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the URL or a header is malformed, without an agent outside a tokio runtime, or when no TLS can be had.
    pub fn events(self) -> Result<Feed<sse::Event>, Error> {
        self.events_with(feed::Settings::default())
    }

    /// The same with other settings than the usual ones, as in [`log_with`](Self::log_with).
    ///
    /// # Errors
    /// What [`events`](Self::events) says.
    pub fn events_with(self, settings: feed::Settings) -> Result<Feed<sse::Event>, Error> {
        let (parts, url) = self.parts(Expected::EventStream, settings)?;
        Ok(Feed::events(parts, url))
    }

    /// Follows what `reader` asks for, for a log or a stream that is like no other.
    ///
    /// The reader asks the origin of this URL; what it asks of another one is not sent, since the credential is not for it.
    ///
    /// # Errors
    /// When the URL or a header is malformed, without an agent outside a tokio runtime, or when no TLS can be had.
    pub fn follow<R: feed::reader::Reader>(self, reader: R) -> Result<Feed<R::Item>, Error> {
        self.follow_with(reader, feed::Settings::default())
    }

    /// The same with other settings than the usual ones, as in [`log_with`](Self::log_with).
    ///
    /// # Errors
    /// What [`follow`](Self::follow) says.
    pub fn follow_with<R: feed::reader::Reader>(
        self,
        reader: R,
        settings: feed::Settings,
    ) -> Result<Feed<R::Item>, Error> {
        let (parts, _) = self.parts(Expected::Bytes, settings)?;
        Ok(Feed::start(parts, reader))
    }

    fn parts(&self, expected: Expected, settings: feed::Settings) -> Result<(feed::Parts<Fetcher>, Url), Error> {
        let (agent, requester, url) = self.checked(expected)?;
        let fetch = Fetcher::new(requester).only(url.origin());
        let (env, runtime) = (agent.inner().env.clone(), agent.inner().runtime.clone());
        Ok((feed::Parts { fetch, settings: self.chosen.over_feed(settings), env, runtime }, url))
    }

    fn read<T>(
        self,
        expected: Expected,
        decode: impl Fn(&Bytes) -> Result<T, Answer> + Send + Sync + 'static,
    ) -> Read<T> {
        Read { get: self, reader: Reader { expected, decode: Arc::new(decode), marks: None, pages: None } }
    }

    fn refuse(&mut self, e: Error) {
        self.refused.get_or_insert(e);
    }

    /// The address, as it was given.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The same at another address, without a stream beside it. The caller sees to it that the credential is for it.
    pub(crate) fn to(&self, url: &Url) -> Self {
        Self { url: url.to_string(), push: None, ..self.clone() }
    }

    /// The bounds and intervals that hold where nothing was chosen.
    pub(crate) fn usually(self, usual: Settings) -> Self {
        Self { usual, ..self }
    }

    /// A header of each request, unless there is one of that name.
    pub(crate) fn header_by_default(mut self, name: &HeaderName, value: &HeaderValue) -> Self {
        self.headers.entry(name).or_insert_with(|| value.clone());
        self
    }

    /// Reads JSON from where a guide leads, with what else was set up here.
    pub(crate) fn guided<T: Send + Sync + 'static>(
        mut self,
        guide: impl Guide<T> + 'static,
        marks: impl Fn(&T) -> Marks + Send + Sync + 'static,
    ) -> Result<(Observable<T>, Observable<Look>), Error> {
        self.url = guide.url().to_string();
        let (agent, requester, url) = self.checked(Expected::Json)?;
        let (decode, marks) = (guide.decode(), Arc::new(marks));
        let parts = Parts {
            requester,
            url,
            reader: Reader { expected: Expected::Json, decode, marks: Some(marks), pages: None },
            settings: self.chosen.over(self.usual),
            push: self.push,
            guide: Some(Box::new(guide)),
        };
        Ok(poller::start_with_looks(agent.inner(), parts))
    }

    /// The agent and what sends its requests, checked.
    pub(super) fn checked(&self, expected: Expected) -> Result<(Agent, Requester, Url), Error> {
        if let Some(e) = &self.refused {
            return Err(e.clone());
        }
        let url = check_url(&self.url)?;
        let agent = match &self.agent {
            Some(agent) => agent.clone(),
            None => Agent::shared()?,
        };
        let env = agent.inner().env.clone();
        let keeper = match &self.credentials {
            Some(source) => {
                let bound = self.chosen.bounds.unwrap_or(self.usual.bounds).credential;
                agent.inner().keepers.of(url.origin(), source, &env, bound)
            }
            None => Keeper::none(env),
        };
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 3);
        headers.extend(self.headers.clone());
        let agent_name = HeaderValue::from_static(concat!("outlast/", env!("CARGO_PKG_VERSION")));
        for (name, value) in
            [(USER_AGENT, agent_name), (ACCEPT, expected.accept()), (ACCEPT_ENCODING, decode::ACCEPTED)]
        {
            headers.entry(name).or_insert(value);
        }
        let requester = Requester::new(Arc::clone(agent.inner()), keeper, headers);
        Ok((agent, requester, url))
    }
}

/// A URL that can be read.
pub(super) fn check_url(text: &str) -> Result<Url, Error> {
    let bad = |expected: &str| Error::invalid("url", expected);
    let mut url = Url::parse(text).map_err(|e| bad("an absolute http:// or https:// URL").with_source(e))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("an http:// or https:// URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("no user or password; give a credential instead"));
    }
    url.set_fragment(None);
    Ok(url)
}

impl fmt::Debug for Get {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of what is no URL nobody knows where in it the secret is.
        let url = check_url(&self.url).ok().map(|url| crate::connection::Endpoint::new(url.as_str()));
        f.debug_struct("Get")
            .field("url", &url)
            .field("settings", &self.chosen.over(self.usual.clone()))
            .finish_non_exhaustive()
    }
}

/// A read of values of type `T`, being set up.
#[must_use = "nothing is read before it is observed"]
pub struct Read<T> {
    get: Get,
    reader: Reader<T>,
}

impl<T: Send + Sync + 'static> Read<T> {
    /// What a value says about its place among others: what is older than what is shown, or contradicts a terminal
    /// state of the same attempt, is not shown (R4).
    pub fn marks(mut self, marks: impl Fn(&T) -> Marks + Send + Sync + 'static) -> Self {
        self.reader.marks = Some(Arc::new(marks));
        self
    }

    /// Whether an answer has a value, and where the next request continues.
    pub fn pages(mut self, page: impl Fn(&T, &HeaderMap) -> Page + Send + Sync + 'static) -> Self {
        self.reader.pages = Some(Arc::new(page));
        self
    }

    /// Starts to read in the background and returns at once.
    ///
    /// # Errors
    /// When the URL or a header is malformed, outside a tokio runtime, or when no TLS can be had.
    pub fn observe(self) -> Result<Observable<T>, Error> {
        let (agent, parts) = self.parts()?;
        Ok(poller::start(agent.inner(), parts))
    }

    /// The same, with each look at the service as it went: what is planned next is stated there.
    ///
    /// # Errors
    /// What [`observe`](Self::observe) says.
    pub fn observe_with_looks(self) -> Result<(Observable<T>, Observable<Look>), Error> {
        let (agent, parts) = self.parts()?;
        Ok(poller::start_with_looks(agent.inner(), parts))
    }

    fn parts(self) -> Result<(Agent, Parts<T>), Error> {
        let (agent, requester, url) = self.get.checked(self.reader.expected)?;
        let parts = Parts {
            requester,
            url,
            reader: self.reader,
            settings: self.get.chosen.over(self.get.usual),
            push: self.get.push,
            guide: None,
        };
        Ok((agent, parts))
    }
}

impl<T> Clone for Read<T> {
    fn clone(&self) -> Self {
        Self { get: self.get.clone(), reader: self.reader.clone() }
    }
}

impl<T> fmt::Debug for Read<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").field("get", &self.get).finish_non_exhaustive()
    }
}
