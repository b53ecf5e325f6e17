//! Asks the expressions of the command line, in a process of its own.
//!
//! jq can compute anything: for ever (`def f: f; f`), in any space (`[range(1e12)]`), and so deep that the stack
//! overflows, which nothing inside a process survives. So neither the expressions nor the answers come near the watch. What
//! they do to this process makes an answer unreadable, and never ends the wait.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::cli::UsageError;
use super::predicate::{Conditions, Verdict};

/// The argument that starts the process. Nobody types it.
pub(crate) const ARGUMENT: &str = "--judge-stdin";

/// How much of a processor's time one answer may take: on a busy machine, too, an expression has as much.
const TIME: Duration = Duration::from_secs(5);

/// How long that may last.
const WAIT: Duration = Duration::from_secs(60);

/// How much memory that may take.
const MEMORY: u64 = 1 << 30;

/// The expressions of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    done: String,
    ok: Option<String>,
}

/// What the process is asked.
#[derive(Serialize, Deserialize)]
struct Question {
    done: String,
    ok: Option<String>,
    /// Without it, only whether the expressions are any.
    body: Option<Box<RawValue>>,
}

/// What it says.
#[derive(Serialize, Deserialize)]
enum Judgement {
    /// The flag whose expression is none, and what was expected.
    Unfit(String, String),
    /// The expressions are some.
    Fit,
    /// What they say of the body.
    Verdict(Verdict),
}

impl Judge {
    /// Takes the expressions, if they are some.
    pub(crate) async fn new(done: String, ok: Option<String>) -> Result<Self, UsageError> {
        let judge = Self { done, ok };
        match judge.ask(None).await {
            Ok(Judgement::Unfit(flag, expected)) => Err(UsageError::new(&flag, expected)),
            Ok(Judgement::Fit | Judgement::Verdict(_)) => Ok(judge),
            Err(why) => Err(UsageError::new("--done", format_args!("expected a jq expression: {why}"))),
        }
    }

    /// What they say of `body`; an error says why they could not be asked, which another time they perhaps can.
    ///
    /// # Cancel safety
    /// Dropping the future kills the process.
    pub(crate) async fn judge(&self, body: &RawValue) -> Result<Verdict, String> {
        match self.ask(Some(body.to_owned())).await? {
            Judgement::Verdict(verdict) => Ok(verdict),
            Judgement::Unfit(..) | Judgement::Fit => Err("no verdict".into()),
        }
    }

    async fn ask(&self, body: Option<Box<RawValue>>) -> Result<Judgement, String> {
        let question = Question { done: self.done.clone(), ok: self.ok.clone(), body };
        let question = serde_json::to_vec(&question).map_err(|e| e.to_string())?;
        match timeout(WAIT, run(&question)).await {
            Ok(judged) => judged,
            Err(_) => Err(format!("the expression gave nothing within {WAIT:?}")),
        }
    }
}

/// Puts a question to the process.
async fn run(question: &[u8]) -> Result<Judgement, String> {
    let failed = |e: io::Error| format!("the process that asks the expression: {e}");
    let mut child = Command::new(program().map_err(failed)?)
        .arg(ARGUMENT)
        // The token may be there.
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // The terminal's Ctrl-C is for this process.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it has ended already, how it ended says more.
        let _ = stdin.write_all(question).await;
    }
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut said).await.map_err(failed)?;
    }
    let status = child.wait().await.map_err(failed)?;
    serde_json::from_slice(&said).map_err(|_| match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() => format!("the expression took more than {TIME:?}"),
        // It is out of stack or memory.
        _ => format!("the expression could not be computed ({status})"),
    })
}

/// This program, also after it was replaced.
fn program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Is that process.
pub(crate) fn serve() -> io::Result<()> {
    // A system without one of the limits has the others.
    let _ = setrlimit(Resource::As, Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) });
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // The first limit says why it ends the process, the second does not.
    let _ = setrlimit(Resource::Cpu, Rlimit { current: Some(TIME.as_secs()), maximum: Some(TIME.as_secs() + 1) });
    let mut question = Vec::new();
    io::stdin().lock().read_to_end(&mut question)?;
    let question: Question = serde_json::from_slice(&question)?;
    let judgement = match Conditions::compile(&question.done, question.ok.as_deref()) {
        Err((flag, expected)) => Judgement::Unfit(flag.to_owned(), expected),
        Ok(conditions) => match question.body {
            Some(body) => Judgement::Verdict(conditions.judge(body.get())),
            None => Judgement::Fit,
        },
    };
    io::stdout().lock().write_all(&serde_json::to_vec(&judgement)?)
}
