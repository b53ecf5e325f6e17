//! A small service: jobs that are started, run and finish, each command's effect an entry that can be counted.

use outlast::command::{Command, Retry};
use outlast::key::CommandRef;
use outlast::log::{AnyLog, Entry, LogExt, Prefix, Seq, Subject};
use outlast::server::{Cells, Changes, Events, Live, Projection, RpcScope, Running, Settle};
use outlast::{CommandFailure, Error, Observable};
use serde::{Deserialize, Serialize};

/// A job, as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Where it stands.
    pub state: JobState,
    /// How often it was bumped: the effects of `bump`.
    pub bumps: u64,
    /// How often it was started: the effects of `start`.
    pub starts: u64,
    /// What was noted last.
    pub note: String,
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
    Noted { text: String },
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
            JobEvent::Noted { text } => self.note = text,
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

/// Jobs.
#[outlast::service]
pub trait Jobs {
    /// Reads a job.
    fn job(&self, id: String) -> Observable<Job>;

    /// Starts a job; the command goes on until the job ends. L2: keyed by `id`.
    fn start(&self, #[key] id: String) -> Command;

    /// Says that a job runs.
    fn claim(&self, id: String) -> Command;

    /// Ends a job.
    fn finish(&self, id: String, ok: bool) -> Command;

    /// Says that a canceled job has stopped.
    fn stopped(&self, id: String) -> Command;

    /// Adds one to a job's bumps. L1: every call is another one.
    fn bump(&self, id: String) -> Command;

    /// Notes something about a job.
    fn note(&self, id: String, text: String) -> Command;

    /// Takes `millis` milliseconds, and does nothing.
    fn wait(&self, millis: u64) -> Command;
}

/// The server's side.
#[derive(Clone, Debug)]
pub struct Workshop {
    log: AnyLog,
    jobs: Cells<String, Job>,
}

#[outlast::handlers(Jobs)]
impl Workshop {
    fn job(&self, id: String) -> Live<Job> {
        self.jobs.live(&id)
    }

    async fn start(&self, rpc: &RpcScope, id: String) -> Result<Running, Error> {
        let command = rpc.command().cloned().ok_or_else(|| Error::invalid("key", "a command's key"))?;
        let (_, head) = self.load(&id).await?;
        let started = Events::on(subject(&id)).version(head).push(&JobEvent::Started { command });
        Ok(Running::new(started).on_cancel(subject(&id), &JobEvent::CancelRequested))
    }

    async fn claim(&self, id: String) -> Result<Events, Error> {
        let (job, head) = self.load(&id).await?;
        let events = Events::on(subject(&id)).version(head).push(&JobEvent::Claimed);
        Ok(job.command.iter().fold(events, Events::starts))
    }

    async fn finish(&self, id: String, ok: bool) -> Result<Events, Error> {
        let settle = if ok {
            Settle::Succeeded
        } else {
            Settle::Failed(CommandFailure::verdict(Retry::NewKey, "the job failed"))
        };
        self.ended(&id, &JobEvent::Finished { ok }, &settle).await
    }

    async fn stopped(&self, id: String) -> Result<Events, Error> {
        self.ended(&id, &JobEvent::Stopped, &Settle::Canceled).await
    }

    async fn bump(&self, id: String) -> Events {
        Events::on(subject(&id)).push(&JobEvent::Bumped)
    }

    async fn note(&self, id: String, text: String) -> Events {
        Events::on(subject(&id)).push(&JobEvent::Noted { text })
    }

    async fn wait(&self, millis: u64) -> Events {
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
        Events::none()
    }
}

impl Workshop {
    /// The service on `log`.
    pub fn new(log: AnyLog) -> Self {
        Self { log, jobs: Cells::new() }
    }

    /// What the reads follow.
    pub fn projection(&self) -> impl Projection + use<> {
        JobsView { jobs: self.jobs.clone(), known: std::collections::HashMap::new() }
    }

    async fn ended(&self, id: &str, event: &JobEvent, settle: &Settle) -> Result<Events, Error> {
        let (job, head) = self.load(id).await?;
        let events = Events::on(subject(id)).version(head).push(event);
        Ok(job.command.iter().fold(events, |events, command| events.settles(command, settle.clone())))
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
