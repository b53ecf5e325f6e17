//! Attacks: what a hostile or broken service, stream, file or caller does.
#![expect(
    clippy::disallowed_methods,
    clippy::double_ended_iterator_last,
    reason = "attacks bound themselves, in virtual time"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::world::{HOUR, MINUTE, Record, Run, SECOND, World, doubted, run};
use futures::StreamExt as _;
use outlast::http::Agent;
use outlast::http::feed::{self, FeedEnd, FeedItem, LogKind, Offsets};
use outlast::http::poll::{Marks, Pace};
use outlast::http::push::Push;
use outlast::profile::Profile;
use outlast::testing::{Reply, Script, SimulatedExchange};
use outlast::{Credential, End, Reading};

/// An agent whose WebSockets go through the world's network, too.
fn agent(world: &World) -> Agent {
    let exchange = SimulatedExchange::new(world.net.clone());
    Agent::builder().exchange(exchange).network(world.net.clone()).env(world.env.clone()).build().unwrap()
}

fn times(world: &World, target: &str) -> Vec<Duration> {
    let asked = world.ci.asked(target);
    asked.iter().map(|a| a.at.duration_since(asked[0].at)).collect()
}

// ---------------------------------------------------------------- what the service states is a floor

/// Manual: "`X-Poll-Interval` and `Retry-After` always". A stream's hints are no exception.
#[tokio::test(start_paused = true)]
async fn a01_x_poll_interval_holds_for_looks_that_a_stream_asks_for() {
    let world = World::new();
    world.ci.on("/run", |_| run("running").header("x-poll-interval", 60));
    let (stream, handle) = Reply::stream();
    world.ci.on("/events", move |_| stream.clone().header("content-type", "text/event-stream"));
    let read = world.get("/run").push(Push::events("http://ci.example/events")).observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    for _ in 0..120 {
        handle.send("data: x\n\n");
        world.pass(SECOND).await;
    }
    let n = world.ci.asked("/run").len();
    assert!(n <= 5, "asked {n} times in 2 minutes though the service states 60 s: {:?}", times(&world, "/run"));
}

/// The same for an answer that is a 404 before anything was seen.
#[tokio::test(start_paused = true)]
async fn a02_x_poll_interval_of_a_404_holds() {
    let world = World::new();
    world.ci.on("/run", |_| Reply::status(404).header("x-poll-interval", 60));
    let read = world.get("/run").grace(HOUR).observe::<Run>().unwrap();
    world.pass(2 * MINUTE).await;
    let n = world.ci.asked("/run").len();
    drop(read);
    assert!(n <= 4, "asked {n} times in 2 minutes: the service states 60 s");
}

/// `X-Poll-Interval` on a value that is behind.
#[tokio::test(start_paused = true)]
async fn a03_x_poll_interval_of_an_older_value_holds() {
    let world = World::new();
    let mut n = 0;
    world.ci.on("/run", move |_| {
        n += 1;
        run(if n == 1 { "9" } else { "5" }).header("x-poll-interval", 60)
    });
    let read = world
        .get("/run")
        .json::<Run>()
        .marks(|run| Marks::default().at_version(run.status.parse().unwrap()))
        .observe()
        .unwrap();
    world.pass(5 * MINUTE).await;
    let n = world.ci.asked("/run").len();
    drop(read);
    assert!(n <= 7, "asked {n} times in 5 minutes: the service states 60 s: {n}");
}

/// RFC 9110, 10.2.3: with a 3xx it is the least time before the redirected request; in any case the service said "later".
#[tokio::test(start_paused = true)]
async fn a04_retry_after_of_a_redirect_is_kept() {
    let world = World::new();
    world.ci.on("/run", |_| Reply::status(302).header("location", "/wait").header("retry-after", 60));
    world.ci.on("/wait", |_| run("running"));
    let read = world.get("/run").observe::<Run>().unwrap();
    world.pass(2 * MINUTE).await;
    let n = world.ci.asked("/run").len();
    drop(read);
    assert!(n <= 3, "asked {n} times in 2 minutes: Retry-After: 60 on the 302 was ignored");
}

/// A redirect that cannot be followed.
#[tokio::test(start_paused = true)]
async fn a05_retry_after_of_a_redirect_without_location_is_kept() {
    let world = World::new();
    world.ci.on("/run", |_| Reply::status(302).header("retry-after", 60));
    let read = world.get("/run").observe::<Run>().unwrap();
    world.pass(2 * MINUTE).await;
    let n = world.ci.asked("/run").len();
    drop(read);
    assert!(n <= 3, "asked {n} times in 2 minutes: Retry-After: 60 on the 302 was ignored");
}

/// A 200 that says when to come back, and whose body is cut.
#[tokio::test(start_paused = true)]
async fn a06_retry_after_of_an_answer_that_is_cut_is_kept() {
    let world = World::new();
    world.ci.on("/run", |_| run("running").header("retry-after", 60).cut(3));
    let read = world.get("/run").observe::<Run>().unwrap();
    world.pass(2 * MINUTE).await;
    let n = world.ci.asked("/run").len();
    drop(read);
    assert!(n <= 3, "asked {n} times in 2 minutes: Retry-After: 60 was ignored since the body was cut");
}

/// A 500 that says when to come back, and whose body stalls.
#[tokio::test(start_paused = true)]
async fn a07_retry_after_of_an_error_whose_body_stalls_is_kept() {
    let world = World::new();
    world.ci.on("/run", |_| Reply::status(500).body("long text of an error").header("retry-after", 300).stalls(3));
    let read = world.get("/run").observe::<Run>().unwrap();
    world.pass(5 * MINUTE).await;
    let n = world.ci.asked("/run").len();
    drop(read);
    assert!(n <= 2, "asked {n} times in 5 minutes: Retry-After: 300 was ignored since the body stalled");
}

/// The same for a log.
#[tokio::test(start_paused = true)]
async fn a08_retry_after_of_a_log_that_is_cut_is_kept() {
    let world = World::new();
    world.ci.on("/log", |_| Reply::text("0123456789").header("retry-after", 60).cut(3));
    let mut log = world.get("/log").log(LogKind::Whole, feed::Settings::default()).unwrap();
    let _ = tokio::time::timeout(2 * MINUTE, async { while log.next().await.is_some() {} }).await;
    let n = world.ci.asked("/log").len();
    assert!(n <= 3, "asked {n} times in 2 minutes: Retry-After: 60 was ignored since the body was cut");
}

/// 429 without a time, for ever; 40 reads of one origin. After it settles, not above one request in 30 s or so.
#[tokio::test(start_paused = true)]
async fn a09_forty_reads_refused_for_ever_do_not_storm() {
    let world = World::new();
    let mut reads = Vec::new();
    for i in 0..40 {
        world.ci.on(&format!("/run{i}"), |_| Reply::status(429));
        reads.push(world.get(&format!("/run{i}")).observe::<Run>().unwrap());
    }
    world.pass(10 * MINUTE).await;
    let before = world.ci.total();
    world.pass(10 * MINUTE).await;
    let n = world.ci.total() - before;
    assert!(n <= 60, "{n} requests in 10 minutes while everything is refused");
}

/// 429 with `Retry-After: 0` for ever.
#[tokio::test(start_paused = true)]
async fn a10_retry_after_zero_for_ever_is_no_storm() {
    let world = World::new();
    let mut reads = Vec::new();
    for i in 0..40 {
        world.ci.on(&format!("/run{i}"), |_| Reply::status(429).header("retry-after", 0));
        reads.push(world.get(&format!("/run{i}")).observe::<Run>().unwrap());
    }
    world.pass(10 * MINUTE).await;
    let before = world.ci.total();
    world.pass(10 * MINUTE).await;
    let n = world.ci.total() - before;
    assert!(n <= 700, "{n} requests in 10 minutes while everything is refused");
}

// ---------------------------------------------------------------- budget

/// "All reads of one origin and credential share one budget .. at most one request each 200 ms."
#[tokio::test(start_paused = true)]
async fn b01_redirects_count_into_the_budget() {
    let world = World::new();
    let mut reads = Vec::new();
    for hop in 0..8 {
        let to = format!("/hop{}?", hop + 1);
        world.ci.on(&format!("/hop{hop}"), move |asked| {
            let q = asked.target.split_once('?').map(|(_, q)| q.to_owned()).unwrap_or_default();
            Reply::status(302).header("location", format!("{to}{q}"))
        });
    }
    world.ci.on("/hop8", |_| run("running"));
    for i in 0..30 {
        reads.push(world.get(&format!("/hop0?{i}")).observe::<Run>().unwrap());
    }
    world.pass(MINUTE).await;
    let n = world.ci.total();
    assert!(n <= 60 * 5 + 10, "{n} requests in a minute, the budget is 300");
}

/// R10: a log never touches the verdict. 64 open event streams are feeds.
#[tokio::test(start_paused = true)]
async fn b02_open_feeds_do_not_starve_the_status() {
    let world = World::new();
    let (stream, handle) = Reply::stream();
    world.ci.on("/events", move |_| stream.clone().header("content-type", "text/event-stream"));
    world.ci.on("/run", |_| run("success"));
    let mut feeds = Vec::new();
    for i in 0..64 {
        feeds.push(world.get(&format!("/events?{i}")).events(true, feed::Settings::default()).unwrap());
    }
    world.pass(20 * SECOND).await;
    let read = world.get("/run").observe::<Run>().unwrap();
    for _ in 0..20 {
        handle.send(": alive\n\n");
        world.pass(30 * SECOND).await;
    }
    assert!(matches!(read.latest(), Reading::Fresh(_)), "after 10 minutes: {:?}", read.latest());
}

/// The same for long polls: those that wait their turn hang without a cause and without a timer.
#[tokio::test(start_paused = true)]
async fn b03_seventy_long_polls_do_not_starve_the_rest() {
    let world = World::new();
    world.ci.on("/run", |asked| {
        let reply = run("running").header("etag", "\"1\"");
        if asked.header("prefer").is_some() { Reply::status(304).after(10 * MINUTE) } else { reply }
    });
    let mut reads = Vec::new();
    for i in 0..70 {
        reads.push(world.get(&format!("/run?{i}")).wait(10 * MINUTE).observe::<Run>().unwrap());
    }
    world.pass(MINUTE).await;
    let loading = reads.iter().filter(|read| read.latest().last().is_none()).count();
    assert_eq!(
        loading,
        0,
        "{loading} of 70 reads have nothing after a minute, cause {:?}",
        reads.iter().map(|r| r.latest().cause().cloned()).last()
    );
}

// ---------------------------------------------------------------- ends that never come

/// 410 whose body is announced and never comes: the head says it all.
#[tokio::test(start_paused = true)]
async fn c01_gone_is_gone_whatever_its_body() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), Reply::status(410).body("gone, gone").stalls(2)]);
    let read = world.get("/run").observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.pass(10 * MINUTE).await;
    assert_eq!(seen.end(), Some(End::Gone), "{:?}", seen.causes().last());
}

/// 401 whose body never comes: never denied, and the token goes out again and again.
#[tokio::test(start_paused = true)]
async fn c02_denied_is_denied_whatever_its_body() {
    let world = World::new();
    world.ci.replies("/run", [Reply::status(401).body("no, no, no").stalls(2)]);
    let read = world.get("/run").credential(Credential::bearer("tok3n").unwrap()).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.pass(10 * MINUTE).await;
    let n = world.ci.asked("/run").len();
    assert_eq!(seen.end(), Some(End::Denied), "sent {n} times; {:?}", seen.causes().last());
}

/// A redirect whose body never comes is a redirect.
#[tokio::test(start_paused = true)]
async fn c03_a_redirect_is_followed_whatever_its_body() {
    let world = World::new();
    world.ci.on("/run", |_| Reply::status(302).header("location", "/there").body("moved, moved").stalls(2));
    world.ci.on("/there", |_| run("running"));
    let read = world.get("/run").observe::<Run>().unwrap();
    world.pass(5 * MINUTE).await;
    assert!(matches!(read.latest(), Reading::Fresh(_)), "{:?}", read.latest());
}

// ---------------------------------------------------------------- panics

struct Bomb;
impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a value that does not want to go");
    }
}

/// A value's drop that panics ends nothing.
#[tokio::test(start_paused = true)]
async fn d01_a_value_whose_drop_panics_ends_no_read() {
    let world = World::new();
    let mut n = 0;
    world.ci.on("/run", move |_| {
        n += 1;
        Reply::bytes(format!("{n}"))
    });
    let read = world.get("/run").decoded(|_| Ok(Bomb)).observe().unwrap();
    world.pass(MINUTE).await;
    let latest = read.latest();
    let ended = latest.is_ended();
    std::mem::forget(latest);
    std::mem::forget(read);
    assert!(!ended, "the read ended by a panic of the caller's code");
}

async fn websocket(listener: outlast::testing::Listener, texts: Vec<&'static str>) {
    let mut listener = listener;
    while let Some(io) = listener.accept().await {
        let texts = texts.clone();
        tokio::spawn(async move {
            use futures::SinkExt as _;
            let Ok(mut ws) = tokio_tungstenite::accept_async(io).await else { return };
            for text in texts {
                let _ = ws.send(tokio_tungstenite::tungstenite::Message::text(text)).await;
            }
            while let Some(Ok(_)) = ws.next().await {}
        });
    }
}

/// R1, R3: the caller's closure for a stream panics. The decoder's panic is a cause; this one is to be no end either.
#[tokio::test(start_paused = true)]
async fn d02_a_stream_closure_that_panics_ends_no_read() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    tokio::spawn(websocket(world.net.listen("push.example"), vec!["one", "two"]));
    let push = Push::websocket("ws://push.example/ws").values(|_| panic!("the caller's code"));
    let read = agent(&world).get("http://ci.example/run").push(push).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.pass(MINUTE).await;
    assert_eq!(seen.end(), None, "the read ended by a panic of the caller's code");
}

/// The same for the confirmation.
#[tokio::test(start_paused = true)]
async fn d03_a_confirmation_that_panics_ends_no_read() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    tokio::spawn(websocket(world.net.listen("push.example"), vec!["one", "two"]));
    let push = Push::websocket("ws://push.example/ws").confirmed_by(|_| panic!("the caller's code"));
    let read = agent(&world).get("http://ci.example/run").push(push).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.pass(MINUTE).await;
    assert_eq!(seen.end(), None, "the read ended by a panic of the caller's code");
}

/// Marks and pages that panic.
#[tokio::test(start_paused = true)]
async fn d04_marks_and_pages_that_panic_end_no_read() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    let a = world.get("/run").json::<Run>().marks(|_| panic!("marks")).observe().unwrap();
    let b = world.get("/run").json::<Run>().pages(|_, _| panic!("pages")).observe().unwrap();
    world.pass(MINUTE).await;
    assert!(!a.latest().is_ended() && !b.latest().is_ended());
}

/// The largest settings there are.
#[tokio::test(start_paused = true)]
async fn d05_the_largest_durations_panic_nowhere() {
    let world = World::new();
    world
        .ci
        .on("/run", |_| run("running").header("etag", "\"1\"").header("cache-control", "max-age=99999999999999999999"));
    world.ci.on("/absent", |_| Reply::status(404));
    world.ci.on("/bad", |_| Reply::status(500));
    let max = Duration::MAX;
    for path in ["/run", "/absent", "/bad"] {
        let read = world
            .get(path)
            .pace(Pace::between(max, max))
            .wait(max)
            .grace(max)
            .give_up_after(max)
            .observe::<Run>()
            .unwrap();
        let wait = read.until(Run::is_over).within(max);
        let _ = tokio::time::timeout(MINUTE, wait).await;
        assert!(!read.latest().is_ended(), "{path}: {:?}", read.latest());
        let mut settings = feed::Settings::default();
        settings.pace = Pace::between(max, max);
        settings.quiet = max;
        settings.settle = max;
        settings.finish_within = max;
        settings.give_up = Some(max);
        let mut log = world.get(path).log(LogKind::Whole, settings).unwrap();
        log.finish();
        let _ = tokio::time::timeout(MINUTE, async { while log.next().await.is_some() {} }).await;
    }
}

// ---------------------------------------------------------------- secrets

/// A header with a secret that its name does not tell, on a redirect to another origin.
#[tokio::test(start_paused = true)]
async fn e01_headers_of_the_caller_stay_at_their_origin() {
    let world = World::new();
    let store = Script::serve(&world.net, "store.example");
    world.ci.on("/run", |_| Reply::status(302).header("location", "http://store.example/x"));
    store.on("/x", |_| run("running"));
    let read = world
        .get("/run")
        .header("x-jwt-assertion", "s3cret")
        .header("x-pat", "s3cret")
        .header("x-access", "s3cret")
        .header("x-bearer", "s3cret")
        .header("x-pass", "s3cret")
        .header("x-sid", "s3cret")
        .observe::<Run>()
        .unwrap();
    world.pass(10 * SECOND).await;
    drop(read);
    let asked = store.asked("/x");
    let leaked: Vec<_> =
        asked[0].headers.iter().filter(|(_, v)| v.as_bytes() == b"s3cret").map(|(n, _)| n.to_string()).collect();
    assert!(leaked.is_empty(), "went to another origin: {leaked:?}");
}

// ---------------------------------------------------------------- push

/// FC-88, R4: an event that was made before the value shown, and comes late, shows nothing older.
#[tokio::test(start_paused = true)]
async fn f01_a_late_event_with_a_value_shows_nothing_older() {
    let world = World::new();
    let mut n = 0;
    world.ci.on("/run", move |_| {
        n += 1;
        run(if n <= 1 { "running" } else { "success" })
    });
    let (stream, handle) = Reply::stream();
    world.ci.on("/events", move |_| stream.clone().header("content-type", "text/event-stream"));
    let read = world.get("/run").push(Push::events("http://ci.example/events").values()).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.pass(5 * SECOND).await;
    handle.send("data: {\"status\":\"running\"}\n\n");
    world.pass(3 * SECOND).await;
    handle.send("data: {\"status\":\"running\"}\n\n");
    world.pass(3 * SECOND).await;
    let statuses = seen.statuses();
    assert_eq!(statuses, ["running", "success"], "a late event of an old state was shown as fresh");
}

/// A stream that is up and at once down again, over and over, does not make the read a loop.
#[tokio::test(start_paused = true)]
async fn f02_a_flapping_stream_makes_no_loop() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    world.ci.on("/events", |_| Reply::chunked(["data: x\n\n"]).ends().header("content-type", "text/event-stream"));
    let read = world.get("/run").push(Push::events("http://ci.example/events")).observe::<Run>().unwrap();
    world.pass(5 * MINUTE).await;
    let (reads, streams) = (world.ci.asked("/run").len(), world.ci.asked("/events").len());
    drop(read);
    let late = times(&world, "/events").iter().filter(|at| **at > 4 * MINUTE).count();
    assert!(
        late <= 15,
        "{reads} looks and {streams} streams in 5 minutes, {late} streams in the last: the delays do not grow (FC-49)"
    );
}

/// 204 at once to a request that asked to be held confirms nothing (FC-19).
#[tokio::test(start_paused = true)]
async fn f03_an_immediate_204_confirms_nothing() {
    let world = World::new();
    let mut n = 0;
    world.ci.on("/run", move |_| {
        n += 1;
        if n == 1 { run("running").header("etag", "\"1\"") } else { Reply::status(204) }
    });
    let read = world.get("/run").wait(30 * SECOND).observe::<Run>().unwrap();
    world.pass(10 * MINUTE).await;
    assert!(!matches!(read.latest(), Reading::Fresh(_)), "fresh after 10 minutes of nothing but immediate 204");
}

// ---------------------------------------------------------------- feeds

async fn drain(log: &mut feed::Feed<bytes::Bytes>, bound: Duration) -> (Vec<u8>, usize, Option<FeedEnd>) {
    let (mut all, mut gaps, mut end) = (Vec::new(), 0, None);
    let _ = tokio::time::timeout(bound, async {
        while let Some(item) = log.next().await {
            match item {
                FeedItem::Item(bytes) => all.extend_from_slice(&bytes),
                FeedItem::Gap { .. } => {
                    gaps += 1;
                    all.clear();
                }
                FeedItem::Ended(e) => {
                    end = Some(e);
                    break;
                }
            }
        }
    })
    .await;
    (all, gaps, end)
}

fn ranged(log: &[u8], asked: &outlast::testing::Asked, etag: &str) -> Reply {
    let whole = Reply::bytes(log.to_vec()).header("etag", etag).header("content-type", "text/plain");
    if asked.header("if-range").is_some_and(|tag| tag != etag) {
        return whole;
    }
    let Some(first) = asked.header("range").and_then(|r| r.strip_prefix("bytes=")).and_then(|r| r.strip_suffix('-'))
    else {
        return whole;
    };
    let first: usize = first.parse().unwrap();
    if first >= log.len() {
        return Reply::status(416).header("content-range", format!("bytes */{}", log.len()));
    }
    Reply::bytes(log[first..].to_vec())
        .with_status(206)
        .header("etag", etag)
        .header("content-type", "text/plain")
        .header("content-range", format!("bytes {first}-{}/{}", log.len() - 1, log.len()))
}

/// A log that started anew and whose last 64 bytes look the same (heartbeat lines): the service says by its `ETag` that it
/// is another one, and would say it to `If-Range` (RFC 9110, 13.1.5).
#[tokio::test(start_paused = true)]
async fn g01_a_log_that_started_anew_with_the_same_lines_is_noticed() {
    let world = World::new();
    let log = Arc::new(Mutex::new((format!("attempt 1\n{}", "waiting for a runner\n".repeat(10)), "\"a\"")));
    let served = Arc::clone(&log);
    world.ci.on("/log", move |asked| {
        let (text, etag) = served.lock().unwrap().clone();
        ranged(text.as_bytes(), asked, etag)
    });
    let mut feed = world.get("/log").log(LogKind::Bytes(Offsets::Range), feed::Settings::default()).unwrap();
    let _ = drain(&mut feed, 5 * SECOND).await;
    // It is another log now, and longer.
    let anew = format!("attempt 2\n{}done\n", "waiting for a runner\n".repeat(20));
    *log.lock().unwrap() = (anew.clone(), "\"b\"");
    tokio::time::sleep(30 * SECOND).await;
    feed.finish();
    let (_, gaps, end) = drain(&mut feed, 5 * MINUTE).await;
    assert!(
        gaps > 0 || !end.as_ref().is_some_and(FeedEnd::is_complete),
        "{gaps} gaps, {end:?}: part of one log and part of another passed for whole"
    );
}

/// FC-21: after an outage an `ETag` may be of another life of the service, which counts from 1 again.
#[tokio::test(start_paused = true)]
async fn g02_a_tag_is_not_trusted_over_a_restart() {
    let world = World::new();
    let log = Arc::new(Mutex::new("first life\n".to_owned()));
    let served = Arc::clone(&log);
    world.ci.on("/log", move |asked| {
        if asked.header("if-none-match") == Some("\"1\"") {
            return Reply::status(304);
        }
        Reply::text(served.lock().unwrap().clone()).header("etag", "\"1\"")
    });
    let mut feed = world.get("/log").log(LogKind::Whole, feed::Settings::default()).unwrap();
    let _ = drain(&mut feed, 5 * SECOND).await;
    world.ci.kill();
    let _ = drain(&mut feed, 20 * SECOND).await;
    *log.lock().unwrap() = "second life, and longer\n".to_owned();
    world.ci.revive();
    let _ = drain(&mut feed, 60 * SECOND).await;
    feed.finish();
    let (all, gaps, end) = drain(&mut feed, 5 * MINUTE).await;
    assert!(
        gaps > 0 && all == b"second life, and longer\n" || !end.as_ref().is_some_and(FeedEnd::is_complete),
        "{gaps} gaps, {end:?}"
    );
}

fn gzip(data: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(data).unwrap();
    out.finish().unwrap()
}

/// A few kilobytes that unfold into much more must not be held in memory at once.
#[tokio::test(start_paused = true)]
async fn g03_a_log_that_unfolds_comes_in_pieces() {
    let world = World::new();
    let once = gzip(&vec![b'x'; 24 << 20]);
    let twice = gzip(&once);
    let size = twice.len();
    world.ci.on("/log", move |_| Reply::bytes(twice.clone()).header("content-encoding", "gzip, gzip"));
    let mut feed = world.get("/log").log(LogKind::Whole, feed::Settings::default()).unwrap();
    let mut most = 0;
    let _ = tokio::time::timeout(20 * SECOND, async {
        while let Some(item) = feed.next().await {
            if let FeedItem::Item(bytes) = item {
                most = most.max(bytes.len());
            }
        }
    })
    .await;
    assert!(most <= 1 << 20, "{size} bytes on the wire were one piece of {most} bytes in memory");
}

/// Byte for byte under a cut at every byte, by range, whole and by the service's own offset.
#[tokio::test(start_paused = true)]
async fn g05_cuts_at_every_byte() {
    let text = "eins\r\nzwei \u{20ac}\nd\u{1F600}rei\n\n\u{feff}vier";
    for kind in [LogKind::Bytes(Offsets::Range), LogKind::Whole, LogKind::AtEnd] {
        for cut in 0..text.len() {
            let world = World::new();
            let n = AtomicUsize::new(0);
            world.ci.on("/log", move |asked| {
                let reply = ranged(text.as_bytes(), asked, "\"1\"");
                if n.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) { reply.cut(cut) } else { reply }
            });
            let mut feed = world.get("/log").log(kind.clone(), feed::Settings::default()).unwrap();
            feed.finish();
            let (all, gaps, end) = drain(&mut feed, 5 * MINUTE).await;
            assert_eq!(String::from_utf8_lossy(&all), text, "{kind:?} cut at {cut}");
            assert!(gaps == 0 && end.is_some_and(|e| e.is_complete()), "{kind:?} cut at {cut}");
        }
    }
}

// ---------------------------------------------------------------- profiles

/// A template of many wildcards against an address of many segments.
#[test]
fn h01_a_template_of_many_wildcards_takes_no_time() {
    let wild = "/{_:any}".repeat(24);
    let file = format!(
        "name = \"x\"\n[[stage]]\nname = \"a\"\npath = \"/a/{{n}}\"\n[[stage.status]]\nat = \"/s\"\nok = [\"y\"]\nfailed = [\"n\"]\n[[address]]\nlike = \"{wild}/{{n}}/end\"\nstage = \"a\"\n"
    );
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let said = match Profile::parse(&file) {
            Err(e) => format!("refused: {e}"),
            Ok(profile) => {
                let url = url::Url::parse(&format!("http://h{}", "/s".repeat(40))).unwrap();
                format!("{:?}", profile.locate(&url).map_err(|e| e.to_string()))
            }
        };
        let _ = tx.send(said);
    });
    let said = rx.recv_timeout(Duration::from_secs(20));
    println!("{said:?}");
    assert!(said.is_ok(), "it still looks for a match after 20 s");
}

/// Deep and long files.
#[test]
fn h02_hostile_files_are_refused() {
    for file in [
        format!("name = \"x\"\na = {}", "[".repeat(100_000)),
        format!("name = \"x\"\na = {}", "{a=".repeat(100_000)),
        format!("{} = 1", "a.".repeat(50_000) + "a"),
        format!("name = \"x\"\n[[stage]]\nname = \"a\"\npath = \"{}\"", "/x".repeat(200_000)),
    ] {
        let (tx, rx) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _ = tx.send(Profile::parse(&file).map(drop).map_err(|e| e.to_string().len()));
        });
        let said = rx.recv_timeout(Duration::from_secs(20)).expect("an answer within 20 s");
        assert!(said.is_err_and(|length| length < 2_000));
    }
}

/// A file names no host to which a credential goes; neither does a header of it.
#[test]
fn h03_a_file_names_no_host_by_a_header() {
    let mut accepted = Vec::new();
    for header in [
        "Host",
        "Authorization",
        "Cookie",
        "Proxy-Authorization",
        "Range",
        "If-None-Match",
        "Content-Length",
        "Transfer-Encoding",
    ] {
        let file = format!(
            "name = \"x\"\n[[stage]]\nname = \"a\"\npath = \"/a/{{n}}\"\n[[stage.status]]\nat = \"/s\"\nok = [\"y\"]\nfailed = [\"n\"]\n[read]\nheaders = {{ {header} = \"evil.example\" }}\n"
        );
        let parsed = Profile::parse(&file);
        if parsed.is_ok() {
            accepted.push(header);
        }
    }
    assert!(accepted.is_empty(), "accepted: {accepted:?}");
}

// ---------------------------------------------------------------- more

/// One read beside 64 long polls of the same origin.
#[tokio::test(start_paused = true)]
async fn b04_long_polls_do_not_starve_another_read() {
    let world = World::new();
    world.ci.on("/long", |asked| {
        let reply = run("running").header("etag", "\"1\"");
        if asked.header("prefer").is_some() { Reply::status(304).after(10 * MINUTE) } else { reply }
    });
    world.ci.on("/run", |_| run("success"));
    let mut reads = Vec::new();
    for i in 0..64 {
        reads.push(world.get(&format!("/long?{i}")).wait(10 * MINUTE).observe::<Run>().unwrap());
    }
    world.pass(MINUTE).await;
    let read = world.get("/run").observe::<Run>().unwrap();
    world.pass(MINUTE).await;
    assert!(matches!(read.latest(), Reading::Fresh(_)), "after a minute: {:?}", read.latest());
}

/// A budget of one in flight and a consumer that does not take: the log holds the place, the status waits for ever.
#[tokio::test(start_paused = true)]
async fn b05_a_slow_consumer_of_logs_does_not_starve_the_status() {
    let world = World::new();
    world.ci.on("/log", |_| Reply::bytes(vec![b'x'; 8 << 20]).header("content-type", "text/plain"));
    world.ci.on("/run", |_| run("success"));
    let mut feeds = Vec::new();
    for i in 0..64 {
        let mut settings = feed::Settings::default();
        settings.buffer = 1;
        feeds.push(world.get(&format!("/log?{i}")).log(LogKind::Whole, settings).unwrap());
    }
    world.pass(30 * SECOND).await;
    let read = world.get("/run").observe::<Run>().unwrap();
    world.pass(10 * MINUTE).await;
    assert!(matches!(read.latest(), Reading::Fresh(_)), "after 10 minutes: {:?}", read.latest());
}

/// A body that ends with its connection and was cut is no value.
#[tokio::test(start_paused = true)]
async fn n01_a_body_without_a_length_that_is_cut_is_no_value() {
    let world = World::new();
    world.ci.on("/text", |_| Reply::raw("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nstatus: fail"));
    let read = world.get("/text").text().observe().unwrap();
    world.pass(10 * SECOND).await;
    println!("{:?}", read.latest());
}

/// UTF-16 and other nonsense are no values, and no ends.
#[tokio::test(start_paused = true)]
async fn n02_nonsense_is_stale() {
    let utf16: Vec<u8> = "\u{feff}{\"status\":\"success\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for reply in [
        Reply::bytes(utf16.clone()).header("content-type", "application/json"),
        Reply::bytes(utf16).header("content-type", "application/json; charset=utf-16"),
        Reply::json("x").body("").header("x", "y"),
        Reply::chunked(["{\"status\":\"succ"]).ends().header("content-type", "application/json"),
        Reply::status(206).body("{\"status\":\"success\"}").header("content-type", "application/json"),
        Reply::status(304),
        Reply::status(204),
        Reply::status(205),
        Reply::status(203).body("{\"status\":\"success\"}").header("content-type", "application/json"),
        Reply::raw(
            "HTTP/1.1 200 OK\r\nContent-Length: 20\r\nContent-Length: 21\r\nContent-Type: application/json\r\n\r\n{\"status\":\"success\"}",
        ),
        Reply::raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n14;a=\"b\"\r\n{\"status\":\"success\"\r\n",
        ),
        Reply::raw(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n{{\"status\":\"success\"}}", "y".repeat(2 << 20))),
        run("success").length(5),
        run("success").length(500),
        run("success").header("content-encoding", "br"),
        run("success").header("content-encoding", "gzip"),
        run("success").header("content-type", "text/html"),
        Reply::json(serde_json::json!({"status": null})),
        Reply::json(serde_json::json!([{"status": "success"}])),
    ] {
        let world = World::new();
        world.ci.replies("/run", [run("running"), reply.clone()]);
        let read = world.get("/run").observe::<Run>().unwrap();
        let seen = Record::of(&read);
        world.pass(MINUTE).await;
        let latest = read.latest();
        assert!(matches!(latest, Reading::Stale { .. }), "{reply:?}: {latest:?}");
        assert_eq!(seen.statuses(), ["running"], "{reply:?}");
        let n = world.ci.asked("/run").len();
        assert!(n <= 130, "{reply:?}: {n} requests in a minute");
    }
}

async fn raw(world: &World, talk: impl FnMut(u64) -> Vec<u8> + Send + Clone + 'static, every: Duration) {
    let mut listener = world.net.listen("raw.example");
    tokio::spawn(async move {
        while let Some(mut io) = listener.accept().await {
            let mut talk = talk.clone();
            tokio::spawn(async move {
                use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
                let _ = io.read(&mut [0; 4096]).await;
                for n in 0.. {
                    if io.write_all(&talk(n)).await.is_err() {
                        return;
                    }
                    let _ = io.flush().await;
                    tokio::time::sleep(every).await;
                }
            });
        }
    });
}

/// 1xx for ever, a header for ever, a status line by the byte: each is bounded.
#[tokio::test(start_paused = true)]
async fn n03_a_head_that_never_ends_is_bounded() {
    for kind in 0..4 {
        let world = World::new();
        let talk = move |n: u64| match (kind, n) {
            (0, _) => b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".to_vec(),
            (1, 0) => b"HTTP/1.1 200 OK\r\n".to_vec(),
            (1, n) => format!("X-{n}: y\r\n").into_bytes(),
            (2, 0) => {
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()
            }
            (2, _) => b"1\r\n \r\n".to_vec(),
            (_, 0) => {
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;".to_vec()
            }
            (_, _) => b"x".to_vec(),
        };
        raw(&world, talk, SECOND).await;
        let read = world.agent.get("http://raw.example/run").observe::<Run>().unwrap();
        let took = doubted(&world.env, &read, 3 * MINUTE, |_| true).await;
        println!("{kind}: doubted after {took:?}: {:?}", read.latest().cause());
    }
}

/// Retry-After of a stream's refusal is kept, for events and WebSockets.
#[tokio::test(start_paused = true)]
async fn n04_a_stream_keeps_to_retry_after() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    let push = Script::serve(&world.net, "push.example");
    push.on("/events", |_| Reply::status(503).header("retry-after", 120));
    push.on("/ws", |_| Reply::status(503).header("retry-after", 120));
    let a = agent(&world);
    let one = a.get("http://ci.example/run").push(Push::events("http://push.example/events")).observe::<Run>().unwrap();
    world.pass(5 * MINUTE).await;
    let events = push.asked("/events").len();
    drop(one);
    let two = a.get("http://ci.example/run").push(Push::websocket("ws://push.example/ws")).observe::<Run>().unwrap();
    world.pass(7 * MINUTE).await;
    let sockets = push.asked("/ws").len();
    drop(two);
    assert!(events <= 4 && sockets <= 5, "{events} {sockets}");
}

/// An agent whose runtime is over: what is begun with it elsewhere ends or fails, and does not hang.
#[test]
fn n05_an_agent_of_a_runtime_that_is_over() {
    let other = tokio::runtime::Runtime::new().unwrap();
    let agent = other.block_on(async { Agent::builder().build().unwrap() });
    let running = other.block_on(async { agent.get("http://127.0.0.1:1/").observe::<Run>().unwrap() });
    drop(other);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let wait = running.until(Run::is_over);
        let end = tokio::time::timeout(5 * SECOND, wait).await.expect("no hang").unwrap_err();
        println!("{end}");
        match agent.get("http://127.0.0.1:1/").observe::<Run>() {
            Err(e) => println!("{e}"),
            Ok(read) => {
                let end =
                    tokio::time::timeout(5 * SECOND, read.until(Run::is_over)).await.expect("no hang").unwrap_err();
                println!("{end}");
            }
        }
        if let Ok(mut log) = agent.get("http://127.0.0.1:1/").log(LogKind::Whole, feed::Settings::default()) {
            log.finish();
            let _ = tokio::time::timeout(5 * SECOND, log.next()).await;
        }
    });
}

/// A wall clock that jumps, both ways, neither shortens a Retry-After nor makes a loop.
#[tokio::test(start_paused = true)]
async fn n06_a_clock_that_jumps_does_not_shorten_retry_after() {
    let world = World::new();
    let mut n = 0;
    world.ci.on("/run", move |_| {
        n += 1;
        if n == 1 { run("running") } else { Reply::status(429).header("retry-after", 600) }
    });
    let read = world.get("/run").observe::<Run>().unwrap();
    world.pass(5 * SECOND).await;
    let before = world.ci.asked("/run").len();
    for i in 0..50 {
        if i % 2 == 0 {
            world.clock.advance(HOUR)
        } else {
            world.clock.set_back(HOUR)
        }
        world.pass(10 * SECOND).await;
    }
    let n = world.ci.asked("/run").len() - before;
    drop(read);
    assert_eq!(n, 0, "asked {n} times within Retry-After");
}

/// Wall clock jumps each second while all is well.
#[tokio::test(start_paused = true)]
async fn n07_a_flapping_clock_is_no_loop() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    let read = world.agent.get("http://ci.example/run").pace(Pace::every(30 * SECOND)).observe::<Run>().unwrap();
    world.pass(5 * SECOND).await;
    for i in 0..300 {
        if i % 2 == 0 {
            world.clock.advance(HOUR)
        } else {
            world.clock.set_back(HOUR)
        }
        world.pass(SECOND).await;
    }
    let n = world.ci.asked("/run").len();
    drop(read);
    assert!(n <= 75, "{n} requests in 5 minutes");
}

/// A read whose first request is a redirect to itself by way of another origin carries nothing back.
#[tokio::test(start_paused = true)]
async fn e03_no_token_on_the_way_back() {
    let world = World::new();
    let other = Script::serve(&world.net, "other.example");
    world.ci.on("/run", |_| Reply::status(307).header("location", "http://other.example/x"));
    other.on("/x", |_| Reply::status(307).header("location", "http://ci.example/back?next=http://ci.example/"));
    world.ci.on("/back", |_| run("running"));
    let read = world.get("/run").credential(Credential::header("x-sid", "s3cret").unwrap()).observe::<Run>().unwrap();
    world.pass(5 * SECOND).await;
    drop(read);
    assert!(other.asked("/x").iter().all(|a| a.header("x-sid").is_none()));
    assert!(world.ci.asked("/back").iter().all(|a| a.header("x-sid").is_none()));
}

/// Port, scheme, user info, trailing dot and case of a redirect's host.
#[tokio::test(start_paused = true)]
async fn e04_origins_that_look_alike_get_no_token() {
    for to in [
        "http://ci.example:8080/x",
        "http://ci.example./x",
        "http://u:p@other.example/x",
        "//other.example/x",
        "http:\\\\other.example/x",
        "http://other.example\\@ci.example/x",
        "/\\other.example/x",
    ] {
        let world = World::new();
        for name in ["ci.example:8080", "ci.example.", "other.example"] {
            let _ = name;
        }
        let other = Script::serve(&world.net, "other.example");
        let dot = Script::serve(&world.net, "ci.example.");
        world.ci.replies("/run", [Reply::status(302).header("location", to)]);
        other.on("/x", |_| run("running"));
        dot.on("/x", |_| run("running"));
        let read = world.get("/run").credential(Credential::bearer("s3cret").unwrap()).observe::<Run>().unwrap();
        world.pass(3 * SECOND).await;
        drop(read);
        for script in [&other, &dot] {
            for path in ["/x", "/@ci.example/x"] {
                assert!(script.asked(path).iter().all(|a| a.header("authorization").is_none()), "{to}");
            }
        }
    }
}
