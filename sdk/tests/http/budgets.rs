//! All reads, feeds and streams of one origin and credential share one budget (R8), in which nobody waits for another's end.

use std::sync::atomic::{AtomicUsize, Ordering};

use outlast::http::feed::{self, LogKind};
use outlast::http::poll::Pace;
use outlast::testing::Reply;
use outlast::{Cause, Credential};

use crate::world::{HOUR, MILLI, MINUTE, Run, SECOND, World, doubted, run};

/// R8: two reads of one origin and credential share what the service says; another credential has its own budget.
#[tokio::test(start_paused = true)]
async fn r8_reads_of_one_agent_share_a_budget() {
    let world = World::new();
    let token = |name: &str| Credential::bearer(name).unwrap();
    world.ci.replies("/a", [run("running"), Reply::status(429).header("retry-after", 60), run("success")]);
    for path in ["/b", "/c"] {
        world.ci.replies(path, [run("running")]);
    }
    let a = world.get("/a").credential(token("one")).observe::<Run>().unwrap();
    let b = world.get("/b").credential(token("one")).observe::<Run>().unwrap();
    let c = world.get("/c").credential(token("two")).observe::<Run>().unwrap();
    let limited = world.ci.until("/a", 2).await.at;
    world.shows(&a, "success", 2 * MINUTE).await;
    let within = |path: &str| {
        let held = limited + 10 * MILLI..limited + MINUTE;
        world.ci.asked(path).iter().filter(|asked| held.contains(&asked.at)).count()
    };
    assert_eq!(within("/b"), 0, "the same credential");
    assert!(within("/c") > 50, "another one: {}", within("/c"));
    world.shows(&b, "running", 5 * SECOND).await;
    assert!(c.latest().is_fresh());
}

/// R8: a service counts by who asks, not by the token of the hour: a token that was renewed has the budget of the old one.
#[tokio::test(start_paused = true)]
async fn r8_a_renewed_token_keeps_its_budget() {
    let world = World::new();
    let used_up = run("running").header("x-ratelimit-limit", 1).header("x-ratelimit-remaining", 0);
    world.ci.replies("/run", [used_up.header("x-ratelimit-reset", 60), run("success")]);
    let minted = AtomicUsize::new(0);
    let source = move || {
        let token = format!("t{}", minted.fetch_add(1, Ordering::Relaxed));
        async move { Ok(Credential::bearer(token)?.lasting(2 * SECOND)) }
    };
    let read = world.get("/run").pace(Pace::every(5 * SECOND)).credential(source).observe::<Run>().unwrap();
    world.shows(&read, "success", 2 * MINUTE).await;
    let asked = world.ci.asked("/run");
    assert_ne!(asked[0].header("authorization"), asked[1].header("authorization"));
    assert!(asked[1].at - asked[0].at >= MINUTE, "after {:?}", asked[1].at - asked[0].at);
}

/// R8: and they are not sent closer together than the budget permits, however many there are.
#[tokio::test(start_paused = true)]
async fn r8_requests_of_one_budget_keep_their_distance() {
    let world = World::new();
    world.ci.replies("/run", [run("running")]);
    let reads: Vec<_> = (0..20).map(|_| world.get("/run").observe::<Run>().unwrap()).collect();
    for read in &reads {
        world.shows(read, "running", 10 * SECOND).await;
    }
    world.pass(10 * SECOND).await;
    let asked = world.ci.asked("/run");
    assert!(asked.windows(2).all(|two| two[1].at - two[0].at >= 199 * MILLI));
}

/// R8: dials of a service that is away take nothing of its rate: a read that was slowed down finds it again as soon as
/// another, whether the address refuses or is dark.
#[tokio::test(start_paused = true)]
async fn r8_dials_of_a_service_that_is_away_take_nothing_of_its_rate() {
    for dark in [false, true] {
        let world = World::new();
        let few = run("running").header("x-ratelimit-limit", 100).header("x-ratelimit-remaining", 4);
        world.ci.replies("/run", [few.header("x-ratelimit-reset", 3_000)]);
        let read = world.get("/run").observe::<Run>().unwrap();
        world.shows(&read, "running", SECOND).await;
        world.ci.kill();
        if dark {
            world.net.silence("ci.example");
        }
        // The next request is due after a quarter of an hour or so. Then it is an outage.
        let away = |cause: &Cause| matches!(cause, Cause::Unreachable { .. } | Cause::Stalled { .. });
        doubted(&world.env, &read, HOUR, away).await;
        world.pass(MINUTE).await;
        world.net.heal("ci.example");
        world.ci.replies("/run", [run("success")]);
        world.ci.revive();
        world.shows(&read, "success", 10 * SECOND).await;
        assert_eq!(world.ci.total(), 2);
    }
}

/// R9: a budget that holds a read is shown as the cause, and the read goes on by itself.
#[tokio::test(start_paused = true)]
async fn r9_a_read_that_is_held_says_why() {
    let world = World::new();
    world.ci.replies("/a", [Reply::status(429).header("retry-after", 120)]);
    world.ci.replies("/b", [run("running"), run("success")]);
    let b = world.get("/b").pace(Pace::every(10 * SECOND)).observe::<Run>().unwrap();
    world.shows(&b, "running", SECOND).await;
    let _a = world.get("/a").observe::<Run>().unwrap();
    doubted(&world.env, &b, 12 * SECOND, |cause| matches!(cause, Cause::RateLimited { .. })).await;
    world.shows(&b, "success", 125 * SECOND).await;
}

/// R8: each step of a redirect is a request as any other.
#[tokio::test(start_paused = true)]
async fn r8_the_steps_of_redirects_keep_their_distance() {
    let world = World::new();
    for hop in 0..8 {
        world.ci.on(&format!("/hop{hop}"), move |asked| {
            let (_, query) = asked.target.split_once('?').unwrap();
            Reply::status(302).header("location", format!("/hop{}?{query}", hop + 1))
        });
    }
    world.ci.on("/hop8", |_| run("running"));
    let reads: Vec<_> = (0..30).map(|n| world.get(&format!("/hop0?{n}")).observe::<Run>().unwrap()).collect();
    for read in &reads {
        world.shows(read, "running", 5 * MINUTE).await;
    }
    let mut asked: Vec<_> = (0..=8).flat_map(|hop| world.ci.asked(&format!("/hop{hop}"))).map(|a| a.at).collect();
    asked.sort();
    assert!(asked.len() >= 9 * 30);
    let least = asked.windows(2).map(|two| two[1] - two[0]).min();
    assert!(least >= Some(199 * MILLI), "{least:?} apart");
}

/// R8, R10: open feeds hold no place. The status is read, however many there are.
#[tokio::test(start_paused = true)]
async fn r10_open_feeds_keep_no_status_from_being_read() {
    let world = World::new();
    let (stream, handle) = Reply::stream();
    world.ci.replies("/events", [stream.header("content-type", "text/event-stream")]);
    world.ci.on("/run", |_| run("success"));
    let events = |n| world.get(&format!("/events?{n}")).events().unwrap();
    let _feeds: Vec<_> = (0..64).map(events).collect();
    // All are open, and none for so long that its place is free for its age.
    world.pass(13 * SECOND).await;
    assert_eq!(handle.readers(), 64);
    let read = world.get("/run").observe::<Run>().unwrap();
    let alive = async {
        loop {
            handle.send(": alive\n\n");
            world.pass(30 * SECOND).await;
        }
    };
    tokio::select! {
        _ = world.shows(&read, "success", SECOND) => {}
        () = alive => {}
    }
}

/// R6, R10: nor do logs that nobody takes: what waits is the log, not the status.
#[tokio::test(start_paused = true)]
async fn r10_logs_that_nobody_takes_keep_no_status_from_being_read() {
    let world = World::new();
    world.ci.on("/log", |_| Reply::bytes(vec![b'x'; 8 << 20]).header("content-type", "text/plain"));
    world.ci.on("/run", |_| run("success"));
    let log = |n| {
        let settings = feed::Settings::default().with_buffer(1);
        world.get(&format!("/log?{n}")).log_with(LogKind::Whole, settings).unwrap()
    };
    let _logs: Vec<_> = (0..64).map(log).collect();
    world.pass(13 * SECOND).await;
    assert_eq!(world.ci.asked("/log").len(), 64);
    let read = world.get("/run").observe::<Run>().unwrap();
    world.shows(&read, "success", SECOND).await;
}

/// R7, R8: long polls that are held take no place for longer than an answer may take: each of more than there are places
/// has its first value soon, and so has another read.
#[tokio::test(start_paused = true)]
async fn r8_long_polls_keep_no_read_from_being_made() {
    let world = World::new();
    world.ci.on("/long", |asked| match asked.header("prefer") {
        Some(_) => Reply::status(304).after(10 * MINUTE),
        None => run("running").header("etag", "\"1\""),
    });
    world.ci.on("/run", |_| run("success"));
    let long = |n| world.get(&format!("/long?{n}")).wait(10 * MINUTE).observe::<Run>().unwrap();
    let reads: Vec<_> = (0..70).map(long).collect();
    world.pass(MINUTE).await;
    let loading: Vec<_> = reads.iter().map(|read| read.latest()).filter(|reading| reading.last().is_none()).collect();
    assert!(loading.is_empty(), "{} of 70 have nothing after a minute: {:?}", loading.len(), loading.first());
    let read = world.get("/run").observe::<Run>().unwrap();
    world.shows(&read, "success", MINUTE).await;
}
