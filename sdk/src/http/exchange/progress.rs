//! Where a request is on its way.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::poll_fn;
use futures::task::AtomicWaker;

use crate::error::Phase;

/// Where an exchange says which phase begins, so that each can be bounded (R7).
#[derive(Clone, Debug)]
pub struct Progress(Option<Arc<Begun>>);

/// Hears from a [`Progress`] which phase begins.
#[derive(Debug)]
pub struct Phases {
    begun: Arc<Begun>,
    /// How many were heard.
    heard: u64,
}

#[derive(Debug)]
struct Begun {
    /// The phase that began last, and how many have begun.
    last: Mutex<(Phase, u64)>,
    waker: AtomicWaker,
}

impl Begun {
    fn last(&self) -> (Phase, u64) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// One that somebody listens to. It starts as [`Phase::FirstByte`], as on a connection that is there already.
    pub fn observed() -> (Self, Phases) {
        let begun = Arc::new(Begun { last: Mutex::new((Phase::FirstByte, 0)), waker: AtomicWaker::new() });
        (Self(Some(Arc::clone(&begun))), Phases { begun, heard: 0 })
    }

    /// One that nobody listens to.
    pub fn ignored() -> Self {
        Self(None)
    }

    /// Whether there is no connection yet, as far as somebody listens.
    pub(in crate::http) fn is_connecting(&self) -> bool {
        let phase = self.0.as_ref().map(|begun| begun.last().0);
        phase.is_some_and(|phase| matches!(phase, Phase::Resolve | Phase::Connect | Phase::Tls))
    }

    /// `phase` begins: of [`Phase::Resolve`], [`Phase::Connect`], [`Phase::Tls`], [`Phase::Write`] and [`Phase::FirstByte`].
    pub fn begins(&self, phase: Phase) {
        let Some(begun) = &self.0 else { return };
        {
            let mut last = begun.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = (phase, last.1 + 1);
        }
        begun.waker.wake();
    }
}

impl Phases {
    /// The phase that began last.
    pub fn last(&self) -> Phase {
        self.begun.last().0
    }

    /// The phase that begins next; of several that began since the last call only the newest. A phase that begins anew is
    /// told again.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Phase {
        poll_fn(|context| self.poll_next(context)).await
    }

    pub(in crate::http) fn poll_next(&mut self, context: &Context<'_>) -> Poll<Phase> {
        self.begun.waker.register(context.waker());
        let (phase, begun) = self.begun.last();
        if begun == self.heard {
            return Poll::Pending;
        }
        self.heard = begun;
        Poll::Ready(phase)
    }

    /// Nobody is woken before the next call of [`poll_next`](Self::poll_next).
    pub(in crate::http) fn sleep(&self) {
        drop(self.begun.waker.take());
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn each_beginning_is_heard_and_of_several_the_last() {
        let (progress, mut phases) = Progress::observed();
        assert_eq!(phases.last(), Phase::FirstByte);
        assert!(phases.next().now_or_never().is_none());
        progress.begins(Phase::Connect);
        progress.begins(Phase::Tls);
        assert!(progress.is_connecting());
        assert_eq!(phases.next().await, Phase::Tls);
        assert!(phases.next().now_or_never().is_none());
        progress.begins(Phase::Tls);
        assert_eq!(phases.next().await, Phase::Tls, "a phase that begins anew has its bound anew");
        assert!(!Progress::ignored().is_connecting());
    }

    /// R7: who waits is woken by another task.
    #[tokio::test]
    async fn r7_who_waits_is_woken() {
        let (progress, mut phases) = Progress::observed();
        let (phase, ()) = tokio::join!(phases.next(), async { progress.begins(Phase::Idle) });
        assert_eq!(phase, Phase::Idle);
    }
}
