//! The requests of a feed: permitted, with the credential, redirected, judged and decoded as those of any read.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use ::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, Stream};
use tokio::task::coop::consume_budget;
use url::{Origin, Url};

use super::answer::{self, Asked, Judgement};
use super::decode::Decoder;
use super::exchange::{self, Connection, Failure, FailureKind, Progress};
use super::feed::{self, FeedAsk, Fetch, FetchError, Fetched};
use super::intake::{ERROR_PATIENCE, beginning};
use super::poll;
use super::redirect::Trail;
use super::requester::{Allowed, Ask, Requester, Sent, Wish};
use crate::credential::{Refusals, Scope, Unheld, Verdict};
use crate::error::{Cause, Phase};

/// The least time before a stream beside a read is asked for again with a credential that it refused.
const REFUSED: Duration = Duration::from_secs(1);

/// Sends the requests of one feed. Cloning shares what was refused.
#[derive(Clone)]
pub(super) struct Fetcher {
    requester: Requester,
    refusals: Arc<Mutex<Refusals>>,
    beside: bool,
    /// What is asked of another origin is not sent.
    only: Option<Origin>,
}

impl Fetcher {
    pub(super) fn new(requester: Requester) -> Self {
        Self { requester, refusals: Arc::default(), beside: false, only: None }
    }

    /// Asks that origin only: the credential is for it, and a reader may make any address.
    pub(super) fn only(self, origin: Origin) -> Self {
        Self { only: Some(origin), ..self }
    }

    /// For a stream beside a read, which must not do it harm: what it is refused is not counted against the
    /// credential.
    pub(super) fn beside(requester: Requester) -> Self {
        Self { beside: true, ..Self::new(requester) }
    }

    /// Whether its requests have a credential.
    pub(super) fn has_credential(&self) -> bool {
        self.requester.keeper().has_source()
    }

    async fn fetched(self, FeedAsk { ask, progress }: FeedAsk) -> Result<Fetched, FetchError> {
        if let Some(only) = self.only.as_ref().filter(|only| **only != ask.url.origin()) {
            let detail = format!("url: expected an address of {}", only.ascii_serialization());
            return Err(FetchError::new(Cause::Undecodable { detail: detail.into() }));
        }
        let mut allowed = self.allowed(&ask.url).await?;
        progress.begins(Phase::FirstByte);
        let sent = match self.send(&allowed, &ask, &progress, Connection::Any).await {
            Err((_, true)) if allowed.asked_until().is_none() => {
                // Each request has a permission of its own (R8).
                allowed = self.allowed(&ask.url).await?;
                progress.begins(Phase::FirstByte);
                self.send(&allowed, &ask, &progress, Connection::Fresh).await
            }
            sent => sent,
        };
        let later = allowed.asked_until().map(|until| until.since(self.requester.env().instant()));
        let (mut sent, trail) = sent.map_err(|(cause, _)| {
            let e = FetchError::new(cause);
            match later {
                Some(delay) => e.retry_after(delay),
                None => e,
            }
        })?;
        // Of a redirect on the way, too.
        sent.told.poll_interval = sent.told.poll_interval.max(later);
        let mut asked = Asked::new(ask.expected, allowed.held.generation).along(&trail);
        asked.ranged = ask.headers.contains_key(::http::header::RANGE);
        asked.validated = ask.headers.contains_key(::http::header::IF_NONE_MATCH);
        asked.held = true; // 204 is the feed's to judge
        let (sent, decoder) = self.judged(allowed, sent, asked, &progress).await?;
        Ok(fetched(sent, decoder))
    }

    async fn allowed(&self, url: &Url) -> Result<Arc<Allowed>, FetchError> {
        let mut wanted = self.requester.want(url, None);
        let allowed = loop {
            match wanted.next().await {
                Wish::Allowed(allowed) => break allowed,
                Wish::Held(_) => {}
                Wish::Unheld(Unheld::Denied) => return Err(FetchError::denied(Cause::Unauthorized)),
                Wish::Unheld(Unheld::Unavailable(cause)) => return Err(FetchError::new(cause)),
            }
        };
        // Without a credential there is none to spare.
        let sends = allowed.held.credential.is_some();
        if sends && self.refusals.lock().unwrap_or_else(PoisonError::into_inner).denied(allowed.held.generation) {
            return Err(FetchError::denied(Cause::Unauthorized));
        }
        Ok(allowed)
    }

    async fn send(
        &self,
        allowed: &Allowed,
        ask: &feed::reader::Ask,
        progress: &Progress,
        connection: Connection,
    ) -> Result<(Sent, Trail), (Cause, bool)> {
        let mut headers = ask.headers.clone();
        headers.entry(ACCEPT).or_insert(ask.expected.accept());
        // Positions are counted in the bytes of the log itself.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let (trail, progress) = (Trail::new(ask.url.clone()), progress.clone());
        let mut ask = Ask { trail, headers: Some(Box::new(headers)), validator: None, connection, progress };
        let sent = self.requester.send(allowed, &mut ask).await.map_err(|unsent| unsent.cause())?;
        Ok((sent, ask.trail))
    }

    /// What the feed is to see: an answer about its resource, with what decodes its body, or why there is none.
    async fn judged(
        &self,
        allowed: Arc<Allowed>,
        mut sent: Sent,
        asked: Asked,
        progress: &Progress,
    ) -> Result<(Sent, Option<Decoder>), FetchError> {
        let status = sent.answer.status;
        let retry_after = sent.told.wait().max(sent.told.poll_interval);
        let failed = |cause| {
            let e = FetchError::new(cause);
            match retry_after {
                Some(delay) => e.retry_after(delay),
                None => e,
            }
        };
        match answer::judge(status, &sent.answer.headers, &sent.told, asked) {
            // The feed of a log may judge what is forbidden; nothing is behind a stream beside a read.
            Judgement::Given(poll::Answer::Refused(generation))
                if status == StatusCode::UNAUTHORIZED || self.beside =>
            {
                let scope = if self.beside { Scope::Resource } else { Scope::Credential };
                self.requester.keeper().refused(&allowed.held, scope);
                let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
                match refusals.refused(self.requester.env().instant(), generation) {
                    // The keeper spaces only the refusals that it counts.
                    Verdict::Again if self.beside => {
                        let delay = retry_after.unwrap_or_default().max(REFUSED);
                        Err(FetchError::new(Cause::Unauthorized).retry_after(delay))
                    }
                    Verdict::Again => Err(failed(Cause::Unauthorized)),
                    Verdict::Denied => Err(FetchError::denied(Cause::Unauthorized)),
                }
            }
            Judgement::Given(poll::Answer::Refused(_)) => {
                // Some say only in the body that it is for the rate, which all share who have the credential (R8).
                let body = beginning(&mut sent.answer, self.requester.env(), progress, ERROR_PATIENCE).await;
                if answer::speaks_of_rate(&body) {
                    sent.told.throttled = true;
                    sent.hop.as_ref().unwrap_or(allowed.granted()).told(&sent.told);
                    let retry_after = retry_after.unwrap_or_default();
                    return Err(failed(Cause::RateLimited { retry_after }));
                }
                Ok((sent, None))
            }
            Judgement::Given(poll::Answer::Unserved(cause)) if status != StatusCode::RANGE_NOT_SATISFIABLE => {
                Err(failed(cause))
            }
            // 204, 304, 403, 404, 410 and 416 say something about the log: the feed decides what.
            Judgement::Given(_) => Ok((sent, None)),
            Judgement::Read => {
                self.requester.keeper().accepted(&allowed.held);
                self.refusals.lock().unwrap_or_else(PoisonError::into_inner).accepted();
                let decoder = Decoder::of(&sent.answer.headers, u64::MAX).map_err(FetchError::new)?;
                Ok((sent, Some(decoder)))
            }
        }
    }
}

impl Fetch for Fetcher {
    fn fetch(&self, ask: FeedAsk) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        Box::pin(self.clone().fetched(ask))
    }
}

/// The answer with its body decoded. The permission was given back with the head: a log may stay open for hours, and is
/// taken as slowly as its reader likes, which must not keep a status from being read (R10).
fn fetched(sent: Sent, decoder: Option<Decoder>) -> Fetched {
    let Sent { answer, told, .. } = sent;
    let (status, version, mut headers) = (answer.status, answer.version, answer.headers.clone());
    if decoder.is_some() && headers.contains_key(CONTENT_ENCODING) {
        headers.remove(CONTENT_LENGTH); // of what was sent
    }
    let body = body(answer, decoder);
    Fetched { answer: exchange::Answer::new(status, version, headers, body), told }
}

/// One piece at a time: a few bytes may unfold into gigabytes, of which no more is decoded than is taken.
fn body(
    answer: exchange::Answer,
    decoder: Option<Decoder>,
) -> impl Stream<Item = Result<Bytes, Failure>> + Send + 'static {
    stream::unfold(Some((answer, decoder)), |state| async move {
        let (mut answer, mut decoder) = state?;
        let item = piece(&mut answer, decoder.as_mut()).await?;
        let rest = item.is_ok().then_some((answer, decoder));
        Some((item, rest))
    })
}

async fn piece(answer: &mut exchange::Answer, mut decoder: Option<&mut Decoder>) -> Option<Result<Bytes, Failure>> {
    // What is decoded already is there without a wait: others must have their turn all the same.
    consume_budget().await;
    loop {
        if let Some(piece) = decoder.as_mut().and_then(|decoder| decoder.next_piece()) {
            return Some(piece.map_err(|cause| malformed(&cause)));
        }
        match (answer.chunk().await, &mut decoder) {
            (Err(failure), _) => return Some(Err(failure)),
            (Ok(None), None) => return None,
            (Ok(None), Some(decoder)) => return decoder.finish().err().map(|cause| Err(malformed(&cause))),
            (Ok(Some(chunk)), None) => return Some(Ok(chunk)),
            (Ok(Some(chunk)), Some(decoder)) => drop(decoder.push(chunk)),
        }
    }
}

fn malformed(cause: &Cause) -> Failure {
    let cut = matches!(cause, Cause::Dropped { .. });
    Failure::new(if cut { FailureKind::Incomplete } else { FailureKind::Malformed }, cause.to_string())
}
