//! What only the server can observe about a request.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;
use ulid::Ulid;

use crate::key::{CommandRef, KeyLevel, Principal};
use crate::wire::Timestamp;

/// What only the server can observe about one request. Read-only, and cheap to clone.
///
/// It exposes and enforces nothing. A handler is tested without a transport by building one:
///
/// ```
/// # use outlast::{key::Principal, server::RpcScope};
/// # fn main() -> Result<(), outlast::Error> {
/// let scope = RpcScope::builder(Principal::new("alice")?).build();
/// assert_eq!(scope.principal().as_str(), "alice");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RpcScope {
    facts: Arc<Facts>,
}

#[derive(Clone)]
struct Facts {
    principal: Principal,
    command: Option<CommandRef>,
    level: Option<KeyLevel>,
    id: Option<Ulid>,
    attempt: u32,
    peer: Option<SocketAddr>,
    metadata: BTreeMap<String, String>,
    minimum: Option<Timestamp>,
    deadline: Option<Instant>,
    canceled: watch::Receiver<bool>,
}

impl RpcScope {
    /// The scope of a request by `principal`, without anything else.
    pub fn builder(principal: Principal) -> RpcScopeBuilder {
        let (_, canceled) = watch::channel(false);
        RpcScopeBuilder {
            facts: Facts {
                principal,
                command: None,
                level: None,
                id: None,
                attempt: 1,
                peer: None,
                metadata: BTreeMap::new(),
                minimum: None,
                deadline: None,
                canceled,
            },
        }
    }

    /// Who asks.
    pub fn principal(&self) -> &Principal {
        &self.facts.principal
    }

    /// The command's address, from which ids of new things may be made; `None` in a read.
    pub fn command(&self) -> Option<&CommandRef> {
        self.facts.command.as_ref()
    }

    /// How the command's key was made; `None` in a read.
    pub fn key_level(&self) -> Option<KeyLevel> {
        self.facts.level
    }

    /// The ULID that travels with every call, for correlation only; `None` in a read.
    pub fn correlation(&self) -> Option<Ulid> {
        self.facts.id
    }

    /// The attempt of an L2 key; 1 for the first.
    pub fn attempt(&self) -> u32 {
        self.facts.attempt
    }

    /// The peer's address, where the transport has one and says so.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.facts.peer
    }

    /// The caller's own metadata.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.facts.metadata
    }

    /// What the caller has seen already: the answer is to be at least as new.
    pub fn minimum_timestamp(&self) -> Option<Timestamp> {
        self.facts.minimum
    }

    /// When this attempt of the handler is given up; never the command's deadline, which has none (W3).
    pub fn deadline(&self) -> Option<Instant> {
        self.facts.deadline
    }

    /// Whether this attempt is no longer wanted.
    pub fn is_canceled(&self) -> bool {
        *self.facts.canceled.borrow()
    }

    /// Completes when this attempt is no longer wanted.
    ///
    /// # Cancel safety
    /// Safe: it only looks.
    pub async fn canceled(&self) {
        let mut canceled = self.facts.canceled.clone();
        if canceled.wait_for(|canceled| *canceled).await.is_err() {
            // Nobody is left who could cancel it.
            std::future::pending::<()>().await;
        }
    }
}

impl fmt::Debug for RpcScope {
    /// Without metadata's values: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = &*self.facts;
        f.debug_struct("RpcScope")
            .field("principal", &facts.principal)
            .field("command", &facts.command)
            .field("level", &facts.level)
            .field("peer", &facts.peer)
            .field("metadata", &facts.metadata.keys())
            .field("minimum", &facts.minimum)
            .finish_non_exhaustive()
    }
}

/// Builds an [`RpcScope`].
#[derive(Clone)]
pub struct RpcScopeBuilder {
    facts: Facts,
}

impl RpcScopeBuilder {
    /// A command of this principal, by its key.
    #[must_use]
    pub fn command(mut self, key: impl Into<Arc<str>>, level: KeyLevel) -> Self {
        self.facts.command = Some(CommandRef::new(self.facts.principal.clone(), key));
        self.facts.level = Some(level);
        self
    }

    /// The correlation id of the call.
    #[must_use]
    pub fn correlation(mut self, id: Ulid) -> Self {
        self.facts.id = Some(id);
        self
    }

    /// The attempt of an L2 key.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.facts.attempt = attempt;
        self
    }

    /// The peer's address.
    #[must_use]
    pub fn peer(mut self, peer: Option<SocketAddr>) -> Self {
        self.facts.peer = peer;
        self
    }

    /// The caller's metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: BTreeMap<String, String>) -> Self {
        self.facts.metadata = metadata;
        self
    }

    /// What the caller has seen already.
    #[must_use]
    pub fn minimum_timestamp(mut self, minimum: Option<Timestamp>) -> Self {
        self.facts.minimum = minimum;
        self
    }

    /// When this attempt is given up.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.facts.deadline = Some(deadline);
        self
    }

    /// Becomes true when this attempt is no longer wanted.
    #[must_use]
    pub fn canceled_by(mut self, canceled: watch::Receiver<bool>) -> Self {
        self.facts.canceled = canceled;
        self
    }

    /// The scope.
    pub fn build(self) -> RpcScope {
        RpcScope { facts: Arc::new(self.facts) }
    }
}

impl fmt::Debug for RpcScopeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcScopeBuilder").field("principal", &self.facts.principal).finish_non_exhaustive()
    }
}
