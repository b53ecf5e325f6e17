use futures::FutureExt;

use super::{MemoryLog, Store};
use crate::env::Env;
use crate::log::{Append, AppendId, Appended, Expect, Log, LogId, Prefix, Subject};
use crate::machine::Wall;

fn append(n: u128, expect: Expect) -> Append {
    Append::new(AppendId::new(n.into()), Wall::default()).write(Subject::of(["s"]), expect, "x")
}

/// A model checker keeps stores in its states: equal histories are equal, a clone has a future of its own.
#[test]
fn a_store_is_a_value() {
    let mut one = Store::new(LogId::new(1_u128.into()));
    one.append(&append(1, Expect::Absent));
    let mut two = one.clone();
    two.append(&append(2, Expect::At(1)));
    assert_ne!(one, two);
    assert!(matches!(two.append(&append(3, Expect::At(1))), Appended::Conflict(_)));
    one.append(&append(2, Expect::At(1)));
    assert_eq!(one, two, "a conflict leaves no trace");
}

/// A store goes on where it was: what a simulation does with a backup.
#[tokio::test]
async fn a_log_goes_on_from_a_store() {
    let env = Env::system();
    let log = MemoryLog::declared_durable(&env);
    log.append(append(1, Expect::Absent)).await;
    let restored = MemoryLog::from_store(log.store(), &env, true);
    log.append(append(2, Expect::At(1))).await;
    assert_eq!((restored.id(), restored.head_of_log().await.unwrap()), (log.id(), 1));
    assert!(restored.durable() && !MemoryLog::default().durable());
    assert_ne!(MemoryLog::default().id(), MemoryLog::default().id());
}

/// Simulations poll it in one step: nothing in it waits for anything else than an append.
#[tokio::test]
async fn it_answers_at_once() {
    let log = MemoryLog::default();
    assert!(log.append(append(1, Expect::Absent)).now_or_never().is_some());
    let mut tail = log.tail(&Prefix::all(), 0);
    assert!(futures::StreamExt::next(&mut tail).now_or_never().is_some());
    assert!(futures::StreamExt::next(&mut tail).now_or_never().is_none());
}
