//! One credential for all that share it: asked for once, refreshed before it expires and after a refusal (R3).

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::standing::{Next, Scope, Standing};
use super::{Credential, Credentials};
use crate::env::Env;
use crate::error::{Cause, Phase};
use crate::generation::Generation;
use crate::machine::Monotonic;

/// Holds the credential of one source for one service. Cloning is cheap and shares it.
///
/// One for each origin that is read, and for each client: what one service refuses says nothing about another.
#[derive(Clone)]
pub(crate) struct Keeper {
    env: Env,
    /// `None` without a source.
    shared: Option<Arc<Shared>>,
}

/// Leads to a keeper as long as somebody keeps it.
#[derive(Debug)]
pub(crate) struct WeakKeeper {
    env: Env,
    shared: Weak<Shared>,
}

impl WeakKeeper {
    /// The keeper, if there still is one.
    pub(crate) fn upgrade(&self) -> Option<Keeper> {
        Some(Keeper { env: self.env.clone(), shared: Some(self.shared.upgrade()?) })
    }
}

/// A credential to use for one request, and to tell of afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// What to send, if anything.
    pub(crate) credential: Option<Credential>,
    /// Which one it is.
    pub(crate) generation: Generation,
    /// When it was handed out: the request begins no earlier.
    at: Monotonic,
}

/// Why there is no credential to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unheld {
    /// The service refused the present one twice, a backoff step apart.
    Denied,
    /// The source cannot be reached now. That says nothing about access.
    Unavailable(Cause),
}

struct Shared {
    env: Env,
    source: Arc<dyn Credentials>,
    /// On an answer of the source (R7).
    bound: Duration,
    state: Mutex<State>,
    /// Counts asks that have ended, refusals and answers: whoever waits looks again.
    happened: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    standing: Standing,
    credential: Option<Credential>,
    /// Which ask is under way, or was the last.
    number: u64,
    failure: Option<Failure>,
    task: Option<AbortHandle>,
}

#[derive(Clone)]
struct Failure {
    number: u64,
    cause: Cause,
}

/// What a waiter is to do, decided under the lock and done without it.
enum Step {
    Done(Result<Held, Unheld>),
    /// Wait for the end of that ask.
    Await(u64, watch::Receiver<u64>),
    /// Wait for the time, or for something to happen.
    Until(Monotonic, watch::Receiver<u64>),
}

impl Keeper {
    /// Keeps what `source` gives; each answer of it is waited for at most `bound`. Nothing is asked before somebody needs it.
    pub(crate) fn new(source: Arc<dyn Credentials>, env: Env, bound: Duration) -> Self {
        let state = Mutex::default();
        let shared = Shared { env: env.clone(), source, bound, state, happened: watch::Sender::new(0) };
        Self { env, shared: Some(Arc::new(shared)) }
    }

    /// Leads to it as long as somebody keeps it; `None` without a source.
    pub(crate) fn downgrade(&self) -> Option<WeakKeeper> {
        let shared = Arc::downgrade(self.shared.as_ref()?);
        Some(WeakKeeper { env: self.env.clone(), shared })
    }

    /// Without a source nothing is sent, and no secret has to be spared: each read counts its own refusals.
    pub(crate) fn none(env: Env) -> Self {
        Self { env, shared: None }
    }

    /// Whether there is a source: without one no credential is sent.
    #[cfg(feature = "http")]
    pub(crate) fn has_source(&self) -> bool {
        self.shared.is_some()
    }

    /// The credential to send now. Inside a tokio runtime.
    ///
    /// It is there at once unless the source has to be asked, which is bounded, or the credential was refused within
    /// the last half second.
    ///
    /// # Errors
    /// When the credential is denied or the source cannot be reached.
    ///
    /// # Cancel safety
    /// An ask goes on without whoever began it.
    pub(crate) async fn held(&self) -> Result<Held, Unheld> {
        let Some(shared) = &self.shared else {
            // Without a source nothing is refused, and nobody asks when.
            return Ok(Held { credential: None, generation: Generation::default(), at: Monotonic::ZERO });
        };
        loop {
            match shared.step() {
                Step::Done(held) => return held,
                Step::Await(number, mut happened) => {
                    // Fails only without a sender, and that is borrowed here.
                    let _ = happened.changed().await;
                    if let Some(cause) = shared.failure_of(number) {
                        return Err(Unheld::Unavailable(cause));
                    }
                }
                Step::Until(at, mut happened) => {
                    tokio::select! {
                        () = shared.env.sleep_until(Some(at)) => {}
                        _ = happened.changed() => {}
                    }
                }
            }
        }
    }

    /// Has the source asked whether it has another than that of `generation`, for whoever counts refusals without it.
    ///
    /// Nobody gets that one any more before the source has answered.
    pub(crate) fn doubt(&self, generation: Generation) {
        let Some(shared) = &self.shared else { return };
        shared.lock().standing.doubt(&shared.env.now(), generation);
        shared.tell();
    }

    /// The service refused a request with what [`held`](Self::held) gave.
    ///
    /// A request that began before the last refusal that counts was refused together with it.
    pub(crate) fn refused(&self, held: &Held, scope: Scope) {
        let Some(shared) = &self.shared else { return };
        let denied = shared.lock().standing.refused(&shared.env.now(), held.generation, held.at, scope);
        tracing::debug!(generation = ?held.generation, ?scope, denied, "credential refused");
        shared.tell();
    }

    /// The service served a request with what [`held`](Self::held) gave: an old refusal says nothing any more.
    pub(crate) fn accepted(&self, held: &Held) {
        let Some(shared) = &self.shared else { return };
        shared.lock().standing.accepted(held.generation, held.at);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits. Not under the lock: they take it.
    fn tell(&self) {
        self.happened.send_modify(|count| *count += 1);
    }

    fn step(self: &Arc<Self>) -> Step {
        let now = self.env.now();
        let mut state = self.lock();
        // Under the lock, so that nothing can happen between the decision and the wait.
        let happened = || self.happened.subscribe();
        let (step, ask) = match state.standing.next(&now) {
            Next::Use { generation, ask } => {
                let credential = state.credential.clone();
                (Step::Done(Ok(Held { credential, generation, at: now.instant })), ask)
            }
            Next::Denied => (Step::Done(Err(Unheld::Denied)), false),
            Next::Until(at) => (Step::Until(at, happened()), false),
            Next::Await => (Step::Await(state.number, happened()), false),
            Next::Ask => (Step::Await(state.number + 1, happened()), true),
        };
        if ask {
            state.number += 1;
            state.standing.asked(&now);
            let number = state.number;
            drop(state);
            self.ask(number);
        }
        step
    }

    /// Asks the source in a task of its own, which goes on whoever leaves.
    fn ask(self: &Arc<Self>, number: u64) {
        let asking = Asking { shared: Arc::downgrade(self), number, answer: None };
        let Ok(runtime) = Handle::try_current() else {
            let detail = "expected to be asked for inside tokio".into();
            return asking.end(Err(Cause::CredentialUnavailable { detail }));
        };
        let (source, env, bound) = (Arc::clone(&self.source), self.env.clone(), self.bound);
        let task = runtime.spawn(async move {
            let by = env.instant() + bound;
            // Called in here, so that a panic of the caller's code is caught wherever it is.
            let answer = AssertUnwindSafe(async move { source.credential().await }).catch_unwind();
            let answer = tokio::select! {
                biased;
                answer = answer => match answer {
                    Ok(Ok(credential)) => Ok(credential),
                    Ok(Err(e)) => Err(Cause::CredentialUnavailable { detail: e.to_string().into() }),
                    Err(_) => Err(Cause::CredentialUnavailable { detail: "the source panicked".into() }),
                },
                () = env.sleep_until(Some(by)) => Err(Cause::Stalled { phase: Phase::Credential, bound }),
            };
            asking.end(answer);
        });
        let mut state = self.lock();
        // One that has ended by now would be aborted in vain, and a later one would be forgotten for it.
        if state.number == number {
            state.task = Some(task.abort_handle());
        }
    }

    /// Why the ask of that number, or a later one, came to nothing, unless there is a verdict.
    fn failure_of(&self, number: u64) -> Option<Cause> {
        let state = self.lock();
        // A denial stays one while the source is away: an authority has spoken.
        let failure = state.failure.as_ref().filter(|failure| failure.number >= number && !state.standing.is_denied());
        failure.map(|failure| failure.cause.clone())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = state.task.take() {
            task.abort();
        }
    }
}

/// An ask under way. Dropped without an answer, as when its runtime ends, it leaves the next one to ask.
struct Asking {
    shared: Weak<Shared>,
    number: u64,
    answer: Option<Result<Credential, Cause>>,
}

impl Asking {
    fn end(mut self, answer: Result<Credential, Cause>) {
        if let Err(cause) = &answer {
            tracing::debug!(%cause, "no credential from its source");
        }
        self.answer = Some(answer);
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let now = shared.env.now();
        let mut state = shared.lock();
        match self.answer.take() {
            Some(Ok(credential)) => {
                let expires = credential.expires(now.wall);
                state.standing.answered(&now, credential.fingerprint(), expires);
                state.credential = Some(credential);
                state.failure = None;
            }
            Some(Err(cause)) => {
                state.standing.failed(&now);
                state.failure = Some(Failure { number: self.number, cause });
            }
            None => state.standing.failed(&now),
        }
        drop(state);
        shared.tell();
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("source", &self.shared.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
