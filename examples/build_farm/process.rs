//! The farm's processes, as the one that starts them sees them.
//!
//! Each runs in a process group of its own, so the terminal's Ctrl-C reaches the poller alone, and is ended
//! by its id. If this process dies instead, the pipe to the child's stdin closes and the child ends itself
//! (see [`lifeline`](crate::build_farm::lifeline)).

use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::build_farm::cli::Role;
use crate::build_farm::lifeline::{FAREWELL, Notice};
use crate::build_farm::principals::Tokens;

/// How long a child has to start listening.
const START: Duration = Duration::from_secs(30);

/// How long a child has to end by itself.
const FAREWELL_TIME: Duration = Duration::from_secs(3);

/// A running process of the farm. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Pid,
    lifeline: Option<ChildStdin>,
    notices: mpsc::UnboundedReceiver<(Instant, Notice)>,
}

impl Process {
    /// Starts this program again in another role. What it says on stderr goes to a file in `directory`.
    pub(crate) fn start(role: Role, directory: &Path, tokens: &Tokens) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--role", role.name(), "--directory"]).arg(directory);
        tokens.give(role, &mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log_file(role, directory)?);
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn()?;
        // The group is named after its leader. A child that was just started has an id and both pipes.
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (group, lifeline, stdout) = match (group, child.stdin.take(), child.stdout.take()) {
            (Some(group), Some(stdin), Some(stdout)) => (group, stdin, stdout),
            _ => return Err(io::Error::other(format!("the {} has no id or no pipes", role.name()))),
        };
        let (sender, notices) = mpsc::unbounded_channel();
        tokio::spawn(read_notices(stdout, sender));
        Ok(Self { child, group, lifeline: Some(lifeline), notices })
    }

    /// Where what it says on stderr goes.
    pub(crate) fn log(role: Role, directory: &Path) -> PathBuf {
        directory.join(format!("{}.log", role.name()))
    }

    /// Waits for the line that says where it listens, and when that was.
    pub(crate) async fn listening(&mut self) -> io::Result<(Instant, SocketAddr)> {
        match timeout(START, self.notice()).await {
            Ok(Some((at, Notice::Listening(address)))) => Ok((at, address)),
            Ok(Some((_, notice))) => Err(io::Error::other(format!("said `{notice}` before it listened"))),
            Ok(None) => Err(io::Error::other("ended before it listened")),
            Err(_) => Err(io::Error::other(format!("did not listen within {START:?}"))),
        }
    }

    /// The next thing that it says; `None` when it has ended.
    pub(crate) async fn notice(&mut self) -> Option<(Instant, Notice)> {
        self.notices.recv().await
    }

    /// Kills it with SIGKILL, as a crash would, and waits until it is gone.
    pub(crate) async fn kill(mut self) -> io::Result<()> {
        self.signal(Signal::KILL);
        self.child.wait().await.map(drop)
    }

    /// Asks it to end; kills it if it does not.
    pub(crate) async fn end(mut self) -> io::Result<()> {
        if let Some(mut lifeline) = self.lifeline.take() {
            // One that is dead already does not read it.
            let _ = lifeline.write_all(FAREWELL).await;
        }
        match timeout(FAREWELL_TIME, self.child.wait()).await {
            Ok(ended) => ended.map(drop),
            Err(_) => self.kill().await,
        }
    }

    fn signal(&self, signal: Signal) {
        // Only while the child has not been waited for is the id certainly its own.
        if self.child.id().is_some() {
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Reads at once, so that the time at which something was said is known.
async fn read_notices(stdout: ChildStdout, sender: mpsc::UnboundedSender<(Instant, Notice)>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(notice) = line.parse()
            && sender.send((Instant::now(), notice)).is_err()
        {
            return;
        }
    }
}

fn log_file(role: Role, directory: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(Process::log(role, directory))
}
