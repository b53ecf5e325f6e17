//! One group of requests, one transaction.

use std::collections::BTreeMap;

use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::position::position;
use super::read;
use crate::error::{Error, ErrorKind};
use crate::log::{Append, Appended, Expect, LogId, Seq, Subject, Timestamp};
use crate::machine::Wall;

/// A request to write, with the way back to who asked and what to say there once the group is committed.
#[derive(Debug)]
pub(super) enum Job {
    Append { append: Append, answer: oneshot::Sender<Appended>, outcome: Appended },
    Expire { expire: Expire, answer: oneshot::Sender<Result<u64, Error>>, outcome: u64 },
    Renew { id: LogId, answer: oneshot::Sender<Result<LogId, Error>> },
}

/// Subjects to remove, of those whose every entry is older than `before`.
#[derive(Debug)]
pub(super) struct Expire {
    pub(super) subjects: Vec<Subject>,
    pub(super) before: Wall,
}

/// Why a whole group came to nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// Another connection holds the write lock; nothing was written and the connection is fine.
    Locked,
    /// There is no connection, and none could be opened.
    Unopened,
    /// Nothing was written; the connection may be broken.
    Undone(rusqlite::Error),
    /// The commit failed: it may have been written.
    Ambiguous(rusqlite::Error),
}

impl Job {
    pub(super) const fn append(append: Append, answer: oneshot::Sender<Appended>) -> Self {
        Self::Append { append, answer, outcome: Appended::Busy }
    }

    pub(super) const fn expire(expire: Expire, answer: oneshot::Sender<Result<u64, Error>>) -> Self {
        Self::Expire { expire, answer, outcome: 0 }
    }

    pub(super) const fn renew(id: LogId, answer: oneshot::Sender<Result<LogId, Error>>) -> Self {
        Self::Renew { id, answer }
    }

    /// Whether whoever asked has gone away.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Append { answer, .. } => answer.is_closed(),
            Self::Expire { answer, .. } => answer.is_closed(),
            Self::Renew { answer, .. } => answer.is_closed(),
        }
    }

    /// About how much it adds to a transaction.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Append { append, .. } => append.writes.iter().map(|write| write.body.len()).sum(),
            Self::Expire { .. } | Self::Renew { .. } => 0,
        }
    }

    /// Says what came of it. Whoever no longer listens is not told.
    pub(super) fn settle(self, fault: Option<&Fault>) {
        let refused = match fault {
            None => None,
            Some(Fault::Locked) => Some(Error::unavailable("another process is writing to the log")),
            Some(Fault::Unopened | Fault::Undone(_)) => Some(Error::unavailable("the log could not be written")),
            Some(Fault::Ambiguous(_)) => Some(Error::new(ErrorKind::Indeterminate, "a commit failed")),
        };
        match self {
            Self::Append { answer, outcome, .. } => {
                let outcome = match fault {
                    None => outcome,
                    Some(Fault::Locked | Fault::Unopened | Fault::Undone(_)) => Appended::Busy,
                    Some(Fault::Ambiguous(_)) => Appended::Unknown,
                };
                let _ = answer.send(outcome);
            }
            Self::Expire { answer, outcome, .. } => {
                let _ = answer.send(refused.map_or(Ok(outcome), Err));
            }
            Self::Renew { answer, id } => {
                let _ = answer.send(refused.map_or(Ok(id), Err));
            }
        }
    }
}

/// Does all of `jobs` in one transaction, or nothing of them; gives the position after it.
///
/// Nothing may be answered before it returns: also a conflict is one only if what it conflicts with is committed.
pub(super) fn commit(connection: &mut Connection, jobs: &mut [Job]) -> Result<Timestamp, Fault> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(|e| match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Fault::Locked,
        Some(_) | None => Fault::Undone(e),
    })?;
    let position = Group::perform(&transaction, jobs).map_err(Fault::Undone)?;
    transaction.commit().map_err(Fault::Ambiguous)?;
    Ok(position)
}

struct Group<'c> {
    head: CachedStatement<'c>,
    insert: CachedStatement<'c>,
    position: Timestamp,
}

impl<'c> Group<'c> {
    fn perform(connection: &'c Connection, jobs: &mut [Job]) -> rusqlite::Result<Timestamp> {
        // The only place where a head is known for longer than a moment: this transaction holds the lock.
        let before = position(connection)?;
        let mut group = Self {
            head: connection.prepare_cached(read::HEAD)?,
            insert: connection.prepare_cached(
                "INSERT INTO outlast_entry (seq, subject, remaining, append, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
            position: before,
        };
        for job in jobs {
            match job {
                Job::Append { append, outcome, .. } => *outcome = group.append(append)?,
                Job::Expire { expire: Expire { subjects, before }, outcome, .. } => {
                    *outcome = expire(connection, subjects, *before)?;
                }
                Job::Renew { id, .. } => group.position.log = *id,
            }
        }
        if group.position != before {
            let mut update = connection.prepare_cached("UPDATE outlast_log SET id = ?1, head = ?2")?;
            update.execute(params![group.position.log.ulid().to_bytes(), group.position.seq as i64])?;
        }
        Ok(group.position)
    }

    /// Reads every head before it writes, so that a conflict leaves nothing to undo.
    fn append(&mut self, append: &Append) -> rusqlite::Result<Appended> {
        for write in &append.writes {
            let expected = match write.expect {
                Expect::Absent => None,
                Expect::At(seq) => Some(seq),
                Expect::Any => continue,
            };
            if self.head(&write.subject)? != expected {
                return self.conflict(append);
            }
        }
        let id = append.id.ulid().to_bytes();
        let at = i64::try_from(append.at.millis()).unwrap_or(i64::MAX);
        for (remaining, write) in (0..append.writes.len() as i64).rev().zip(&append.writes) {
            self.position.seq += 1;
            self.insert.execute(params![
                self.position.seq as i64,
                write.subject.as_str(),
                remaining,
                id,
                at,
                &write.body[..]
            ])?;
        }
        Ok(Appended::Done(self.position))
    }

    fn head(&mut self, subject: &Subject) -> rusqlite::Result<Option<Seq>> {
        let head: Option<i64> = self.head.query_row([subject.as_str()], |row| row.get(0)).optional()?;
        Ok(head.map(|seq| seq as u64))
    }

    fn conflict(&mut self, append: &Append) -> rusqlite::Result<Appended> {
        let mut heads = BTreeMap::new();
        for write in &append.writes {
            if !heads.contains_key(&write.subject) {
                heads.insert(write.subject.clone(), self.head(&write.subject)?);
            }
        }
        Ok(Appended::Conflict(heads.into_iter().collect()))
    }
}

fn expire(connection: &Connection, subjects: &[Subject], before: Wall) -> rusqlite::Result<u64> {
    // The subjects were found outside this transaction; one of them may have been written to since.
    let mut delete = connection.prepare_cached(
        "DELETE FROM outlast_entry WHERE subject = ?1 \
         AND NOT EXISTS (SELECT 1 FROM outlast_entry WHERE subject = ?1 AND at >= ?2)",
    )?;
    let before = i64::try_from(before.millis()).unwrap_or(i64::MAX);
    let mut expired = 0;
    for subject in subjects {
        expired += u64::from(delete.execute(params![subject.as_str(), before])? > 0);
    }
    Ok(expired)
}
