//! The handle of a command: one for submit, wait and cancel (W4).
#![expect(clippy::disallowed_methods, reason = "a budget is the caller's own clock: tokio's")]

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::settlement::{CommandError, Done, Settlement, Unsettled};
use super::{CommandFailure, CommandState, CommandStatus, Protection};
use crate::key::CommandKey;
use crate::observe::{Observable, Reading};

/// The way from a handle to whoever runs its command.
pub(crate) trait Control: Send + Sync + 'static {
    /// The caller wants it canceled.
    fn cancel(&self);
}

/// A command: what was asked of a service, until it is settled.
///
/// Its key exists and is bound to it before anything is sent, and every resend carries the same key,
/// so a restart on either side makes no second effect (W1). Awaited, it is a future of success:
///
/// - `Ok` is success, with the [`Done`] that later reads can ask for (W9);
/// - a [`CommandError`] is any other end that the service recorded, or that nobody can tell any more.
///
/// No transport fault ends the wait and no request deadline bounds it (W4); bound it with
/// [`settled`](Self::settled) and [`within`](Settled::within), or [`cancel`](Self::cancel) the command.
/// Dropping the handle does not cancel the command: what was called is still delivered.
///
/// # Cancel safety
/// Dropping the future ends only this wait. Awaited again, by reference, it goes on.
#[must_use = "dropping does not cancel; await it or `.detach()` it"]
pub struct Command {
    key: CommandKey,
    overridden: Option<CommandKey>,
    state: Observable<CommandState>,
    control: Option<Box<dyn Control>>,
    waiting: Option<Settled>,
}

impl Command {
    /// The handle of the command whose state is `state`.
    pub(crate) fn new(key: CommandKey, state: Observable<CommandState>, control: Box<dyn Control>) -> Self {
        Self { key, overridden: None, state, control: Some(control), waiting: None }
    }

    /// A command that failed before anything could be sent.
    pub(crate) fn failed(key: CommandKey, failure: CommandFailure) -> Self {
        let (publisher, state) = crate::observe::channel();
        let queued = CommandState::queued(Protection::Recorded);
        let status = CommandStatus::Failed;
        publisher.fresh(CommandState { status, failure: Some(failure), asking: false, ..queued });
        publisher.leave();
        Self { key, overridden: None, state, control: None, waiting: None }
    }

    /// Notes that the caller's L3 key was not used, because the method makes its own (K2).
    pub(crate) fn overriding(mut self, unused: Option<CommandKey>) -> Self {
        self.overridden = unused;
        self
    }

    /// The key, the same in every send. With it, [`Client::attach`](crate::client::Client::attach) finds the
    /// command again, within the service's retention.
    pub fn key(&self) -> &CommandKey {
        &self.key
    }

    /// The L3 key that the caller gave and that was **not** used, because the method makes an L2 key of its arguments.
    pub fn overridden(&self) -> Option<&CommandKey> {
        self.overridden.as_ref()
    }

    /// Everything known of it, as a read.
    pub fn state(&self) -> Observable<CommandState> {
        self.state.clone()
    }

    /// Waits until it is settled, whichever way. The wait may outlive the handle.
    pub fn settled(&self) -> Settled {
        let (key, state) = (self.key.clone(), self.state.clone());
        Settled { wait: wait(key.clone(), state.clone()), key, state }
    }

    /// Cancels it: at once, once, and whether or not the service can be reached now (W5).
    ///
    /// The command is canceled once its status says so; completion may win the race.
    pub fn cancel(&self) {
        if let Some(control) = &self.control {
            control.cancel();
        }
    }

    /// Lets it go on without anybody who waits. The same as dropping the handle, but on purpose.
    pub fn detach(self) {}
}

impl Future for Command {
    type Output = Result<Done, CommandError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = self.waiting.take().unwrap_or_else(|| self.settled());
        match Pin::new(&mut waiting).poll(cx) {
            Poll::Ready(settled) => Poll::Ready(CommandError::unless_succeeded(settled, &self.key)),
            Poll::Pending => {
                self.waiting = Some(waiting);
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("key", &self.key).field("state", &self.state.latest()).finish_non_exhaustive()
    }
}

/// Waits for the end of a command: the future of [`Command::settled`].
///
/// # Cancel safety
/// Dropping it ends only this wait. Polled again after a result, it says it again.
#[must_use = "a future does nothing unless awaited"]
pub struct Settled {
    wait: BoxFuture<'static, Result<Settlement, Unsettled>>,
    key: CommandKey,
    state: Observable<CommandState>,
}

impl Settled {
    /// Gives the wait a budget, from now on: then it says [`Unsettled::StillPending`], which is no failure of the work (R9).
    ///
    /// It must then be polled inside a tokio runtime. Without this call, a wait has no bound.
    pub fn within(self, budget: Duration) -> Self {
        // A budget beyond what the clock can count is none.
        let Some(until) = Instant::now().checked_add(budget) else { return self };
        let Self { wait, key, state } = self;
        let last = state.clone();
        let wait = Box::pin(async move {
            match timeout_at(until, wait).await {
                Ok(settled) => settled,
                Err(_) => Err(Unsettled::StillPending { last: last.latest().last().map(|state| (**state).clone()) }),
            }
        });
        Self { wait, key, state }
    }
}

impl Future for Settled {
    type Output = Result<Settlement, Unsettled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let settled = self.wait.as_mut().poll(cx);
        if settled.is_ready() {
            self.wait = wait(self.key.clone(), self.state.clone());
        }
        settled
    }
}

impl fmt::Debug for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settled").field("state", &self.state.latest()).finish_non_exhaustive()
    }
}

/// What is known of a command is true however old it is, so a stale or ended reading settles as a fresh one does.
fn wait(key: CommandKey, mut state: Observable<CommandState>) -> BoxFuture<'static, Result<Settlement, Unsettled>> {
    Box::pin(async move {
        while let Some(reading) = state.next().await {
            let known = reading.last();
            if let Some(settlement) = known.and_then(|state| Settlement::of(&key, state)) {
                return Ok(settlement);
            }
            if known.is_some_and(|state| state.ends_wait()) {
                return Err(Unsettled::Indeterminate { key });
            }
            if let Reading::Ended { .. } = reading {
                break;
            }
        }
        Err(Unsettled::Closed { key })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::command::{Delivery, FailureReason, Hold, Retry};
    use crate::observe::{Publisher, channel};
    use crate::wire::{LogId, Timestamp};

    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<&'static str>>>);

    impl Told {
        fn so_far(&self) -> Vec<&'static str> {
            self.0.lock().unwrap().clone()
        }
    }

    impl Control for Told {
        fn cancel(&self) {
            self.0.lock().unwrap().push("cancel");
        }
    }

    fn command() -> (Command, Publisher<CommandState>, Told) {
        let (publisher, state) = channel();
        publisher.fresh(CommandState::queued(Protection::Recorded));
        let told = Told::default();
        (Command::new("release:42".into(), state, Box::new(told.clone())), publisher, told)
    }

    fn with(status: CommandStatus) -> CommandState {
        let timestamp = Some(Timestamp { log: LogId::new(ulid::Ulid(1)), seq: 7 });
        CommandState { status, timestamp, delivery: Delivery::Accepted, ..CommandState::queued(Protection::Recorded) }
    }

    fn verdict() -> CommandFailure {
        CommandFailure::verdict(Retry::NewKey, "3 tests failed")
    }

    /// W9: success tells when, so that a read can ask for as much.
    #[tokio::test(start_paused = true)]
    async fn w9_success_tells_its_timestamp() {
        let (mut command, publisher, _) = command();
        let waiting = tokio::task::unconstrained(&mut command);
        tokio::pin!(waiting);
        assert!(futures::poll!(&mut waiting).is_pending());
        publisher.fresh(with(CommandStatus::Running));
        assert!(futures::poll!(&mut waiting).is_pending());
        publisher.fresh(with(CommandStatus::Succeeded));
        let done = waiting.await.unwrap();
        assert_eq!(done.timestamp().unwrap().seq, 7);
        assert_eq!(done.key(), command.key());
    }

    /// W4: awaiting a command that failed is an error, so that `?` never passes over a failure.
    #[tokio::test(start_paused = true)]
    async fn w4_any_other_end_is_an_error() {
        let (command, publisher, _) = command();
        publisher.fresh(CommandState { failure: Some(verdict()), ..with(CommandStatus::Failed) });
        let e = command.await.unwrap_err();
        assert_eq!(e.failure().map(|f| (f.reason.clone(), f.retry)), Some((FailureReason::Verdict, Retry::NewKey)));
        for (status, text) in [(CommandStatus::Canceled, "canceled"), (CommandStatus::NotFound, "no record")] {
            let (command, publisher, _) = self::command();
            publisher.fresh(with(status));
            let e = command.await.unwrap_err();
            assert!(e.to_string().contains(text), "{e}");
        }
    }

    /// R1 and W3: a command settles whatever became of the connection and of the client since.
    #[tokio::test(start_paused = true)]
    async fn w3_a_terminal_status_counts_however_old_it_is() {
        let (command, publisher, _) = command();
        publisher.fresh(with(CommandStatus::Succeeded));
        publisher.stale(crate::Cause::Connecting);
        assert!(command.settled().await.is_ok());
        drop(publisher);
        assert!(matches!(command.settled().await, Ok(Settlement::Succeeded(_))));
    }

    /// R9: a spent budget says how it stands and never that the work failed; the handle waits on.
    #[tokio::test(start_paused = true)]
    async fn r9_a_spent_budget_is_no_failure() {
        let (command, publisher, _) = command();
        publisher.fresh(with(CommandStatus::Running));
        let waited = command.settled().within(Duration::from_secs(60)).await;
        let Err(Unsettled::StillPending { last: Some(last) }) = waited else { panic!("{waited:?}") };
        assert_eq!(last.status(), CommandStatus::Running);
        publisher.fresh(with(CommandStatus::Succeeded));
        assert!(command.await.is_ok());
    }

    /// W2: what nobody can tell ends the wait as that; what may still be told, and what is held, does not.
    #[tokio::test(start_paused = true)]
    async fn w2_indeterminate_ends_a_wait_and_held_does_not() {
        let (command, publisher, _) = command();
        let unknown = CommandState { delivery: Delivery::Indeterminate, ..with(CommandStatus::Running) };
        let pending = async |state: CommandState| {
            publisher.fresh(state);
            matches!(command.settled().within(Duration::from_secs(1)).await, Err(Unsettled::StillPending { .. }))
        };
        assert!(pending(CommandState { asking: true, ..unknown.clone() }).await);
        assert!(pending(CommandState { asking: false, hold: Some(Hold::OtherLog), ..unknown.clone() }).await);
        assert!(!pending(CommandState { asking: false, ..unknown }).await);
        let e = command.await.unwrap_err();
        assert!(e.is_indeterminate() && e.may_have_taken_effect(), "{e}");
    }

    /// W4: dropping does not cancel; the driver sees that nobody looks once handle, waits and observers are gone.
    #[tokio::test(start_paused = true)]
    async fn w4_dropping_does_not_cancel() {
        let (command, publisher, told) = command();
        command.cancel();
        command.cancel();
        let (settled, state) = (command.settled(), command.state());
        command.detach();
        assert_eq!(told.so_far(), ["cancel", "cancel"]);
        publisher.fresh(with(CommandStatus::Succeeded));
        assert!(matches!(settled.await.unwrap(), Settlement::Succeeded(_)));
        assert_eq!(publisher.observers(), 1, "the observer of the state");
        drop(state);
        publisher.unobserved().await;
        assert_eq!(told.so_far(), ["cancel", "cancel"]);
    }

    /// The end of the client claims nothing about the work.
    #[tokio::test(start_paused = true)]
    async fn a_closed_client_claims_nothing() {
        let (command, publisher, _) = command();
        publisher.fresh(with(CommandStatus::Running));
        drop(publisher);
        let e = command.await.unwrap_err();
        assert!(e.is_closed() && e.may_have_taken_effect(), "{e}");
    }

    /// What fails before it is sent settles at once.
    #[tokio::test(start_paused = true)]
    async fn a_local_failure_settles_at_once() {
        let failure = CommandFailure::new(FailureReason::Invalid, Retry::Never, "key: expected 1 to 256 bytes");
        let command = Command::failed("".into(), failure);
        command.cancel();
        let e = command.await.unwrap_err();
        assert!(!e.may_have_taken_effect() && !e.is_retryable(), "{e}");
    }
}
