//! Following a log: look, give, wait to be woken, look again.

use std::collections::VecDeque;

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use tokio::sync::watch;

use super::ext::Wait;
use super::{Committed, Prefix, Seq, Timestamp};
use crate::env::Env;
use crate::error::Error;

/// What a tail looks at.
pub(super) trait Source: Send + Sync + 'static {
    /// The next appends after `after` with their entries under `prefix`; none, if there is no append after it.
    fn follow(&self, prefix: &Prefix, after: Seq) -> impl Future<Output = Result<Vec<Committed>, Error>> + Send;
}

/// Follows `source`; `wake` tells the newest position that its owner knows of.
pub(super) fn tail<S: Source>(
    source: S,
    wake: watch::Receiver<Timestamp>,
    env: Env,
    prefix: Prefix,
    after: Seq,
) -> BoxStream<'static, Committed> {
    let tail = Tail { source, wake, env, prefix, after, ready: VecDeque::new(), looked: false };
    stream::unfold(tail, |mut tail| async move { tail.next().await.map(|committed| (committed, tail)) }).boxed()
}

struct Tail<S> {
    source: S,
    wake: watch::Receiver<Timestamp>,
    env: Env,
    prefix: Prefix,
    after: Seq,
    ready: VecDeque<Committed>,
    /// Whether the source has been asked at least once: what others wrote may be unknown to `wake` before.
    looked: bool,
}

impl<S: Source> Tail<S> {
    async fn next(&mut self) -> Option<Committed> {
        let env = self.env.clone();
        let mut wait = Wait::new(&env);
        loop {
            if let Some(committed) = self.ready.pop_front() {
                self.after = committed.through;
                return Some(committed);
            }
            // Marked as seen before looking: what is appended in between wakes the wait below.
            let known = self.wake.borrow_and_update().seq;
            if !self.looked || known > self.after {
                match self.source.follow(&self.prefix, self.after).await {
                    Ok(page) => {
                        self.ready = page.into();
                        self.looked = true;
                    }
                    Err(e) => {
                        tracing::warn!(error = %e, prefix = %self.prefix, "a tail cannot read the log and tries again");
                        wait.wait().await;
                        continue;
                    }
                }
            }
            if self.ready.is_empty() {
                // Fails only when the log's owner is gone with its runtime: there is nobody left to be woken by.
                self.wake.changed().await.ok()?;
            }
        }
    }
}
