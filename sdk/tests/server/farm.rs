//! A small build farm in simulated time.

use std::sync::Arc;
use std::time::Duration;

use outlast::Error;
use outlast::call::{Args, Method};
use outlast::env::Env;
use outlast::key::{CommandRef, Principal};
use outlast::log::{AnyLog, Entry, Log, LogExt, MemoryLog, Prefix, Subject};
use outlast::server::{
    Cell, Cells, Changes, Events, Projection, Routes, RpcScope, Running, Server, ServerBuilder, Settle, Unauthenticated,
};
use outlast::testing::env;
use outlast::wire::{CommandFailure, Retry};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

/// When the tests begin by the simulated clock, in ms since 1970.
pub(crate) const START: u64 = 1_764_028_800_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "snake_case")]
enum BuildEvent {
    Submitted { command: Option<CommandRef> },
    Claimed,
    StopRequested,
    Finished { ok: bool },
    Stopped,
    Removed,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Build {
    state: &'static str,
    #[serde(skip)]
    command: Option<CommandRef>,
}

fn fold(build: Build, entry: &Entry) -> Result<Build, Error> {
    let event = serde_json::from_slice(&entry.body).map_err(|e| Error::unavailable("event").with_source(e))?;
    Ok(match event {
        BuildEvent::Submitted { command } => Build { state: "queued", command },
        BuildEvent::Claimed => Build { state: "running", ..build },
        BuildEvent::StopRequested => Build { state: "stopping", ..build },
        BuildEvent::Finished { ok: true } => Build { state: "passed", ..build },
        BuildEvent::Finished { ok: false } => Build { state: "failed", ..build },
        BuildEvent::Stopped => Build { state: "stopped", ..build },
        BuildEvent::Removed => Build { state: "", ..build },
    })
}

/// Builds by id, and how many events there have been.
#[derive(Clone)]
struct View {
    builds: Cells<String, Build>,
    events: Cell<u64>,
}

impl Projection for View {
    fn prefix(&self) -> Prefix {
        Prefix::of(["build"])
    }

    fn apply(&mut self, entry: &Entry, changes: &mut Changes<'_>) {
        let Some(id) = entry.subject.tokens().nth(1) else { return };
        let before = self.builds.get(&id).as_deref().cloned().unwrap_or_default();
        match fold(before, entry) {
            Ok(build) if build.state.is_empty() => changes.remove(&self.builds, &id),
            Ok(build) => changes.set(&self.builds, id, build),
            Err(_) => {}
        }
        let events = self.events.get().as_deref().copied().unwrap_or_default();
        changes.put(&self.events, events + 1);
    }
}

pub(crate) struct Farm {
    pub(crate) log: AnyLog,
    pub(crate) env: Env,
    /// Held by every handler: gone once nothing of the server is left.
    pub(crate) alive: Arc<()>,
    /// Lets one `slow` command decide.
    pub(crate) gate: Arc<Notify>,
    pub(crate) uptime: watch::Sender<u64>,
}

fn subject(id: &str) -> Subject {
    Subject::of(["build", id])
}

impl Farm {
    pub(crate) fn new() -> Self {
        let env = env(1);
        Self::on(MemoryLog::new(&env), env)
    }

    pub(crate) fn on(log: impl Log, env: Env) -> Self {
        let (log, alive, gate) = (AnyLog::new(log), Arc::new(()), Arc::new(Notify::new()));
        Self { log, env, alive, gate, uptime: watch::Sender::new(0) }
    }

    pub(crate) async fn start(&self) -> Server {
        self.builder().start().await.unwrap()
    }

    /// A server; several may be started on the farm's log.
    pub(crate) fn builder(&self) -> ServerBuilder {
        let view = View { builds: Cells::new(), events: Cell::new(0) };
        Server::builder(self.log.clone())
            .env(self.env.clone())
            .authenticate(|headers: &http::HeaderMap| {
                match headers.get("authorization").and_then(|v| v.to_str().ok()) {
                    Some("down") => Err(Unauthenticated::Unavailable),
                    Some(name) => Principal::new(name).map_err(|_| Unauthenticated::Refused),
                    None => Err(Unauthenticated::Refused),
                }
            })
            .project(view.clone())
            .service(self.routes(view))
    }

    fn routes(&self, view: View) -> Routes {
        let (log, alive, gate, uptime) =
            (self.log.clone(), Arc::clone(&self.alive), Arc::clone(&self.gate), self.uptime.subscribe());
        let (builds, events) = (view.builds, view.events);
        let load = move |id: String| {
            let log = log.clone();
            async move {
                let (build, head) = log.try_load(&subject(&id), Build::default(), fold).await?;
                Ok::<_, Error>((build, head, subject(&id)))
            }
        };
        let (claim, finish, stop) = (load.clone(), load.clone(), load);
        Routes::new("farm", 1)
            .read(&Method::new("farm.v1/build"), move |scope: &RpcScope, mut args: Args| {
                let _ = &alive;
                let id: String = args.take("id")?;
                match &*id {
                    "secret" if scope.principal().as_str() != "root" => Err(Error::denied("id")),
                    "broken" => panic!("a bug in a handler"),
                    _ => Ok(builds.live(&id)),
                }
            })
            .read(&Method::new("farm.v1/events"), move |_: &RpcScope, _: Args| Ok(events.live()))
            .read(&Method::new("farm.v1/uptime"), move |_: &RpcScope, _: Args| Ok(uptime.clone()))
            // Accepted and goes on.
            .command(&Method::new("farm.v1/submit").keyed_by(&["sha"]), |scope: RpcScope, mut args: Args| async move {
                let (sha, _spec): (String, Option<String>) = (args.take("sha")?, args.take("spec")?);
                let submitted = BuildEvent::Submitted { command: scope.command().cloned() };
                let events = Events::on(subject(&sha)).absent().push(&submitted);
                Ok(Running::new(events).on_cancel(subject(&sha), &BuildEvent::StopRequested))
            })
            .command(&Method::new("farm.v1/claim"), move |_: RpcScope, mut args: Args| {
                let loaded = args.take("id").map(&claim);
                async move {
                    let (build, head, subject) = loaded?.await?;
                    Ok(match build {
                        Build { state: "queued", command: Some(command) } => {
                            Ok(Events::on(subject).version(head).push(&BuildEvent::Claimed).starts(&command))
                        }
                        Build { .. } => Err(CommandFailure::rejected(Retry::Never, "it is not queued")),
                    })
                }
            })
            .command(&Method::new("farm.v1/finish"), move |_: RpcScope, mut args: Args| {
                let (loaded, ok) = (args.take("id").map(&finish), args.take::<bool>("ok"));
                async move {
                    let ((build, head, subject), ok) = (loaded?.await?, ok?);
                    let events = Events::on(subject).version(head).push(&BuildEvent::Finished { ok });
                    let how = if ok {
                        Settle::Succeeded
                    } else {
                        Settle::Failed(CommandFailure::verdict(Retry::NewKey, "two checks failed"))
                    };
                    Ok(build.command.iter().fold(events, |events, command| events.settles(command, how.clone())))
                }
            })
            .command(&Method::new("farm.v1/stopped"), move |_: RpcScope, mut args: Args| {
                let loaded = args.take("id").map(&stop);
                async move {
                    let (build, head, subject) = loaded?.await?;
                    let events = Events::on(subject).version(head).push(&BuildEvent::Stopped);
                    Ok(build.command.iter().fold(events, |events, c| events.settles(c, Settle::Canceled)))
                }
            })
            // Done at once.
            .command(&Method::new("farm.v1/touch"), |_: RpcScope, mut args: Args| async move {
                let id: String = args.take("id")?;
                Ok(Events::on(subject(&id)).push(&BuildEvent::Submitted { command: None }))
            })
            .command(&Method::new("farm.v1/remove"), |_: RpcScope, mut args: Args| async move {
                let id: String = args.take("id")?;
                Ok(Events::on(subject(&id)).push(&BuildEvent::Removed))
            })
            .command(&Method::new("farm.v1/slow"), move |_: RpcScope, _: Args| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.notified().await;
                    Ok(Events::on(subject("slow")).push(&BuildEvent::Claimed))
                }
            })
            .command(&Method::new("farm.v1/fail"), |_: RpcScope, mut args: Args| async move {
                let retry: Retry = args.take("retry")?;
                Ok(CommandFailure::rejected(retry, "no such runner"))
            })
            .command(&Method::new("farm.v1/panic"), |_: RpcScope, mut args: Args| async move {
                let id: String = args.take("id")?;
                if id == "broken" {
                    panic!("a bug in a handler");
                }
                Ok(Events::none())
            })
    }

    /// How many events `id` has.
    pub(crate) async fn events(&self, id: &str) -> usize {
        self.log.load(&subject(id), 0, |n, _| n + 1).await.unwrap().0
    }

    /// Changes a build behind everybody's back.
    pub(crate) async fn append(&self, id: &str, event: &str) {
        use outlast::log::{Append, AppendId, Appended, Expect};
        let append = Append::new(AppendId::new(self.env.ulid()), self.env.wall());
        let append = append.write(subject(id), Expect::Any, format!(r#"{{"e":"{event}"}}"#));
        assert!(matches!(self.log.append(append).await, Appended::Done(_)));
    }
}

/// Waits on tokio's clock.
pub(crate) async fn wait(env: &Env, duration: Duration) {
    env.sleep_until(Some(env.instant() + duration)).await;
}
