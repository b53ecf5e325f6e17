//! The text that a command prints.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::process::Stdio;
use std::sync::Arc;

use tokio::io::AsyncReadExt as _;

use super::text::{MOST, Text, room};
use crate::error::Error;

#[derive(Clone)]
pub(super) struct Command {
    program: OsString,
    args: Arc<[OsString]>,
}

impl Command {
    pub(super) fn new(program: OsString, args: Arc<[OsString]>) -> Self {
        Self { program, args }
    }

    /// What tells it from others.
    pub(super) fn name(&self) -> String {
        format!("command {:?} {:?}", self.program, self.args)
    }

    pub(super) async fn bytes(&self) -> Result<Text, Error> {
        let failed = |e: &dyn fmt::Display| Error::unavailable(format!("{self}: {e}"));
        let (bytes, status) = run(&self.program, &self.args).await.map_err(|e| failed(&e))?;
        match status {
            None => Err(failed(&format_args!("more than {MOST} bytes"))),
            Some(status) if !status.success() => Err(failed(&status)),
            Some(status) if bytes.trim_ascii().is_empty() => Err(failed(&format_args!("printed nothing, {status}"))),
            Some(_) => Ok(bytes),
        }
    }
}

/// What it printed, and how it ended: `None` where it was killed for printing too much.
async fn run(program: &OsStr, args: &[OsString]) -> io::Result<(Text, Option<std::process::ExitStatus>)> {
    let mut command = tokio::process::Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    // Dropped before the child, wherever this is left: once that is reaped, its number may be somebody else's.
    #[cfg(unix)]
    let mut group = group::Group::of(&child);
    let mut bytes = room();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MOST as u64 + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() > MOST {
        return Ok((bytes, None));
    }
    let status = child.wait().await?;
    #[cfg(unix)]
    group.ended();
    Ok((bytes, Some(status)))
}

#[cfg(unix)]
mod group {
    use rustix::process::{Pid, Signal, kill_process_group};

    /// The process group of a command: it is killed with whatever it has started. A shell that is killed alone leaves behind
    /// what it waits for, one more with each ask.
    pub(super) struct Group(Option<Pid>);

    impl Group {
        /// That of a child which leads one.
        pub(super) fn of(child: &tokio::process::Child) -> Self {
            Self(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)))
        }

        /// The command has ended by itself: what it has left on purpose, such as an agent that keeps keys, stays.
        pub(super) fn ended(&mut self) {
            self.0 = None;
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            if let Some(group) = self.0 {
                // It fails where nobody is left of it.
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    }
}

impl fmt::Debug for Command {
    /// Without the arguments: somebody may have put a secret there all the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("program", &self.program).finish_non_exhaustive()
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command {}", self.program.display())
    }
}

#[cfg(all(test, unix))]
#[expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "a thread watches the pipe of a real process")]
mod tests {
    use std::io::Read as _;
    use std::path::Path;
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;
    use crate::credential::{Keeper, Unheld, command};
    use crate::env::Env;
    use crate::error::{Cause, Phase};

    /// Longer than anything here takes, on a busy machine too.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// The line of a shell that waits for a child. Both are there when it says so, and keep the pipe open while they live.
    fn hangs(pipe: &Path) -> String {
        format!("exec 3>'{}'; sleep 271 & echo up >&3; wait; echo never", pipe.display())
    }

    /// When somebody has opened the pipe and said so, and when nobody has it open any more.
    fn watched(pipe: &Path) -> (oneshot::Receiver<()>, oneshot::Receiver<()>) {
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let ((up, is_up), (gone, is_gone)) = (oneshot::channel(), oneshot::channel());
        let pipe = pipe.to_owned();
        // A thread of its own: where the test fails, nothing waits for it.
        std::thread::spawn(move || {
            let mut pipe = std::fs::File::open(pipe).unwrap();
            pipe.read_exact(&mut [0; 3]).unwrap();
            let _ = up.send(());
            pipe.read_to_end(&mut Vec::new()).unwrap();
            gone.send(())
        });
        (is_up, is_gone)
    }

    /// A command that nobody waits for takes with it what it has started.
    #[tokio::test]
    async fn what_a_command_has_started_is_killed_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let (up, gone) = watched(&pipe);
        let hanging = Command::new("sh".into(), ["-c".into(), hangs(&pipe).into()].into());
        let mut asked = Box::pin(hanging.bytes());
        tokio::select! {
            said = &mut asked => panic!("it ended: {}", said.unwrap_err()),
            up = timeout(PATIENCE, up) => up.unwrap().unwrap(),
        }
        drop(asked);
        timeout(PATIENCE, gone).await.expect("its child lives on").unwrap();
    }

    /// R7: the same once the bound of an ask is over, so that an outage leaves no process for each ask of it.
    #[tokio::test]
    async fn r7_a_command_that_hangs_leaves_no_process_after_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let (up, gone) = watched(&pipe);
        let (source, bound) = (Arc::new(command("sh", ["-c", &hangs(&pipe)])), Duration::from_secs(600));
        let keeper = Keeper::new(source, Env::system(), bound);
        let mut held = Box::pin(keeper.held());
        tokio::select! {
            _ = &mut held => panic!("it answered"),
            up = timeout(PATIENCE, up) => up.unwrap().unwrap(),
        }
        tokio::time::pause();
        tokio::time::advance(bound).await;
        let stalled = Unheld::Unavailable(Cause::Stalled { phase: Phase::Credential, bound });
        assert_eq!(held.await.unwrap_err(), stalled);
        tokio::time::resume();
        timeout(PATIENCE, gone).await.expect("its child lives on").unwrap();
    }

    /// What a command leaves behind on purpose, such as an agent, is not its ask.
    #[tokio::test]
    async fn what_a_command_leaves_in_the_background_stays() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let (up, gone) = watched(&pipe);
        let left = format!("exec 3>'{}'; echo up >&3; exec sleep 271", pipe.display());
        let line = format!("({left}) >/dev/null 2>&1 & echo $!");
        let leaving = Command::new("sh".into(), ["-c".into(), line.into()].into());
        let id = String::from_utf8(leaving.bytes().await.unwrap().to_vec()).unwrap();
        timeout(PATIENCE, up).await.unwrap().unwrap();
        assert!(std::process::Command::new("kill").arg(id.trim()).status().unwrap().success(), "it lives");
        timeout(PATIENCE, gone).await.unwrap().unwrap();
    }
}
