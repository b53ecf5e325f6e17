//! What a client's handles share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::commands::{CommandId, NewCommand};
use super::reads::{NewRead, TypedSlot};
use super::registry::{Found, ReadKey, Registry};
use crate::connection::LinkState;
use crate::env::Env;
use crate::observe::{Observable, Publisher, Watermark};

/// What handles tell the router.
pub(super) enum Request {
    Read(NewRead),
    Command(Box<NewCommand>),
    Cancel(CommandId),
    Close,
}

/// The router's ends of what is shared.
pub(super) struct Ends {
    pub(super) mailbox: mpsc::UnboundedReceiver<Request>,
    pub(super) connection: Publisher<LinkState>,
}

/// What a client's handles share. The router holds none of it, so it ends when nobody needs it.
pub(super) struct Shared {
    pub(super) env: Env,
    pub(super) connection: Observable<LinkState>,
    pub(super) watermark: Watermark,
    mailbox: mpsc::UnboundedSender<Request>,
    pub(super) registry: Arc<Registry>,
    ids: AtomicU64,
}

impl Shared {
    pub(super) fn new(env: Env) -> (Arc<Self>, Ends) {
        let (mailbox, inbox) = mpsc::unbounded_channel();
        let (publisher, connection) = crate::observe::channel();
        let shared = Self {
            env,
            connection,
            watermark: Watermark::new(),
            mailbox,
            registry: Arc::default(),
            ids: AtomicU64::new(1),
        };
        (Arc::new(shared), Ends { mailbox: inbox, connection: publisher })
    }

    /// Tells the router; if it is gone there is nothing left to be told.
    pub(super) fn tell(&self, request: Request) {
        // A request that comes back is dropped, and its publisher ends what it was for.
        let _ = self.mailbox.send(request);
    }

    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The read of `method` with `params`: the one that is open, or a new one.
    pub(super) fn read<T: DeserializeOwned + Send + Sync + 'static>(
        &self,
        method: &'static str,
        params: Arc<RawValue>,
    ) -> Observable<T> {
        let id = self.next_id();
        let key = ReadKey::of::<T>(method, &params);
        let (publisher, observable) = match self.registry.find_or_insert::<T>(&key, id, &self.watermark) {
            Found::Open(observable) => return observable,
            Found::New(publisher, observable) => (publisher, observable),
        };
        self.tell(Request::Read(NewRead { id, key, method, params, slot: Box::new(TypedSlot::new(publisher)) }));
        observable
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("connection", &self.connection.latest()).finish_non_exhaustive()
    }
}
