//! A world to fail in: one log, one network, one server that can be killed and come back elsewhere.

use outlast::client::{Client, ClientBuilder};
use outlast::connection::Discover;
use outlast::env::Env;
use outlast::log::{AnyLog, MemoryLog};
use outlast::server::Server;
use outlast::testing::{Life, Net, SimulatedClock};

use crate::{JobsServer, Workshop};

/// The world: everything in one runtime, time paused.
#[derive(Debug)]
pub struct World {
    /// The network.
    pub net: Net,
    /// The wall clock that all share.
    pub clock: SimulatedClock,
    /// The log, which outlives every server.
    pub log: AnyLog,
    seed: u64,
}

impl World {
    /// A world whose every clock and draw follows from `seed`; which of two ready tasks goes first is tokio's choice.
    pub fn new(seed: u64) -> Self {
        let clock = SimulatedClock::new();
        let env = Env::new(clock.clone(), seed);
        let log = AnyLog::new(MemoryLog::declared_durable(&env));
        Self { net: Net::new(), clock, log, seed }
    }

    /// Surroundings for one participant, named by `salt`.
    pub fn env(&self, salt: u64) -> Env {
        Env::new(self.clock.clone(), self.seed ^ salt.rotate_left(32))
    }

    /// A life of the server on `address`.
    ///
    /// # Panics
    /// When the server cannot start: the test is then about something else.
    pub async fn serve(&self, address: &str) -> Life {
        self.serve_on(address, &self.log).await
    }

    /// A life of a server on a log of its own.
    ///
    /// # Panics
    /// When the server cannot start.
    pub async fn serve_on(&self, address: &str, log: &AnyLog) -> Life {
        Life::serve(&self.net, address, self.router_on(log).await)
    }

    /// A server's router, for another network.
    ///
    /// # Panics
    /// When the server cannot start.
    pub async fn router(&self) -> axum::Router {
        self.router_on(&self.log).await
    }

    async fn router_on(&self, log: &AnyLog) -> axum::Router {
        self.server_on(log).await.router()
    }

    /// A server, to be drained or served on another network.
    ///
    /// # Panics
    /// When the server cannot start.
    pub async fn server(&self) -> Server {
        self.server_on(&self.log).await
    }

    async fn server_on(&self, log: &AnyLog) -> Server {
        let jobs = Workshop::new(log.clone());
        let builder = Server::builder(log.clone()).env(self.env(1)).project(jobs.projection());
        builder.service(JobsServer::new(jobs)).start().await.expect("the server starts")
    }

    /// A client that finds the service by `discover`.
    pub fn client(&self, discover: impl Discover) -> ClientBuilder {
        Client::builder(discover).network(self.net.clone()).env(self.env(2))
    }
}
