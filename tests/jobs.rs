//! A small service: jobs that are started, run and finish, each command's effect an entry that can be counted.

use std::sync::Arc;

use outlast::call::{Args, Method, Params};
use outlast::client::{Caller, Client};
use outlast::command::Command;
use outlast::key::{CommandKey, CommandRef};
use outlast::log::{AnyLog, Entry, LogExt, Prefix, Seq, Subject};
use outlast::server::{Cells, Changes, Events, Projection, Routes, RpcScope, Running, Settle};
use outlast::{CommandFailure, Error, Observable};
use serde::{Deserialize, Serialize};

const JOB: Method = Method::new("jobs.v1/job");
const START: Method = Method::new("jobs.v1/start").keyed_by(&["id"]);
const CLAIM: Method = Method::new("jobs.v1/claim");
const FINISH: Method = Method::new("jobs.v1/finish");
const STOPPED: Method = Method::new("jobs.v1/stopped");
const BUMP: Method = Method::new("jobs.v1/bump");

/// A job, as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Where it stands.
    pub state: JobState,
    /// How often it was bumped: the effects of `bump`.
    pub bumps: u64,
    /// How often it was started: the effects of `start`.
    pub starts: u64,
    /// The command that started it.
    pub command: Option<CommandRef>,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// Nobody runs it.
    #[default]
    Queued,
    /// Somebody runs it.
    Running,
    /// Its cancel was asked for.
    Canceling,
    /// It ended.
    Done {
        /// How.
        ok: bool,
    },
    /// It was stopped.
    Stopped,
}

#[derive(Debug, Serialize, Deserialize)]
enum JobEvent {
    Started { command: CommandRef },
    Claimed,
    Bumped,
    CancelRequested,
    Finished { ok: bool },
    Stopped,
}

impl Job {
    fn apply(mut self, event: JobEvent) -> Self {
        match event {
            JobEvent::Started { command } => {
                self.starts += 1;
                self.command = Some(command);
            }
            JobEvent::Claimed if self.state == JobState::Queued => self.state = JobState::Running,
            JobEvent::Claimed => {} // nobody runs what was canceled or is over
            JobEvent::Bumped => self.bumps += 1,
            JobEvent::CancelRequested => {
                self.state = if self.state == JobState::Queued { JobState::Stopped } else { JobState::Canceling };
            }
            JobEvent::Finished { ok } => self.state = JobState::Done { ok },
            JobEvent::Stopped => self.state = JobState::Stopped,
        }
        self
    }
}

fn subject(id: &str) -> Subject {
    Subject::of(["job", id])
}

fn event_of(entry: &Entry) -> Result<JobEvent, Error> {
    serde_json::from_slice(&entry.body).map_err(|e| Error::unavailable("an entry cannot be read").with_source(e))
}

/// The client, by hand as a macro writes it.
#[derive(Clone, Debug)]
pub struct JobsClient {
    caller: Caller,
}

impl JobsClient {
    /// A client of the service that `client` is connected to.
    pub fn new(client: &Client) -> Self {
        Self { caller: client.caller() }
    }

    /// One whose next command has this L3 key.
    #[must_use]
    pub fn with_key(&self, key: impl Into<CommandKey>) -> Self {
        Self { caller: self.caller.with_key(key) }
    }

    /// One whose commands with L2 keys are the `n`th attempt.
    #[must_use]
    pub fn attempt(&self, n: u32) -> Self {
        Self { caller: self.caller.attempt(n) }
    }

    /// Reads a job.
    pub fn job(&self, id: &str) -> Observable<Job> {
        self.caller.read(&JOB, Params::new().with("id", id))
    }

    /// Starts a job; the command goes on until the job ends. L2: keyed by `id`.
    pub fn start(&self, id: &str) -> Command {
        self.caller.call(&START, Params::new().with("id", id))
    }

    /// Says that a job runs.
    pub fn claim(&self, id: &str) -> Command {
        self.caller.call(&CLAIM, Params::new().with("id", id))
    }

    /// Ends a job.
    pub fn finish(&self, id: &str, ok: bool) -> Command {
        self.caller.call(&FINISH, Params::new().with("id", id).with("ok", &ok))
    }

    /// Says that a canceled job has stopped.
    pub fn stopped(&self, id: &str) -> Command {
        self.caller.call(&STOPPED, Params::new().with("id", id))
    }

    /// Adds one to a job's bumps. L1: every call is another one.
    pub fn bump(&self, id: &str) -> Command {
        self.caller.call(&BUMP, Params::new().with("id", id))
    }
}

/// The server's side.
#[derive(Clone, Debug)]
pub struct Jobs {
    log: AnyLog,
    jobs: Cells<String, Job>,
}

impl Jobs {
    /// The service on `log`.
    pub fn new(log: AnyLog) -> Self {
        Self { log, jobs: Cells::new() }
    }

    /// What the reads follow.
    pub fn projection(&self) -> impl Projection + use<> {
        JobsView { jobs: self.jobs.clone(), known: std::collections::HashMap::new() }
    }

    /// Every method's handler.
    pub fn routes(&self) -> Routes {
        let jobs = self.jobs.clone();
        let this = Arc::new(self.clone());
        let (start, claim, finish, stopped) =
            (Arc::clone(&this), Arc::clone(&this), Arc::clone(&this), Arc::clone(&this));
        Routes::new("jobs", 1)
            .read(&JOB, move |_: &RpcScope, mut args: Args| Ok(jobs.live(&args.take("id")?)))
            .command(&START, move |rpc: RpcScope, mut args: Args| {
                let this = Arc::clone(&start);
                async move { this.start(&rpc, &args.take::<String>("id")?).await }
            })
            .command(&CLAIM, move |_: RpcScope, mut args: Args| {
                let this = Arc::clone(&claim);
                async move {
                    let id: String = args.take("id")?;
                    let (job, head) = this.load(&id).await?;
                    let events = Events::on(subject(&id)).version(head).push(&JobEvent::Claimed);
                    Ok(job.command.iter().fold(events, Events::starts))
                }
            })
            .command(&FINISH, move |_: RpcScope, mut args: Args| {
                let this = Arc::clone(&finish);
                async move {
                    let (id, ok): (String, bool) = (args.take("id")?, args.take("ok")?);
                    let (job, head) = this.load(&id).await?;
                    let settle = if ok {
                        Settle::Succeeded
                    } else {
                        Settle::Failed(CommandFailure::verdict(outlast::command::Retry::NewKey, "the job failed"))
                    };
                    let events = Events::on(subject(&id)).version(head).push(&JobEvent::Finished { ok });
                    Ok(job.command.iter().fold(events, |events, command| events.settles(command, settle.clone())))
                }
            })
            .command(&STOPPED, move |_: RpcScope, mut args: Args| {
                let this = Arc::clone(&stopped);
                async move {
                    let id: String = args.take("id")?;
                    let (job, head) = this.load(&id).await?;
                    let events = Events::on(subject(&id)).version(head).push(&JobEvent::Stopped);
                    Ok(job.command.iter().fold(events, |events, command| events.settles(command, Settle::Canceled)))
                }
            })
            .command(&BUMP, move |_: RpcScope, mut args: Args| async move {
                Ok(Events::on(subject(&args.take::<String>("id")?)).push(&JobEvent::Bumped))
            })
    }

    async fn start(&self, rpc: &RpcScope, id: &str) -> Result<Running, Error> {
        let command = rpc.command().cloned().ok_or_else(|| Error::invalid("key", "a command's key"))?;
        let (_, head) = self.load(id).await?;
        let started = Events::on(subject(id)).version(head).push(&JobEvent::Started { command });
        Ok(Running::new(started).on_cancel(subject(id), &JobEvent::CancelRequested))
    }

    async fn load(&self, id: &str) -> Result<(Job, Option<Seq>), Error> {
        self.log.try_load(&subject(id), Job::default(), |job, entry| Ok(job.apply(event_of(entry)?))).await
    }
}

struct JobsView {
    jobs: Cells<String, Job>,
    known: std::collections::HashMap<String, Job>,
}

impl Projection for JobsView {
    fn prefix(&self) -> Prefix {
        Prefix::of(["job"])
    }

    fn apply(&mut self, entry: &Entry, changes: &mut Changes<'_>) {
        let (Some(id), Ok(event)) = (entry.subject.tokens().nth(1), event_of(entry)) else { return };
        let job = self.known.entry(id.clone()).or_default();
        *job = std::mem::take(job).apply(event);
        changes.set(&self.jobs, id, job.clone());
    }
}
