//! The server half: the promises kept on a durable log.
//!
//! A [`Server`] dispatches calls and subscriptions to the handlers of its [`Routes`]. A command's
//! effect, the version of what it changes and its key are one atomic append to the [`Log`], so however
//! often and wherever it is sent, it has at most one recorded effect (S1, S2). Reads follow [`Cells`]
//! that a [`Projection`] folds from the same log.

mod admission;
mod authenticate;
mod builder;
mod core;
#[cfg(feature = "macros")]
pub(crate) mod declared;
mod drain;
mod execution;
mod executions;
#[cfg(test)]
mod exploration;
mod flight;
mod followers;
mod keywatch;
mod live;
mod outcome;
mod progress;
mod projection;
mod record;
mod refused;
mod routes;
mod scope;
mod session;
mod tasks;
mod upgrade;

pub use authenticate::{Authenticate, Unauthenticated};
pub use builder::ServerBuilder;
pub use live::{IntoLive, Live};
pub use outcome::{Events, IntoOutcome, Outcome, Running, Settle};
pub use projection::{Cell, Cells, Changes, Projection};
pub use routes::Routes;
pub use scope::{RpcScope, RpcScopeBuilder};

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::routing::any;
use http::{Response, StatusCode};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use self::core::{Core, Parts, Stage};
use self::tasks::Tasks;
use crate::env::Env;
use crate::error::Error;
use crate::log::{Log, LogId};
use crate::wire::Epoch;

/// How long a connection may take to send its request's head.
const HEAD_BOUND: Duration = Duration::from_secs(5);

/// A running server. Cloning shares it.
///
/// Its life is one set of tasks: when the last clone, and the last clone of its [`router`](Self::router),
/// is dropped, all of them are aborted: sessions, calls in flight, projections. That is as good as
/// `kill -9`: what was accepted is in the log (W6).
#[derive(Clone)]
pub struct Server {
    owner: Arc<Owner>,
}

/// The only strong reference to the tasks. No task has one.
struct Owner {
    core: Arc<Core>,
    tasks: Arc<Tasks>,
}

impl Server {
    /// Builds a server on `log`. Handlers that load from it hold a handle of their own: clone an
    /// [`AnyLog`](crate::log::AnyLog).
    pub fn builder(log: impl Log) -> ServerBuilder {
        ServerBuilder::new(log)
    }

    async fn start(builder: ServerBuilder) -> Result<Self, Error> {
        let ServerBuilder { log, env, authenticate, projections, routes, settings } = builder;
        let routes = merge(routes)?;
        let head = log.head_of_log().await?;
        let tasks = Arc::new(Tasks::new(tokio::runtime::Handle::current()));
        let core = Arc::new(Core::new(Parts {
            log_id: log.id(),
            log,
            head,
            env: env.unwrap_or_else(Env::system),
            settings,
            routes,
            authenticate,
            followers: projections.len().max(1),
            tasks: Arc::downgrade(&tasks),
        }));
        let watermark = projections.is_empty().then_some(0);
        if let Some(follower) = watermark {
            core.progress.advance(follower, head);
        }
        tasks.spawn(followers::follow_keys(Arc::clone(&core), watermark));
        for (follower, projection) in projections.into_iter().enumerate() {
            tasks.spawn(followers::follow(Arc::clone(&core), projection, follower));
        }
        Ok(Self { owner: Arc::new(Owner { core, tasks }) })
    }

    /// This life of the server, as its clients see it.
    pub fn epoch(&self) -> Epoch {
        self.owner.core.epoch
    }

    /// The log that it speaks for.
    pub fn log_id(&self) -> LogId {
        self.owner.core.log_id
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        *self.owner.core.connections.borrow()
    }

    /// The router: `GET /` upgrades to WebSocket, subprotocol `outlast.v1`. It may be nested and merged.
    ///
    /// Serve it with `axum::serve`, or one connection at a time with [`serve_io`](Self::serve_io). Over TCP set
    /// `TCP_NODELAY` (`axum::serve::ListenerExt::tap_io`): frames are small and each is awaited by somebody.
    pub fn router(&self) -> axum::Router {
        let answer = async |State(owner): State<Arc<Owner>>, request: Request| {
            upgrade::upgrade(Arc::clone(&owner.core), &owner.tasks, request).await
        };
        axum::Router::new().route("/", any(answer)).with_state(Arc::clone(&self.owner))
    }

    /// Serves one connection over any transport, for one that `axum::serve` does not know; `GET /` as the
    /// [`router`](Self::router) does.
    ///
    /// The future ends with the upgrade; the session goes on as a task of the server. The request's head
    /// must arrive within 5 s.
    ///
    /// # Errors
    /// Retryable: when the peer does not speak HTTP or goes away.
    ///
    /// # Cancel safety
    /// Dropping the future closes a connection that has not been upgraded.
    pub async fn serve_io<I>(&self, io: I) -> Result<(), Error>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let owner = &self.owner;
        let answer = service_fn(async |request: Request<hyper::body::Incoming>| {
            if request.uri().path() != "/" {
                let mut response = Response::new(axum::body::Body::empty());
                *response.status_mut() = StatusCode::NOT_FOUND;
                return Ok::<_, Infallible>(response);
            }
            Ok(upgrade::upgrade(Arc::clone(&owner.core), &owner.tasks, request).await)
        });
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_BOUND)
            .serve_connection(TokioIo::new(io), answer)
            .with_upgrades()
            .await
            .map_err(|e| Error::unavailable("the connection failed before its upgrade").with_source(e))
    }

    /// Ends gracefully: new connections are answered with 503, open ones are told, and heartbeats go on
    /// until every call in flight is answered (S6) or the [`drain_limit`](ServerBuilder::drain_limit)
    /// has passed; then they are closed with code 1012.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the drain goes on as a task of the server.
    pub async fn drain(&self) {
        let (core, (done, drained)) = (Arc::clone(&self.owner.core), tokio::sync::oneshot::channel::<()>());
        self.owner.tasks.spawn(async move {
            drain::drain(&core).await;
            drop(done);
        });
        // It ends without a word, by the drain's end or the server's.
        let _ = drained.await;
    }

    /// Completes when it serves no more: after a [`drain`](Self::drain), or because a [`Projection`] panicked. A process
    /// that waits for it can end and be started anew.
    ///
    /// # Cancel safety
    /// Safe: it only looks.
    pub async fn stopped(&self) {
        // The sender is in `core`, which this handle keeps: it cannot be gone.
        let _ = self.owner.core.stage.subscribe().wait_for(|stage| *stage == Stage::Closing).await;
    }

    /// Aborts every task at once, without a word to anybody, as `kill -9` would.
    ///
    /// What is asked of it later is answered with 503.
    pub fn abort(&self) {
        self.owner.tasks.abort();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("epoch", &self.epoch()).field("log", &self.log_id()).finish_non_exhaustive()
    }
}

fn merge(services: Vec<Routes>) -> Result<BTreeMap<&'static str, routes::Route>, Error> {
    let mut merged = BTreeMap::new();
    for service in services {
        if let Some(error) = service.error {
            return Err(error);
        }
        for (name, route) in service.routes {
            if merged.insert(name, route).is_some() {
                return Err(Error::invalid(name, "one handler, got two"));
            }
        }
    }
    Ok(merged)
}
