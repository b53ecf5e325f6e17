//! Shares connections, budgets and the look-out for sleep among reads.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

use super::budgets::Budgets;
use super::egress::Egress;
use super::exchange::Exchange;
use super::keepers::Keepers;
use super::pacing::Limits;
use super::pool::Pool;
use super::proxies::Proxies;
use super::shared::Shared;
use super::trust::{Identity, Trust};
use crate::connection::Wake;
use crate::env::Env;
use crate::error::{Error, ErrorKind};
use crate::transport::{Network, Tcp};

/// What reads of HTTP services share: connections, and one budget for each origin and credential (R8).
///
/// Cloning is cheap. [`get`](super::get) uses the one of the present runtime; build another one for a proxy, certificates
/// or bounds of one's own. Reads keep it alive.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
}

impl Agent {
    /// Sets one up. Everything has a default.
    pub fn builder() -> AgentBuilder {
        AgentBuilder {
            exchange: None,
            network: None,
            trust: Trust::default(),
            proxies: None,
            env: None,
            limits: Limits::default(),
        }
    }

    /// The one of the present tokio runtime; all that ask for it get the same.
    ///
    /// # Errors
    /// Outside a tokio runtime, or when no TLS can be had.
    pub fn shared() -> Result<Self, Error> {
        static SHARED: Mutex<Option<HashMap<Id, Weak<Shared>>>> = Mutex::new(None);
        let runtime = current()?;
        let mut agents = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let agents = agents.get_or_insert_default();
        if let Some(shared) = agents.get(&runtime.id()).and_then(Weak::upgrade) {
            return Ok(Self { shared });
        }
        let agent = Self::builder().build()?;
        agents.retain(|_, agent| agent.strong_count() > 0);
        agents.insert(runtime.id(), Arc::downgrade(&agent.shared));
        // Budgets outlive the reads that learned them: the runtime keeps the agent, and drops it at its end.
        let kept = agent.clone();
        drop(runtime.spawn(async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        }));
        Ok(agent)
    }

    pub(super) fn inner(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

fn current() -> Result<Handle, Error> {
    Handle::try_current()
        .map_err(|e| Error::new(ErrorKind::Invalid, "runtime: expected to be called inside tokio").with_source(e))
}

/// Sets up an [`Agent`].
///
/// Proxies and certificates are for requests and for [WebSockets](super::push::WebSocket). An
/// [`exchange`](Self::exchange) that is given has its own for requests.
#[must_use = "nothing exists before `build`"]
pub struct AgentBuilder {
    exchange: Option<Arc<dyn Exchange>>,
    network: Option<Arc<dyn Network>>,
    trust: Trust,
    proxies: Option<Proxies>,
    env: Option<Env>,
    limits: Limits,
}

impl AgentBuilder {
    /// What sends the requests. Default: a [`Pool`] with its defaults.
    pub fn exchange(mut self, exchange: impl Exchange) -> Self {
        self.exchange = Some(Arc::new(exchange));
        self
    }

    /// Where [WebSockets](super::push::WebSocket) resolve names and connect. Default: the operating system's [`Tcp`].
    /// Requests go where the [`exchange`](Self::exchange) sends them.
    pub fn network(mut self, network: impl Network) -> Self {
        self.network = Some(Arc::new(network));
        self
    }

    /// Sends requests and WebSockets through the proxy at `url` (`http`, `https`, `socks4`, `socks4a`, `socks5` or
    /// `socks5h`, with user and password where it wants them) and looks at no variable.
    ///
    /// Default: what `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say when the agent is built, where `ws` counts
    /// as `http` and `wss` as `https`. On a [`network`](Self::network) of your own WebSockets use no proxy by default.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxies = Some(Proxies::One(url.into().into()));
        self
    }

    /// Uses no proxy, whatever the variables say.
    pub fn no_proxy(mut self) -> Self {
        self.proxies = Some(Proxies::None);
        self
    }

    /// Trusts the certificates in `pem` beside what the platform trusts. Replaces those given before.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.trust.roots = pem.into();
        self
    }

    /// Trusts the certificates in the PEM file at `path`, too.
    ///
    /// The file is read again before a connection is used, at most each second. When it has changed, new connections are
    /// made by what it says now, and pooled ones are not used again; a WebSocket that is open stays. While it cannot be
    /// read or used, nothing that needs TLS can be had.
    pub fn root_certificates_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.trust.roots_file = Some(path.into());
        self
    }

    /// Shows services that ask for one the certificate at the start of `chain`, with its private key; both in PEM.
    pub fn client_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.trust.identity = Identity::Pem { chain: chain.into(), key: key.into().into() };
        self
    }

    /// The same from two PEM files, read again as [`root_certificates_file`](Self::root_certificates_file) is.
    pub fn client_certificate_files(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.trust.identity = Identity::Files { chain: chain.into(), key: key.into() };
        self
    }

    /// Clocks and randomness. Default: the system's.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// The bounds of each budget.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes it.
    ///
    /// # Errors
    /// Outside a tokio runtime, when a certificate, a key or the proxy is not usable, or when no TLS can be had.
    pub fn build(self) -> Result<Agent, Error> {
        let runtime = current()?;
        let (network, usual): (Arc<dyn Network>, _) = match self.network {
            Some(network) => (network, Proxies::None),
            None => (Arc::new(Tcp::default()), Proxies::Usual),
        };
        let egress = Egress::new(network, self.proxies.as_ref().unwrap_or(&usual), self.trust.clone())?;
        let env = self.env.unwrap_or_else(Env::system);
        let exchange = match self.exchange {
            Some(exchange) => exchange,
            None => Arc::new(Pool::builder().with(self.trust, self.proxies.unwrap_or(Proxies::Usual)).build()?),
        };
        let (sender, woke) = watch::channel(0);
        let budgets = Budgets::new(env.clone(), self.limits);
        let shared = Arc::new(Shared {
            env,
            exchange,
            budgets,
            keepers: Keepers::default(),
            egress: Arc::new(egress),
            runtime: runtime.clone(),
            woke,
        });
        // It ends once nothing reads any more, or with its runtime.
        drop(runtime.spawn(look_out(Arc::downgrade(&shared), shared.env.clone(), sender)));
        Ok(Agent { shared })
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Tells all reads when the clocks come apart: the machine slept, or somebody set its clock (R7).
async fn look_out(agent: Weak<Shared>, env: Env, jumps: watch::Sender<u64>) {
    let mut wake = Wake::new(&env.now());
    while agent.strong_count() > 0 {
        env.sleep_until(Some(wake.due())).await;
        if wake.jumped(&env.now()) {
            tracing::debug!("the clocks came apart: every read looks again");
            jumps.send_modify(|jumps| *jumps += 1);
        }
    }
}
