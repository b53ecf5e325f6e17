//! A log in memory: a pure store, and a handle to one that several tasks share.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::Stream;
use tokio::sync::watch;

use super::tail::{self, Source};
use super::{Append, AppendId, Appended, Committed, Entry, Expect, Log, LogId, Prefix, Seq, Subject, Timestamp};
use crate::env::Env;
use crate::error::Error;
use crate::machine::Wall;

/// How many entries a tail takes from the store at a time.
const PAGE: usize = 256;

/// A whole log as a value: no clock, no lock, no task.
///
/// Two stores that have the same history are equal, so a model checker can hold one in its state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    id: LogId,
    head: Seq,
    entries: BTreeMap<Seq, Stored>,
    subjects: BTreeMap<Subject, Vec<Seq>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stored {
    subject: Subject,
    append: AppendId,
    at: Wall,
    body: Bytes,
    /// How many entries of the same append follow this one.
    left: u64,
}

impl Store {
    /// An empty history of that id.
    pub const fn new(id: LogId) -> Self {
        Self { id, head: 0, entries: BTreeMap::new(), subjects: BTreeMap::new() }
    }

    /// The id of this history.
    pub const fn id(&self) -> LogId {
        self.id
    }

    /// Gives the history another id.
    pub const fn set_id(&mut self, id: LogId) {
        self.id = id;
    }

    /// Appends all of `append` or nothing of it: [`Appended::Done`], [`Appended::Conflict`] or [`Appended::Invalid`].
    pub fn append(&mut self, append: &Append) -> Appended {
        if let Err(invalid) = append.validate() {
            return Appended::Invalid(invalid);
        }
        let met = append.writes.iter().all(|write| match write.expect {
            Expect::Absent => self.head(&write.subject).is_none(),
            Expect::At(seq) => self.head(&write.subject) == Some(seq),
            Expect::Any => true,
        });
        if !met {
            let heads: BTreeMap<_, _> =
                append.writes.iter().map(|write| (write.subject.clone(), self.head(&write.subject))).collect();
            return Appended::Conflict(heads.into_iter().collect());
        }
        let at = Wall::from_millis(append.at.millis());
        for (left, write) in (0..append.writes.len() as u64).rev().zip(&append.writes) {
            self.head += 1;
            let (subject, body) = (write.subject.clone(), write.body.clone());
            self.subjects.entry(subject.clone()).or_default().push(self.head);
            self.entries.insert(self.head, Stored { subject, append: append.id, at, body, left });
        }
        Appended::Done(Timestamp { log: self.id, seq: self.head })
    }

    /// The sequence of the newest entry of `subject`.
    pub fn head(&self, subject: &Subject) -> Option<Seq> {
        self.subjects.get(subject).and_then(|seqs| seqs.last()).copied()
    }

    /// The sequence of the newest append; 0 for an empty log.
    pub const fn head_of_log(&self) -> Seq {
        self.head
    }

    /// What [`Log::read`] gives.
    pub fn read(&self, prefix: &Prefix, after: Seq, limit: usize) -> Vec<Committed> {
        self.page(prefix, after, limit).0
    }

    /// What [`Log::tail`] gives next after `after`: about `limit` entries, and how far it has come if nothing is left.
    pub fn follow(&self, prefix: &Prefix, after: Seq, limit: usize) -> Vec<Committed> {
        let (mut page, more) = self.page(prefix, after, limit);
        let through = page.last().map_or(after, |last| last.through);
        if !more && through < self.head {
            page.push(Committed::new(self.head, Vec::new()));
        }
        page
    }

    /// Removes whole subjects under `prefix` whose every entry is older than `before`, and returns how many.
    pub fn expire(&mut self, prefix: &Prefix, before: Wall) -> u64 {
        let Self { subjects, entries, .. } = self;
        let count = subjects.len();
        subjects.retain(|subject, seqs| {
            let old = prefix.selects(subject)
                && seqs.iter().all(|seq| entries.get(seq).is_none_or(|stored| stored.at < before));
            if old {
                for seq in seqs {
                    entries.remove(seq);
                }
            }
            !old
        });
        (count - subjects.len()) as u64
    }

    /// A page of whole appends, and whether more follow.
    fn page(&self, prefix: &Prefix, after: Seq, limit: usize) -> (Vec<Committed>, bool) {
        let first = after.saturating_add(1);
        match prefix.only() {
            Some(subject) => {
                let seqs = self.subjects.get(&subject).map_or(&[][..], Vec::as_slice);
                let newer = &seqs[seqs.partition_point(|seq| *seq < first)..];
                gather(newer.iter().filter_map(|seq| self.entries.get_key_value(seq)), limit)
            }
            None => gather(self.entries.range(first..).filter(|(_, stored)| prefix.selects(&stored.subject)), limit),
        }
    }
}

fn gather<'a>(entries: impl Iterator<Item = (&'a Seq, &'a Stored)>, limit: usize) -> (Vec<Committed>, bool) {
    let mut page: Vec<Committed> = Vec::new();
    for (count, (seq, stored)) in entries.enumerate() {
        let through = seq + stored.left;
        let entry = Entry::new(*seq, stored.subject.clone(), stored.append, stored.at, stored.body.clone());
        match page.last_mut() {
            Some(last) if last.through == through => last.entries.push(entry),
            Some(_) if count >= limit.max(1) => return (page, true),
            Some(_) | None => page.push(Committed::new(through, vec![entry])),
        }
    }
    (page, false)
}

/// A log that lives as long as its handles; each clone is a handle to the same history.
#[derive(Clone)]
pub struct MemoryLog {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    durable: bool,
    store: Mutex<Store>,
    position: watch::Sender<Timestamp>,
}

impl MemoryLog {
    /// An empty log with an id of its own, which is gone with the process and says so.
    pub fn new(env: &Env) -> Self {
        Self::from_store(Store::new(LogId::new(env.ulid())), env, false)
    }

    /// An empty log that calls itself durable.
    ///
    /// For simulations: the simulated server dies, the log outlives it in the test's own hands.
    pub fn declared_durable(env: &Env) -> Self {
        Self::from_store(Store::new(LogId::new(env.ulid())), env, true)
    }

    /// A log that goes on from `store`, for example a "restored backup".
    pub fn from_store(store: Store, env: &Env, durable: bool) -> Self {
        let position = watch::Sender::new(Timestamp { log: store.id(), seq: store.head_of_log() });
        Self { shared: Arc::new(Shared { env: env.clone(), durable, store: Mutex::new(store), position }) }
    }

    /// The whole history as it is now.
    pub fn store(&self) -> Store {
        self.shared.lock().clone()
    }
}

impl Default for MemoryLog {
    /// [`MemoryLog::new`] with [`Env::system`].
    fn default() -> Self {
        Self::new(&Env::system())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Store> {
        // A panic elsewhere cannot leave the store half changed in a way that the next reader would mind.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for MemoryLog {
    fn durable(&self) -> bool {
        self.shared.durable
    }

    fn id(&self) -> LogId {
        self.shared.lock().id()
    }

    async fn renew_id(&self) -> Result<LogId, Error> {
        let id = LogId::new(self.shared.env.ulid());
        self.shared.lock().set_id(id);
        Ok(id)
    }

    async fn append(&self, append: Append) -> Appended {
        let appended = self.shared.lock().append(&append);
        if let Appended::Done(timestamp) = appended {
            // Two appenders may get here in the other order: a tail is only told to look.
            self.shared.position.send_if_modified(|position| {
                let newer = position.seq < timestamp.seq;
                if newer {
                    *position = timestamp;
                }
                newer
            });
        }
        appended
    }

    async fn head(&self, subject: &Subject) -> Result<Option<Seq>, Error> {
        Ok(self.shared.lock().head(subject))
    }

    async fn head_of_log(&self) -> Result<Seq, Error> {
        Ok(self.shared.lock().head_of_log())
    }

    async fn read(&self, prefix: &Prefix, after: Seq, limit: usize) -> Result<Vec<Committed>, Error> {
        Ok(self.shared.lock().read(prefix, after, limit))
    }

    fn tail(&self, prefix: &Prefix, after: Seq) -> impl Stream<Item = Committed> + Send + Unpin + 'static {
        let shared = &self.shared;
        tail::tail(Arc::clone(shared), shared.position.subscribe(), shared.env.clone(), prefix.clone(), after)
    }

    async fn expire(&self, prefix: &Prefix, before: Wall) -> Result<u64, Error> {
        Ok(self.shared.lock().expire(prefix, before))
    }
}

impl Source for Arc<Shared> {
    async fn follow(&self, prefix: &Prefix, after: Seq) -> Result<Vec<Committed>, Error> {
        Ok(self.lock().follow(prefix, after, PAGE))
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.shared.lock();
        f.debug_struct("MemoryLog")
            .field("id", &store.id())
            .field("head", &store.head_of_log())
            .field("durable", &self.shared.durable)
            .finish_non_exhaustive()
    }
}
