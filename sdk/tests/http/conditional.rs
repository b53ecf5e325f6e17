//! Answers that say that nothing has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast::Cause;
use outlast::testing::Reply;

use crate::world::{MINUTE, Record, Run, SECOND, World, doubted, run};

/// 304 keeps the value, without another decoding, and is as fresh as 200.
#[tokio::test(start_paused = true)]
async fn r5_304_confirms_the_value() {
    let world = World::new();
    world.ci.on("/run", |asked| match asked.header("if-none-match") {
        Some("W/\"1\"") => Reply::status(304),
        _ => run("running").header("etag", "W/\"1\""),
    });
    let decoded = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&decoded);
    let read = world.get("/run").decoded(move |body| {
        counts.fetch_add(1, Ordering::Relaxed);
        serde_json::from_slice::<Run>(body).map_err(|e| e.to_string())
    });
    let read = read.observe().unwrap();
    let seen = Record::of(&read);
    world.pass(MINUTE).await;
    assert!(read.latest().is_fresh());
    assert_eq!((seen.statuses(), decoded.load(Ordering::Relaxed)), (vec!["running".to_owned()], 1));
    assert!(seen.causes().is_empty());
    assert!(world.ci.total() > 50);
    // And it recovers what was stale.
    world.ci.kill();
    doubted(&world.env, &read, 2 * SECOND, |cause| matches!(cause, Cause::Unreachable { .. })).await;
    world.ci.revive();
    world.shows(&read, "running", 2 * SECOND).await;
}

/// R3: 304 to a request that named nothing is no value.
#[tokio::test(start_paused = true)]
async fn r3_304_to_a_plain_request_is_no_value() {
    let world = World::new();
    world.ci.replies("/run", [Reply::status(304), run("running"), Reply::status(304)]);
    let read = world.get("/run").observe::<Run>().unwrap();
    doubted(&world.env, &read, SECOND, |cause| *cause == Cause::Status { code: 304 }).await;
    world.shows(&read, "running", 2 * SECOND).await;
    doubted(&world.env, &read, 2 * SECOND, |cause| *cause == Cause::Status { code: 304 }).await;
}

/// The same body again is no change: the intervals grow as they do with 304.
#[tokio::test(start_paused = true)]
async fn the_same_body_is_no_change() {
    let world = World::new();
    world.ci.replies("/run", [run("running")]);
    let get = world.agent.get("http://ci.example/run"); // at the default pace
    let read = get.observe::<Run>().unwrap();
    world.pass(10 * MINUTE).await;
    let asked = world.ci.total();
    assert!((20..60).contains(&asked), "{asked} requests in ten minutes without a change");
    assert!(read.latest().is_fresh());
}
