//! The server's side of the service: what each method decides. A decision is events on a build's subject.

use std::sync::Arc;

use outlast::Error;
use outlast::call::Args;
use outlast::command::{CommandFailure, FailureReason, Retry};
use outlast::key::Principal;
use outlast::log::{LogExt, Seq};
use outlast::server::{Events, Routes, RpcScope, Running, Settle};

use crate::domain::{Build, BuildEvent, BuildId, BuildSpec, BuildStatus, Outcome};
use crate::principals::{POLLER, WORKER};
use crate::service::{BUILD, CLAIM, FINISHED, PROGRESS, QUEUE, STOPPED, SUBMIT_BUILD};
use crate::view::Shown;

/// The farm: it decides by what the log says, never by what it remembers.
#[derive(Debug)]
pub(crate) struct Farm<L> {
    log: L,
}

/// Events, or a failure that is recorded; an error is answered as retryable and leaves no trace.
type Decision<T> = Result<Result<T, CommandFailure>, Error>;

impl<L: LogExt> Farm<L> {
    /// A farm on `log`.
    pub(crate) fn new(log: L) -> Self {
        Self { log }
    }

    /// Every method's handler.
    pub(crate) fn routes(self, shown: Shown) -> Routes {
        let farm = Arc::new(self);
        let Shown { builds, queue } = shown;
        Routes::new("build_farm", 1)
            .read(&BUILD, move |_: &RpcScope, mut args: Args| Ok(builds.live(&args.take("id")?)))
            .read(&QUEUE, move |_: &RpcScope, _: Args| Ok(queue.live()))
            .command(&SUBMIT_BUILD, farm.handler(|farm, rpc, mut args| async move {
                farm.submit_build(&rpc, args.take("id")?, args.take("spec")?).await
            }))
            .command(&CLAIM, farm.handler(|farm, rpc, mut args| async move {
                farm.claim(&rpc, args.take("id")?).await
            }))
            .command(&PROGRESS, farm.handler(|farm, rpc, mut args| async move {
                farm.progress(&rpc, args.take("id")?, args.take("n")?, args.take("line")?).await
            }))
            .command(&FINISHED, farm.handler(|farm, rpc, mut args| async move {
                farm.finished(&rpc, args.take("id")?, args.take("outcome")?).await
            }))
            .command(&STOPPED, farm.handler(|farm, rpc, mut args| async move {
                farm.stopped(&rpc, args.take("id")?).await
            }))
    }

    /// A closure that `Routes` takes, over a handler that wants the farm too.
    fn handler<F, Fut>(self: &Arc<Self>, handler: F) -> impl Fn(RpcScope, Args) -> Fut + Send + Sync + 'static
    where
        F: Fn(Arc<Self>, RpcScope, Args) -> Fut + Send + Sync + 'static,
    {
        let farm = Arc::clone(self);
        move |rpc, args| handler(Arc::clone(&farm), rpc, args)
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
        let loaded = self.log.try_load(&id.subject(), None, |build, entry| {
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
