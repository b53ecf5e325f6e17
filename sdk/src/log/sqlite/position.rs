//! Where the log is: its id and its head, as its one row has them.

use rusqlite::types::Type;
use rusqlite::{Connection, Row};
use ulid::Ulid;

use crate::log::{LogId, Timestamp};

/// The log's id and head.
pub(super) fn position(connection: &Connection) -> rusqlite::Result<Timestamp> {
    let mut statement = connection.prepare_cached("SELECT id, head FROM outlast_log")?;
    statement.query_row([], |row| Ok(Timestamp { log: LogId::new(ulid(row, 0)?), seq: row.get::<_, i64>(1)? as u64 }))
}

/// An id, as the tables keep it.
pub(super) fn ulid(row: &Row<'_>, column: usize) -> rusqlite::Result<Ulid> {
    let bytes = row.get_ref(column)?.as_blob()?;
    let bytes =
        bytes.try_into().map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(e)))?;
    Ok(Ulid::from_bytes(bytes))
}
