//! One request with its permission, its credential and its redirects.

mod wanted;

pub(super) use wanted::{Allowed, Wanted, Wish};

use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderMap;
use tokio::runtime::Handle;
use url::Url;

use super::budgets::{Budget, Granted, Step};
use super::egress::Egress;
use super::exchange::{self, Connection, Failure, FailureKind, Progress, Request};
use super::intake::{COURTESY, drain};
use super::redirect::{self, Trail};
use super::shared::Shared;
use super::told::Told;
use super::validator::Validator;
use crate::credential::Keeper;
use crate::env::Env;
use crate::error::{Cause, Phase};

/// How often a step of a redirect says that it still waits for its permission.
const QUEUED: Duration = Duration::from_secs(1);

/// Sends the requests of one read or feed. Cloning is cheap.
#[derive(Clone)]
pub(super) struct Requester(Arc<Means>);

struct Means {
    agent: Arc<Shared>,
    keeper: Keeper,
    headers: HeaderMap,
}

impl Requester {
    /// One whose every request has `headers`.
    pub(super) fn new(agent: Arc<Shared>, keeper: Keeper, headers: HeaderMap) -> Self {
        Self(Arc::new(Means { agent, keeper, headers }))
    }

    /// What keeps the credential.
    pub(super) fn keeper(&self) -> &Keeper {
        &self.0.keeper
    }

    pub(super) fn env(&self) -> &Env {
        &self.0.agent.env
    }

    /// Where what it sends for runs.
    pub(super) fn runtime(&self) -> &Handle {
        &self.0.agent.runtime
    }

    /// The same for another origin: without the credential, and of the caller's headers only with the harmless ones.
    pub(super) fn without_secrets(&self) -> Self {
        let mut headers = self.headers().clone();
        redirect::keep_harmless(&mut headers);
        Self::new(Arc::clone(&self.0.agent), Keeper::none(self.env().clone()), headers)
    }

    /// Those of every request.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// The way out of WebSockets.
    pub(super) fn egress(&self) -> &Arc<Egress> {
        &self.0.agent.egress
    }

    /// The wish to send one request to the origin of `url`.
    pub(super) fn want(&self, url: &Url, before: Option<Budget>) -> Wanted {
        Wanted::new(self.clone(), url, before)
    }

    /// Sends one request, and follows where it is redirected. Each step of the way is a request of its own, with its own
    /// permission (R8).
    pub(super) async fn send(&self, allowed: &Allowed, ask: &mut Ask) -> Result<Sent, Unsent> {
        let mut hop: Option<Granted> = None;
        loop {
            let granted = hop.as_ref().unwrap_or(allowed.granted());
            let (request, validated) = self.request(allowed, ask);
            let on_the_way = OnTheWay { granted: Some(granted), progress: &ask.progress };
            let mut answer = self.0.agent.exchange.send(request).await.map_err(Unsent::Failed)?;
            on_the_way.arrived();
            let told = Told::read(answer.status, &answer.headers, || self.env().wall());
            allowed.heard(self.env(), &told);
            if answer.may_have_body() {
                granted.told(&told);
            } else {
                granted.told_and_ended(&told);
            }
            let follow = ask.trail.follow(answer.status, &answer.headers);
            if !follow.map_err(|e| Unsent::Misdirected(e.cause()))? {
                return Ok(Sent { answer, told, hop, validated });
            }
            // Boxed: few requests are redirected, and all would be larger for it.
            Box::pin(drain(&mut answer, self.env(), &ask.progress, COURTESY)).await;
            drop(answer);
            // First: who waits for a place must not keep one.
            granted.ended();
            hop = Some(Box::pin(self.hop(allowed, &ask.trail, &ask.progress)).await?);
        }
    }

    /// The request for where the way has come to, and whether it asks the service to compare.
    fn request(&self, allowed: &Allowed, ask: &Ask) -> (Request, bool) {
        let trail = &ask.trail;
        let mut headers = self.headers().clone();
        trail.carry(&mut headers);
        // Those of this library say which part of what is asked for: a log by range is one at its store, too.
        if let Some(own) = &ask.headers {
            headers.extend(HeaderMap::clone(own));
        }
        if let Some(credential) = allowed.held.credential.as_ref().filter(|_| trail.keeps_credentials()) {
            credential.apply(&mut headers);
        }
        let generation = allowed.held.generation;
        let validated = ask.validator.as_ref().is_some_and(|v| v.apply(trail.url(), generation, &mut headers));
        let mut request = Request::get(trail.url().clone());
        request.headers = headers;
        request.connection = ask.connection;
        request.progress = ask.progress.clone();
        (request, validated)
    }

    /// The permission for the next step of the way. Of another origin it is asked without the credential, as the request
    /// will be sent; whether it wants none for now is what the attempt comes to.
    async fn hop(&self, allowed: &Allowed, trail: &Trail, progress: &Progress) -> Result<Granted, Unsent> {
        let budget = match trail.keeps_credentials() {
            true => allowed.budget().clone(),
            false => self.0.agent.budgets.of(&trail.url().origin(), None, None),
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

/// What one request is.
pub(super) struct Ask {
    /// The way to where it is answered.
    pub(super) trail: Trail,
    /// Beside those of every request.
    pub(super) headers: Option<Box<HeaderMap>>,
    pub(super) validator: Option<Arc<Validator>>,
    pub(super) connection: Connection,
    pub(super) progress: Progress,
}

/// An answer that is no redirect.
pub(super) struct Sent {
    pub(super) answer: exchange::Answer,
    pub(super) told: Told,
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
