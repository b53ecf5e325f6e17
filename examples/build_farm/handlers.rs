//! The server's side of the service: what each method decides. A decision is events on a build's subject.

use outlast::Error;
use outlast::command::{CommandFailure, FailureReason, Retry};
use outlast::log::{LogExt, Seq};
use outlast::server::{Events, Live, RpcScope, Running, Settle};

use crate::build_farm::domain::{Build, BuildEvent, BuildId, BuildSpec, BuildStatus, Outcome};
use crate::build_farm::principals::{POLLER, WORKER};
use crate::build_farm::service::BuildFarm;
use crate::build_farm::view::Shown;

/// The farm: it decides by what the log says, never by what it remembers.
#[derive(Debug)]
pub(crate) struct Farm<L> {
    log: L,
    shown: Shown,
}

/// Events, or a failure that is recorded; an error is answered as retryable and leaves no trace.
type Decision<T> = Result<Result<T, CommandFailure>, Error>;

#[outlast::handlers(BuildFarm)]
impl<L: LogExt> Farm<L> {
    fn build(&self, id: BuildId) -> Live<Build> {
        self.shown.builds.live(&id)
    }

    fn queue(&self) -> Live<Vec<BuildId>> {
        self.shown.queue.live()
    }

    /// Accepts a build. The command goes on until a worker reports its end.
    async fn submit_build(&self, rpc: &RpcScope, id: BuildId, spec: BuildSpec) -> Decision<Running> {
        if let Err(denied) = only(POLLER, rpc) {
            return Ok(Err(denied));
        }
        let Some(command) = rpc.command().cloned() else {
            return Err(Error::invalid("key", "a command's key"));
        };
        if self.load(id).await?.is_some() {
            return Ok(Err(CommandFailure::rejected(Retry::Never, format!("there is a build {id} already"))));
        }
        let submitted = Events::on(id.subject()).absent().push(&BuildEvent::Submitted { command, spec });
        Ok(Ok(Running::new(submitted).on_cancel(id.subject(), &BuildEvent::CancelRequested)))
    }

    /// Gives a build to the worker that asks first, and starts the command that submitted it.
    async fn claim(&self, rpc: &RpcScope, id: BuildId) -> Decision<Events> {
        if let Err(denied) = only(WORKER, rpc) {
            return Ok(Err(denied));
        }
        let Some((build, head)) = self.load(id).await? else { return Ok(Err(unknown(id))) };
        if build.status != BuildStatus::Queued {
            // For good: a build is not run twice, whoever asks.
            return Ok(Err(CommandFailure::rejected(Retry::Never, format!("build {id} is {}", build.status))));
        }
        let claimed = BuildEvent::Claimed { worker: rpc.principal().clone() };
        let events = Events::on(id.subject()).at(head).push(&claimed);
        Ok(Ok(build.command.iter().fold(events, Events::starts)))
    }

    /// Records a line. Lines may come in any order and repeatedly, so it does not matter what else has
    /// happened to the build, and no version is stated.
    async fn progress(&self, rpc: &RpcScope, id: BuildId, n: u64, line: String) -> Decision<Events> {
        Ok(self.held(rpc, id).await?.map(|_| Events::on(id.subject()).push(&BuildEvent::Progress { n, line })))
    }

    /// Ends a build and the command that submitted it, in one append.
    async fn finished(&self, rpc: &RpcScope, id: BuildId, outcome: Outcome) -> Decision<Events> {
        let settle = match &outcome {
            Outcome::Succeeded => Settle::Succeeded,
            // Not `NewKey`: another attempt would name the same build, which has failed.
            Outcome::Failed(why) => Settle::Failed(CommandFailure::verdict(Retry::Never, why.as_str())),
        };
        self.ended(rpc, id, &BuildEvent::Finished { outcome }, &settle).await
    }

    /// Ends a build that its worker stopped, and the command that submitted it, in one append (W5).
    async fn stopped(&self, rpc: &RpcScope, id: BuildId) -> Decision<Events> {
        self.ended(rpc, id, &BuildEvent::Stopped, &Settle::Canceled).await
    }
}

impl<L: LogExt> Farm<L> {
    /// A farm on `log`, of which `shown` is the view.
    pub(crate) fn new(log: L, shown: Shown) -> Self {
        Self { log, shown }
    }

    async fn ended(&self, rpc: &RpcScope, id: BuildId, event: &BuildEvent, settle: &Settle) -> Decision<Events> {
        Ok(self.held(rpc, id).await?.and_then(|(build, head)| {
            if build.status.is_terminal() {
                return Err(CommandFailure::rejected(Retry::Never, format!("build {id} is {} already", build.status)));
            }
            let events = Events::on(id.subject()).at(head).push(event);
            Ok(build.command.iter().fold(events, |events, command| events.settles(command, settle.clone())))
        }))
    }

    /// The build, if the caller is the worker that has claimed it.
    async fn held(&self, rpc: &RpcScope, id: BuildId) -> Decision<(Build, Seq)> {
        Ok(match self.load(id).await? {
            None => Err(unknown(id)),
            Some((build, _)) if build.worker.as_ref() != Some(rpc.principal()) => Err(CommandFailure::new(
                FailureReason::Denied,
                Retry::Never,
                format!("build {id} is not claimed by {}", rpc.principal()),
            )),
            Some(held) => Ok(held),
        })
    }

    async fn load(&self, id: BuildId) -> Result<Option<(Build, Seq)>, Error> {
        let subject = id.subject();
        let loaded = self.log.try_load(&subject, None, |build, entry| {
            let event = serde_json::from_slice(&entry.body)
                .map_err(|e| Error::unavailable(format!("entry {} cannot be read", entry.seq)).with_source(e))?;
            Ok(Build::apply(build, event))
        });
        let (build, head) = loaded.await?;
        Ok(build.zip(head))
    }
}

fn only(name: &str, rpc: &RpcScope) -> Result<(), CommandFailure> {
    if rpc.principal().as_str() == name {
        return Ok(());
    }
    Err(CommandFailure::new(FailureReason::Denied, Retry::Never, format!("only the {name} may do this")))
}

fn unknown(id: BuildId) -> CommandFailure {
    CommandFailure::rejected(Retry::Never, format!("there is no build {id}"))
}

#[cfg(test)]
mod tests {
    use outlast::KeyLevel;
    use outlast::env::Env;
    use outlast::key::{CommandRef, Principal};
    use outlast::log::{Append, AppendId, Appended, Expect, Log, MemoryLog};
    use ulid::Ulid;

    use super::*;
    use crate::build_farm::view::View;

    const ID: BuildId = BuildId::new(Ulid(7));

    fn scope(principal: &str) -> RpcScope {
        RpcScope::builder(Principal::new(principal).unwrap()).command("key", KeyLevel::Minted).build()
    }

    fn spec() -> BuildSpec {
        BuildSpec { directory: "/".into(), command: "true".into() }
    }

    fn submitted() -> BuildEvent {
        BuildEvent::Submitted { command: CommandRef::new(Principal::new(POLLER).unwrap(), "key"), spec: spec() }
    }

    fn claimed() -> BuildEvent {
        BuildEvent::Claimed { worker: Principal::new(WORKER).unwrap() }
    }

    /// A farm on a log that holds these events of the build.
    async fn farm(events: &[BuildEvent]) -> Farm<MemoryLog> {
        let env = Env::system();
        let log = MemoryLog::new(&env);
        for event in events {
            let append = Append::new(AppendId::new(env.ulid()), env.wall());
            let append = append.write(ID.subject(), Expect::Any, serde_json::to_vec(event).unwrap());
            assert!(matches!(log.append(append).await, Appended::Done(_)));
        }
        Farm::new(log, View::new().shown())
    }

    /// The failure that a decision records.
    fn recorded<T: std::fmt::Debug>(decision: Decision<T>) -> CommandFailure {
        decision.unwrap().unwrap_err()
    }

    /// The events and links of a decision, as text.
    fn decided<T: std::fmt::Debug>(decision: Decision<T>) -> String {
        format!("{:?}", decision.unwrap().unwrap())
    }

    /// S1: the first claim starts the submit's command; every later one fails for good.
    #[tokio::test]
    async fn s1_a_build_is_claimed_once() {
        let first = decided(farm(&[submitted()]).await.claim(&scope(WORKER), ID).await);
        assert!(first.contains("Start") && first.contains("At(1)"), "{first}");
        for taken in [claimed(), BuildEvent::CancelRequested] {
            let lost = recorded(farm(&[submitted(), taken]).await.claim(&scope(WORKER), ID).await);
            assert_eq!((lost.reason, lost.retry), (FailureReason::Rejected, Retry::Never));
        }
        assert_eq!(recorded(farm(&[]).await.claim(&scope(WORKER), ID).await).retry, Retry::Never);
    }

    #[tokio::test]
    async fn an_end_settles_the_command_that_submitted() {
        let running = [submitted(), claimed()];
        let finish = |outcome| async { farm(&running).await.finished(&scope(WORKER), ID, outcome).await };
        assert!(decided(finish(Outcome::Succeeded).await).contains("Settle(Succeeded)"));
        let failed = decided(finish(Outcome::Failed("check 7".into())).await);
        assert!(failed.contains("Settle(Failed") && failed.contains("check 7"), "{failed}");
        assert!(decided(farm(&running).await.stopped(&scope(WORKER), ID).await).contains("Settle(Canceled)"));
    }

    /// W3: one terminal state; whoever comes later is told so.
    #[tokio::test]
    async fn w3_an_end_is_the_end() {
        let over = [submitted(), claimed(), BuildEvent::Stopped];
        let late = recorded(farm(&over).await.finished(&scope(WORKER), ID, Outcome::Succeeded).await);
        assert_eq!(late.message.as_ref(), format!("build {ID} is canceled already"));
    }

    #[tokio::test]
    async fn a_line_is_taken_whatever_has_happened() {
        for events in [vec![submitted(), claimed()], vec![submitted(), claimed(), BuildEvent::Stopped]] {
            let line = decided(farm(&events).await.progress(&scope(WORKER), ID, 3, "three".into()).await);
            assert!(line.contains("Any"), "no version is stated: {line}");
        }
    }

    /// K1: what a principal may do is told by who it is, never by what it knows.
    #[tokio::test]
    async fn each_principal_keeps_to_its_part() {
        let farm = farm(&[submitted(), claimed()]).await;
        let denied = [
            recorded(farm.submit_build(&scope(WORKER), ID, spec()).await),
            recorded(farm.claim(&scope(POLLER), ID).await),
            recorded(farm.progress(&scope(POLLER), ID, 1, String::new()).await),
            recorded(farm.finished(&scope(POLLER), ID, Outcome::Succeeded).await),
            recorded(farm.stopped(&scope("another worker"), ID).await),
        ];
        assert!(denied.iter().all(|denied| denied.reason == FailureReason::Denied), "{denied:?}");
    }

    #[tokio::test]
    async fn an_id_names_one_build() {
        let accepted = decided(farm(&[]).await.submit_build(&scope(POLLER), ID, spec()).await);
        assert!(accepted.contains("Absent") && accepted.contains("cancel_requested"), "{accepted}");
        let taken = recorded(farm(&[submitted()]).await.submit_build(&scope(POLLER), ID, spec()).await);
        assert_eq!(taken.retry, Retry::Never);
    }

    /// S4: what cannot be read is no ground for a decision.
    #[tokio::test]
    async fn s4_an_entry_that_cannot_be_read_is_not_passed_over() {
        let farm = farm(&[submitted()]).await;
        let append = Append::new(AppendId::new(Ulid(1)), Default::default());
        farm.log.append(append.write(ID.subject(), Expect::Any, "of a later version")).await;
        assert!(farm.claim(&scope(WORKER), ID).await.unwrap_err().is_retryable());
    }
}
