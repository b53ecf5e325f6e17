//! What a service's client is written with.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use ulid::Ulid;

use super::commands::{Body, CommandId, NewCommand};
use super::shared::{Request, Shared};
use crate::call::{Method, Params};
use crate::command::machine::Settings;
use crate::command::{Command, CommandFailure, CommandState, Control, Protection, Rung, Scope, resolve};
use crate::error::{Cause, Error};
use crate::key::{CommandKey, Fingerprint};
use crate::observe::Observable;
use crate::wire::MAX_FRAME;

/// Reads and calls a service's methods: what a client of that service is written with, by hand or by macro.
///
/// Cloning is cheap. [`with_key`](Self::with_key) and [`attempt`](Self::attempt) give one that calls differently.
#[derive(Clone, Debug)]
pub struct Caller {
    shared: Arc<Shared>,
    explicit: Option<Scope>,
    attempt: u32,
    metadata: Arc<BTreeMap<String, String>>,
}

impl Caller {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, explicit: None, attempt: 1, metadata: Arc::default() }
    }

    /// A caller whose next command has this L3 key. The key names **one** command: calling the same again
    /// attaches to it, calling another fails before anything is sent. Steps are named by [`CommandKey::step`].
    #[must_use]
    pub fn with_key(&self, key: impl Into<CommandKey>) -> Self {
        Self { explicit: Some(Scope::new(key.into())), ..self.clone() }
    }

    /// A caller whose commands with L2 keys are the `n`th attempt; the first is 1 (W7).
    #[must_use]
    pub fn attempt(&self, n: u32) -> Self {
        Self { attempt: n, ..self.clone() }
    }

    /// A caller whose commands carry this metadata. It is no part of the fingerprint.
    #[must_use]
    pub fn metadata(&self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let mut metadata = BTreeMap::clone(&self.metadata);
        metadata.insert(name.into(), value.into());
        Self { metadata: Arc::new(metadata), ..self.clone() }
    }

    /// Reads `method` with `params`. Those who read the same share one subscription.
    ///
    /// Parameters that JSON cannot hold leave the read `Loading`, with a cause that names them.
    pub fn read<T: DeserializeOwned + Send + Sync + 'static>(&self, method: &Method, params: Params) -> Observable<T> {
        match params.into_raw().and_then(|params| fits(params, 0)) {
            Ok(params) => self.shared.read(method.name(), params),
            Err(e) => {
                let (publisher, observable) = crate::observe::channel();
                publisher.stale(Cause::Refused { detail: e.to_string().into() });
                publisher.leave();
                observable
            }
        }
    }

    /// Calls `method` with `params`. The key exists when this returns; sending goes on behind (W1).
    ///
    /// Parameters or a key that cannot be used settle the command as `FAILED` before anything is sent.
    pub fn call(&self, method: &Method, params: Params) -> Command {
        let id = self.shared.env.ulid();
        match self.prepare(method, params, id) {
            Ok((rung, body)) => {
                let protection = if method.dedupes() { Protection::Recorded } else { Protection::Unprotected };
                let settings = Settings::call(rung.key, self.shared.env.wall(), protection);
                self.start(settings, Some(body)).overriding(rung.overridden)
            }
            Err(failure) => Command::failed(self.nominal_key(id), failure),
        }
    }

    /// Follows the command of `key`, which is not sent from here.
    pub(super) fn attach(&self, key: CommandKey) -> Command {
        match key.validate() {
            Ok(()) => self.start(Settings::attach(key, self.shared.env.wall()), None),
            Err(e) => Command::failed(key, CommandFailure::invalid(&e)),
        }
    }

    /// The key that this call stands on, and what is sent under it (W1, K2).
    fn prepare(&self, method: &Method, params: Params, id: Ulid) -> Result<(Rung, Body), CommandFailure> {
        let invalid = |e: Error| CommandFailure::invalid(&e);
        let metadata = serde_json::to_string(&*self.metadata).map_or(0, |json| json.len());
        let params = params.into_raw().and_then(|params| fits(params, metadata)).map_err(invalid)?;
        let fingerprint = Fingerprint::of(method.name(), &params).map_err(invalid)?;
        let semantic = method.semantic_key(&params, self.attempt).transpose().map_err(invalid)?;
        let explicit = self.explicit.clone().or_else(Scope::ambient);
        let rung = resolve(semantic, explicit.as_ref(), CommandKey::minted(id), fingerprint)?;
        if let Some(unused) = &rung.overridden {
            tracing::warn!(key = %unused, method = method.name(), "the method makes its own key; this one is not used");
        }
        let metadata = Arc::clone(&self.metadata);
        Ok((rung, Body { method: method.name(), params, attempt: self.attempt, id, metadata }))
    }

    /// What a handle shows as its key when the call could not be prepared.
    fn nominal_key(&self, id: Ulid) -> CommandKey {
        self.explicit.as_ref().map_or_else(|| CommandKey::minted(id), |scope| scope.key().clone())
    }

    fn start(&self, mut settings: Settings, body: Option<Body>) -> Command {
        settings.sigma = self.shared.clock_error;
        let key = settings.key.clone();
        let id = self.shared.next_id();
        let (publisher, state) = crate::observe::channel();
        publisher.fresh(CommandState::queued(settings.protection));
        self.shared.tell(Request::Command(Box::new(NewCommand { id, settings, body, publisher })));
        Command::new(key, state, Box::new(Way { shared: Arc::clone(&self.shared), id }))
    }
}

/// What a frame holds beside parameters and metadata: method, key, ids.
const ENVELOPE: usize = 4 << 10;

/// Parameters that fit into one frame with `metadata` bytes of metadata. What does not would end the connection, for everyone and each time it is resent.
fn fits(params: Arc<RawValue>, metadata: usize) -> Result<Arc<RawValue>, Error> {
    let (most, size) = (MAX_FRAME - ENVELOPE, params.get().len() + metadata);
    if size > most {
        return Err(Error::invalid("params", format_args!("at most {most} bytes with metadata, got {size}")));
    }
    Ok(params)
}

/// The way from a handle to the router.
struct Way {
    shared: Arc<Shared>,
    id: CommandId,
}

impl Control for Way {
    fn cancel(&self) {
        self.shared.tell(Request::Cancel(self.id));
    }
}
