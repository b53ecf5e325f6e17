//! The one task that writes: it takes what has come in, commits it as a group, answers, and looks again.

use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, watch};

use super::position::position;
use super::schema::Opener;
use super::write::{self, Fault, Job};
use crate::env::Env;
use crate::log::Timestamp;

/// The most requests of one transaction.
const GROUP: usize = 256;

/// The bodies of one transaction, in bytes, after which a group is closed: 16 MiB.
const GROUP_BYTES: usize = 16 << 20;

/// What reaches the committer.
#[derive(Debug)]
pub(super) enum Message {
    /// Something to write.
    Job(Job),
    /// Somebody began to follow the log.
    Watched,
}

/// Owns the writing connection. Lives until the last sender of messages is gone.
pub(super) struct Committer {
    messages: mpsc::Receiver<Message>,
    received: Vec<Message>,
    writer: Option<Writer>,
    env: Env,
    poll: Duration,
}

/// What goes to the blocking thread and comes back.
pub(super) struct Writer {
    opener: Opener,
    /// `None` after a failure: the next group opens another.
    connection: Option<Connection>,
    position: watch::Sender<Timestamp>,
}

impl Committer {
    pub(super) fn new(messages: mpsc::Receiver<Message>, writer: Writer, env: Env, poll: Duration) -> Self {
        Self { messages, received: Vec::with_capacity(GROUP), writer: Some(writer), env, poll }
    }

    pub(super) async fn run(mut self) {
        loop {
            let Some(mut jobs) = self.next_group().await else { break };
            let Some(mut writer) = self.writer.take() else { break };
            let worked = tokio::task::spawn_blocking(move || {
                let fault = writer.work(&mut jobs);
                (writer, jobs, fault)
            });
            // Without the writer nothing can be written: the callers of a lost group get `Unknown`, later ones `Busy`.
            let Ok((writer, jobs, fault)) = worked.await else { break };
            self.writer = Some(writer);
            jobs.into_iter().for_each(|job| job.settle(fault.as_ref()));
        }
        // Closing the last connection writes the log back into the file, which may take a moment.
        let writer = self.writer.take();
        drop(tokio::task::spawn_blocking(move || drop(writer)));
    }

    /// The next requests to commit together; empty when it is time to look for appends of other processes;
    /// `None` when nobody is left to ask.
    pub(super) async fn next_group(&mut self) -> Option<Vec<Job>> {
        loop {
            let jobs = self.group();
            if !jobs.is_empty() {
                return Some(jobs);
            }
            // The handle holds one receiver, each tail one more.
            let watched = self.writer.as_ref().is_some_and(|writer| writer.position.receiver_count() > 1);
            let look = watched.then(|| self.env.instant() + self.poll);
            tokio::select! {
                // What is asked comes before a look: under load the commits tell the position anyway.
                biased;
                count = self.messages.recv_many(&mut self.received, GROUP) => {
                    if count == 0 {
                        return None;
                    }
                }
                () = self.env.sleep_until(look) => return Some(Vec::new()),
            }
        }
    }

    /// From what was received, as much as one transaction takes.
    fn group(&mut self) -> Vec<Job> {
        let (mut count, mut bytes) = (0, 0);
        for message in &self.received {
            if let Message::Job(job) = message {
                bytes += job.bytes();
                if count > 0 && bytes > GROUP_BYTES {
                    break;
                }
            }
            count += 1;
        }
        let group = self.received.drain(..count).filter_map(|message| match message {
            // Who has gone away left it open whether it is done; it is not.
            Message::Job(job) if job.is_abandoned() => None,
            Message::Job(job) => Some(job),
            Message::Watched => None,
        });
        group.collect()
    }
}

impl Writer {
    pub(super) fn new(opener: Opener, connection: Connection, position: watch::Sender<Timestamp>) -> Self {
        Self { opener, connection: Some(connection), position }
    }

    /// Commits `jobs`, or looks if there are none; says why they came to nothing, if they did. Blocks.
    pub(super) fn work(&mut self, jobs: &mut [Job]) -> Option<Fault> {
        if jobs.is_empty() {
            self.look();
            return None;
        }
        self.commit(jobs)
    }

    fn commit(&mut self, jobs: &mut [Job]) -> Option<Fault> {
        let committed = match self.connection() {
            Some(connection) => write::commit(connection, jobs),
            None => Err(Fault::Unopened),
        };
        match committed {
            Ok(position) => {
                // Before the answers: whoever has one sees the log's id and head as of it.
                self.tell(position);
                None
            }
            Err(fault) => {
                match &fault {
                    Fault::Locked | Fault::Unopened => tracing::debug!(?fault, "nothing could be written"),
                    Fault::Undone(error) => {
                        tracing::warn!(%error, "nothing could be written; the log is opened again");
                        self.connection = None;
                    }
                    Fault::Ambiguous(error) => {
                        tracing::warn!(%error, "a commit failed, which leaves it open; the log is opened again");
                        self.connection = None;
                    }
                }
                Some(fault)
            }
        }
    }

    /// For what other processes have appended.
    fn look(&mut self) {
        match self.connection().map(|connection| position(connection)) {
            None => {}
            Some(Ok(position)) => self.tell(position),
            Some(Err(error)) => {
                tracing::warn!(%error, "the log could not be read and is opened again");
                self.connection = None;
            }
        }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        if self.connection.is_none() {
            match self.opener.reopen() {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => tracing::warn!(%error, "the log could not be opened again"),
            }
        }
        self.connection.as_mut()
    }

    fn tell(&self, position: Timestamp) {
        self.position.send_if_modified(|known| std::mem::replace(known, position) != position);
    }
}
