//! What only the log on SQLite promises.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot, watch};

use super::committer::{Committer, Message, Writer};
use super::position::position;
use super::schema::Opener;
use super::write::{self, Expire, Fault, Job};
use super::{SqliteLog, read};
use crate::env::Env;
use crate::error::Error;
use crate::log::{Append, AppendId, Appended, Expect, Log, LogExt, LogId, Prefix, Subject, Timestamp};
use crate::machine::Wall;

struct File {
    _directory: TempDir,
    path: PathBuf,
}

impl File {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { path: directory.path().join("log"), _directory: directory }
    }

    /// Does `sql` to the file as somebody else would.
    fn sql(&self, sql: &str) {
        Connection::open(&self.path).and_then(|connection| connection.execute_batch(sql)).expect(sql);
    }

    fn opener(&self) -> Opener {
        Opener::new(self.path.clone(), std::time::Duration::ZERO)
    }

    async fn open(&self) -> Result<SqliteLog, Error> {
        SqliteLog::open(&self.path).await
    }

    /// A log with one entry, closed.
    async fn with_an_entry() -> Self {
        let file = Self::new();
        let log = file.open().await.unwrap();
        assert!(matches!(log.append(append("a", Expect::Absent, "1")).await, Appended::Done(_)));
        file
    }
}

fn append(subject: &str, expect: Expect, body: &str) -> Append {
    let id = AppendId::new(Env::system().ulid());
    Append::new(id, Wall::from_millis(1)).write(Subject::of([subject]), expect, body.to_owned())
}

fn jobs(appends: Vec<Append>) -> (Vec<Job>, Vec<oneshot::Receiver<Appended>>) {
    let ask = |append| {
        let (answer, answered) = oneshot::channel();
        (Job::append(append, answer), answered)
    };
    appends.into_iter().map(ask).unzip()
}

fn settle(jobs: Vec<Job>, fault: Option<&Fault>, answered: Vec<oneshot::Receiver<Appended>>) -> Vec<Appended> {
    jobs.into_iter().for_each(|job| job.settle(fault));
    answered.into_iter().map(|mut answered| answered.try_recv().unwrap()).collect()
}

/// W6: what was acknowledged survives `kill -9`, however often; sequences go on where they were.
#[test]
fn every_acknowledged_append_survives_kill_9() {
    let file = File::new();
    let child = format!("{}::the_process_that_is_killed", module_path!().split_once("::").unwrap().1);
    let mut acknowledged: Vec<(u64, String)> = Vec::new();
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &child, "--nocapture", "--test-threads=1"])
            .env(LOG_OF_THE_CHILD, &file.path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let parse = |line: String| {
            let mut words = line.strip_prefix("ACK ")?.split(' ');
            Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
        };
        acknowledged.extend(lines.by_ref().filter_map(parse).take(300));
        child.kill().unwrap();
        // What it had said before it died counts as well; a torn last line does not.
        acknowledged.extend(lines.filter_map(parse).filter(|(_, subject)| subject.len() == 26));
        child.wait().unwrap();
        assert!(acknowledged.len() >= 300 * round, "the child appended too little: {}", acknowledged.len());

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let log = file.open().await.unwrap();
            let head = log.head_of_log().await.unwrap();
            let page = log.read(&Prefix::all(), 0, usize::MAX).await.unwrap();
            let entries: Vec<_> = page.iter().flat_map(|committed| &committed.entries).collect();
            assert!(entries.iter().map(|entry| entry.seq).eq(1..=head), "no gap and no torn append");
            assert!(page.iter().all(|committed| committed.entries.len() == 2));
            for (seq, subject) in &acknowledged {
                let entry = entries[*seq as usize - 1];
                assert_eq!((entry.seq, entry.subject.as_str()), (*seq, &*format!("key/{subject}")), "round {round}");
            }
        });
    }
}

const LOG_OF_THE_CHILD: &str = "OUTLAST_TEST_LOG_OF_THE_CHILD";

/// Not a test of its own: appends for ever when `every_acknowledged_append_survives_kill_9` starts it.
#[test]
fn the_process_that_is_killed() {
    let Ok(path) = std::env::var(LOG_OF_THE_CHILD) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (log, env) = (SqliteLog::open(path).await.unwrap(), Env::system());
        let forever = || async {
            loop {
                let id = env.ulid();
                let append = Append::new(AppendId::new(id), env.wall())
                    .write(Subject::of(["build", &id.to_string()]), Expect::Absent, "event")
                    .write(Subject::of(["key", &id.to_string()]), Expect::Absent, "record");
                if let Appended::Done(timestamp) = log.append(append).await {
                    // Panics, and so ends, when nobody reads any more.
                    println!("ACK {} {id}", timestamp.seq);
                }
            }
        };
        let [never, ..]: [(); 8] = futures::future::join_all((0..8).map(|_| forever())).await.try_into().unwrap();
        never
    });
}

/// W6: the settings on which surviving a power loss rests are in force on the connection that writes.
#[tokio::test]
async fn the_writer_flushes_every_commit() {
    let file = File::with_an_entry().await;
    let connection = file.opener().reopen().unwrap();
    let text = |name| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0)).unwrap();
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((text("journal_mode").as_str(), number("synchronous"), number("fullfsync")), ("wal", 2, 1));
    assert!(file.open().await.unwrap().durable());
}

#[tokio::test]
async fn another_applications_database_is_refused_and_left_alone() {
    let file = File::new();
    file.sql("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    let before = std::fs::read(&file.path).unwrap();
    let error = file.open().await.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("not a log"), "{error}");
    assert_eq!(std::fs::read(&file.path).unwrap(), before);

    let file = File::new();
    file.sql("PRAGMA application_id = 7");
    assert!(file.open().await.unwrap_err().is_corrupt());

    let file = File::new();
    std::fs::write(&file.path, "a text file that is long enough to be looked at by SQLite ".repeat(50)).unwrap();
    assert!(file.open().await.unwrap_err().is_corrupt());
}

#[tokio::test]
async fn another_schema_version_is_refused() {
    let file = File::with_an_entry().await;
    file.sql("PRAGMA user_version = 2");
    let error = file.open().await.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("version 2"), "{error}");
}

/// What could make "absent" true again, or give a sequence out twice, is refused at the door.
#[tokio::test]
async fn a_file_that_could_lose_an_entry_is_refused() {
    for sabotage in [
        "CREATE TRIGGER t AFTER INSERT ON outlast_entry BEGIN DELETE FROM outlast_entry; END",
        "ALTER TABLE outlast_entry ADD COLUMN more ANY",
        "DROP INDEX outlast_entry_by_subject",
        "DROP INDEX outlast_entry_by_subject; CREATE INDEX outlast_entry_by_subject ON outlast_entry (body)",
        "UPDATE outlast_log SET head = 0",
        "DELETE FROM outlast_log",
        "UPDATE outlast_log SET id = x'00'",
    ] {
        let file = File::with_an_entry().await;
        file.sql(sabotage);
        let error = file.open().await.expect_err(sabotage);
        assert!(error.is_corrupt() && !error.is_retryable(), "{sabotage}: {error}");
    }
    let file = File::new();
    file.sql("PRAGMA encoding = 'UTF-16'; CREATE TABLE t (x); DROP TABLE t; VACUUM");
    let error = file.open().await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("UTF-8"), "{error}");
    let error = SqliteLog::open(":memory:").await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("journal_mode"), "{error}");
}

/// A replication tool keeps tables of its own in the file.
#[tokio::test]
async fn tables_beside_those_of_the_log_are_tolerated() {
    let file = File::with_an_entry().await;
    file.sql("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); ANALYZE");
    assert_eq!(file.open().await.unwrap().head_of_log().await.unwrap(), 1);
}

#[tokio::test]
async fn a_missing_directory_is_an_error_and_not_a_panic() {
    let file = File::new();
    let error = SqliteLog::open(file.path.join("below")).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test]
async fn several_may_create_the_same_file_at_once() {
    let file = File::new();
    let opened = futures::future::join_all((0..8).map(|_| file.open())).await;
    let ids: Vec<_> = opened.into_iter().map(|log| log.unwrap().id()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

/// S4 rests on it: a locked log answers within the busy timeout, and nothing was written.
#[tokio::test]
async fn a_log_that_another_process_is_writing_to_is_busy() {
    let file = File::with_an_entry().await;
    let log = SqliteLog::builder(&file.path).busy_timeout(std::time::Duration::from_millis(5)).open().await.unwrap();
    let other = Connection::open(&file.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = append("b", Expect::Absent, "2");
    assert_eq!(log.append(append.clone()).await, Appended::Busy);
    assert!(log.renew_id().await.unwrap_err().is_retryable());
    assert_eq!(log.head_of_log().await.unwrap(), 1, "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(log.append(append).await, Appended::Done(Timestamp { log: log.id(), seq: 2 }));
}

/// A writer whose next commit fails after all its statements have succeeded.
fn sabotaged(file: &File, statement: &str) -> Writer {
    let connection = file.opener().reopen().unwrap();
    connection.execute_batch(statement).unwrap();
    let position = position(&connection).unwrap();
    Writer::new(file.opener(), connection, watch::Sender::new(position))
}

const COMMIT_FAILS: &str = "PRAGMA foreign_keys = ON; \
    CREATE TEMP TABLE parent (id INTEGER PRIMARY KEY); \
    CREATE TEMP TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED); \
    CREATE TEMP TRIGGER t AFTER INSERT ON outlast_entry BEGIN INSERT INTO child VALUES (1); END";

const INSERT_FAILS: &str = "CREATE TEMP TRIGGER t BEFORE INSERT ON outlast_entry WHEN NEW.body = CAST('3' AS BLOB) \
    BEGIN SELECT RAISE(ABORT, 'sabotage'); END";

/// A failed commit leaves everybody in the group in doubt, also who was in conflict with it; then all goes on.
#[tokio::test]
async fn a_failed_commit_is_unknown_and_the_log_is_opened_again() {
    let file = File::with_an_entry().await;
    let mut writer = sabotaged(&file, COMMIT_FAILS);
    let appends = vec![append("b", Expect::Absent, "2"), append("b", Expect::Absent, "2 too")];
    let (mut group, answered) = jobs(appends.clone());
    let fault = writer.work(&mut group);
    assert!(matches!(fault, Some(Fault::Ambiguous(_))), "{fault:?}");
    assert_eq!(settle(group, fault.as_ref(), answered), [Appended::Unknown, Appended::Unknown]);

    let (mut group, answered) = jobs(appends);
    assert!(writer.work(&mut group).is_none(), "the connection was opened again");
    let [first, second] = &settle(group, None, answered)[..] else { panic!("two answers") };
    assert!(matches!(first, Appended::Done(Timestamp { seq: 2, .. })), "{first:?}");
    assert_eq!(*second, Appended::Conflict(vec![(Subject::of(["b"]), Some(2))]));
}

/// A statement that fails undoes the group: nobody is told of a conflict with what is not there.
#[tokio::test]
async fn a_failed_insert_undoes_the_whole_group() {
    let file = File::with_an_entry().await;
    let mut writer = sabotaged(&file, INSERT_FAILS);
    let appends =
        ["2", "2 too", "3"].map(|body| append("b", if body == "3" { Expect::Any } else { Expect::Absent }, body));
    let (mut group, answered) = jobs(appends.to_vec());
    let fault = writer.work(&mut group);
    assert!(matches!(fault, Some(Fault::Undone(_))), "{fault:?}");
    assert_eq!(settle(group, fault.as_ref(), answered), [Appended::Busy, Appended::Busy, Appended::Busy]);
    assert_eq!(file.open().await.unwrap().head_of_log().await.unwrap(), 1);
}

/// A file that is gone is an unavailable log; an empty one in its place would make everything absent again.
#[tokio::test]
async fn a_log_whose_file_is_gone_is_not_created_again() {
    let file = File::with_an_entry().await;
    let mut writer = sabotaged(&file, COMMIT_FAILS);
    let (mut group, _answered) = jobs(vec![append("b", Expect::Absent, "2")]);
    assert!(writer.work(&mut group).is_some());
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.path.display()));
    }
    let fault = writer.work(&mut group);
    assert!(matches!(fault, Some(Fault::Unopened)), "{fault:?}");
    assert!(!Path::new(&file.path).exists());
    std::fs::write(&file.path, "").unwrap();
    assert!(file.opener().reopen().unwrap_err().is_corrupt());
}

/// Appends that wait together are written together, at most 256 in one transaction.
#[tokio::test]
async fn a_group_has_at_most_256_requests_and_16_mib() {
    let file = File::with_an_entry().await;
    let committer = |appends: Vec<Append>| {
        let (send, received) = mpsc::channel(1000);
        let (group, answered) = jobs(appends);
        for job in group {
            send.try_send(Message::Job(job)).unwrap();
        }
        let connection = file.opener().reopen().unwrap();
        let position = watch::Sender::new(position(&connection).unwrap());
        let env = Env::system();
        let writer = Writer::new(file.opener(), connection, position);
        (Committer::new(received, writer, env, std::time::Duration::from_secs(1)), answered, send)
    };
    let small = (0..600).map(|n| append("s", Expect::Any, &n.to_string())).collect();
    let (mut committer_of_small, answered, _send) = committer(small);
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 600 {
        sizes.push(committer_of_small.next_group().await.unwrap().len());
    }
    assert_eq!(sizes, [256, 256, 88]);
    drop(answered);

    let large = "x".repeat(6 << 20);
    let (mut committer_of_large, answered, send) =
        committer((0..5).map(|_| append("l", Expect::Any, &large)).collect());
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 5 {
        sizes.push(committer_of_large.next_group().await.unwrap().len());
    }
    assert_eq!(sizes, [2, 2, 1]);
    drop((answered, send));
    assert!(committer_of_large.next_group().await.is_none(), "it ends with the last handle");
}

/// Who has gone away is not written for: no append of a dead server comes after its death.
#[tokio::test]
async fn an_abandoned_request_is_not_written() {
    let file = File::with_an_entry().await;
    let log = file.open().await.unwrap();
    {
        let mut asked = std::pin::pin!(log.append(append("b", Expect::Absent, "2")));
        assert!(futures::poll!(&mut asked).is_pending());
    }
    let next = log.append(append("c", Expect::Absent, "3")).await;
    assert_eq!(next, Appended::Done(Timestamp { log: log.id(), seq: 2 }));
    assert_eq!(log.head(&Subject::of(["b"])).await.unwrap(), None);
}

/// A subject that was written to between being found and being removed stays.
#[tokio::test]
async fn expiry_looks_again_inside_its_transaction() {
    let file = File::with_an_entry().await;
    let mut connection = file.opener().reopen().unwrap();
    let before = Wall::from_millis(100);
    let subjects = read::expirable(&mut connection, &Prefix::all(), before, None, 10).unwrap();
    assert_eq!(subjects, [Subject::of(["a"])]);
    let mut young = append("a", Expect::At(1), "2");
    young.at = before;
    let (mut group, _answered) = jobs(vec![young]);
    let (answer, mut answered) = oneshot::channel();
    group.push(Job::expire(Expire { subjects, before }, answer));
    write::commit(&mut connection, &mut group).unwrap();
    group.into_iter().for_each(|job| job.settle(None));
    assert_eq!(answered.try_recv().unwrap().unwrap(), 0);
    assert_eq!(read::head(&connection, &Subject::of(["a"])).unwrap(), Some(2));
}

/// The statements that run for each request stay searches in an index, whatever the size of the log.
#[tokio::test]
async fn reads_are_searches_and_follow_needs_no_sorting() {
    let file = File::with_an_entry().await;
    let connection = file.opener().reopen().unwrap();
    let plan = |sql: &str| {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nulls = vec![rusqlite::types::Null; statement.parameter_count()];
        let rows = statement.query_map(rusqlite::params_from_iter(nulls), |row| row.get::<_, String>(3)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    };
    let by_subject = "SEARCH outlast_entry USING COVERING INDEX outlast_entry_by_subject (subject=?)";
    assert_eq!(plan(read::HEAD), by_subject);
    let one = plan(read::OF_ONE);
    assert!(one.contains("outlast_entry_by_subject (subject=? AND rowid>? AND rowid<?)"), "{one}");
    assert_eq!(plan(read::IN_ORDER), "SEARCH outlast_entry USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    let selected = plan(read::SELECTED);
    assert!(selected.contains("COVERING INDEX outlast_entry_by_subject (subject>? AND subject<?)"), "{selected}");
    assert!(!selected.contains("SCAN outlast_entry"), "{selected}");
}

/// R4's backstop: a handle sees at once that another process gave the history a new id.
#[tokio::test]
async fn a_timestamp_has_the_id_of_its_own_transaction() {
    let file = File::with_an_entry().await;
    let (log, operator) = (file.open().await.unwrap(), file.open().await.unwrap());
    let renewed: LogId = operator.renew_id().await.unwrap();
    assert_ne!(log.id(), renewed, "not looked yet");
    let conflict = log.append(append("a", Expect::Absent, "no")).await;
    assert_eq!((conflict, log.id()), (Appended::Conflict(vec![(Subject::of(["a"]), Some(1))]), renewed));
}

/// A load after an append sees it: readers have connections of their own, but no memory.
#[tokio::test]
async fn a_read_sees_every_append_acknowledged_before() {
    let file = File::new();
    let log = file.open().await.unwrap();
    for n in 1..=50 {
        let expect = if n == 1 { Expect::Absent } else { Expect::At(n - 1) };
        assert!(matches!(log.append(append("a", expect, "x")).await, Appended::Done(_)));
        let loaded = log.load(&Subject::of(["a"]), 0, |count, _| count + 1).await.unwrap();
        assert_eq!(loaded, (n, Some(n)));
    }
}
