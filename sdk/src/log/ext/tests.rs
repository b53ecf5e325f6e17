//! What is made from every log, on one that fails as scripted.

use futures::StreamExt;

use super::{Certain, LogExt, Recorded};
use crate::env::{Env, SystemClock};
use crate::error::Error;
use crate::log::{Append, AppendId, Appended, Expect, Fault, Faulty, Log, MemoryLog, Odds, Subject, Timestamp};
use crate::machine::Wall;

struct Scene {
    env: Env,
    log: Faulty<MemoryLog>,
}

fn scene(script: impl IntoIterator<Item = Fault>) -> Scene {
    let env = Env::new(SystemClock::default(), 1);
    let log = Faulty::new(MemoryLog::new(&env), &env);
    log.script(script);
    Scene { env, log }
}

impl Scene {
    fn append(&self, expect: Expect) -> Append {
        Append::new(AppendId::new(self.env.ulid()), Wall::from_millis(1)).write(key(), expect, "x")
    }

    fn at(&self, seq: u64) -> Timestamp {
        Timestamp { log: self.log.id(), seq }
    }

    /// Another one writes to the same subject as soon as the script has come to its end.
    async fn another_writes_after_the_script(&self) {
        while self.log.scripted() > 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            let appended = self.log.inner().append(self.append(Expect::Any)).await;
            assert!(matches!(appended, Appended::Done(_)));
        }
    }
}

fn key() -> Subject {
    Subject::of(["key", "alice", "1"])
}

/// S1: an ambiguous append is repeated until there is no doubt, and is there once.
#[tokio::test(start_paused = true)]
async fn an_ambiguous_append_becomes_certain_and_is_written_once() {
    let scripts: [&[Fault]; 6] = [
        &[Fault::After],
        &[Fault::Lost],
        &[Fault::Lost, Fault::Lost, Fault::Before, Fault::After, Fault::Before],
        &[Fault::Late(1)],
        &[Fault::Late(3), Fault::Lost, Fault::Lost],
        &[Fault::After, Fault::After, Fault::After],
    ];
    for script in scripts {
        let scene = scene(script.iter().copied());
        let certain = scene.log.append_certain(&scene.env, scene.append(Expect::Absent)).await;
        assert_eq!(certain.unwrap(), Certain::Done(scene.at(1)), "{script:?}");
        assert_eq!(scene.log.inner().head_of_log().await.unwrap(), 1, "{script:?}");
        assert_eq!(scene.log.scripted(), 0);
    }
}

/// The id is looked for in the whole subject: others may have written after it.
#[tokio::test(start_paused = true)]
async fn an_append_is_found_under_newer_entries() {
    let scene = scene([Fault::After]);
    let append = scene.append(Expect::Absent);
    let (certain, ()) =
        tokio::join!(scene.log.append_certain(&scene.env, append), scene.another_writes_after_the_script());
    assert_eq!(certain.unwrap(), Certain::Done(scene.at(1)));
    assert_eq!(scene.log.inner().head_of_log().await.unwrap(), 4);
}

/// A lost append whose place was taken is a conflict, not a success.
#[tokio::test(start_paused = true)]
async fn a_lost_append_whose_place_was_taken_is_a_conflict() {
    for fault in [Fault::Lost, Fault::Late(2)] {
        let scene = scene([fault]);
        let append = scene.append(Expect::Absent);
        let (certain, ()) =
            tokio::join!(scene.log.append_certain(&scene.env, append), scene.another_writes_after_the_script());
        assert_eq!(certain.unwrap(), Certain::Conflict(vec![(key(), Some(3))]), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_log_is_a_retryable_error_while_there_is_no_doubt() {
    let scene = scene([Fault::Before]);
    let error = scene.log.append_certain(&scene.env, scene.append(Expect::Absent)).await.unwrap_err();
    assert!(error.is_retryable() && !error.may_have_taken_effect());
    assert_eq!(scene.log.inner().head_of_log().await.unwrap(), 0);
}

/// An append without any condition could be written twice, so it is never repeated.
#[tokio::test(start_paused = true)]
async fn an_unconditional_append_is_refused() {
    let scene = scene([]);
    assert!(scene.log.append_certain(&scene.env, scene.append(Expect::Any)).await.unwrap_err().is_invalid());
    let empty = Append::new(AppendId::new(scene.env.ulid()), Wall::default());
    assert!(scene.log.append_certain(&scene.env, empty).await.unwrap_err().is_invalid());
    // One condition is enough: a second copy is refused as a whole.
    let fenced = scene.append(Expect::Absent).write(Subject::of(["log"]), Expect::Any, "line");
    assert_eq!(scene.log.append_certain(&scene.env, fenced).await.unwrap(), Certain::Done(scene.at(2)));
}

/// What is looked for is found also when looking fails for a while.
#[tokio::test(start_paused = true)]
async fn a_failing_look_is_repeated() {
    let scene = scene([Fault::After, Fault::After]);
    let log = scene.log.clone().with_odds(Odds { read: 0.9, ..Odds::default() });
    assert_eq!(log.append_certain(&scene.env, scene.append(Expect::Absent)).await.unwrap(), Certain::Done(scene.at(1)));
}

/// S2: a replay names the timestamp of the first copy, also after later entries.
#[tokio::test(start_paused = true)]
async fn a_recorded_key_is_replayed_with_the_stored_timestamp() {
    let scene = scene([Fault::After]);
    let record = async |body: &'static str| {
        let id = AppendId::new(scene.env.ulid());
        scene.log.append_if_absent(&scene.env, id, &key(), body.into()).await.unwrap()
    };
    let other = Append::new(AppendId::new(scene.env.ulid()), Wall::default());
    scene.log.inner().append(other.write(Subject::of(["key"]), Expect::Any, "above")).await;
    assert_eq!(record("body").await, Recorded::First(scene.at(2)));
    scene.log.inner().append(scene.append(Expect::At(2))).await;
    assert_eq!(record("body").await, Recorded::Replay(scene.at(2)));
    assert_eq!(record("another").await, Recorded::KeyConflict);
}

/// A load reads every page of one subject, and says what the deciding append has to expect.
#[tokio::test(start_paused = true)]
async fn a_load_folds_the_whole_subject_and_nothing_below_it() {
    let scene = scene([]);
    assert_eq!(scene.log.load(&key(), 0, |n, _| n + 1).await.unwrap(), (0, None));
    let below = Subject::of(["key", "alice", "1", "log"]);
    for _ in 0..super::PAGE + 1 {
        let append = scene.append(Expect::Any).write(below.clone(), Expect::Any, "line").write(key(), Expect::Any, "y");
        scene.log.append(append).await;
    }
    let loaded = scene.log.load(&key(), (0, 0), |(n, _), entry| (n + 1, entry.seq)).await.unwrap();
    let head = 3 * (super::PAGE as u64 + 1);
    assert_eq!(loaded, ((2 * (super::PAGE + 1), head), Some(head)));
    let pages: Vec<_> = scene.log.history(key().prefix(), 3).collect().await;
    assert_eq!(pages.len(), super::PAGE);
}

#[tokio::test(start_paused = true)]
async fn a_load_fails_with_its_fold_or_its_log() {
    let scene = scene([]);
    scene.log.append(scene.append(Expect::Any)).await;
    let failed = scene.log.try_load(&key(), (), |(), _| Err(Error::invalid("entry", "JSON"))).await;
    assert!(failed.unwrap_err().is_invalid());
    scene.log.set_unavailable(true);
    assert!(scene.log.load(&key(), (), |(), _| ()).await.unwrap_err().is_retryable());
}
