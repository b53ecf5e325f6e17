//! The stage: the farm's directory and its processes, and the staged outage of the server.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::build_farm::cli::Role;
use crate::build_farm::display::{Change, Display, Note};
use crate::build_farm::failure::Failure;
use crate::build_farm::lifeline::{DIRECTORY, Notice};
use crate::build_farm::principals::Tokens;
use crate::build_farm::process::Process;

/// How much of what a process said on stderr is shown.
const SAID: usize = 2_000;

/// The running farm.
#[derive(Debug)]
pub(crate) struct Stage {
    directory: TempDir,
    tokens: Tokens,
    server: Option<Process>,
    relay: Option<Process>,
    worker: Option<Process>,
    restarts: u64,
}

impl Stage {
    /// A directory of its own, and nothing in it.
    pub(crate) fn new(tokens: Tokens) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix(DIRECTORY).tempdir()?;
        Ok(Self { directory, tokens, server: None, relay: None, worker: None, restarts: 0 })
    }

    /// Where the farm's files are.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// How often the server came back.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Starts all processes, and says where the relay listens.
    pub(crate) async fn start(&mut self, display: &Display) -> Result<SocketAddr, Failure> {
        let (_, server) = self.start_server().await?;
        let mut relay = self.process(Role::Relay)?;
        let (_, address) = relay.listening().await.map_err(|e| self.blame(Role::Relay, &e.to_string()))?;
        self.relay = Some(relay);
        self.worker = Some(self.process(Role::Worker)?);
        display.show(Change::Note(Note::Started { server, relay: address }));
        Ok(address)
    }

    /// Kills the server with SIGKILL and starts it again, on another port, after `gone`. Says since when it
    /// listens. Returns early only if another process of the farm ends.
    pub(crate) async fn outage(&mut self, gone: Duration, display: &Display) -> Result<Instant, Failure> {
        if let Some(server) = self.server.take() {
            server.kill().await?;
        }
        display.show(Change::Note(Note::ServerKilled { gone }));
        tokio::select! {
            () = sleep(gone) => {}
            failure = self.trouble(display) => return Err(failure),
        }
        let (at, address) = self.start_server().await?;
        self.restarts += 1;
        display.show(Change::Note(Note::ServerBack { server: address }));
        Ok(at)
    }

    /// Passes on what the processes say, until one of them ends: why.
    pub(crate) async fn trouble(&mut self, display: &Display) -> Failure {
        loop {
            let (role, notice) = tokio::select! {
                notice = said(&mut self.server) => (Role::Server, notice),
                notice = said(&mut self.relay) => (Role::Relay, notice),
                notice = said(&mut self.worker) => (Role::Worker, notice),
            };
            match notice {
                Some(Notice::AnswerSwallowed) => display.show(Change::Note(Note::AnswerSwallowed)),
                Some(Notice::Listening(_)) => {}
                None => return self.blame(role, "ended by itself"),
            }
        }
    }

    /// Ends all processes and removes the directory.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        // The worker first: its build writes into the directory.
        for process in [self.worker, self.relay, self.server].into_iter().flatten() {
            process.end().await?;
        }
        Ok(self.directory.close()?)
    }

    async fn start_server(&mut self) -> Result<(Instant, SocketAddr), Failure> {
        let mut server = self.process(Role::Server)?;
        let listening = server.listening().await.map_err(|e| self.blame(Role::Server, &e.to_string()))?;
        self.server = Some(server);
        Ok(listening)
    }

    fn process(&self, role: Role) -> Result<Process, Failure> {
        Ok(Process::start(role, self.directory(), &self.tokens)?)
    }

    fn blame(&self, role: Role, what: &str) -> Failure {
        let log = std::fs::read_to_string(Process::log(role, self.directory())).unwrap_or_default();
        let log = log.trim();
        let start = log.char_indices().map(|(i, _)| i).find(|i| log.len() - i <= SAID).unwrap_or(log.len());
        Failure::Process { what: format!("the {} {what}", role.name()), said: log[start..].to_owned() }
    }
}

/// The next thing that a process says; never, if it is not running on purpose.
async fn said(process: &mut Option<Process>) -> Option<Notice> {
    match process {
        Some(process) => process.notice().await.map(|(_, notice)| notice),
        None => std::future::pending().await,
    }
}
