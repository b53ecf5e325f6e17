//! A read ends with the verdict of the service, and with nothing else.

use std::time::Duration;

use bytes::Bytes;
use outlast::testing::Reply;
use outlast::{Cause, End, Reading};

use crate::world::{HOUR, MILLI, MINUTE, Record, Run, SECOND, World, doubted, run};

/// FC-01, R1: a run survives 502, 500 and a reset, the observer sees running and then success, and the outage is
/// forgotten once the service has answered: a later one is counted from its own first failure.
#[tokio::test(start_paused = true)]
async fn fc_01_a_few_failures_in_a_row_end_nothing() {
    let world = World::new();
    let running = || run("running");
    world.ci.replies(
        "/run",
        [
            running(),
            running(),
            running(),
            running(),
            Reply::status(502),
            Reply::status(500),
            Reply::close(),
            running(),
            running(),
            Reply::status(502),
            running(),
            run("success"),
        ],
    );
    // The second failure comes more than 1.5 s after the first one: together they would be too long an outage.
    let read = world.get("/run").give_up_after(1_500 * MILLI).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    let known = read.until(Run::is_over).within(HOUR).await.unwrap();
    assert_eq!(known.status, "success");
    assert_eq!(seen.statuses(), ["running", "success"]);
    assert_eq!(seen.end(), None);
    assert!(seen.causes().contains(&Cause::Status { code: 502 }));
    assert!(seen.all().iter().skip(2).all(|reading| reading.last().is_some()), "a value once shown stays");
    // The reset is followed by a request on another connection at once, which needs no reading of its own (FC-90).
    assert_eq!(world.ci.asked("/run").len(), 12);
}

/// FC-04, R3: a service that is killed, and a body that ends cleanly without a word, leave a wait unresolved.
#[tokio::test(start_paused = true)]
async fn fc_04_a_clean_end_is_no_verdict() {
    let nothing = Vec::<Bytes>::new;
    for (what, reply) in [
        ("an empty stream that ends", Reply::chunked(nothing()).ends().header("content-type", "application/json")),
        ("an empty body", Reply::status(200)),
        ("an empty text", Reply::text("")),
        ("an empty JSON body", Reply::json(()).body("")),
        ("null", Reply::json(())),
        ("white space", Reply::json(()).body(" \r\n")),
        ("no content", Reply::status(204)),
        ("half a value that ends", Reply::chunked(["{\"status\":\"succ"]).ends()),
        ("half a value that is cut", run("success").cut(12)),
        ("an end without an answer", Reply::close()),
        ("an end without an answer, late", Reply::close().after(10 * SECOND)),
    ] {
        let world = World::new();
        world.ci.replies("/run", [run("running"), reply]);
        let read = world.get("/run").observe::<Run>().unwrap();
        let seen = Record::of(&read);
        let wait = read.until(Run::is_over).within(10 * MINUTE).await.unwrap_err();
        assert!(wait.is_still_pending(), "{what}: {wait}");
        assert_eq!(seen.statuses(), ["running"], "{what}");
        assert!(wait.cause().is_some(), "{what} is shown as fresh");
        world.ci.replies("/run", [run("failure")]);
        assert_eq!(read.until(Run::is_over).within(MINUTE).await.unwrap().status, "failure", "{what}");
    }
}

/// FC-04: the same for a long poll that is held when the process is killed.
#[tokio::test(start_paused = true)]
async fn fc_04_a_service_killed_in_a_long_poll_is_no_verdict() {
    let world = World::new();
    world.ci.replies("/run", [run("running").header("etag", "\"1\""), Reply::hang()]);
    let read = world.get("/run").wait(10 * MINUTE).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.ci.until("/run", 2).await;
    world.pass(MINUTE).await;
    world.ci.kill();
    assert!(read.until(Run::is_over).within(HOUR).await.unwrap_err().is_still_pending());
    assert_eq!((seen.statuses(), seen.end()), (vec!["running".to_owned()], None));
    assert!(matches!(read.latest(), Reading::Stale { cause: Cause::Unreachable { .. }, .. }), "{:?}", read.latest());
    world.ci.replies("/run", [run("success")]);
    world.ci.revive();
    world.shows(&read, "success", 6 * SECOND).await;
}

/// FC-14, R3: 404 right after a create is "not yet".
#[tokio::test(start_paused = true)]
async fn fc_14_what_is_not_visible_yet_is_loading() {
    let world = World::new();
    world.ci.replies("/run", [Reply::status(404)]);
    let read = world.get("/run").observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.pass(3 * SECOND).await;
    assert!(matches!(read.latest(), Reading::Loading { cause: Some(Cause::NotYetVisible), .. }), "{:?}", read.latest());
    world.ci.replies("/run", [run("queued")]);
    world.shows(&read, "queued", 1_500 * MILLI).await;
    assert_eq!(seen.end(), None);
}

/// FC-14, R3: 404 beyond the grace window is an end, and neither much sooner nor much later.
#[tokio::test(start_paused = true)]
async fn fc_14_what_stays_invisible_is_gone() {
    let world = World::new();
    world.ci.replies("/run", [Reply::status(404)]);
    let read = world.get("/run").observe::<Run>().unwrap();
    let (wait, took) = world.time(read.until(Run::is_over)).await;
    assert_eq!(wait.unwrap_err().end(), Some(End::Gone));
    assert!((10 * SECOND..12 * SECOND).contains(&took), "after {took:?}");
    let asked = world.ci.total();
    world.pass(HOUR).await;
    assert_eq!(world.ci.total(), asked);
}

/// FC-14, R3: 404 after the resource was seen is an end, once it was said for the grace. An ingress without a backend says
/// so for the seconds of a restart.
#[tokio::test(start_paused = true)]
async fn fc_14_what_was_seen_and_is_missing_is_gone() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    let read = world.get("/run").observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.shows(&read, "running", SECOND).await;
    for _ in 0..3 {
        world.ci.on("/run", |_| Reply::status(404).body("404 page not found\n").header("content-type", "text/plain"));
        world.pass(8 * SECOND).await;
        world.ci.on("/run", |_| run("running"));
        world.pass(8 * SECOND).await;
        assert!(read.latest().is_fresh());
    }
    world.ci.on("/run", |_| Reply::status(404));
    let before = world.ci.total();
    assert_eq!(read.until(Run::is_over).within(MINUTE).await.unwrap_err().end(), Some(End::Gone));
    let asked = world.ci.asked("/run");
    let said = asked.last().unwrap().at.duration_since(asked[before].at);
    assert!((10 * SECOND..=11 * SECOND).contains(&said), "{said:?}");
    assert_eq!(read.latest().last().unwrap().status, "running", "the last value stays readable");
    assert_eq!(seen.statuses(), ["running"]);
}

/// R3: 410 is an end at once; nothing is asked after it.
#[tokio::test(start_paused = true)]
async fn r3_410_is_gone() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), Reply::status(410), run("success")]);
    let read = world.get("/run").observe::<Run>().unwrap();
    assert_eq!(read.until(Run::is_over).within(MINUTE).await.unwrap_err().end(), Some(End::Gone));
    world.pass(HOUR).await;
    assert_eq!(world.ci.total(), 2);
}

/// FC-17, R5: a state reached before the read began is seen with one request, and a wait that begins later needs none.
#[tokio::test(start_paused = true)]
async fn fc_17_a_state_reached_before_is_seen() {
    let world = World::new();
    let round_trip = 40 * MILLI;
    // Nothing follows: whoever waits for a change waits for ever.
    world.ci.replies("/run", [run("success").header("etag", "\"1\"").after(round_trip), Reply::hang()]);
    let read = world.get("/run").wait(HOUR).observe::<Run>().unwrap();
    let (known, took) = world.time(read.until(Run::is_over)).await;
    assert_eq!(known.unwrap().status, "success");
    assert!(took <= round_trip + 2 * MILLI, "after {took:?}");
    assert_eq!(world.ci.total(), 1);

    world.ci.until("/run", 2).await; // the long poll is held
    let (known, took) = world.time(read.until(Run::is_over)).await;
    assert_eq!((known.unwrap().status.clone(), took), ("success".to_owned(), Duration::ZERO));
}

/// FC-17, R5: a state reached between the first answer and the request that waits for a change.
#[tokio::test(start_paused = true)]
async fn fc_17_a_state_reached_between_snapshot_and_wait_is_seen() {
    let world = World::new();
    world.ci.on("/run", |asked| match asked.header("if-none-match") {
        None => run("running").header("etag", "\"1\""),
        // It has changed meanwhile: a conditional request is answered at once, and no later one is.
        Some("\"1\"") => run("success").header("etag", "\"2\""),
        Some(_) => Reply::hang(),
    });
    let read = world.get("/run").wait(HOUR).observe::<Run>().unwrap();
    world.shows(&read, "success", 1_500 * MILLI).await;
}

/// R2: before the first value it is loading, however often attempts fail, and the last cause is readable.
#[tokio::test(start_paused = true)]
async fn r2_a_first_value_that_is_late_is_loading() {
    let world = World::new();
    world.net.name("ci.example", []);
    let read = world.get("/run").observe::<Run>().unwrap();
    let seen = Record::of(&read);
    doubted(&world.env, &read, SECOND, |cause| matches!(cause, Cause::Unresolved { .. })).await;
    world.net.name("ci.example", ["ci.example"]);
    world.ci.kill();
    doubted(&world.env, &read, MINUTE, |cause| matches!(cause, Cause::Unreachable { .. })).await;
    world.ci.replies("/run", [Reply::status(500), Reply::raw("?"), run("running")]);
    world.ci.revive();
    doubted(&world.env, &read, MINUTE, |cause| matches!(cause, Cause::Undecodable { .. })).await;
    world.shows(&read, "running", MINUTE).await;
    let before = seen.all().iter().take_while(|reading| matches!(reading, Reading::Loading { .. })).count();
    assert_eq!(before + 1, seen.all().len());
}

/// R3: the head of a 410 says it all: it is an end, though a body is announced that never comes.
#[tokio::test(start_paused = true)]
async fn r3_410_is_gone_whatever_its_body() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), Reply::status(410).body("gone, gone").stalls(2)]);
    let read = world.get("/run").observe::<Run>().unwrap();
    assert_eq!(read.until(Run::is_over).within(10 * SECOND).await.unwrap_err().end(), Some(End::Gone));
    assert_eq!(world.ci.total(), 2);
}
