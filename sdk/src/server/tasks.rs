//! A server's life: one set of tasks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Every task of one server. Dropping it aborts them all, as [`abort`](Self::abort) does.
///
/// Tasks hold it weakly, if at all: else none of them would ever end it.
#[derive(Debug)]
pub(crate) struct Tasks {
    runtime: Handle,
    set: Mutex<Option<JoinSet<()>>>,
}

impl Tasks {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self { runtime, set: Mutex::new(Some(JoinSet::new())) }
    }

    /// Runs `task`; not any more after [`abort`](Self::abort), which is what `false` says.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut set = self.lock();
        let Some(set) = set.as_mut() else { return false };
        while let Some(ended) = set.try_join_next() {
            if ended.is_err_and(|e| e.is_panic()) {
                tracing::error!("a task of the server panicked");
            }
        }
        set.spawn_on(task, &self.runtime);
        true
    }

    /// Aborts all tasks and takes no more.
    pub(crate) fn abort(&self) {
        let set = self.lock().take();
        drop(set); // not under the lock: a task's own destructors may come back here
    }

    /// How many tasks have not ended.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let mut set = self.lock();
        let Some(set) = set.as_mut() else { return 0 };
        while set.try_join_next().is_some() {}
        set.len()
    }

    fn lock(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
