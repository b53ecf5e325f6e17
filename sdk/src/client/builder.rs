//! How a client is set up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Client;
use super::router::Router;
use super::shared::Shared;
use crate::connection::{Discover, Parts, Policy, check_url, liveness, supervisor};
use crate::credential::Credentials;
use crate::env::Env;
use crate::error::{Error, ErrorKind};
use crate::observe::machine as reads;
use crate::transport::{Network, Tcp};

/// Sets up a [`Client`]. Everything but the endpoints has a default.
#[must_use = "nothing connects before `open`"]
pub struct ClientBuilder {
    discover: Arc<dyn Discover>,
    credentials: Option<Arc<dyn Credentials>>,
    network: Arc<dyn Network>,
    env: Option<Env>,
    root_certificates: Vec<u8>,
    supervisor: supervisor::Config,
    liveness: liveness::Config,
    schedule: Option<Policy>,
    reads: reads::Settings,
    clock_error: Duration,
    idle: Duration,
}

impl ClientBuilder {
    pub(super) fn new(discover: impl Discover) -> Self {
        Self {
            discover: Arc::new(discover),
            credentials: None,
            network: Arc::new(Tcp),
            env: None,
            root_certificates: Vec::new(),
            supervisor: supervisor::Config::default(),
            liveness: liveness::Config::default(),
            schedule: None,
            reads: reads::Settings::default(),
            clock_error: Duration::from_secs(30),
            idle: Duration::from_secs(30),
        }
    }

    /// Where the credential comes from: a [`Credential`](crate::Credential), a [source](crate::credential) such as a file
    /// or a command, or a closure that returns a future of one. It is asked at the start, before a dial if the credential
    /// is about to expire, and after each refusal (R3). Default: none is sent.
    pub fn credential(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    /// What connects. Default: the operating system's TCP.
    pub fn network(mut self, network: impl Network) -> Self {
        self.network = Arc::new(network);
        self
    }

    /// Clocks and randomness. Default: the system's.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Certificates in PEM to trust beside the platform's. Default: none. Read at the first `wss://` dial.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = pem.into();
        self
    }

    /// How connecting is bounded and spaced.
    pub fn supervisor(mut self, config: supervisor::Config) -> Self {
        self.supervisor = config;
        self
    }

    /// A policy of one's own for the delay before the next round of dials: from the outage so far, and how often a delay
    /// was needed in it, the next delay. Any iterator will do: `.schedule(move |_, _| delays.next())`. After `None` the
    /// default goes on, since recovery does not give up (R8); a `Retry-After` is kept to in any case.
    pub fn schedule(mut self, policy: impl FnMut(Duration, u32) -> Option<Duration> + Send + 'static) -> Self {
        self.schedule = Some(Box::new(policy));
        self
    }

    /// sigma: the bound on the error of this machine's clock. A command is not resent in the last two sigma of the
    /// service's retention (W2). Default 30 s.
    pub fn clock_error(mut self, sigma: Duration) -> Self {
        self.clock_error = sigma;
        self
    }

    /// How a silent connection is found out.
    pub fn liveness(mut self, config: liveness::Config) -> Self {
        self.liveness = config;
        self
    }

    /// The bounds of reads.
    pub fn reads(mut self, settings: reads::Settings) -> Self {
        self.reads = settings;
        self
    }

    /// How long a read stays subscribed after its last observer has gone. Default 30 s.
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Starts to connect in the background and returns at once.
    ///
    /// # Errors
    /// When called outside a tokio runtime.
    pub fn open(self) -> Result<Client, Error> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|e| {
            Error::new(ErrorKind::Invalid, "runtime: expected to be called inside tokio").with_source(e)
        })?;
        let env = self.env.unwrap_or_else(Env::system);
        let parts = Parts {
            env: env.clone(),
            network: self.network,
            discover: self.discover,
            credentials: self.credentials,
            root_certificates: self.root_certificates,
            supervisor: self.supervisor,
            liveness: self.liveness,
            schedule: self.schedule,
        };
        let (shared, ends) = Shared::new(env, self.clock_error);
        let router = Router::new(&shared, ends, self.reads, self.idle);
        // The task ends with its runtime, or once the client is closed, or once nobody needs it any more.
        runtime.spawn(async move { router.run(parts).await });
        Ok(Client { shared })
    }

    /// Checks a URL before anything connects.
    pub(super) fn checked(url: &str) -> Result<Self, Error> {
        check_url(url)?;
        Ok(Self::new(url.to_owned()))
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("supervisor", &self.supervisor).finish_non_exhaustive()
    }
}
