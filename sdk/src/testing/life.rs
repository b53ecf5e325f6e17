//! One life of a simulated server process.
#![expect(clippy::disallowed_methods, reason = "a driver: a life is a set of tasks")]

use axum::Router;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::task::JoinSet;

use super::net::Net;
use crate::transport::Io;

/// One life of a server: everything that it runs lives in one set of tasks.
///
/// Dropping it, or [`kill`](Self::kill), ends all of it between two instructions, like `kill -9`.
#[derive(Debug)]
pub struct Life {
    tasks: JoinSet<()>,
}

impl Life {
    /// Serves `router` on `address` of `net`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn serve(net: &Net, address: &str, router: Router) -> Self {
        let mut listener = net.listen(address);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Some(io) = listener.accept().await {
                connections.spawn(serve_connection(io, router.clone()));
            }
        });
        Self { tasks }
    }

    /// Ends it at once: no destructor of the server's logic gets to say goodbye.
    pub fn kill(self) {
        drop(self);
    }

    /// Adds a task to this life.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}

/// Serves one connection with `router`, until it ends or is upgraded.
///
/// # Cancel safety
/// Dropping it closes a connection that has not been upgraded.
pub async fn serve_connection(io: impl Io, router: Router) {
    let service = TowerToHyperService::new(router);
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(io), service).with_upgrades();
    if let Err(e) = served.await {
        tracing::debug!(error = %e, "connection ended");
    }
}
