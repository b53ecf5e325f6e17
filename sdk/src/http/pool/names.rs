//! Names to addresses: the system's resolver, asked once for all who ask at the same time.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::time::Instant;

use super::journey::Journey;
use crate::error::Phase;

/// Looks a name up.
pub(super) type Lookup = Arc<dyn Fn(Arc<str>) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// By the operating system.
pub(super) fn system(name: Arc<str>) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    Box::pin(async move { Ok(tokio::net::lookup_host((&*name, 0)).await?.collect()) })
}

/// A look-up is joined for so long. Each takes a thread for as long as the system's resolver hangs, which may be half a
/// minute: many readers must not take one each, and nobody waits for one that began before the network came back.
const JOINED: Duration = Duration::from_secs(1);

type Found = Result<Arc<[SocketAddr]>, (io::ErrorKind, Arc<str>)>;
type Asked = BoxFuture<'static, Found>;

struct UnderWay {
    since: Instant,
    lookup: WeakShared<Asked>,
}

/// The resolver of a pool.
#[derive(Clone)]
pub(super) struct Names {
    lookup: Lookup,
    asked: Arc<Mutex<HashMap<Arc<str>, UnderWay>>>,
    /// How often a connection came to nothing: the next attempt begins with another of several addresses, so that a dead
    /// one among them does not use up the bound of each attempt.
    pub(super) failed: Arc<AtomicUsize>,
}

impl Names {
    pub(super) fn new(lookup: Lookup) -> Self {
        Self { lookup, asked: Arc::default(), failed: Arc::default() }
    }

    #[expect(clippy::disallowed_methods, reason = "tells a look-up under way from a hung one; decides on no read")]
    fn ask(&self, name: Arc<str>) -> Shared<Asked> {
        let now = Instant::now();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, it| now.duration_since(it.since) < JOINED && it.lookup.upgrade().is_some());
        if let Some(under_way) = asked.get(&name).and_then(|it| it.lookup.upgrade()) {
            return under_way;
        }
        let found = (self.lookup)(Arc::clone(&name));
        let found: Shared<Asked> = async move {
            match found.await {
                Ok(addresses) if addresses.is_empty() => Err((io::ErrorKind::NotFound, Arc::from("no address"))),
                Ok(addresses) => Ok(addresses.into()),
                Err(e) => Err((e.kind(), e.to_string().into())),
            }
        }
        .boxed()
        .shared();
        if let Some(lookup) = found.downgrade() {
            asked.insert(name, UnderWay { since: now, lookup });
        }
        found
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            Journey::current_begins(Phase::Resolve);
            let found = this.ask(name.as_str().into()).await;
            let found = found.map_err(|(kind, text)| io::Error::new(kind, &*text))?;
            Journey::current_begins(Phase::Connect);
            let mut addresses = found.to_vec();
            let first = this.failed.load(Ordering::Relaxed) % addresses.len().max(1);
            addresses.rotate_left(first);
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
