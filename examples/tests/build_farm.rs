//! The main job, with real processes: a build survives its server, and nothing is left behind.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than any of the stories takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

/// The poller as a shell starts it: in a process group of its own, which gets the terminal's Ctrl-C.
struct Run {
    poller: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    /// Everything that the poller leaves behind would be here, and every process of its farm has it in its
    /// environment.
    directory: TempDir,
}

impl Run {
    fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, |_| {})
    }

    fn start_with(arguments: &[&str], prepare: impl FnOnce(&mut Command)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_build_poller"));
        command.args(arguments).env("TMPDIR", directory.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut poller = command.spawn().unwrap();
        let stdout = BufReader::new(poller.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { poller, lines, seen: Vec::new(), directory }
    }

    /// Reads on until a line that is wanted.
    fn line(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) else {
                let said = self.said();
                panic!("no such line came; these did: {:#?}\n{said}", self.seen);
            };
            self.seen.push(line.clone());
            if wanted(&line) {
                return line;
            }
        }
    }

    fn event(&mut self, name: &str) -> Value {
        let line = self.line(|line| json(line)["event"] == name);
        json(&line)
    }

    /// Reads to the end: how it ended. Nothing may be left then.
    fn end(&mut self) -> ExitStatus {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push(line);
        }
        let status = self.poller.wait().unwrap();
        let left = processes(self.directory.path());
        assert!(left.is_empty(), "still running: {left:?}");
        let left: Vec<_> = self.directory.path().read_dir().unwrap().map(Result::unwrap).collect();
        assert!(left.is_empty(), "lying about: {left:?}");
        status
    }

    /// Ends as expected; returns the last line.
    fn ends_with(&mut self, code: i32) -> String {
        let status = self.end();
        let said = self.said();
        assert_eq!(status.code(), Some(code), "{status}; {:#?}\n{said}", self.seen);
        self.seen.last().cloned().unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        let group = Pid::from_raw(self.poller.id().try_into().unwrap()).unwrap();
        kill_process_group(group, signal).unwrap();
    }

    /// What it said on stderr; ends it first.
    fn said(&mut self) -> String {
        let _ = self.poller.kill();
        let mut said = String::new();
        let _ = self.poller.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
        said
    }
}

impl Drop for Run {
    /// A test that fails leaves nothing either: the farm notices the poller's end.
    fn drop(&mut self) {
        let _ = self.poller.kill();
        let _ = self.poller.wait();
    }
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// The processes that have `marker` in their environment.
fn processes(marker: &Path) -> Vec<String> {
    let marker = marker.to_str().unwrap().as_bytes();
    let marked = |environment: &[u8]| environment.windows(marker.len()).any(|window| window == marker);
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|process| std::fs::read(process.join("environ")).is_ok_and(|environment| marked(&environment)))
        .map(|process| {
            let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
            format!("{}: {}", process.display(), String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// The main job as the README starts it (R1, R5, R8, W1, W3, W4, W6, S1): the only server is killed in mid-build
/// and comes back elsewhere after 12 s, the answer to the submit was lost before, and the verdict is the build's own.
#[test]
fn a_build_survives_its_server() {
    let mut run = Run::start(&["--json"]);
    let last = run.ends_with(0);
    let fresh_again = json(&last)["fresh_again_ms"].as_u64().unwrap();
    assert_eq!(
        last,
        format!(
            r#"{{"verdict":"succeeded","executions":1,"read_errors":0,"server_restarts":1,"went_stale":true,"fresh_again_ms":{fresh_again}}}"#
        )
    );
    assert!(fresh_again < 5_000, "{fresh_again} ms");

    let seen: Vec<Value> = run.seen.iter().map(|line| json(line)).collect();
    let find = |wanted: &dyn Fn(&Value) -> bool| {
        let at = seen.iter().position(wanted);
        at.unwrap_or_else(|| panic!("{:#?}", run.seen))
    };
    let started = find(&|line| line["event"] == "started");
    let swallowed = find(&|line| line["event"] == "answer_swallowed");
    let accepted = find(&|line| line["delivery"] == "accepted");
    let killed = find(&|line| line["event"] == "server_killed");
    let stale = find(&|line| line["freshness"] == "stale");
    let back = find(&|line| line["event"] == "server_back");
    assert!(swallowed < accepted, "accepted by the resend");
    assert!(accepted < killed && killed < back && stale < back);
    assert_eq!(seen[stale]["status"], "running", "in mid-build, and the last value is still there");
    assert_ne!(seen[started]["server"], seen[back]["server"], "another port");
    assert!(seen[back..].iter().any(|line| line["freshness"] == "fresh" && line["status"] == "running"));
    let mut commands = seen.iter().filter(|line| line["event"] == "command");
    assert_eq!(commands.next_back().unwrap()["status"], "SUCCEEDED");
}

/// A failed build is told from everything else that can fail. Without a terminal and `--json`: plain lines.
#[test]
fn a_failed_build_is_a_verdict() {
    let mut run = Run::start(&["--fail", "--outage", "2s", "--checks", "9", "--pace", "400ms", "--kill-after", "4"]);
    let last = run.ends_with(1);
    assert!(last.contains("verdict: failed; started 1 time(s), 1 server restart(s), 0 read error(s)"), "{last}");
    let text = run.seen.join("\n");
    assert!(text.contains("the build ended with exit status: 1") && text.contains("check 9/9"), "{text}");
    assert!(!text.contains('\x1b'), "no escape sequences in a pipe");
}

/// W5: Ctrl-C cancels the build through its handle; `CANCELED` means that the build has stopped.
#[test]
fn w5_ctrl_c_cancels_the_build() {
    let mut run = Run::start(&["--json", "--checks", "40", "--kill-after", "1000"]);
    run.line(|line| json(line)["status"] == "running" && json(line)["lines"].as_u64() >= Some(3));
    run.signal(Signal::INT);
    run.event("canceling");
    let last = run.ends_with(6);
    assert!(last.starts_with(r#"{"verdict":"canceled","executions":1,"read_errors":0,"server_restarts":0"#), "{last}");
}

/// W5: a cancel in the outage is delivered once the server is back.
#[test]
fn w5_ctrl_c_in_the_outage_cancels_when_the_server_is_back() {
    let mut run = Run::start(&["--json", "--checks", "120", "--pace", "300ms", "--outage", "3s"]);
    run.event("server_killed");
    run.signal(Signal::INT);
    run.event("canceling");
    run.event("server_back");
    let canceled = run.line(|line| json(line)["status"] == "CANCELED");
    assert_eq!(json(&canceled)["event"], "command");
    let last = run.ends_with(6);
    assert!(last.starts_with(r#"{"verdict":"canceled","executions":1,"read_errors":0,"server_restarts":1"#), "{last}");
}

/// A second Ctrl-C ends everything at once, whatever is pending.
#[test]
fn a_second_ctrl_c_ends_everything() {
    let mut run = Run::start(&["--json", "--checks", "120", "--pace", "300ms", "--outage", "600s"]);
    run.event("server_killed");
    run.signal(Signal::INT);
    run.event("canceling");
    run.signal(Signal::INT);
    run.ends_with(130);
}

/// The farm notices the loss of the poller, however it was lost, and takes everything with it.
#[test]
fn nothing_outlives_a_killed_poller() {
    let mut run = Run::start(&["--json", "--checks", "40", "--kill-after", "1000"]);
    run.line(|line| json(line)["status"] == "running" && json(line)["lines"].as_u64() >= Some(3));
    assert!(processes(run.directory.path()).len() >= 5, "the poller, three processes and the build");
    run.signal(Signal::KILL);
    assert_eq!(run.poller.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    // Nobody is left to say when the last one has gone, so it is looked for.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !processes(run.directory.path()).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    run.end();
}

#[test]
fn what_is_not_understood_is_named() {
    let mut run = Run::start(&["--jsno"]);
    assert_eq!(run.end().code(), Some(2));
    let said = run.said();
    assert!(said.starts_with("build_poller: --jsno: no such option"), "{said}");
    assert!(Run::start(&["--help"]).ends_with(0).contains("130"));
}

/// A missing compiler is no verdict on the build.
#[test]
fn a_missing_compiler_is_named() {
    let mut run = Run::start_with(&["--json"], |command| {
        command.env_remove("RUSTC").env("PATH", "/nowhere");
    });
    assert_eq!(run.end().code(), Some(3));
    let said = run.said();
    assert!(said.contains("`rustc` could not be run") && said.contains("https://rustup.rs"), "{said}");
}
