//! What a server is made of.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;

use super::Server;
use super::authenticate::{Authenticate, Unauthenticated};
use super::projection::Projection;
use super::routes::Routes;
use crate::env::Env;
use crate::error::Error;
use crate::key::Principal;
use crate::log::{AnyLog, Log};

/// The bounds that a server keeps. Every one has a default and can be set at the [`ServerBuilder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) heartbeat: Duration,
    pub(crate) retention: Duration,
    pub(crate) sigma: Duration,
    pub(crate) connects_per_second: u32,
    pub(crate) subscriptions: usize,
    pub(crate) calls: usize,
    pub(crate) attempt: Duration,
    pub(crate) drain: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(10),
            retention: Duration::from_secs(24 * 3600),
            sigma: Duration::from_secs(30),
            connects_per_second: 100,
            subscriptions: 1_000,
            calls: 10_000,
            attempt: Duration::from_secs(30),
            drain: Duration::from_secs(10),
        }
    }
}

/// Builds a [`Server`].
#[must_use = "a server is built by `start`"]
pub struct ServerBuilder {
    pub(crate) log: AnyLog,
    pub(crate) env: Option<Env>,
    pub(crate) authenticate: Box<dyn Authenticate>,
    pub(crate) projections: Vec<Box<dyn Projection>>,
    pub(crate) routes: Vec<Routes>,
    pub(crate) settings: Settings,
}

impl ServerBuilder {
    pub(super) fn new(log: impl Log) -> Self {
        Self {
            log: AnyLog::new(log),
            env: None,
            authenticate: Box::new(Anonymous),
            projections: Vec::new(),
            routes: Vec::new(),
            settings: Settings::default(),
        }
    }

    /// Tells who a connection belongs to. By default everybody is the one principal `anonymous`.
    pub fn authenticate(mut self, authenticate: impl Authenticate) -> Self {
        self.authenticate = Box::new(authenticate);
        self
    }

    /// Adds a view that is folded from the log.
    pub fn project(mut self, projection: impl Projection) -> Self {
        self.projections.push(Box::new(projection));
        self
    }

    /// Adds a service: its [`Routes`], or the server that `#[outlast::service]` makes.
    pub fn service(mut self, routes: impl Into<Routes>) -> Self {
        self.routes.push(routes.into());
        self
    }

    /// Where time and randomness come from; the system's by default.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// How often clients ping; a connection silent for two of them is dropped. 10 s by default.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.settings.heartbeat = heartbeat;
        self
    }

    /// R: how long keys are remembered at least. 24 h by default. Their records are not removed yet.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.settings.retention = retention;
        self
    }

    /// sigma: the bound on the error of any clock here or at a client. 30 s by default.
    pub fn clock_error(mut self, sigma: Duration) -> Self {
        self.settings.sigma = sigma;
        self
    }

    /// How many clients may come back per second after a drop; says how far they spread. 100 by default.
    pub fn connects_per_second(mut self, connects: u32) -> Self {
        self.settings.connects_per_second = connects.max(1);
        self
    }

    /// How many subscriptions a connection may have. 1,000 by default.
    pub fn subscriptions_per_connection(mut self, subscriptions: usize) -> Self {
        self.settings.subscriptions = subscriptions;
        self
    }

    /// How many open calls a connection may have. 10,000 by default.
    pub fn calls_per_connection(mut self, calls: usize) -> Self {
        self.settings.calls = calls;
        self
    }

    /// How long one attempt of a handler may take; then the call is refused as retryable. 30 s by default.
    pub fn attempt_limit(mut self, limit: Duration) -> Self {
        self.settings.attempt = limit;
        self
    }

    /// How long [`Server::drain`] waits for calls in flight. 10 s by default.
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.settings.drain = limit;
        self
    }

    /// Starts the server: its projections fold and its router may be served.
    ///
    /// Needs a tokio runtime with its timer enabled: the server's tasks run in the one that polls this future.
    ///
    /// # Errors
    /// When a method has two handlers or a name of another service; retryable, when the log is unavailable.
    ///
    /// # Panics
    /// When it is polled outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing running.
    pub async fn start(self) -> Result<Server, Error> {
        Server::start(self).await
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("routes", &self.routes)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Everybody is one principal.
struct Anonymous;

impl Authenticate for Anonymous {
    fn authenticate<'a>(&'a self, _: &'a http::HeaderMap) -> BoxFuture<'a, Result<Principal, Unauthenticated>> {
        Box::pin(async { Principal::new("anonymous").map_err(|_| Unauthenticated::Unavailable) })
    }
}
