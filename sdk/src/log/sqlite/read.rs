//! Every look at the log: a few connections that only read, each look a consistent snapshot.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Rows, params};
use tokio::sync::Semaphore;

use super::position::{position, ulid};
use super::schema::Opener;
use crate::error::Error;
use crate::log::{AppendId, Committed, Entry, Prefix, Seq, Subject};
use crate::machine::Wall;

/// The newest sequence of a subject.
pub(super) const HEAD: &str = "SELECT seq FROM outlast_entry WHERE subject = ?1 ORDER BY seq DESC LIMIT 1";

/// The first entries of a prefix: the index finds them, a scan would read everything before them.
pub(super) const SELECTED: &str = "SELECT seq, subject, remaining, append, at, body FROM outlast_entry WHERE seq IN (\
     SELECT seq FROM (\
     SELECT seq FROM outlast_entry WHERE subject = ?2 AND seq > ?1 \
     UNION ALL SELECT seq FROM outlast_entry WHERE subject >= ?3 AND subject < ?4 AND seq > ?1\
     ) ORDER BY seq LIMIT ?5) \
     ORDER BY seq";

/// The entries of one subject.
pub(super) const OF_ONE: &str = "SELECT seq, subject, remaining, append, at, body FROM outlast_entry \
     WHERE subject = ?3 AND seq > ?1 AND seq <= ?2 ORDER BY seq";

/// The entries of a prefix in the order of the log. The unary plus keeps SQLite from the index on subjects,
/// whose order is another.
pub(super) const IN_ORDER: &str = "SELECT seq, subject, remaining, append, at, body FROM outlast_entry \
     WHERE seq > ?1 AND seq <= ?2 AND (+subject = ?3 OR (+subject >= ?4 AND +subject < ?5)) ORDER BY seq";

/// Connections that read, opened when needed and kept.
pub(super) struct Readers {
    opener: Opener,
    permits: Semaphore,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(opener: Opener, count: usize) -> Self {
        Self { opener, permits: Semaphore::new(count), idle: Arc::default() }
    }

    /// Runs `look` on a connection, on a thread that may block.
    pub(super) async fn with<T, F>(&self, look: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let ended = |e| Error::unavailable("the runtime of the log has ended").with_source(e);
        let _permit = self.permits.acquire().await.map_err(ended)?;
        let (opener, idle) = (self.opener.clone(), Arc::clone(&self.idle));
        let looked = tokio::task::spawn_blocking(move || {
            let kept = lock(&idle).pop();
            let mut connection = match kept {
                Some(connection) => connection,
                None => opener.open_reader()?,
            };
            // After a failure the connection is not kept: the next look opens another.
            let found = look(&mut connection).map_err(|e| opener.error(e))?;
            lock(&idle).push(connection);
            Ok(found)
        });
        looked.await.unwrap_or_else(|e| Err(Error::unavailable("a look at the log was aborted").with_source(e)))
    }
}

fn lock(idle: &Mutex<Vec<Connection>>) -> MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn head(connection: &Connection, subject: &Subject) -> rusqlite::Result<Option<Seq>> {
    let mut statement = connection.prepare_cached(HEAD)?;
    let head: Option<i64> = statement.query_row([subject.as_str()], |row| row.get(0)).optional()?;
    Ok(head.map(|seq| seq as u64))
}

/// What `Log::read` gives.
pub(super) fn page(
    connection: &mut Connection,
    prefix: &Prefix,
    after: Seq,
    limit: usize,
) -> rusqlite::Result<Vec<Committed>> {
    let snapshot = connection.transaction()?;
    let limit = limit.max(1);
    if prefix.only().is_some() || prefix.is_all() {
        return Ok(scan(&snapshot, prefix, after, Seq::MAX, limit)?.0);
    }
    let (below, beyond) = bounds(prefix);
    let mut statement = snapshot.prepare_cached(SELECTED)?;
    let at_most = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query(params![signed(after), prefix.as_str(), below, beyond, at_most])?;
    let mut page = Page::default();
    page.take(rows, prefix, usize::MAX)?;
    // The page may end inside an append; the rest of it has at most so many sequences.
    if let Some((seq, through)) = page.end().filter(|(seq, through)| seq < through) {
        let (rest, _) = scan(&snapshot, prefix, seq, through, usize::MAX)?;
        for committed in rest {
            for entry in committed.entries {
                page.push(through, entry);
            }
        }
    }
    Ok(page.whole)
}

/// What a tail gives next: about `limit` entries, and how far it has come if nothing is left.
pub(super) fn follow(
    connection: &mut Connection,
    prefix: &Prefix,
    after: Seq,
    limit: usize,
) -> rusqlite::Result<Vec<Committed>> {
    let snapshot = connection.transaction()?;
    let head = position(&snapshot)?.seq;
    if head <= after {
        return Ok(Vec::new());
    }
    let (mut page, more) = scan(&snapshot, prefix, after, Seq::MAX, limit)?;
    if !more && page.last().is_none_or(|last| last.through < head) {
        page.push(Committed::new(head, Vec::new()));
    }
    Ok(page)
}

/// Subjects under `prefix` whose every entry is older than `before`, at most `limit`, in order, those after `from`.
pub(super) fn expirable(
    connection: &mut Connection,
    prefix: &Prefix,
    before: Wall,
    from: Option<&Subject>,
    limit: usize,
) -> rusqlite::Result<Vec<Subject>> {
    let before = signed(before.millis());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (below, beyond) = bounds(prefix);
    let from = from.map_or("", Subject::as_str);
    let mut statement = connection.prepare_cached(
        "SELECT subject FROM outlast_entry WHERE subject = ?1 AND subject > ?6 \
         GROUP BY subject HAVING max(at) < ?4 \
         UNION ALL SELECT subject FROM outlast_entry WHERE subject >= ?2 AND subject < ?3 AND subject > ?6 \
         GROUP BY subject HAVING max(at) < ?4 LIMIT ?5",
    )?;
    let rows = statement.query_map(params![prefix.as_str(), below, beyond, before, limit, from], |row| {
        Ok(Subject::from_encoded(row.get_ref(0)?.as_str()?))
    })?;
    rows.collect()
}

/// In the order of sequences: whole appends until `limit` entries, and whether more follow.
fn scan(
    connection: &Connection,
    prefix: &Prefix,
    after: Seq,
    until: Seq,
    limit: usize,
) -> rusqlite::Result<(Vec<Committed>, bool)> {
    let mut page = Page::default();
    let (after, until) = (signed(after), signed(until));
    let more = if prefix.only().is_some() {
        let mut statement = connection.prepare_cached(OF_ONE)?;
        page.take(statement.query(params![after, until, prefix.as_str()])?, prefix, limit)?
    } else {
        let (below, beyond) = bounds(prefix);
        let mut statement = connection.prepare_cached(IN_ORDER)?;
        page.take(statement.query(params![after, until, prefix.as_str(), below, beyond])?, prefix, limit)?
    };
    Ok((page.whole, more))
}

/// The range that holds every subject below `prefix` and no other: '0' follows '/' in ASCII.
fn bounds(prefix: &Prefix) -> (String, String) {
    if prefix.is_all() {
        // Encoded subjects are ASCII.
        return (String::new(), "\u{7f}".to_owned());
    }
    if prefix.only().is_some() {
        return (String::new(), String::new());
    }
    (format!("{prefix}/"), format!("{prefix}0"))
}

#[derive(Default)]
struct Page {
    whole: Vec<Committed>,
    entries: usize,
}

impl Page {
    /// Takes rows until a new append would begin after `limit` entries; says whether there was one.
    fn take(&mut self, mut rows: Rows<'_>, prefix: &Prefix, limit: usize) -> rusqlite::Result<bool> {
        // One subject has one name: no need to copy it for each entry.
        let only = prefix.only();
        while let Some(row) = rows.next()? {
            let seq = row.get::<_, i64>(0)? as u64;
            let through = seq.saturating_add(row.get::<_, i64>(2)? as u64);
            if self.entries >= limit && self.whole.last().is_some_and(|last| last.through != through) {
                return Ok(true);
            }
            let subject = match &only {
                Some(subject) => subject.clone(),
                None => Subject::from_encoded(row.get_ref(1)?.as_str()?),
            };
            let at = Wall::from_millis(row.get::<_, i64>(4)? as u64);
            let body = row.get_ref(5)?.as_blob()?.to_vec().into();
            self.push(through, Entry::new(seq, subject, AppendId::new(ulid(row, 3)?), at, body));
        }
        Ok(false)
    }

    fn push(&mut self, through: Seq, entry: Entry) {
        self.entries += 1;
        match self.whole.last_mut() {
            Some(last) if last.through == through => last.entries.push(entry),
            Some(_) | None => self.whole.push(Committed::new(through, vec![entry])),
        }
    }

    /// The last entry's sequence, and where its append ends.
    fn end(&self) -> Option<(Seq, Seq)> {
        let last = self.whole.last()?;
        Some((last.entries.last()?.seq, last.through))
    }
}

/// SQLite's integers are signed; no sequence and no time gets that far.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
