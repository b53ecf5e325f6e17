//! One build as a real child process: in a process group of its own, its output line by line.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout, timeout_at};

use crate::build_farm::domain::{BuildSpec, Outcome};
use crate::build_farm::principals::Tokens;

/// How long a build has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// How long output is read after the build has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// The longest line that is reported, in bytes; the rest of a longer one is left out.
const LONGEST: usize = 4096;

/// A running build. Dropping it kills the whole process group.
#[derive(Debug)]
pub(crate) struct Execution {
    child: Child,
    group: Pid,
    /// `None` when all was read.
    output: Option<BufReader<pipe::Receiver>>,
    /// The line that is being read.
    line: Vec<u8>,
    /// How the build's own process ended, and until when its output is still read.
    ended: Option<(ExitStatus, Instant)>,
}

/// What a build did next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It printed a line.
    Line(String),
    /// It ended, and there are no more lines.
    Ended(Outcome),
}

impl Execution {
    /// Starts the build. Its temporary files go to its own directory, so that a killed one leaves none elsewhere.
    pub(crate) fn start(spec: &BuildSpec) -> io::Result<Self> {
        let (output, input) = io::pipe()?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&spec.command).current_dir(&spec.directory).env("TMPDIR", &spec.directory);
        Tokens::take(&mut command);
        // Both streams go into one pipe, so lines keep their order. Should the worker be killed, the pipe breaks
        // and the build ends with the next line that it prints.
        command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        command.process_group(0).kill_on_drop(true);
        let child = command.spawn()?;
        // It holds the writing ends too, and would keep the output from ending.
        drop(command);
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = group.ok_or_else(|| io::Error::other("the build has no process id"))?;
        let output = Some(BufReader::new(pipe::Receiver::from_owned_fd(output.into())?));
        Ok(Self { child, group, output, line: Vec::new(), ended: None })
    }

    /// The next thing that it does.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn step(&mut self) -> io::Result<Step> {
        loop {
            match (self.ended, &mut self.output) {
                (None, Some(output)) => {
                    tokio::select! {
                        // What was printed before the end is read before it.
                        biased;
                        read = read_line(output, &mut self.line) => match read? {
                            Some(line) => return Ok(Step::Line(line)),
                            None => self.output = None,
                        },
                        status = self.child.wait() => self.end(status?),
                    }
                }
                (None, None) => {
                    let status = self.child.wait().await?;
                    self.end(status);
                }
                (Some((_, until)), Some(output)) => {
                    match timeout_at(until, read_line(output, &mut self.line)).await {
                        Ok(Ok(Some(line))) => return Ok(Step::Line(line)),
                        // Something that left the group holds the pipe: the build is over all the same.
                        Ok(Ok(None) | Err(_)) | Err(_) => self.output = None,
                    }
                }
                (Some((status, _)), None) => return Ok(Step::Ended(outcome(status))),
            }
        }
    }

    /// Stops it: SIGTERM to the group, then SIGKILL.
    pub(crate) async fn stop(mut self) -> io::Result<()> {
        self.signal(Signal::TERM);
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            self.child.wait().await?;
        }
        // Whoever ignored SIGTERM and is not the leader.
        let _ = kill_process_group(self.group, Signal::KILL);
        Ok(())
    }

    fn end(&mut self, status: ExitStatus) {
        // What it left running in its group is no part of its verdict. The id is the group's own still: it
        // was the leader's until a moment ago, and ids are not given again so soon.
        let _ = kill_process_group(self.group, Signal::KILL);
        self.ended = Some((status, Instant::now() + DRAIN));
    }

    fn signal(&self, signal: Signal) {
        if self.child.id().is_some() {
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The next line, without its end; `None` at the end of the output. `line` holds what was read of it so far.
async fn read_line(output: &mut BufReader<pipe::Receiver>, line: &mut Vec<u8>) -> io::Result<Option<String>> {
    loop {
        let bytes = output.fill_buf().await?;
        if bytes.is_empty() && line.is_empty() {
            return Ok(None);
        }
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let room = LONGEST - line.len();
        line.extend(bytes[..end.unwrap_or(bytes.len())].iter().take(room));
        let last = bytes.is_empty();
        let used = end.map_or(bytes.len(), |end| end + 1);
        output.consume(used);
        if end.is_some() || last {
            return Ok(Some(String::from_utf8_lossy(&std::mem::take(line)).into_owned()));
        }
    }
}

fn outcome(status: ExitStatus) -> Outcome {
    if status.success() { Outcome::Succeeded } else { Outcome::Failed(format!("the build ended with {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(command: &str) -> Execution {
        Execution::start(&BuildSpec { directory: std::env::temp_dir(), command: command.into() }).unwrap()
    }

    async fn run(command: &str) -> (Vec<String>, Outcome) {
        let mut execution = build(command);
        let mut lines = Vec::new();
        loop {
            match execution.step().await.unwrap() {
                Step::Line(line) => lines.push(line),
                Step::Ended(outcome) => return (lines, outcome),
            }
        }
    }

    #[tokio::test]
    async fn both_streams_are_read_in_order_and_to_the_end() {
        let (lines, outcome) = run("echo one; echo two >&2; printf three").await;
        assert_eq!((lines, outcome), (vec!["one".into(), "two".into(), "three".into()], Outcome::Succeeded));
    }

    #[tokio::test]
    async fn a_failure_says_how_it_ended() {
        let (_, outcome) = run("exit 3").await;
        assert_eq!(outcome, Outcome::Failed("the build ended with exit status: 3".into()));
    }

    #[tokio::test]
    async fn any_bytes_are_a_line() {
        let (lines, _) = run(r"printf 'a\377b\n\n'; head -c 10000 /dev/zero | tr '\0' x; echo; echo end").await;
        assert_eq!(lines, ["a\u{fffd}b", "", &"x".repeat(LONGEST), "end"]);
    }

    #[tokio::test]
    async fn a_build_that_leaves_something_running_is_over_when_it_is_over() {
        let (lines, outcome) = run("sleep 600 & echo done").await;
        assert_eq!((lines, outcome), (vec!["done".into()], Outcome::Succeeded));
    }

    /// Stopping and dropping end the whole group, not only its leader.
    #[tokio::test]
    async fn the_whole_group_ends() {
        for stop in [true, false] {
            let mut execution = build("sleep 600 & echo $!; sleep 601");
            let Step::Line(id) = execution.step().await.unwrap() else { panic!("the id of the first sleep") };
            let id = Pid::from_raw(id.parse().unwrap()).unwrap();
            if stop {
                execution.stop().await.unwrap();
            } else {
                drop(execution);
            }
            gone(id).await;
        }
    }

    async fn gone(id: Pid) {
        while alive(id) {
            tokio::task::yield_now().await;
        }
    }

    /// A zombie that nobody reaps in this container has ended too.
    fn alive(id: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
    }
}
