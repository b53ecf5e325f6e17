//! One request with its permission, its credential and its redirects.

use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderMap;
use tokio::sync::watch;
use url::Url;

use super::agent::{Agent, Shared};
use super::budgets::{Budget, Granted, Permit, Step};
use super::exchange::{self, Connection, Failure, FailureKind, Progress, Request};
use super::redirect::{self, Trail};
use super::told::Told;
use super::validator::Validator;
use crate::credential::{Held, Keeper, Unheld};
use crate::env::Env;
use crate::error::{Cause, Phase};
use crate::machine::Monotonic;
use crate::transport::{Network, Tls};

/// How often a step of a redirect says that it still waits for its permission.
const QUEUED: Duration = Duration::from_secs(1);
/// How much of a redirect's body is read to keep its connection.
const DRAINED: usize = 64 << 10;

/// For how long it is waited for.
const COURTESY: Duration = Duration::from_millis(250);

/// Sends the requests of one read or feed.
#[derive(Clone)]
pub(super) struct Requester {
    agent: Arc<Shared>,
    pub(super) keeper: Keeper,
    headers: Arc<HeaderMap>,
}

impl Requester {
    /// One whose every request has `headers`.
    pub(super) fn new(agent: &Agent, keeper: Keeper, headers: HeaderMap) -> Self {
        Self { agent: Arc::clone(agent.inner()), keeper, headers: Arc::new(headers) }
    }

    pub(super) fn env(&self) -> &Env {
        &self.agent.env
    }

    /// The same for another origin: without the credential, and of the caller's headers only with the harmless ones.
    pub(super) fn without_secrets(&self) -> Self {
        let mut headers = HeaderMap::clone(&self.headers);
        redirect::keep_harmless(&mut headers);
        Self { agent: Arc::clone(&self.agent), keeper: Keeper::none(self.env().clone()), headers: Arc::new(headers) }
    }

    /// Those of every request.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Where WebSockets connect.
    pub(super) fn network(&self) -> Arc<dyn Network> {
        Arc::clone(&self.agent.network)
    }

    /// For WebSockets.
    pub(super) fn tls(&self) -> Result<Tls, Cause> {
        self.agent.tls()
    }

    /// The wish to send one request to the origin of `url`.
    pub(super) fn want(&self, url: &Url, before: Option<Budget>) -> Wanted {
        Wanted { requester: self.clone(), origin: url.origin(), before, stage: Stage::Credential }
    }

    /// Sends one request, and follows where it is redirected. Each step of the way is a request of its own, with its own
    /// permission (R8).
    pub(super) async fn send(&self, allowed: &Allowed, ask: Ask) -> Result<Sent, Unsent> {
        let Ask { url, headers, validator, connection, progress } = ask;
        let mut trail = Trail::new(url);
        let mut hop: Option<Granted> = None;
        loop {
            let granted = hop.as_ref().unwrap_or(&allowed.granted);
            let mut all = HeaderMap::clone(&self.headers);
            trail.carry(&mut all);
            // Those of this library say which part of what is asked for: a log by range is one at its store, too.
            if !headers.is_empty() {
                all.extend(headers.clone());
            }
            if let Some(credential) = allowed.held.credential.as_ref().filter(|_| trail.keeps_credentials()) {
                credential.apply(&mut all);
            }
            let generation = allowed.held.generation;
            let validated = validator.as_ref().is_some_and(|v| v.apply(trail.url(), generation, &mut all));
            let mut request = Request::get(trail.url().clone());
            request.headers = all;
            request.connection = connection;
            request.progress = progress.clone();
            let on_the_way = OnTheWay { granted: Some(granted), progress: &progress };
            let mut answer = self.agent.exchange.send(request).await.map_err(Unsent::Failed)?;
            on_the_way.arrived();
            let told = Told::of(answer.status, &answer.headers, self.env().wall());
            allowed.heard(self.env().instant(), &told);
            granted.told(&told);
            if !trail.follow(answer.status, &answer.headers).map_err(|e| Unsent::Misdirected(e.cause()))? {
                return Ok(Sent { answer, told, trail, hop, validated });
            }
            drain(&mut answer, self.env(), &progress, COURTESY).await;
            drop(answer);
            // First: who waits for a place must not keep one.
            granted.ended();
            hop = Some(self.hop(allowed, &trail, &progress).await?);
        }
    }

    /// The permission for the next step of the way. Of another origin it is asked without the credential, as the request
    /// will be sent; whether it wants none for now is what the attempt comes to.
    async fn hop(&self, allowed: &Allowed, trail: &Trail, progress: &Progress) -> Result<Granted, Unsent> {
        let budget = match trail.keeps_credentials() {
            true => allowed.budget.clone(),
            false => self.agent.budgets.of(&trail.url().origin(), None, None),
        };
        let mut permit = budget.want();
        loop {
            // The bound of the phase is on the service, not on how many of ours wait for it.
            progress.begins(Phase::FirstByte);
            let again = self.env().instant() + QUEUED;
            tokio::select! {
                biased;
                step = permit.next() => return match step {
                    Step::Granted(granted) => {
                        progress.begins(Phase::FirstByte);
                        Ok(granted)
                    }
                    Step::Held(until) if budget.is_forbidden() => {
                        let retry_after = until.since(self.env().instant());
                        Err(Unsent::Misdirected(Cause::RateLimited { retry_after }))
                    }
                    // It is slow: each look that began anew would get no farther.
                    Step::Held(_) => continue,
                },
                () = self.env().sleep_until(Some(again)) => {}
            }
        }
    }
}

/// A request without an answer. Dropped while it has no connection, it takes nothing of the service's rate.
struct OnTheWay<'a> {
    granted: Option<&'a Granted>,
    progress: &'a Progress,
}

impl OnTheWay<'_> {
    fn arrived(mut self) {
        self.granted = None;
    }
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        if let Some(granted) = self.granted
            && self.progress.is_connecting()
        {
            granted.unsent();
        }
    }
}

/// Reads the small body of an answer that its head has decided, so that its connection can be used again. A body that does
/// not come costs the connection, and not the answer.
pub(super) async fn drain(answer: &mut exchange::Answer, env: &Env, progress: &Progress, patience: Duration) {
    progress.begins(Phase::Idle);
    let by = env.instant() + COURTESY.min(patience);
    let rest = async {
        let mut read = 0;
        while read < DRAINED
            && let Ok(Some(chunk)) = answer.chunk().await
        {
            read += chunk.len();
        }
    };
    tokio::select! {
        biased;
        () = rest => {}
        () = env.sleep_until(Some(by)) => {}
    }
}

/// What one request is.
pub(super) struct Ask {
    pub(super) url: Url,
    /// Beside those of every request.
    pub(super) headers: HeaderMap,
    pub(super) validator: Option<Arc<Validator>>,
    pub(super) connection: Connection,
    pub(super) progress: Progress,
}

/// An answer that is no redirect.
pub(super) struct Sent {
    pub(super) answer: exchange::Answer,
    pub(super) told: Told,
    /// The way to where it came from.
    pub(super) trail: Trail,
    /// The permission of its last step, if it was redirected.
    pub(super) hop: Option<Granted>,
    /// Whether the service was asked to compare.
    pub(super) validated: bool,
}

/// Why there is no answer.
pub(super) enum Unsent {
    Failed(Failure),
    /// It was redirected to where nothing is sent, or not now.
    Misdirected(Cause),
}

impl Unsent {
    /// Why a read is stale then, and whether one more attempt on a fresh connection is in order at once (FC-90): reading
    /// twice does no harm.
    pub(super) fn cause(&self) -> (Cause, bool) {
        match self {
            Self::Failed(failure) => {
                (failure.cause(), matches!(failure.kind, FailureKind::Closed | FailureKind::NotProcessed))
            }
            Self::Misdirected(cause) => (cause.clone(), false),
        }
    }
}

/// A request that may be sent now. Dropping it gives the permission back.
pub(super) struct Allowed {
    pub(super) held: Held,
    pub(super) budget: Budget,
    granted: Granted,
    /// Before what time the heads of the answers on the way ask not to be asked again.
    asked: watch::Sender<Option<Monotonic>>,
}

impl Allowed {
    /// When the service may be asked again, as the heads say that have come: those of redirects, too, and of answers that
    /// come to nothing afterwards.
    pub(super) fn asked(&self) -> watch::Receiver<Option<Monotonic>> {
        self.asked.subscribe()
    }

    /// Keeps what a head says.
    fn heard(&self, now: Monotonic, told: &Told) {
        if let Some(wait) = told.retry_after.max(told.poll_interval) {
            let until = Some(now + wait);
            self.asked.send_if_modified(|asked| {
                let later = until > *asked;
                *asked = until.max(*asked);
                later
            });
        }
    }

    /// The permission of the first step.
    pub(super) fn granted(&self) -> &Granted {
        &self.granted
    }

    /// Tells the budget what only the body said.
    pub(super) fn told(&self, told: &Told) {
        self.granted.told(told);
    }
}

/// How a wish stands.
pub(super) enum Wish {
    /// The request may be sent.
    Allowed(Box<Allowed>),
    /// Not before that time (R9).
    Held(Monotonic),
    /// There is no credential to send it with.
    Unheld(Unheld),
}

/// The wish to send one request. Dropping it takes it back.
pub(super) struct Wanted {
    requester: Requester,
    origin: url::Origin,
    before: Option<Budget>,
    stage: Stage,
}

enum Stage {
    Credential,
    Permit { held: Held, budget: Budget, permit: Permit },
    Over,
}

impl Wanted {
    /// What has become of it; after an end, never anything. Cancel safe.
    pub(super) async fn next(&mut self) -> Wish {
        loop {
            match &mut self.stage {
                Stage::Credential => {
                    let held = match self.requester.keeper.held().await {
                        Ok(held) => held,
                        Err(unheld) => {
                            self.stage = Stage::Over;
                            return Wish::Unheld(unheld);
                        }
                    };
                    let budgets = &self.requester.agent.budgets;
                    let budget = budgets.of(&self.origin, held.credential.as_ref(), self.before.as_ref());
                    let permit = budget.want();
                    self.stage = Stage::Permit { held, budget, permit };
                }
                Stage::Permit { permit, .. } => match permit.next().await {
                    Step::Held(until) => return Wish::Held(until),
                    Step::Granted(granted) => {
                        if let Stage::Permit { held, budget, .. } = std::mem::replace(&mut self.stage, Stage::Over) {
                            return Wish::Allowed(Box::new(Allowed {
                                held,
                                budget,
                                granted,
                                asked: watch::Sender::new(None),
                            }));
                        }
                    }
                },
                Stage::Over => return std::future::pending().await,
            }
        }
    }
}
