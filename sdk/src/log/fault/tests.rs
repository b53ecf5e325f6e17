use futures::{FutureExt, StreamExt};

use super::{Fault, Faulty, Odds};
use crate::env::{Env, SystemClock};
use crate::log::{Append, AppendId, Appended, Expect, Log, MemoryLog, Prefix, Subject};
use crate::machine::Wall;

fn faulty() -> (Faulty<MemoryLog>, Env) {
    let env = Env::new(SystemClock::default(), 3);
    (Faulty::new(MemoryLog::new(&env), &env), env)
}

fn append(env: &Env) -> Append {
    Append::new(AppendId::new(env.ulid()), Wall::default()).write(Subject::of(["s"]), Expect::Any, "x")
}

#[tokio::test(start_paused = true)]
async fn each_fault_does_what_it_says() {
    let (log, env) = faulty();
    let second = std::time::Duration::from_secs(1);
    log.script([Fault::Before, Fault::Lost, Fault::After, Fault::Late(2), Fault::Nothing, Fault::Delayed(second)]);
    let mut seen = Vec::new();
    for _ in 0..6 {
        let answer = match log.append(append(&env)).await {
            Appended::Done(_) => "done",
            Appended::Busy => "busy",
            Appended::Unknown => "unknown",
            other @ (Appended::Conflict(_) | Appended::Invalid(_)) => panic!("{other:?}"),
        };
        seen.push((answer, log.inner().head_of_log().await.unwrap(), env.instant().since_start().as_secs()));
    }
    let late = [("unknown", 1, 0), ("done", 2, 0), ("done", 4, 1)];
    assert_eq!(seen[..3], [("busy", 0, 0), ("unknown", 0, 0), ("unknown", 1, 0)]);
    assert_eq!(seen[3..], late, "the late one is written before the second append after it");
}

/// S4 is tested with it: nothing is answered as if it had happened, and followers go on afterwards.
#[tokio::test(start_paused = true)]
async fn an_unavailable_log_refuses_and_its_tails_wait() {
    let (log, env) = faulty();
    let mut tail = log.tail(&Prefix::all(), 0);
    log.append(append(&env)).await;
    assert_eq!(tail.next().await.map(|c| c.through), Some(1));
    log.set_unavailable(true);
    assert_eq!(log.append(append(&env)).await, Appended::Busy);
    assert!(log.head_of_log().await.unwrap_err().is_retryable());
    log.inner().append(append(&env)).await;
    assert!(tail.next().now_or_never().is_none());
    log.set_unavailable(false);
    assert_eq!(tail.next().await.map(|c| c.through), Some(2));
}

/// The same seed gives the same faults.
#[tokio::test(start_paused = true)]
async fn the_dice_are_seeded() {
    let run = async || {
        let env = Env::new(SystemClock::default(), 42);
        let odds = Odds { before: 0.2, after: 0.2, lost: 0.2, ..Odds::default() };
        let log = Faulty::new(MemoryLog::new(&env), &env).with_odds(odds);
        let mut answers = Vec::new();
        for _ in 0..200 {
            answers.push(std::mem::discriminant(&log.append(append(&env)).await));
        }
        (answers, log.inner().head_of_log().await.unwrap())
    };
    let first = run().await;
    assert_eq!(first, run().await);
    assert!((90..150).contains(&first.1), "about 120 of 200 are written: {}", first.1);
}
