//! What a build is: its events, and the pure fold over them that says where it stands.

use std::fmt;
use std::path::PathBuf;

use outlast::key::{CommandRef, Principal};
use outlast::log::Subject;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// The first token of every build's subject.
pub(crate) const BUILDS: &str = "build";

/// Names a build; a ULID that the client mints, so that it is known before the first byte is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct BuildId(Ulid);

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct BuildSpec {
    /// Where.
    pub(crate) directory: PathBuf,
    /// A command line for `sh`.
    pub(crate) command: String,
}

/// Where a build stands, as far as anyone has reported it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Build {
    /// What is to be done.
    pub(crate) spec: BuildSpec,
    /// Its status.
    pub(crate) status: BuildStatus,
    /// Who runs it.
    pub(crate) worker: Option<Principal>,
    /// How many lines it has printed.
    pub(crate) lines: u64,
    /// The last of them.
    pub(crate) last_line: String,
    /// Whether its worker is to stop it.
    pub(crate) cancel_requested: bool,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    /// The command that submitted it, for the server only: it is settled together with the build.
    #[serde(skip)]
    pub(crate) command: Option<CommandRef>,
}

/// The statuses of a build. The last three are terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BuildStatus {
    /// No worker has it.
    Queued,
    /// A worker has it and has reported nothing yet.
    Claimed,
    /// It has printed something.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
    /// It was stopped, or never started.
    Canceled,
}

/// What became of a build, as its worker says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It ended well.
    Succeeded,
    /// It ended badly; why.
    Failed(String),
}

/// What happens to a build; one entry of its subject each.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum BuildEvent {
    /// It was accepted.
    Submitted {
        /// By this command, which is settled when the build ends.
        command: CommandRef,
        /// What is to be done.
        spec: BuildSpec,
    },
    /// A worker has it.
    Claimed {
        /// This one.
        worker: Principal,
    },
    /// It has printed a line.
    Progress {
        /// The number of the line, from 1: what makes repeats and reordering harmless.
        n: u64,
        /// The line.
        line: String,
    },
    /// Whoever submitted it wants it stopped.
    CancelRequested,
    /// It ended by itself.
    Finished {
        /// How.
        outcome: Outcome,
    },
    /// Its worker stopped it.
    Stopped,
}

impl BuildId {
    /// Wraps a ULID.
    pub(crate) const fn new(id: Ulid) -> Self {
        Self(id)
    }

    /// Where its events are.
    pub(crate) fn subject(self) -> Subject {
        Subject::of([BUILDS, &self.to_string()])
    }

    /// The build whose events are at `subject`.
    pub(crate) fn of_subject(subject: &Subject) -> Option<Self> {
        let mut tokens = subject.tokens();
        let (kind, id) = (tokens.next()?, tokens.next()?);
        (kind == BUILDS && tokens.next().is_none()).then(|| Ulid::from_string(&id).ok().map(Self))?
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl BuildStatus {
    /// Whether nothing can follow.
    pub(crate) const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Claimed | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Canceled => true,
        }
    }
}

impl fmt::Display for BuildStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        })
    }
}

impl Build {
    /// The build after `event`; `None` before it was submitted.
    ///
    /// Total and tolerant: an event that its status does not permit changes nothing.
    pub(crate) fn apply(build: Option<Self>, event: BuildEvent) -> Option<Self> {
        let Some(build) = build else {
            return match event {
                BuildEvent::Submitted { command, spec } => Some(Self::submitted(command, spec)),
                BuildEvent::Claimed { .. }
                | BuildEvent::Progress { .. }
                | BuildEvent::CancelRequested
                | BuildEvent::Finished { .. }
                | BuildEvent::Stopped => None,
            };
        };
        Some(build.then(event))
    }

    fn submitted(command: CommandRef, spec: BuildSpec) -> Self {
        Self {
            spec,
            status: BuildStatus::Queued,
            worker: None,
            lines: 0,
            last_line: String::new(),
            cancel_requested: false,
            failure: None,
            command: Some(command),
        }
    }

    fn then(mut self, event: BuildEvent) -> Self {
        match event {
            BuildEvent::Submitted { .. } => {}
            BuildEvent::Claimed { worker } => match self.status {
                BuildStatus::Queued => {
                    self.status = BuildStatus::Claimed;
                    self.worker = Some(worker);
                }
                BuildStatus::Claimed
                | BuildStatus::Running
                | BuildStatus::Succeeded
                | BuildStatus::Failed
                | BuildStatus::Canceled => {}
            },
            BuildEvent::Progress { n, line } => {
                // Also after the end: a line that was overtaken by the verdict is still a line.
                if n > self.lines {
                    self.lines = n;
                    self.last_line = line;
                }
                if self.status == BuildStatus::Claimed {
                    self.status = BuildStatus::Running;
                }
            }
            BuildEvent::CancelRequested => match self.status {
                // Nobody runs it and nobody will: `claim` looks at the status.
                BuildStatus::Queued => self.status = BuildStatus::Canceled,
                BuildStatus::Claimed | BuildStatus::Running => self.cancel_requested = true,
                BuildStatus::Succeeded | BuildStatus::Failed | BuildStatus::Canceled => {}
            },
            BuildEvent::Finished { outcome } => match (self.status, outcome) {
                (BuildStatus::Claimed | BuildStatus::Running, Outcome::Succeeded) => {
                    self.status = BuildStatus::Succeeded;
                }
                (BuildStatus::Claimed | BuildStatus::Running, Outcome::Failed(why)) => {
                    self.status = BuildStatus::Failed;
                    self.failure = Some(why);
                }
                (
                    BuildStatus::Queued | BuildStatus::Succeeded | BuildStatus::Failed | BuildStatus::Canceled,
                    Outcome::Succeeded | Outcome::Failed(_),
                ) => {}
            },
            BuildEvent::Stopped => match self.status {
                BuildStatus::Claimed | BuildStatus::Running => self.status = BuildStatus::Canceled,
                BuildStatus::Queued | BuildStatus::Succeeded | BuildStatus::Failed | BuildStatus::Canceled => {}
            },
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted() -> BuildEvent {
        let command = CommandRef::new(Principal::new("poller").unwrap(), "key");
        BuildEvent::Submitted { command, spec: BuildSpec { directory: "/d".into(), command: "make".into() } }
    }

    fn claimed(worker: &str) -> BuildEvent {
        BuildEvent::Claimed { worker: Principal::new(worker).unwrap() }
    }

    fn progress(n: u64) -> BuildEvent {
        BuildEvent::Progress { n, line: format!("line {n}") }
    }

    fn fold(events: impl IntoIterator<Item = BuildEvent>) -> Option<Build> {
        events.into_iter().fold(None, Build::apply)
    }

    fn permutations(events: &[BuildEvent]) -> Vec<Vec<BuildEvent>> {
        if events.is_empty() {
            return vec![Vec::new()];
        }
        (0..events.len())
            .flat_map(|i| {
                let mut rest = events.to_vec();
                let first = rest.remove(i);
                permutations(&rest).into_iter().map(move |mut tail| {
                    tail.insert(0, first.clone());
                    tail
                })
            })
            .collect()
    }

    /// The worker's reports may be repeated and overtake each other, the verdict included: the build is the same.
    #[test]
    fn repeated_and_reordered_reports_make_the_same_build() {
        let finished = BuildEvent::Finished { outcome: Outcome::Succeeded };
        let reports = [progress(1), progress(2), progress(3), progress(2), finished];
        let expected = fold([submitted(), claimed("w")].into_iter().chain(reports.clone())).unwrap();
        assert_eq!((expected.status, expected.lines), (BuildStatus::Succeeded, 3));
        assert_eq!(expected.last_line, "line 3");
        for order in permutations(&reports) {
            assert_eq!(fold([submitted(), claimed("w")].into_iter().chain(order.clone())), Some(expected.clone()));
            let twice = order.iter().flat_map(|event| [event.clone(), event.clone()]);
            assert_eq!(fold([submitted(), claimed("w")].into_iter().chain(twice)), Some(expected.clone()));
        }
    }

    #[test]
    fn the_first_claim_wins() {
        let build = fold([submitted(), claimed("first"), claimed("second")]).unwrap();
        assert_eq!((build.status, build.worker.unwrap().as_str()), (BuildStatus::Claimed, "first"));
    }

    #[test]
    fn a_build_canceled_before_its_claim_never_starts() {
        let build = fold([submitted(), BuildEvent::CancelRequested, claimed("w"), progress(1)]).unwrap();
        assert_eq!((build.status, build.worker), (BuildStatus::Canceled, None));
    }

    /// W5: canceled means that the executor stopped; a race with the end has one terminal state.
    #[test]
    fn w5_a_cancel_is_a_request_until_the_worker_stops() {
        let asked = fold([submitted(), claimed("w"), progress(1), BuildEvent::CancelRequested]).unwrap();
        assert!(asked.cancel_requested && asked.status == BuildStatus::Running);
        let finished = || BuildEvent::Finished { outcome: Outcome::Failed("1 check failed".into()) };
        let stopped = [BuildEvent::Stopped, finished()].into_iter().fold(Some(asked.clone()), Build::apply);
        assert_eq!(stopped.unwrap().status, BuildStatus::Canceled);
        let lost = [finished(), BuildEvent::Stopped].into_iter().fold(Some(asked), Build::apply).unwrap();
        assert_eq!((lost.status, lost.failure.as_deref()), (BuildStatus::Failed, Some("1 check failed")));
    }

    #[test]
    fn only_a_submitted_build_exists() {
        assert_eq!(fold([claimed("w"), progress(1), BuildEvent::CancelRequested, BuildEvent::Stopped]), None);
    }

    #[test]
    fn a_reader_is_not_told_the_command() {
        let build = fold([submitted()]).unwrap();
        let json = serde_json::to_string(&build).unwrap();
        assert!(!json.contains("poller"), "{json}");
        let read: Build = serde_json::from_str(&json).unwrap();
        assert_eq!(read, Build { command: None, ..build });
    }

    #[test]
    fn a_subject_names_its_build() {
        let id = BuildId::new(Ulid::from_parts(7, 9));
        assert_eq!(BuildId::of_subject(&id.subject()), Some(id));
        assert_eq!(BuildId::of_subject(&Subject::of(["key", "x"])), None);
        assert_eq!(BuildId::of_subject(&Subject::of([BUILDS, &id.to_string(), "log"])), None);
    }
}
