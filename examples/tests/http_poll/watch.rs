//! A watch as a shell starts it, as a real process.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::PATIENCE;

pub(crate) struct Watch {
    process: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    stderr: Receiver<String>,
}

/// How it ended, and all that it has said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<String>,
    pub(crate) stderr: String,
}

/// The program, with nothing of the tester's own environment that might reach the service.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_build_poller"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(proxy);
    }
    command
}

impl Watch {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(program().args(args))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut process = command.spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let (sender, said) = channel();
        let mut stderr = process.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            sender.send(text)
        });
        Self { process, lines, said: Vec::new(), stderr: said }
    }

    /// Reads on until a line that has `wanted` in it.
    pub(crate) fn line(&mut self, wanted: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let _ = self.process.kill();
                panic!("no line with `{wanted}` came; these did: {:#?} {:?}", self.said, self.stderr.recv());
            };
            self.said.push(line.clone());
            if line.contains(wanted) {
                return line;
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.process.id().try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Reads to the end.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.said.push(line);
        }
        if Instant::now() >= deadline {
            let _ = self.process.kill();
            panic!("it did not end; it said: {:#?} {:?}", self.said, self.stderr.recv());
        }
        let status: ExitStatus = self.process.wait().unwrap();
        Ended { code: status.code(), lines: std::mem::take(&mut self.said), stderr: self.stderr.recv().unwrap() }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Ended {
    /// Ended with that code, and nothing on stderr.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (Some(code), ""), "{:#?}", self.lines);
        self
    }

    /// All that it has said, without the times at the start of the lines.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.split_once(" s  ").unwrap_or(("", line)).1).collect()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
    }

    #[track_caller]
    pub(crate) fn says(&self, wanted: &str) {
        assert!(self.lines.iter().any(|line| line.contains(wanted)), "no `{wanted}` in {:#?}", self.lines);
    }

    /// Everything printed.
    pub(crate) fn printed(&self) -> String {
        format!("{}\n{}", self.lines.join("\n"), self.stderr)
    }
}

/// Watches to the end.
pub(crate) fn watched(args: &[&str]) -> Ended {
    Watch::start(args).end()
}
