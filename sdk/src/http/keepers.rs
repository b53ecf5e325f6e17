//! One keeper for each source of credentials and origin, shared by all reads that use it (R3).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use url::Origin;

use crate::credential::{Credentials, Identity, Keeper, WeakKeeper};
use crate::env::Env;

/// How many entries there are at least before one looks for those that nobody needs.
const SWEEP: usize = 16;

/// The keepers of one agent.
#[derive(Debug, Default)]
pub(super) struct Keepers {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_source: HashMap<(Origin, Identity), WeakKeeper>,
    sweep_at: usize,
}

impl Keepers {
    /// The keeper of `source` for `origin`: what one service refuses says nothing about another.
    pub(super) fn of(&self, origin: Origin, source: &Arc<dyn Credentials>, env: &Env, bound: Duration) -> Keeper {
        let new = || Keeper::new(Arc::clone(source), env.clone(), bound);
        let Some(identity) = source.identity() else { return new() };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (origin, identity);
        if let Some(keeper) = kept.by_source.get(&key).and_then(WeakKeeper::upgrade) {
            return keeper;
        }
        if kept.by_source.len() >= kept.sweep_at.max(SWEEP) {
            kept.by_source.retain(|_, keeper| keeper.upgrade().is_some());
            kept.sweep_at = kept.by_source.len() * 2;
        }
        let keeper = new();
        if let Some(weak) = keeper.downgrade() {
            kept.by_source.insert(key, weak);
        }
        keeper
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;

    use super::*;
    use crate::credential::{Credential, variable};

    fn origin(url: &str) -> Origin {
        url::Url::parse(url).unwrap().origin()
    }

    /// R3: thirty reads that share a source ask it once; another origin has a keeper of its own.
    #[tokio::test(start_paused = true)]
    async fn r3_a_source_is_asked_once_for_all_who_share_it() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let source: Arc<dyn Credentials> = Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            async { Credential::bearer("t0ken") }
        });
        let (keepers, env) = (Keepers::default(), crate::testing::env(1));
        let of = |url: &str| keepers.of(origin(url), &source, &env, Duration::from_secs(5));
        let kept: Vec<Keeper> = (0..30).map(|_| of("https://a.example/")).collect();
        assert!(join_all(kept.iter().map(Keeper::held)).await.iter().all(Result::is_ok));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(of("https://b.example/").held().await.is_ok());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn sources_are_told_apart_by_what_they_read_and_how() {
        let bearer = || variable("OUTLAST_A").identity();
        assert_eq!(bearer(), bearer());
        assert_ne!(bearer(), variable("OUTLAST_B").identity());
        assert_ne!(bearer(), variable("OUTLAST_A").as_header("PRIVATE-TOKEN").unwrap().identity());
        let token = |text: &str| Credential::bearer(text).unwrap().identity();
        assert_eq!(token("a"), token("a"));
        assert_ne!(token("a"), token("b"));
        assert!(!format!("{:?}", token("s3cret")).contains("s3cret"));
    }
}
