//! Two-subject conditional appends to the log on SQLite, against the same statements by hand and a bare insert.
//!
//! The peer has one connection with the log's settings to a file that the log has made, and commits the largest
//! groups that so many callers can make. A bare insert is one row in one transaction: what one flush costs.

use std::path::Path;
use std::time::{Duration, Instant};

use outlast::Timestamp;
use outlast::env::Env;
use outlast::log::{Append, AppendId, Appended, Expect, Log, Seq, SqliteLog, Subject};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::harness::{Bench, Sample, Side};

/// The most appends of one transaction, as `log/sqlite/committer.rs` has it.
const GROUP: usize = 256;

/// About what an accepted and settled command leaves on its key's subject.
const KEY_ENTRY: &[u8] = br#"{"k":"accepted","method":"build_farm.v1/submit_build","fingerprint":"Zk9vYmFyYmF6cXV4","level":"minted","minted":1764500000000,"running":false,"id":"01KB3X7Q4YVJ5N9ZC2D8E6F0GH"}"#;

/// About what an aggregate's event takes.
const EVENT: &[u8] = br#"{"Progressed":{"step":7,"of":12,"line":"   Compiling outlast v0.1.0 (sdk)"}}"#;

/// Runs every case.
pub(crate) fn run(bench: &Bench) {
    for (callers, each) in [(1, 50), (100, 40), (1_000, 8)] {
        let name = format!("append/{callers}");
        if bench.wants(&name) {
            compare(bench, &name, callers, bench.size(each, 1));
        }
    }
}

fn compare(bench: &Bench, name: &str, callers: usize, each: usize) {
    // On the disk that the build is on: `/tmp` may be memory, where a flush costs nothing.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let runtime = Runtime::new().expect("a runtime");
    let env = Env::system();

    let log = runtime.block_on(SqliteLog::open(folder.path().join("log"))).expect("a log");
    let mut raw = Some(Raw::open(&folder.path().join("raw")));
    let mut bare = Some(Bare::open(&folder.path().join("bare")));
    let mut our_callers = Caller::some(&env, callers);
    let mut raw_callers = Caller::some(&env, callers);
    let inserts = bench.size(if callers == 1 { each } else { 50 }, 1);

    let ours = || {
        our_callers.iter_mut().for_each(|caller| caller.prepare(&env, each));
        let (log, callers) = (log.clone(), std::mem::take(&mut our_callers));
        let (callers, elapsed) = runtime.block_on(append_all(log, callers));
        our_callers = callers;
        Sample { items: our_callers.len() * each, elapsed }
    };
    let by_hand = || {
        raw_callers.iter_mut().for_each(|caller| caller.prepare(&env, each));
        let mut callers = std::mem::take(&mut raw_callers);
        let (callers, elapsed) = on_pool(&runtime, &mut raw, move |raw| {
            let start = Instant::now();
            for _ in 0..each {
                callers.chunks_mut(GROUP).for_each(|group| raw.commit(group));
            }
            (callers, start.elapsed())
        });
        raw_callers = callers;
        Sample { items: raw_callers.len() * each, elapsed }
    };
    let insert = || {
        let elapsed = on_pool(&runtime, &mut bare, move |bare| {
            let start = Instant::now();
            (0..inserts).for_each(|_| bare.insert());
            start.elapsed()
        });
        Sample { items: inserts, elapsed }
    };
    let sides = vec![
        Side::new("SqliteLog::append", ours),
        Side::new("rusqlite, same statements, full groups", by_hand),
        Side::new("rusqlite, a bare insert", insert),
    ];
    bench.compare(name, "appends", Duration::from_secs(12), sides);
}

/// Works with `on` on a thread of the runtime's blocking pool, as the log's committer does.
///
/// So the sides do not differ in their kind of thread: on a loaded machine most of an insert's time is spent
/// waiting for a processor.
fn on_pool<S: Send + 'static, T: Send + 'static>(
    runtime: &Runtime,
    on: &mut Option<S>,
    work: impl FnOnce(&mut S) -> T + Send + 'static,
) -> T {
    let mut state = on.take().expect("it is back after each round");
    let worked = runtime.spawn_blocking(move || {
        let done = work(&mut state);
        (state, done)
    });
    let (state, done) = runtime.block_on(worked).expect("a round");
    *on = Some(state);
    done
}

/// All callers at once, each of them one append after another.
async fn append_all(log: SqliteLog, callers: Vec<Caller>) -> (Vec<Caller>, Duration) {
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for mut caller in callers {
        let log = log.clone();
        tasks.spawn(async move {
            while let Some(append) = caller.next() {
                match log.append(append).await {
                    Appended::Done(Timestamp { seq, .. }) => caller.head = Some(seq),
                    other @ (Appended::Conflict(_) | Appended::Busy | Appended::Unknown | Appended::Invalid(_)) => {
                        panic!("expected an append, got {other:?}")
                    }
                }
            }
            caller
        });
    }
    let callers = tasks.join_all().await;
    (callers, start.elapsed())
}

/// Somebody who appends to an aggregate of its own, each time under a new key.
#[derive(Debug)]
struct Caller {
    aggregate: Subject,
    head: Option<Seq>,
    prepared: Vec<Append>,
}

impl Caller {
    fn some(env: &Env, count: usize) -> Vec<Self> {
        let caller = |_| Self {
            aggregate: Subject::of(["build".to_owned(), env.ulid().to_string()]),
            head: None,
            prepared: Vec::new(),
        };
        (0..count).map(caller).collect()
    }

    /// Makes the next appends, all but what the aggregate is expected to be at.
    fn prepare(&mut self, env: &Env, count: usize) {
        let append = |_| {
            let key = Subject::of(["key", "runner-17", &env.ulid().to_string()]);
            Append::new(AppendId::new(env.ulid()), env.wall()).write(key, Expect::Absent, KEY_ENTRY).write(
                self.aggregate.clone(),
                Expect::Any,
                EVENT,
            )
        };
        self.prepared = (0..count).map(append).collect();
    }

    fn next(&mut self) -> Option<Append> {
        let mut append = self.prepared.pop()?;
        append.writes[1].expect = self.head.map_or(Expect::Absent, Expect::At);
        Some(append)
    }
}

/// Opens a file with the settings of the log's writer, as `log/sqlite/schema.rs` has them.
fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a database");
    connection.set_prepared_statement_cache_capacity(16);
    let set = "PRAGMA journal_mode = wal; PRAGMA synchronous = 2; PRAGMA fullfsync = 1; \
               PRAGMA checkpoint_fullfsync = 1; PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 4000;";
    connection.execute_batch(set).expect("the settings");
    connection
}

/// What `log/sqlite/write.rs` does, statement by statement.
struct Raw {
    connection: Connection,
}

impl Raw {
    /// Opens a file with the log's own tables and index.
    fn open(path: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        drop(runtime.block_on(SqliteLog::open(path)).expect("a log"));
        drop(runtime); // and with it the last who had it open
        Self { connection: open(path) }
    }

    /// One append of each caller, in one transaction.
    fn commit(&mut self, callers: &mut [Caller]) {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).expect("a transaction");
        {
            let cached = |sql| transaction.prepare_cached(sql).expect("a statement");
            let mut newest = cached("SELECT seq FROM outlast_entry WHERE subject = ?1 ORDER BY seq DESC LIMIT 1");
            let mut insert = cached(
                "INSERT INTO outlast_entry (seq, subject, remaining, append, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            );
            let position = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let (id, mut seq): ([u8; 16], i64) =
                cached("SELECT id, head FROM outlast_log").query_row([], position).expect("a position");
            for caller in callers {
                let append = caller.next().expect("an append");
                for write in &append.writes {
                    let head: Option<i64> =
                        newest.query_row([write.subject.as_str()], |row| row.get(0)).optional().expect("a head");
                    let head = head.map_or(Expect::Absent, |seq| Expect::At(seq as u64));
                    assert_eq!(head, write.expect, "nobody else writes");
                }
                let (name, at) = (append.id.ulid().to_bytes(), append.at.millis() as i64);
                for (remaining, write) in (0..append.writes.len() as i64).rev().zip(&append.writes) {
                    seq += 1;
                    let row = params![seq, write.subject.as_str(), remaining, name, at, &write.body[..]];
                    insert.execute(row).expect("an insert");
                }
                caller.head = Some(seq as u64);
            }
            cached("UPDATE outlast_log SET id = ?1, head = ?2").execute(params![id, seq]).expect("an update");
        }
        transaction.commit().expect("a commit");
    }
}

/// A table to which one row is added at a time.
struct Bare {
    connection: Connection,
}

impl Bare {
    fn open(path: &Path) -> Self {
        let connection = open(path);
        let table = "CREATE TABLE bare (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT";
        connection.execute_batch(table).expect("a table");
        Self { connection }
    }

    fn insert(&mut self) {
        let mut insert = self.connection.prepare_cached("INSERT INTO bare (body) VALUES (?1)").expect("a statement");
        insert.execute([EVENT]).expect("an insert");
    }
}
