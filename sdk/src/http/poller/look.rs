//! One look at the service: sends, judges, reads, decodes.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ::http::StatusCode;
use futures::FutureExt as _;
use futures::future::{BoxFuture, poll_fn};
use sha2::{Digest as _, Sha256};

use crate::env::Env;
use crate::error::{Cause, Phase};
use crate::http::answer::{self, Asked, Judgement};
use crate::http::exchange::Phases;
use crate::http::intake::{beginning, drain, whole};
use crate::http::poll::Answer;
use crate::http::reader::{Decoded, Query, Reader};
use crate::http::requester::{Allowed, Ask, Requester, Sent};
use crate::http::told::Told;
use crate::http::validator::Validator;
use crate::machine::Monotonic;

/// A request under way. Dropping it abandons the request.
pub(super) struct Flight<T> {
    outcome: BoxFuture<'static, Outcome<T>>,
    phases: Phases,
    allowed: Arc<Allowed>,
    /// What the heads say about asking again, as far as it was told.
    asked_until: Option<Monotonic>,
}

/// What a request under way tells.
pub(super) enum Flown<T> {
    Began(Phase),
    /// The service is not to be asked again before that time.
    Told(Monotonic),
    Landed(Outcome<T>),
}

/// What a request came to.
pub(super) struct Outcome<T> {
    pub(super) status: Option<StatusCode>,
    pub(super) result: Result<Got<T>, Missed>,
}

/// Why there is no answer, and whether to ask once more at once.
pub(super) struct Missed {
    pub(super) cause: Cause,
    pub(super) again: bool,
}

/// An answer, read to its end.
pub(super) struct Got<T> {
    pub(super) answer: Answer,
    pub(super) value: Option<Arc<T>>,
    /// Of the value, or of the same one that is shown already: its tag may be another one.
    pub(super) identity: Option<Identity>,
    pub(super) query: Option<Query>,
    pub(super) told: Told,
}

/// By what a value is known again.
#[derive(Clone, Default)]
pub(super) struct Identity {
    pub(super) validator: Option<Arc<Validator>>,
    pub(super) digest: Option<Digest>,
}

/// The SHA-256 of a body.
pub(super) type Digest = [u8; 32];

/// How an answer is read.
pub(super) struct Reading<T> {
    pub(super) reader: Arc<Reader<T>>,
    /// Whether the service was asked to hold the request.
    pub(super) held: bool,
    /// The body that is shown.
    pub(super) shown: Option<Digest>,
    /// For how long the body of an answer is waited for that is known without it.
    pub(super) patience: Duration,
}

impl<T: Send + Sync + 'static> Flight<T> {
    /// Begins. Nothing is sent before [`next`](Self::next) is called. It is unbounded in time; the machine bounds each phase.
    pub(super) fn new(
        requester: Requester,
        allowed: Arc<Allowed>,
        mut ask: Ask,
        phases: Phases,
        reading: Reading<T>,
    ) -> Self {
        let used = Arc::clone(&allowed);
        // Lent, because a future that owns them would hold them twice.
        let outcome = async move { look(&requester, &used, &mut ask, &reading).await };
        Self { outcome: outcome.boxed(), phases, allowed, asked_until: None }
    }
}

impl<T> Flight<T> {
    /// What happens next. Cancel safe.
    pub(super) async fn next(&mut self) -> Flown<T> {
        poll_fn(|context| {
            // Nobody needs to be woken for what begins in the next line.
            self.phases.sleep();
            if let Poll::Ready(outcome) = self.outcome.poll_unpin(context) {
                // A phase that is over when the answer is there needs no bound.
                return Poll::Ready(Flown::Landed(outcome));
            }
            let until = self.allowed.asked_until().filter(|until| Some(*until) > self.asked_until);
            if let Some(until) = until {
                self.asked_until = Some(until);
                return Poll::Ready(Flown::Told(until));
            }
            self.phases.poll_next(context).map(Flown::Began)
        })
        .await
    }

    /// What the request was permitted with.
    pub(super) fn into_allowed(self) -> Arc<Allowed> {
        self.allowed
    }
}

async fn look<T: Send + Sync + 'static>(
    requester: &Requester,
    allowed: &Allowed,
    ask: &mut Ask,
    reading: &Reading<T>,
) -> Outcome<T> {
    let mut sent = match requester.send(allowed, ask).await {
        Ok(sent) => sent,
        Err(unsent) => {
            let (cause, again) = unsent.cause();
            return Outcome { status: None, result: Err(Missed { cause, again }) };
        }
    };
    let status = Some(sent.answer.status);
    let result = reading.read(requester.env(), allowed, &mut sent, ask).await;
    Outcome { status, result: result.map_err(|cause| Missed { cause, again: false }) }
}

impl<T: Send + Sync + 'static> Reading<T> {
    async fn read(&self, env: &Env, allowed: &Allowed, sent: &mut Sent, ask: &Ask) -> Result<Got<T>, Cause> {
        let progress = &ask.progress;
        let mut asked = Asked::new(self.reader.expected, allowed.held.generation).along(&ask.trail);
        asked.validated = sent.validated;
        asked.held = self.held;
        let answer = &mut sent.answer;
        // Boxed are the bodies of few answers: a request is as large as the largest that it may have to do.
        match answer::judge(answer.status, &answer.headers, &sent.told, asked) {
            Judgement::Given(Answer::Refused(generation)) if answer.status == StatusCode::FORBIDDEN => {
                // Some say only in the body that it is for the rate.
                let body = Box::pin(beginning(answer, env, progress, self.patience)).await;
                let mut told = std::mem::take(&mut sent.told);
                if !answer::speaks_of_rate(&body) {
                    return Ok(Got::without_value(Answer::Refused(generation), told));
                }
                told.throttled = true;
                sent.hop.as_ref().unwrap_or(allowed.granted()).told(&told);
                let retry_after = told.wait().unwrap_or_default();
                Ok(Got::without_value(Answer::Unserved(Cause::RateLimited { retry_after }), told))
            }
            Judgement::Given(known) => {
                if answer.may_have_body() {
                    // Read to its end where it is short, so that the connection can be used again.
                    Box::pin(drain(answer, env, progress, self.patience)).await;
                }
                Ok(Got::without_value(known, std::mem::take(&mut sent.told)))
            }
            Judgement::Read => {
                let body = whole(answer, progress).await?;
                let told = std::mem::take(&mut sent.told);
                let digest: Digest = Sha256::digest(&body).into();
                let validator = Validator::learn(ask.trail.url(), allowed.held.generation, &answer.headers);
                let identity = Some(Identity { validator: validator.map(Arc::new), digest: Some(digest) });
                if self.shown == Some(digest) && self.reader.pages.is_none() {
                    return Ok(Got { identity, ..Got::without_value(Answer::Same, told) });
                }
                let Decoded { answer, value, query } = self.reader.read(&body, &answer.headers);
                let identity = identity.filter(|_| value.is_some());
                Ok(Got { answer, value: value.map(Arc::new), identity, query, told })
            }
        }
    }
}

impl<T> Got<T> {
    fn without_value(answer: Answer, told: Told) -> Self {
        Self { answer, value: None, identity: None, query: None, told }
    }
}
