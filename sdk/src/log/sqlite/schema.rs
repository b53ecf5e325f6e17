//! Opening a connection, and refusing what is not a log or could lose one.

use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use super::position::position;
use crate::error::{Error, ErrorKind};
use crate::log::{LogId, Timestamp};

/// "Outl" as a big-endian number: says in the file's header whose it is.
const APPLICATION: i64 = 0x4F75_746C;

/// The version of the tables below.
const VERSION: i64 = 1;

/// The tables, exactly as SQLite keeps their text; a file with another text is refused.
///
/// `remaining` is how many entries of the same append follow, so that `seq + remaining` is its timestamp
/// also when some of them have expired. `body` is last: what stands before it is read without it.
const TABLES: [(&str, &str); 3] = [
    (
        "outlast_log",
        "CREATE TABLE outlast_log (\
         one INTEGER PRIMARY KEY CHECK (one = 1), id BLOB NOT NULL, head INTEGER NOT NULL) STRICT",
    ),
    (
        "outlast_entry",
        "CREATE TABLE outlast_entry (\
         seq INTEGER PRIMARY KEY, subject TEXT NOT NULL, remaining INTEGER NOT NULL, \
         append BLOB NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT",
    ),
    // An index holds the rowid too: this one is (subject, seq).
    ("outlast_entry_by_subject", "CREATE INDEX outlast_entry_by_subject ON outlast_entry (subject)"),
];

/// How long a reader waits for a lock: only a recovery after a crash takes one.
const READER_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens connections to one file.
#[derive(Clone, Debug)]
pub(super) struct Opener {
    path: Arc<PathBuf>,
    busy_timeout: Duration,
}

impl Opener {
    pub(super) fn new(path: PathBuf, busy_timeout: Duration) -> Self {
        Self { path: Arc::new(path), busy_timeout }
    }

    /// Opens the log; a file that is not there or empty becomes one of the id `id`. Blocks.
    pub(super) fn create_or_open(&self, id: LogId) -> Result<(Connection, Timestamp), Error> {
        self.open_writer(OpenFlags::SQLITE_OPEN_CREATE, Some(id))
    }

    /// Opens the log that was there before. Blocks.
    pub(super) fn reopen(&self) -> Result<Connection, Error> {
        // A file that has gone is an unavailable log, never an empty one.
        self.open_writer(OpenFlags::empty(), None).map(|(connection, _)| connection)
    }

    fn open_writer(&self, create: OpenFlags, id: Option<LogId>) -> Result<(Connection, Timestamp), Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
        let mut connection = Connection::open_with_flags(&*self.path, flags).map_err(|e| self.error(e))?;
        let position = self.prepare(&mut connection, id)?;
        Ok((connection, position))
    }

    /// Opens a connection that reads. Blocks.
    pub(super) fn open_reader(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let connection = Connection::open_with_flags(&*self.path, flags)?;
            connection.busy_timeout(READER_TIMEOUT)?;
            connection.pragma_update(None, "query_only", true)?;
            // Closing one must not write: it is dropped wherever its owner is.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(connection)
        };
        open().map_err(|e| self.error(e))
    }

    fn prepare(&self, connection: &mut Connection, id: Option<LogId>) -> Result<Timestamp, Error> {
        let failed = |e| self.error(e);
        connection.busy_timeout(self.busy_timeout).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(16);
        // Before anything is changed: a foreign file keeps even its journal mode.
        self.check_owner(connection)?;
        // What follows is of the connection, not of the file, but for the journal mode.
        self.demand(connection, "journal_mode", "wal")?;
        self.demand(connection, "synchronous", 2)?;
        // macOS: an fsync there leaves the drive's cache unflushed.
        self.demand(connection, "fullfsync", 1)?;
        self.demand(connection, "checkpoint_fullfsync", 1)?;
        connection.pragma_update(None, "cache_size", -16_384).map_err(failed)?;
        connection.pragma_update(None, "wal_autocheckpoint", 4_000).map_err(failed)?;

        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        // Again inside the transaction: two processes may be creating it.
        if self.check_owner(&transaction)? == Owner::Nobody {
            let id = id.ok_or_else(|| self.corrupt(format_args!("the file has become empty")))?;
            create(&transaction, id).map_err(failed)?;
        }
        self.check_tables(&transaction)?;
        let position = self.check_head(&transaction)?;
        transaction.commit().map_err(failed)?;
        Ok(position)
    }

    fn check_owner(&self, connection: &Connection) -> Result<Owner, Error> {
        // One statement, one snapshot: somebody may be creating it at this moment.
        let look = "SELECT (SELECT application_id FROM pragma_application_id), \
                    (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";
        let found = connection
            .query_row(look, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
        match found.map_err(|e| self.error(e))? {
            (0, 0, 0) => Ok(Owner::Nobody),
            (APPLICATION, VERSION, _) => Ok(Owner::Log),
            (APPLICATION, version, _) => {
                Err(self
                    .corrupt(format_args!("a log of schema version {version}, this library reads version {VERSION}")))
            }
            (application, ..) => Err(self.corrupt(format_args!(
                "not a log: its application_id is {application:#x}, a log's is {APPLICATION:#x}"
            ))),
        }
    }

    /// Refuses tables that are not exactly ours, and triggers: either could drop or change an entry.
    fn check_tables(&self, connection: &Connection) -> Result<(), Error> {
        for (name, expected) in TABLES {
            let sql: Option<String> = connection
                .query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0))
                .optional()
                .map_err(|e| self.error(e))?;
            if sql.as_deref() != Some(expected) {
                return Err(self.corrupt(format_args!("{name} is {sql:?}, expected {expected:?}")));
            }
        }
        let triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name LIKE 'outlast%'";
        let trigger: Option<String> =
            connection.query_row(triggers, [], |row| row.get(0)).optional().map_err(|e| self.error(e))?;
        if let Some(trigger) = trigger {
            return Err(self.corrupt(format_args!("the trigger {trigger} could change what is stored")));
        }
        let encoding: String =
            connection.pragma_query_value(None, "encoding", |row| row.get(0)).map_err(|e| self.error(e))?;
        if encoding != "UTF-8" {
            // Subjects are compared byte by byte.
            return Err(self.invalid(format_args!("encoding UTF-8, got {encoding}")));
        }
        Ok(())
    }

    /// Refuses a counter that has lost its place: it would give sequences out again.
    fn check_head(&self, connection: &Connection) -> Result<Timestamp, Error> {
        let position = position(connection).map_err(|e| self.error(e))?;
        let newest: i64 = connection
            .query_row("SELECT coalesce(max(seq), 0) FROM outlast_entry", [], |row| row.get(0))
            .map_err(|e| self.error(e))?;
        if position.seq < newest as u64 {
            return Err(self.corrupt(format_args!("its head is {} and an entry has {newest}", position.seq)));
        }
        Ok(position)
    }

    /// Sets a pragma and checks that it holds.
    fn demand<V>(&self, connection: &Connection, name: &str, value: V) -> Result<(), Error>
    where
        V: rusqlite::ToSql + std::fmt::Display + Copy,
    {
        let text = |value| match value {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Null | rusqlite::types::Value::Real(_) | rusqlite::types::Value::Blob(_) => {
                String::new()
            }
        };
        let set = || {
            connection.pragma_update(None, name, value)?;
            connection.pragma_query_value(None, name, |row| row.get(0)).map(text)
        };
        let got = set().map_err(|e| self.error(e))?;
        if got == value.to_string() {
            return Ok(());
        }
        Err(self.invalid(format_args!("a file on a local disk with {name} = {value}, got {got}")))
    }

    fn corrupt(&self, what: std::fmt::Arguments<'_>) -> Error {
        Error::new(ErrorKind::Corrupt, format!("{}: {what}", self.path.display()))
    }

    fn invalid(&self, expected: std::fmt::Arguments<'_>) -> Error {
        Error::invalid(&self.path.display().to_string(), expected)
    }

    /// What `error` means to a caller.
    pub(super) fn error(&self, error: rusqlite::Error) -> Error {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ErrorKind::Corrupt,
            Some(_) => ErrorKind::Unavailable,
            // A value of a type that the tables do not allow: somebody else wrote it.
            None => ErrorKind::Corrupt,
        };
        Error::new(kind, format!("{}: {error}", self.path.display())).with_source(error)
    }
}

#[derive(PartialEq)]
enum Owner {
    /// An empty file.
    Nobody,
    Log,
}

fn create(connection: &Connection, id: LogId) -> rusqlite::Result<()> {
    for (_, sql) in TABLES {
        connection.execute_batch(sql)?;
    }
    connection.execute("INSERT INTO outlast_log (one, id, head) VALUES (1, ?1, 0)", [id.ulid().to_bytes()])?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// Whether another connection's lock is what was in the way.
pub(super) fn is_locked(error: &Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<rusqlite::Error>());
    source.is_some_and(|e| matches!(e.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)))
}
