//! Who is told when a command's record changes, wherever the change was appended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::record::KeyRecord;
use crate::log::{Entry, Subject};
use crate::wire::{CallId, CommandReport, Refused};

/// What a call's connection is told.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The answer to a request.
    Report(CommandReport),
    /// The answer to a request.
    Refused(Refused),
    /// The record has changed since. It may come before the answer.
    News(CommandReport),
}

/// Where the answers of one open call go.
///
/// The channel is unbounded; what is in it is not: a connection's open calls are limited, and a
/// command has at most four statuses.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) call: CallId,
    /// Tells this opening of the call id from an earlier one.
    pub(crate) token: u64,
    pub(crate) to: mpsc::UnboundedSender<(CallId, u64, Answer)>,
}

impl Reply {
    /// Tells; nobody listens after the connection has ended.
    pub(crate) fn tell(&self, answer: Answer) {
        let _ = self.to.send((self.call, self.token, answer));
    }
}

/// The records that somebody watches.
///
/// Watch first, then load, then answer: so no change falls between the record and its watch.
#[derive(Debug, Default)]
pub(crate) struct KeyWatch {
    nodes: Mutex<HashMap<Subject, Node>>,
}

#[derive(Debug, Default)]
struct Node {
    record: Option<KeyRecord>,
    /// What the tail brought before the record was loaded.
    early: Vec<Entry>,
    watchers: Vec<(u64, Reply)>,
    next: u64,
}

/// Ends one watch when dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    watch: Arc<KeyWatch>,
    subject: Subject,
    id: u64,
}

impl KeyWatch {
    /// Tells `reply` of every change of the record of `subject` from now on.
    pub(crate) fn watch(self: &Arc<Self>, subject: Subject, reply: Reply) -> Watched {
        let mut nodes = self.lock();
        let node = nodes.entry(subject.clone()).or_default();
        node.next += 1;
        node.watchers.push((node.next, reply));
        Watched { watch: Arc::clone(self), subject, id: node.next }
    }

    /// The record as it was loaded or written.
    pub(crate) fn seed(&self, subject: &Subject, record: &KeyRecord) {
        if let Some(node) = self.lock().get_mut(subject) {
            if node.record.as_ref().is_none_or(|known| known.head < record.head) {
                node.record = Some(record.clone());
                node.news();
            }
            for entry in std::mem::take(&mut node.early) {
                node.take(&entry);
            }
        }
    }

    /// An entry that was appended by anybody.
    pub(crate) fn appended(&self, entry: Entry) {
        if let Some(node) = self.lock().get_mut(&entry.subject) {
            match node.record {
                Some(_) => node.take(&entry),
                None => node.early.push(entry),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Subject, Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

impl Node {
    fn take(&mut self, entry: &Entry) {
        if self.record.as_ref().is_some_and(|known| known.head >= entry.seq) {
            return;
        }
        match KeyRecord::fold(self.record.clone(), entry) {
            Ok(record) => {
                self.record = record;
                self.news();
            }
            Err(e) => tracing::error!(error = %e, "a key's record cannot be read"),
        }
    }

    fn news(&self) {
        if let Some(record) = &self.record {
            for (_, reply) in &self.watchers {
                reply.tell(Answer::News(record.report()));
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut nodes = self.watch.lock();
        if let Some(node) = nodes.get_mut(&self.subject) {
            node.watchers.retain(|(id, _)| *id != self.id);
            if node.watchers.is_empty() {
                nodes.remove(&self.subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::AppendId;
    use crate::machine::Wall;
    use crate::wire::CommandStatus;

    fn entry(seq: u64, body: &str) -> Entry {
        let subject = Subject::of(["key", "alice", "k"]);
        Entry::new(seq, subject, AppendId::new(Default::default()), Wall::default(), body.to_owned().into())
    }

    const ACCEPTED: &str = r#"{"k":"accepted","method":"m","level":"minted","minted":1,
        "fingerprint":"0000000000000000000000000000000000000000000000000000000000000000",
        "id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}"#;

    /// W3: no change is lost between the watch, the load and the tail, in whatever order they come.
    #[test]
    fn w3_no_change_falls_between_load_and_tail() {
        let entries = [entry(1, ACCEPTED), entry(2, r#"{"k":"started"}"#), entry(3, r#"{"k":"cancel_requested"}"#)];
        for loaded in 1..=3 {
            for seeded_after in 0..=3 {
                let watch = Arc::new(KeyWatch::default());
                let (to, mut told) = mpsc::unbounded_channel();
                let watched = watch.watch(entries[0].subject.clone(), Reply { call: 7, token: 1, to });
                let record =
                    entries[..loaded].iter().fold(None, |r, entry| KeyRecord::fold(r, entry).unwrap()).unwrap();
                for (n, entry) in entries.iter().enumerate() {
                    if n == seeded_after {
                        watch.seed(&entry.subject, &record);
                    }
                    watch.appended(entry.clone());
                }
                watch.seed(&entries[0].subject, &record);
                let mut news = Vec::new();
                while let Ok((7, 1, Answer::News(report))) = told.try_recv() {
                    news.push(report);
                }
                assert!(news.is_sorted_by_key(|report| report.at), "forward only");
                let last = news.last().unwrap();
                assert_eq!((last.status, last.at, last.accepted), (CommandStatus::CancelRequested, 3, 1));
                drop(watched);
                assert!(watch.is_empty());
            }
        }
    }
}
