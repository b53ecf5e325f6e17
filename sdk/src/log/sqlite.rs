//! The embedded durable log, on SQLite.
//!
//! What the pieces do: `schema` opens a connection and refuses what is not a log; `committer` is the one
//! task that writes; `write` is what it does in one transaction; `read` is every look at the log.
//! Below them, `position` is how far it has come.

mod committer;
mod position;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use tokio::sync::{mpsc, oneshot, watch};

use self::committer::{Committer, Message, Writer};
use self::position::position;
use self::read::Readers;
use self::schema::Opener;
use self::write::{Expire, Job};
use super::ext::Wait;
use super::tail::{self, Source};
use super::{Append, Appended, Committed, Log, LogId, Prefix, Seq, Subject, Timestamp};
use crate::env::Env;
use crate::error::Error;
use crate::machine::Wall;

/// How many requests may wait for the committer before callers wait to ask.
const QUEUE: usize = 1024;

/// How many subjects one transaction of an expiry removes.
const EXPIRE_AT_ONCE: usize = 500;

/// How many entries a tail reads at a time.
const PAGE: usize = 512;

/// How long opening waits for others who are opening the same file.
const OPENING: Duration = Duration::from_secs(5);

/// A durable log in one SQLite file; each clone is a handle to it.
///
/// [`Appended::Done`] means that the append was written to the write-ahead log and flushed with `fsync`
/// (`journal_mode = WAL`, `synchronous = FULL`, on macOS `F_FULLFSYNC`): it survives `kill -9`, and also a
/// power loss as far as the disk keeps what it says it has flushed (W6). The file must be on a local disk,
/// since SQLite's write-ahead log does not work over network file systems.
///
/// Appends of concurrent callers are committed in groups of up to 256 by one task. Several processes may
/// have the file open, as a rolling restart does: every decision is made inside the writing transaction,
/// nothing is remembered between two. A tail is woken at once by appends of its own process and looks for
/// those of others every [`poll`](SqliteLogBuilder::poll).
///
/// The file is the log's own. To restore a backup, stop every process that has it open, put the backup
/// in its place (without the `-wal` and `-shm` files of the old one), open it and call
/// [`renew_id`](Log::renew_id) once before the service starts.
///
/// It belongs to the tokio runtime in which it was opened; the last handle or tail to be dropped ends its task.
#[derive(Clone)]
pub struct SqliteLog {
    shared: Arc<Shared>,
}

struct Shared {
    messages: mpsc::Sender<Message>,
    position: watch::Receiver<Timestamp>,
    readers: Readers,
    env: Env,
}

/// Settings of a [`SqliteLog`].
#[derive(Clone, Debug)]
pub struct SqliteLogBuilder {
    path: PathBuf,
    busy_timeout: Duration,
    poll: Duration,
    readers: usize,
    env: Option<Env>,
}

impl SqliteLog {
    /// Opens the log in the file `path`, with the default settings; creates it if there is no such file.
    ///
    /// Needs a tokio runtime, as [`SqliteLogBuilder::open`] does.
    ///
    /// # Errors
    /// Those of [`SqliteLogBuilder::open`].
    ///
    /// # Panics
    /// When it is polled outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future may leave an empty log in the file.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::builder(path).open().await
    }

    /// The settings for the log in the file `path`.
    pub fn builder(path: impl Into<PathBuf>) -> SqliteLogBuilder {
        SqliteLogBuilder {
            path: path.into(),
            busy_timeout: Duration::from_millis(100),
            poll: Duration::from_millis(250),
            readers: 4,
            env: None,
        }
    }

    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Job) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let sent = self.shared.messages.send(Message::Job(job(answer))).await;
        sent.map_err(|_| Error::unavailable("the runtime of the log has ended"))?;
        answered.await.unwrap_or_else(|_| Err(Error::unavailable("the runtime of the log has ended")))
    }
}

impl SqliteLogBuilder {
    /// How long a group of appends waits for another process that is writing before it answers
    /// [`Appended::Busy`]. 100 ms by default.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// How often to look for appends of other processes while there is a tail and nothing else happens.
    /// 250 ms by default; at least 1 ms.
    #[must_use]
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = every.max(Duration::from_millis(1));
        self
    }

    /// How many reads run at the same time. 4 by default; at least 1.
    #[must_use]
    pub fn readers(mut self, count: usize) -> Self {
        self.readers = count.max(1);
        self
    }

    /// Clock and randomness. [`Env::system`] by default.
    #[must_use]
    pub fn env(mut self, env: &Env) -> Self {
        self.env = Some(env.clone());
        self
    }

    /// Opens the log; creates it if there is no such file.
    ///
    /// Needs a tokio runtime with its timer enabled: the log's task runs in the one that polls this future. Tries for 5 s
    /// while others who are opening the same file hold its lock.
    ///
    /// # Errors
    /// - [corrupt](Error::is_corrupt), when the file is not a log of this version: another application's
    ///   database, another schema, a trigger on a table of the log, a head below its entries;
    /// - [invalid](Error::is_invalid), when the path or the file's settings could lose entries: no file on
    ///   disk, no write-ahead log, another text encoding;
    /// - [retryable](Error::is_retryable), when the file could not be opened or is locked.
    ///
    /// # Panics
    /// When it is polled outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future may leave an empty log in the file.
    pub async fn open(self) -> Result<SqliteLog, Error> {
        let env = self.env.unwrap_or_else(Env::system);
        let opener = Opener::new(self.path, self.busy_timeout);
        let give_up = env.instant() + OPENING;
        let mut wait = Wait::new(&env);
        let (connection, position) = loop {
            let (opener, id) = (opener.clone(), LogId::new(env.ulid()));
            let opened = tokio::task::spawn_blocking(move || opener.create_or_open(id)).await;
            match opened.unwrap_or_else(|e| Err(Error::unavailable("opening the log was aborted").with_source(e))) {
                Ok(opened) => break opened,
                Err(e) if e.is_retryable() && schema::is_locked(&e) && env.instant() < give_up => wait.wait().await,
                Err(e) => return Err(e),
            }
        };
        let (messages, received) = mpsc::channel(QUEUE);
        let (tell, position) = watch::channel(position);
        let readers = Readers::new(opener.clone(), self.readers);
        let committer = Committer::new(received, Writer::new(opener, connection, tell), env.clone(), self.poll);
        // Ends with the last handle: nobody has to stop it.
        drop(tokio::runtime::Handle::current().spawn(committer.run()));
        Ok(SqliteLog { shared: Arc::new(Shared { messages, position, readers, env }) })
    }
}

impl Log for SqliteLog {
    fn durable(&self) -> bool {
        true
    }

    /// As of this process's newest look at the file: an id that another process renewed is seen with the
    /// next append, or within [`poll`](SqliteLogBuilder::poll) while there is a tail.
    fn id(&self) -> LogId {
        self.shared.position.borrow().log
    }

    async fn renew_id(&self) -> Result<LogId, Error> {
        let id = LogId::new(self.shared.env.ulid());
        self.ask(|answer| Job::renew(id, answer)).await
    }

    async fn append(&self, append: Append) -> Appended {
        if let Err(invalid) = append.validate() {
            return Appended::Invalid(invalid);
        }
        let (answer, answered) = oneshot::channel();
        if self.shared.messages.send(Message::Job(Job::append(append, answer))).await.is_err() {
            return Appended::Busy;
        }
        answered.await.unwrap_or(Appended::Unknown)
    }

    async fn head(&self, subject: &Subject) -> Result<Option<Seq>, Error> {
        let subject = subject.clone();
        self.shared.readers.with(move |connection| read::head(connection, &subject)).await
    }

    async fn head_of_log(&self) -> Result<Seq, Error> {
        Ok(self.shared.readers.with(|connection| position(connection)).await?.seq)
    }

    async fn read(&self, prefix: &Prefix, after: Seq, limit: usize) -> Result<Vec<Committed>, Error> {
        let prefix = prefix.clone();
        self.shared.readers.with(move |connection| read::page(connection, &prefix, after, limit)).await
    }

    fn tail(&self, prefix: &Prefix, after: Seq) -> impl Stream<Item = Committed> + Send + Unpin + 'static {
        let shared = &self.shared;
        let tail = tail::tail(Arc::clone(shared), shared.position.clone(), shared.env.clone(), prefix.clone(), after);
        // A full queue is news enough: the committer asks for watchers each time round.
        let _ = shared.messages.try_send(Message::Watched);
        tail
    }

    async fn expire(&self, prefix: &Prefix, before: Wall) -> Result<u64, Error> {
        let (mut expired, mut from) = (0, None);
        loop {
            let prefix = prefix.clone();
            let look =
                move |connection: &mut _| read::expirable(connection, &prefix, before, from.as_ref(), EXPIRE_AT_ONCE);
            let subjects = self.shared.readers.with(look).await?;
            if subjects.is_empty() {
                return Ok(expired);
            }
            from = subjects.last().cloned();
            expired += self.ask(|answer| Job::expire(Expire { subjects, before }, answer)).await?;
        }
    }
}

impl Source for Arc<Shared> {
    async fn follow(&self, prefix: &Prefix, after: Seq) -> Result<Vec<Committed>, Error> {
        let prefix = prefix.clone();
        self.readers.with(move |connection| read::follow(connection, &prefix, after, PAGE)).await
    }
}

impl fmt::Debug for SqliteLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = *self.shared.position.borrow();
        f.debug_struct("SqliteLog").field("id", &position.log).field("seq", &position.seq).finish_non_exhaustive()
    }
}
