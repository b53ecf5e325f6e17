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
    let mut child = tokio::process::Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut bytes = room();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MOST as u64 + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() > MOST {
        child.kill().await?;
        return Ok((bytes, None));
    }
    let status = child.wait().await?;
    Ok((bytes, Some(status)))
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
