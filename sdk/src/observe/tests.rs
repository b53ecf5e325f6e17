//! What observers are promised, whatever publishes.
#![expect(clippy::disallowed_methods, reason = "tests compare with tokio's clock, and spawn what they join")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;
use ulid::Ulid;

use super::machine::Shown;
use super::watermark::Watermark;
use super::*;
use crate::env::{Env, SystemClock};
use crate::error::Cause;
use crate::machine::Monotonic;
use crate::wire::{Cursor, LogId, Timestamp};

const SECOND: Duration = Duration::from_secs(1);

fn timestamp(log: u128, seq: u64) -> Timestamp {
    Timestamp { log: LogId::new(Ulid(log)), seq }
}

/// Position `seq` in log 1.
fn at(seq: u64) -> Cursor {
    Cursor::Log(timestamp(1, seq))
}

fn dropped() -> Cause {
    Cause::Dropped { code: None }
}

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// The output of a future that is to be ready: a broken promise fails here instead of hanging.
fn now<F: Future>(future: F) -> F::Output {
    future.now_or_never().expect("ready at once")
}

fn said<T: Copy>(reading: Option<Reading<T>>) -> String {
    match reading {
        None => "none".into(),
        Some(Reading::Loading { .. }) => "loading".into(),
        Some(Reading::Fresh(_)) => "fresh".into(),
        Some(Reading::Stale { cause, .. }) => format!("stale: {cause}"),
        Some(Reading::Ended { end, .. }) => format!("ended: {end:?}"),
    }
}

#[test]
fn handles_cross_tasks_and_need_nothing_of_the_value() {
    fn observer<T: Send + Unpin + 'static>(_: &T) {}
    struct Opaque;
    let (publisher, read) = channel::<Opaque>();
    observer(&read);
    observer(&read.readings());
    observer(&read.until(|_| true));
    observer(&publisher);
    fn shared<T: Sync>(_: &T) {}
    shared(&read.map(|_| Opaque).at_least(timestamp(1, 1)));
    drop(publisher);
    let error = now(read.until(|_| true)).err().unwrap();
    let error: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
    assert_eq!(error.to_string(), "the read ended: it was closed");
    assert_eq!(format!("{error:?}"), "Ended { end: Closed, .. }");
}

#[tokio::test(start_paused = true)]
async fn r1_a_loaded_read_keeps_its_value_and_says_since_when_it_is_stale() {
    let (publisher, read) = channel();
    publisher.fresh(7);
    tokio::time::advance(SECOND).await;
    let since = Instant::now();
    publisher.stale(dropped());
    tokio::time::advance(SECOND).await;
    publisher.stale(Cause::Behind);
    let Reading::Stale { last, since: stale_since, cause } = read.latest() else { panic!("not stale") };
    assert_eq!((*last, stale_since, cause), (7, since, Cause::Behind));
    publisher.confirm();
    assert_eq!(said(Some(read.latest())), "fresh");
}

#[tokio::test(start_paused = true)]
async fn r2_before_the_first_value_it_loads_and_the_last_cause_is_readable() {
    let (publisher, read) = channel::<u32>();
    assert!(matches!(read.latest(), Reading::Loading { cause: None, .. }));
    let since = Instant::now();
    for cause in [dropped(), Cause::NotYetVisible] {
        tokio::time::advance(SECOND).await;
        publisher.stale(cause.clone());
        assert_eq!(read.latest().cause(), Some(&cause));
    }
    publisher.confirm();
    assert!(matches!(read.latest(), Reading::Loading { since: at, .. } if at == since), "nothing to confirm");
}

#[test]
fn r3_nothing_follows_an_end_and_a_dropped_publisher_is_one() {
    let (publisher, mut read) = channel();
    publisher.fresh(7);
    publisher.end(End::Gone);
    publisher.fresh(8);
    publisher.stale(dropped());
    publisher.end(End::Denied);
    drop(publisher);
    let Some(Reading::Ended { last: Some(last), end }) = now(read.next()) else { panic!("not ended") };
    assert_eq!((*last, end), (7, End::Gone));
    assert!(now(read.next()).is_none());
    assert!(now(read.next()).is_none());

    let (publisher, mut read) = channel::<u32>();
    assert_eq!(said(now(read.next())), "loading");
    drop(publisher);
    assert_eq!(said(now(read.next())), "ended: Closed");
    assert!(now(read.next()).is_none());
}

/// FC-04: a stream that ends without a terminal value resolves nothing.
#[tokio::test(start_paused = true)]
async fn r3_fc_04_a_wait_stays_unresolved_while_the_read_is_stale() {
    let (publisher, read) = channel();
    publisher.fresh("running");
    let mut wait = read.until(|state| *state == "done");
    assert!((&mut wait).now_or_never().is_none());
    for _ in 0..100 {
        publisher.stale(Cause::Dropped { code: Some(1000) });
        tokio::time::advance(60 * SECOND).await;
        assert!((&mut wait).now_or_never().is_none());
        publisher.confirm();
    }
    publisher.fresh("done");
    assert_eq!(*wait.await.unwrap(), "done");
}

/// FC-17: a state reached before the wait began, and one reached between its creation and its first poll.
#[test]
fn r5_fc_17_a_state_reached_before_or_while_subscribing_is_seen() {
    let (publisher, read) = channel();
    publisher.fresh(7);
    assert_eq!(*now(read.until(|n| *n == 7)).unwrap(), 7);
    let wait = read.until(|n| *n == 8);
    publisher.fresh(8);
    assert_eq!(*now(wait).unwrap(), 8);
}

#[test]
fn r5_a_stale_value_older_than_the_wait_is_not_accepted_until_it_is_fresh_again() {
    let (publisher, read) = channel();
    publisher.fresh(7);
    publisher.stale(dropped());
    let mut wait = read.until(|n| *n == 7);
    assert!((&mut wait).now_or_never().is_none());
    publisher.stale(Cause::Behind);
    assert!((&mut wait).now_or_never().is_none());
    publisher.confirm();
    assert_eq!(*now(wait).unwrap(), 7);
}

/// A wait that was not polled in time still sees what was confirmed since it began, within one instant too.
#[tokio::test(start_paused = true)]
async fn r5_a_value_that_was_fresh_since_the_wait_began_is_accepted_when_it_is_stale_or_ended() {
    let (publisher, read) = channel();
    publisher.fresh(6);
    let fresh_when_it_began = read.until(|n| *n == 6);
    publisher.stale(dropped());
    assert_eq!(*now(fresh_when_it_began).unwrap(), 6);

    let stale_then_gone = read.until(|n| *n == 7);
    publisher.fresh(7);
    publisher.stale(dropped());
    let stale = read.until(|n| *n == 7);
    publisher.end(End::Gone);
    assert_eq!(*now(stale_then_gone).unwrap(), 7);
    assert_eq!(now(stale).unwrap_err().end(), Some(End::Gone));
}

#[test]
fn r3_an_end_ends_a_wait_and_says_which() {
    for end in [End::Gone, End::Denied, End::Closed] {
        let (publisher, read) = channel();
        publisher.fresh(6);
        let mut wait = read.until(|n| *n == 7);
        assert!((&mut wait).now_or_never().is_none());
        publisher.end(end);
        let error = now(wait).unwrap_err();
        assert_eq!((error.end(), error.is_still_pending()), (Some(end), false));
        assert_eq!(error.into_last().last().map(|last| **last), Some(6));
    }
}

/// FC-25: a consumer that sleeps sees the newest value, then the end; nothing else is delayed by it.
#[test]
fn r6_fc_25_a_slow_consumer_sees_the_newest_value_and_never_misses_the_end() {
    let (publisher, mut slow) = channel();
    let mut stream = slow.readings();
    let mut quick = slow.clone();
    assert_eq!(said(now(slow.next())), "loading");
    let held = quick.latest();
    for n in 0..1000 {
        publisher.fresh(n);
        assert_eq!(now(quick.next()).unwrap().last().map(|n| **n), Some(n));
    }
    drop(held);
    assert_eq!(now(slow.next()).unwrap().last().map(|n| **n), Some(999));
    publisher.fresh(1000);
    publisher.end(End::Gone);
    for reading in [now(slow.next()), now(quick.next()), now(stream.next())] {
        assert_eq!(reading.as_ref().and_then(|reading| reading.last()).map(|n| **n), Some(1000));
        assert_eq!(said(reading), "ended: Gone");
    }
    assert!(now(slow.next()).is_none());
    assert!(now(stream.next()).is_none());
    assert!(now(stream.next()).is_none(), "a stream that ended stays ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r6_many_observers_on_many_threads_see_values_in_order_and_the_end() {
    const LAST: u64 = 2_000;
    let calls = Arc::new(AtomicUsize::new(0));
    let (publisher, read) = channel();
    let counted = Arc::clone(&calls);
    let view = read.map(move |n: &u64| {
        counted.fetch_add(1, Ordering::SeqCst);
        *n
    });
    let tasks: Vec<_> = (0..16)
        .map(|i| {
            let mut read = if i % 2 == 0 { view.clone() } else { read.clone() };
            tokio::spawn(async move {
                let mut last = 0;
                while let Some(reading) = read.next().await {
                    let n = reading.last().map_or(0, |n| **n);
                    assert!(n >= last, "{n} after {last}");
                    last = n;
                }
                last
            })
        })
        .collect();
    for n in 1..=LAST {
        publisher.fresh(n);
        if n % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    publisher.end(End::Gone);
    for task in tasks {
        assert_eq!(task.await.unwrap(), LAST);
    }
    let calls = calls.load(Ordering::SeqCst);
    assert!(calls as u64 <= LAST, "{calls} calls for {LAST} values");
}

#[test]
fn next_is_cancel_safe() {
    let (publisher, mut read) = channel();
    assert_eq!(said(now(read.next())), "loading");
    for _ in 0..3 {
        assert!(read.next().now_or_never().is_none());
    }
    publisher.fresh(7);
    {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes);
        let mut cx = Context::from_waker(&waker);
        let mut clone = read.clone();
        let mut next = pin!(clone.next());
        assert!(matches!(next.as_mut().poll(&mut cx), Poll::Ready(Some(_))), "a clone starts with the current one");
    }
    assert_eq!(said(now(read.next())), "fresh");
    assert!(read.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn r9_a_wait_out_of_budget_is_still_pending_with_the_last_reading_and_its_cause() {
    let (publisher, read) = channel();
    publisher.fresh(6);
    publisher.stale(dropped());
    let began = Instant::now();
    let error = read.until(|n| *n == 7).within(60 * SECOND).await.unwrap_err();
    assert_eq!(began.elapsed(), 60 * SECOND);
    assert!(error.is_still_pending());
    assert_eq!((error.cause(), error.end()), (Some(&dropped()), None));
    assert_eq!(error.last().last().map(|n| **n), Some(6));
    assert_eq!(error.to_string(), "still pending, the read is stale (connection dropped)");
    assert_eq!(format!("{error:?}"), "StillPending { last: stale (connection dropped) }");

    publisher.fresh(7);
    assert_eq!(*read.until(|n| *n == 7).within(Duration::ZERO).await.unwrap(), 7, "what is there costs no budget");
    assert!(read.until(|n| *n == 8).within(Duration::MAX).now_or_never().is_none());
}

/// R9: where the service permits no attempt within the budget, waiting it out is pointless.
#[tokio::test(start_paused = true)]
async fn r9_a_wait_whose_next_permitted_attempt_lies_past_its_budget_says_so_at_once() {
    let env = Env::new(SystemClock, 1);
    let publisher = Publisher::<u32>::of_connection(&Watermark::new());
    let read = publisher.subscribe();
    let limited = Cause::RateLimited { retry_after: 60 * SECOND };
    let not_before = Some(Monotonic::new(60 * SECOND));
    let shown = Shown::Loading { since: Monotonic::ZERO, cause: Some(limited.clone()), not_before };
    publisher.show(shown, None, &env);
    let began = Instant::now();
    let error = read.until(|_| true).within(59 * SECOND).await.unwrap_err();
    assert_eq!((began.elapsed(), error.cause()), (Duration::ZERO, Some(&limited)));
    let mut patient = read.until(|_| true).within(60 * SECOND);
    assert!((&mut patient).now_or_never().is_none(), "the attempt lies within this one's");
    publisher.show(Shown::Fresh { at: at(1), take: true }, Some(Arc::new(7)), &env);
    assert_eq!(*patient.await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_driver_shows_what_the_machine_says() {
    let env = Env::new(SystemClock, 1);
    let publisher = Publisher::of_connection(&Watermark::new());
    let read = publisher.subscribe();
    publisher.show(Shown::Fresh { at: at(1), take: true }, Some(Arc::new(7)), &env);
    publisher.show(Shown::Stale { since: Monotonic::new(SECOND), cause: dropped(), not_before: None }, None, &env);
    let Reading::Stale { last, since, cause } = read.latest() else { panic!("not stale") };
    assert_eq!((*last, Known::cursor(&last), cause), (7, Some(at(1)), dropped()));
    assert_eq!(since, env.tokio_instant(Monotonic::new(SECOND)));
    // Unchanged: the value shown is as of a later position; what was decoded meanwhile is not shown.
    publisher.show(Shown::Fresh { at: at(2), take: false }, Some(Arc::new(8)), &env);
    let Reading::Fresh(known) = read.latest() else { panic!("not fresh") };
    assert_eq!((*known, Known::cursor(&known)), (7, Some(at(2))));
    publisher.show(Shown::Ended(End::Gone), None, &env);
    assert_eq!(said(Some(read.latest())), "ended: Gone");
}

#[test]
fn w9_at_least_is_fresh_only_with_a_state_that_new() {
    let (publisher, read) = channel();
    let view = read.at_least(timestamp(1, 8));
    assert_eq!(said(Some(view.latest())), "loading");
    publisher.fresh_at("old", at(7));
    assert_eq!(said(Some(view.latest())), "stale: behind");
    assert_eq!(said(Some(read.latest())), "fresh", "only the view asks for more");
    let mut wait = view.until(|_| true);
    assert!((&mut wait).now_or_never().is_none());
    publisher.stale(dropped());
    assert_eq!(said(Some(view.latest())), "stale: connection dropped");
    assert!((&mut wait).now_or_never().is_none(), "R4: fresh was the read, not the view");
    publisher.fresh_at("other log", Cursor::Log(timestamp(2, 9)));
    assert_eq!(said(Some(view.latest())), "stale: behind");
    assert!((&mut wait).now_or_never().is_none());
    publisher.fresh_at("new", at(8));
    assert_eq!(*now(wait).unwrap(), "new");
    assert_eq!(said(Some(view.latest())), "fresh");
    publisher.stale(dropped());
    assert_eq!(said(Some(view.latest())), "stale: connection dropped");
}

/// The end of a read that never came as far as asked for is an end, not a value.
#[test]
fn w9_an_old_value_that_ended_is_not_accepted() {
    let (publisher, read) = channel();
    let wait = read.at_least(timestamp(1, 8)).until(|_| true);
    publisher.fresh_at(6, at(7));
    publisher.end(End::Gone);
    assert_eq!(now(wait).unwrap_err().end(), Some(End::Gone));
}

#[test]
fn w9_a_watermark_satisfies_at_least_and_wakes_no_other_reader() {
    let watermark = Watermark::new();
    let publisher = Publisher::of_connection(&watermark);
    let mut other = publisher.subscribe();
    let view = other.at_least(timestamp(1, 8));
    publisher.fresh_at(7, at(5));
    watermark.advance(timestamp(1, 5));

    let (of_view, of_other) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    let (view_waker, other_waker) = (Waker::from(Arc::clone(&of_view)), Waker::from(Arc::clone(&of_other)));
    let mut wait = view.until(|n| *n == 7);
    assert!(wait.poll_unpin(&mut Context::from_waker(&view_waker)).is_pending());
    assert!(other.next().now_or_never().is_some());
    let mut next = pin!(other.next());
    assert!(next.as_mut().poll(&mut Context::from_waker(&other_waker)).is_pending());

    watermark.advance(timestamp(2, 9));
    assert_eq!(said(Some(view.latest())), "stale: behind", "of another log");
    assert!(wait.poll_unpin(&mut Context::from_waker(&view_waker)).is_pending());
    watermark.reset();
    watermark.advance(timestamp(1, 8));
    watermark.advance(timestamp(1, 6));
    assert!(of_view.count() > 0);
    assert!(matches!(wait.poll_unpin(&mut Context::from_waker(&view_waker)), Poll::Ready(Ok(_))));
    assert_eq!(of_other.count(), 0, "watermarks are not readings");
}

/// A watermark vouches for a live read only: a lost connection may hide what came after the value.
#[test]
fn w9_a_watermark_does_not_vouch_for_a_stale_read() {
    let watermark = Watermark::new();
    let publisher = Publisher::of_connection(&watermark);
    let view = publisher.subscribe().at_least(timestamp(1, 8));
    publisher.fresh_at(7, at(5));
    let mut wait = view.until(|_| true);
    publisher.stale(dropped());
    watermark.advance(timestamp(1, 9));
    assert!((&mut wait).now_or_never().is_none());
    publisher.confirm();
    assert!(wait.now_or_never().is_some());
}

/// Whatever the watermark says of another log or of a source without one, an observer of the view sleeps.
#[test]
fn at_least_does_not_spin_on_a_watermark_that_says_nothing_of_the_value() {
    let watermark = Watermark::new();
    let publisher = Publisher::of_connection(&watermark);
    let mut view = publisher.subscribe().at_least(timestamp(1, 8));
    watermark.advance(timestamp(1, 9));
    publisher.fresh(7);
    assert_eq!(said(now(view.next())), "stale: behind");
    assert!(view.next().now_or_never().is_none());
    publisher.fresh_at(7, Cursor::Log(timestamp(2, 9)));
    assert_eq!(said(now(view.next())), "stale: behind");
    assert!(view.next().now_or_never().is_none());
}

#[test]
fn map_calls_its_function_once_for_each_value_across_clones_and_staleness() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let (publisher, read) = channel::<u32>();
    let view = read.map(move |n| {
        counted.fetch_add(1, Ordering::SeqCst);
        n * 2
    });
    publisher.fresh_at(3, at(1));
    let clones: Vec<_> = (0..10).map(|_| view.clone()).collect();
    for clone in &clones {
        let reading = clone.latest();
        let known = reading.last().unwrap();
        assert_eq!((**known, Known::cursor(known)), (6, Some(at(1))));
    }
    publisher.stale(dropped());
    publisher.confirm();
    publisher.end(End::Gone);
    for clone in clones {
        assert_eq!(clone.latest().last().map(|n| **n), Some(6));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let nested = view.map(|n| n + 1).at_least(timestamp(1, 1));
    assert_eq!(nested.latest().last().map(|n| **n), Some(7));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_panicking_closure_poisons_nothing() {
    let (publisher, read) = channel::<u32>();
    let view = read.map(|n| 100 / n);
    publisher.fresh(0);
    let other = view.clone();
    assert!(catch_unwind(AssertUnwindSafe(|| view.latest())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| other.latest())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| read.until(|_| panic!("no")).now_or_never())).is_err());
    let mut next = view.clone();
    assert!(catch_unwind(AssertUnwindSafe(|| now(next.next()))).is_err());
    publisher.end(End::Gone);
    for _ in 0..2 {
        assert!(catch_unwind(AssertUnwindSafe(|| now(next.next()))).is_err(), "the end is not lost in a panic");
    }

    let (publisher, read) = channel::<u32>();
    let view = read.map(|n| 100 / n);
    let other = view.clone();
    publisher.fresh(0);
    assert!(catch_unwind(AssertUnwindSafe(|| view.latest())).is_err());
    publisher.fresh(50);
    assert_eq!(view.latest().last().map(|n| **n), Some(2));
    assert_eq!(*now(other.until(|n| *n == 2)).unwrap(), 2);
}

/// A value's drop is the user's code: it may look at the read that drops it.
#[test]
fn a_values_drop_may_look_at_its_own_read() {
    struct Looks(Arc<OnceLock<Mutex<Observable<Self>>>>);
    impl Drop for Looks {
        fn drop(&mut self) {
            if let Some(read) = self.0.get() {
                drop(read.lock().unwrap().latest());
            }
        }
    }
    let (publisher, read) = channel();
    let slot = Arc::new(OnceLock::new());
    assert!(slot.set(Mutex::new(read)).is_ok());
    publisher.fresh(Looks(Arc::clone(&slot)));
    publisher.fresh(Looks(Arc::clone(&slot)));
    publisher.end(End::Gone);
    publisher.fresh(Looks(Arc::clone(&slot)));
}

#[tokio::test]
async fn r8_an_idle_upstream_is_found_and_retired_without_a_race() {
    let (publisher, read) = channel::<u32>();
    let weak = publisher.downgrade();
    let holders =
        (read.clone(), read.readings(), read.until(|_| true), read.map(|n| *n), read.at_least(timestamp(1, 1)));
    assert_eq!(publisher.observers(), 6);
    drop(read);
    assert!(publisher.unobserved().now_or_never().is_none());
    assert!(!publisher.retire());
    drop(holders);
    publisher.unobserved().await;

    let back = weak.upgrade().unwrap();
    assert!(!publisher.retire(), "somebody came before");
    publisher.fresh(7);
    assert_eq!(back.latest().last().map(|n| **n), Some(7));
    drop(back);
    assert!(publisher.retire());
    assert!(weak.upgrade().is_none(), "nobody comes after");
    drop(publisher);
    assert!(weak.upgrade().is_none());
}

/// The client may still wait for the last observer when the publisher is dropped.
#[tokio::test]
async fn a_dropped_publisher_lets_nobody_in_even_if_its_cell_lives() {
    let (publisher, read) = channel::<u32>();
    let weak = publisher.downgrade();
    let unobserved = publisher.unobserved();
    drop(publisher);
    assert!(weak.upgrade().is_none());
    assert!(read.latest().is_ended());
    drop(read);
    unobserved.await;
}
