//! Laws of following.

use futures::{FutureExt, StreamExt};

use super::{Tested, bodies, prefix, subject};
use crate::log::{Committed, Expect, Log, Prefix, Seq};

/// Takes from `tail` until it has come to `through`; checks that it goes forward only.
async fn until<S: futures::Stream<Item = Committed> + Unpin>(tail: &mut S, through: Seq) -> Vec<Committed> {
    let mut seen: Vec<Committed> = Vec::new();
    while seen.last().is_none_or(|last| last.through < through) {
        let next = tail.next().await.expect("a tail never ends");
        assert!(seen.last().is_none_or(|last| last.through < next.through), "{next:?} after {seen:?}");
        seen.push(next);
    }
    seen
}

/// What was there comes first, then what is appended, each append once, in order and in one piece.
pub async fn a_tail_gives_history_and_then_what_is_new<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (a, b) = (subject("x/a"), subject("x/b"));
    log.done(&[(&a, Expect::Absent, "1"), (&b, Expect::Absent, "2")]).await;
    log.done(&[(&a, Expect::At(1), "3")]).await;
    let mut all = log.log.tail(&Prefix::all(), 0);
    let mut later = log.log.tail(&prefix("x/b"), 2);
    assert_eq!(bodies(&until(&mut all, 3).await), ["1", "2", "3"]);
    for n in 0..1000 {
        log.done(&[(&a, Expect::Any, &format!("a{n}")), (&b, Expect::Any, &format!("b{n}"))]).await;
    }
    let live = until(&mut all, 2003).await;
    assert_eq!(live.len(), 1000, "each append is one item");
    assert!(live.iter().zip(1..).all(|(c, n)| c.through == 3 + 2 * n && c.entries.len() == 2));
    let expected: Vec<_> = (0..1000).map(|n| format!("b{n}")).collect();
    assert_eq!(bodies(&until(&mut later, 2003).await), expected);
}

/// A follower of one prefix learns that the log goes on elsewhere, and nothing of what.
pub async fn a_tail_tells_how_far_it_has_come<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (mine, other) = (subject("mine"), subject("other"));
    log.done(&[(&other, Expect::Absent, "1")]).await;
    let mut tail = log.log.tail(&mine.prefix(), 0);
    assert_eq!(until(&mut tail, 1).await, [Committed::new(1, vec![])]);
    log.done(&[(&other, Expect::At(1), "2")]).await;
    assert_eq!(until(&mut tail, 2).await, [Committed::new(2, vec![])]);
    let last = log.done(&[(&mine, Expect::Absent, "3"), (&other, Expect::Any, "4")]).await;
    let seen = until(&mut tail, last.seq).await;
    assert_eq!((bodies(&seen), seen.last().map(|c| c.through)), (vec!["3".to_owned()], Some(4)));
    for _ in 0..20 {
        log.done(&[(&other, Expect::Any, "more")]).await;
    }
    let seen = until(&mut tail, 24).await;
    assert!(seen.iter().all(|c| c.entries.is_empty()), "{seen:?}");
}

/// A tail of one handle sees what another handle of the same history appends.
pub async fn a_tail_sees_the_appends_of_another_handle<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let (log, other) = (Tested::open(&open).await, Tested::open(&open).await);
    let a = subject("a");
    let mut tail = log.log.tail(&a.itself(), 0);
    for n in 1..=5 {
        other.done(&[(&a, Expect::Any, &n.to_string())]).await;
        assert_eq!(bodies(&until(&mut tail, n).await), [n.to_string()]);
    }
}

/// A `next()` that is dropped while it waits, or before it began, takes nothing with it.
pub async fn a_dropped_wait_for_a_tail_loses_nothing<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let a = subject("a");
    let mut tail = log.log.tail(&Prefix::all(), 0);
    let mut seen = Vec::new();
    for n in 1..=20 {
        seen.extend(tail.next().now_or_never().flatten());
        log.done(&[(&a, Expect::Any, &n.to_string())]).await;
        seen.extend(tail.next().now_or_never().flatten());
        tokio::task::yield_now().await;
    }
    if seen.last().is_none_or(|last: &Committed| last.through < 20) {
        seen.extend(until(&mut tail, 20).await);
    }
    assert_eq!(bodies(&seen), (1..=20).map(|n| n.to_string()).collect::<Vec<_>>());
}
