//! One request with its permission, its credential and its redirects.

use std::sync::Arc;

use ::http::HeaderMap;
use url::Url;

use super::agent::{Agent, Shared};
use super::budgets::{Budget, Granted, Permit, Step};
use super::exchange::{self, Connection, Failure, FailureKind, Progress, Request};
use super::redirect::{self, Trail};
use super::told::Told;
use super::validator::Validator;
use crate::credential::{Held, Keeper, Unheld};
use crate::env::Env;
use crate::error::Cause;
use crate::machine::Monotonic;
use crate::transport::{Network, Tls};

/// How much of a redirect's body is read to keep its connection.
const DRAINED: usize = 64 << 10;

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

    /// Sends one request, and follows where it is redirected.
    pub(super) async fn send(&self, allowed: &Allowed, ask: Ask) -> Result<Sent, Unsent> {
        let Ask { url, headers, validator, connection, progress } = ask;
        let mut trail = Trail::new(url);
        loop {
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
            let on_the_way =
                OnTheWay { granted: (!trail.is_redirected()).then_some(&allowed.granted), progress: &progress };
            let mut answer = self.agent.exchange.send(request).await.map_err(Unsent::Failed)?;
            on_the_way.arrived();
            let told = Told::of(answer.status, &answer.headers, self.env().wall());
            if !trail.is_elsewhere() {
                allowed.granted.told(&told);
            }
            if !trail.follow(answer.status, &answer.headers).map_err(|e| Unsent::Misdirected(e.cause()))? {
                return Ok(Sent { answer, told, trail, validated });
            }
            drain(&mut answer).await;
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

/// Reads the small body of an answer that nobody wants, so that its connection can be used again.
async fn drain(answer: &mut exchange::Answer) {
    let mut read = 0;
    while read < DRAINED
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        read += chunk.len();
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
    /// Whether the service was asked to compare.
    pub(super) validated: bool,
}

/// Why there is no answer.
pub(super) enum Unsent {
    Failed(Failure),
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
}

impl Allowed {
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
                            return Wish::Allowed(Box::new(Allowed { held, budget, granted }));
                        }
                    }
                },
                Stage::Over => return std::future::pending().await,
            }
        }
    }
}
