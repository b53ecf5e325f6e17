//! Shares connections, budgets and the look-out for sleep among reads.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

use super::budgets::Budgets;
use super::exchange::Exchange;
use super::keepers::Keepers;
use super::pacing::Limits;
use super::pool::Pool;
use super::shared::Shared;
use crate::connection::Wake;
use crate::env::Env;
use crate::error::{Error, ErrorKind};
use crate::transport::tls::roots;
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
            network: Arc::new(Tcp::default()),
            root_certificates: Vec::new(),
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
#[must_use = "nothing exists before `build`"]
pub struct AgentBuilder {
    exchange: Option<Arc<dyn Exchange>>,
    network: Arc<dyn Network>,
    root_certificates: Vec<u8>,
    env: Option<Env>,
    limits: Limits,
}

impl AgentBuilder {
    /// What sends the requests. Default: a [`Pool`] with its defaults.
    pub fn exchange(mut self, exchange: impl Exchange) -> Self {
        self.exchange = Some(Arc::new(exchange));
        self
    }

    /// Where [WebSockets](super::push::WebSocket) resolve names and connect. Default: the operating system's [`Tcp`]. No
    /// proxy is used for them. Requests go where the [`exchange`](Self::exchange) sends them.
    pub fn network(mut self, network: impl Network) -> Self {
        self.network = Arc::new(network);
        self
    }

    /// Trusts the certificates in `pem` beside what the platform trusts: for WebSockets, and for requests unless an
    /// [`exchange`](Self::exchange) is given, which has its own. Replaces those given before.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = pem.into();
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
    /// Outside a tokio runtime, when a certificate is not usable, or when no TLS can be had.
    pub fn build(self) -> Result<Agent, Error> {
        let runtime = current()?;
        roots(&self.root_certificates)?;
        let env = self.env.unwrap_or_else(Env::system);
        let exchange = match self.exchange {
            Some(exchange) => exchange,
            None => Arc::new(Pool::builder().root_certificates(self.root_certificates.clone()).build()?),
        };
        let (sender, woke) = watch::channel(0);
        let budgets = Budgets::new(env.clone(), self.limits);
        let shared = Arc::new(Shared {
            env,
            exchange,
            budgets,
            keepers: Keepers::default(),
            network: self.network,
            root_certificates: self.root_certificates,
            tls: OnceLock::new(),
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
