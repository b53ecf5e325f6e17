//! Requests that the service holds open, and pages that continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use outlast::error::Phase;
use outlast::http::Page;
use outlast::http::poll::Pace;
use outlast::testing::Reply;
use outlast::{Cause, End, Observable, Reading};
use serde::Deserialize;
use serde_json::json;

use crate::world::{HOUR, MILLI, MINUTE, Record, Run, SECOND, World, doubted, run, stalled};

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct History {
    events: Vec<String>,
    next: Option<String>,
}

/// Continues with the token; a page without events is none yet.
fn page(history: &History, _: &HeaderMap) -> Page {
    let query = history.next.iter().map(|next| ("token".to_owned(), next.clone())).collect();
    if history.events.is_empty() { Page::Nothing(query) } else { Page::Value(query) }
}

fn history(events: &[&str], next: Option<&str>) -> Reply {
    Reply::json(json!({ "events": events, "next": next }))
}

/// FC-07: empty pages that come when the service's time is over, k of them, are no result; each request after them
/// carries the last token, and the wait ends once, with the final event.
#[tokio::test(start_paused = true)]
async fn fc_07_empty_pages_are_continued_until_the_final_event() {
    let world = World::new();
    let mut replies: Vec<_> =
        (1..=5).map(|n| history(&[], Some(&format!("t{n}"))).after(if n == 1 { MILLI } else { MINUTE })).collect();
    // What ran out may have no body at all; the token stays.
    replies.insert(3, Reply::status(204).after(MINUTE));
    replies.push(history(&["completed"], None).after(20 * SECOND));
    world.ci.replies("/history", replies);
    let read = world.get("/history?all=1").wait(MINUTE).json::<History>().pages(page).observe().unwrap();
    let seen = Record::of(&read);
    let (known, took) = world.time(read.until(|_| true)).await;
    assert_eq!(known.unwrap().events, ["completed"]);
    assert!(took < 5 * MINUTE + 25 * SECOND, "after {took:?}: a long poll goes on at once");
    let targets: Vec<_> = world.ci.asked("/history").into_iter().map(|asked| asked.target).collect();
    let expected = [
        "/history?all=1",
        "/history?all=1&token=t1",
        "/history?all=1&token=t2",
        "/history?all=1&token=t3",
        "/history?all=1&token=t3",
        "/history?all=1&token=t4",
        "/history?all=1&token=t5",
    ];
    assert_eq!(targets[..7], expected);
    assert_eq!(seen.values().len(), 1, "an empty page was shown: {:?}", seen.values());
    assert_eq!(world.ci.asked("/history")[1].header("prefer"), Some("wait=60"));
}

/// FC-07, FC-19: the same where the service does not hold the request. Each page is followed, and not in a loop.
#[tokio::test(start_paused = true)]
async fn fc_07_empty_pages_that_come_at_once_are_continued_without_a_loop() {
    let world = World::spaced(MILLI);
    let count = Arc::new(AtomicU64::new(0));
    let given = Arc::clone(&count);
    world.ci.on("/history", move |_| {
        let n = given.fetch_add(1, Ordering::Relaxed) + 1;
        if n <= 60 { history(&[], Some(&format!("t{n}"))) } else { history(&["completed"], None) }
    });
    let read = world.get("/history").json::<History>().pages(page).observe().unwrap();
    let (known, took) = world.time(read.until(|_| true)).await;
    assert_eq!(known.unwrap().events, ["completed"]);
    assert!(took > 10 * SECOND, "60 empty pages in {took:?}");
    let asked = world.ci.asked("/history");
    assert!(asked.iter().skip(1).zip(1..).all(|(asked, n)| asked.target == format!("/history?token=t{n}")));
}

/// FC-19: a service that answers a resumption at once, with 200 and nothing, is asked for the whole state next, and is
/// not asked more often than the backoff and the pace permit.
#[tokio::test(start_paused = true)]
async fn fc_19_a_resumption_answered_with_nothing_leads_to_a_snapshot() {
    for (what, empty) in [
        ("200 without a body", Reply::status(200)),
        ("200 with an empty JSON body", Reply::json(()).body("")),
        ("200 with an empty stream", Reply::chunked(Vec::<bytes::Bytes>::new()).ends()),
        ("400", Reply::status(400)),
    ] {
        let world = World::spaced(MILLI);
        world.ci.on("/watch", move |asked| {
            if asked.target.contains("token=") { empty.clone() } else { history(&["running"], Some("v100")) }
        });
        let read = world.get("/watch").wait(MINUTE).json::<History>().pages(page).observe().unwrap();
        read.until(|_| true).within(SECOND).await.unwrap();
        world.pass(MINUTE).await;
        let asked = world.ci.asked("/watch");
        let resumed: Vec<_> = asked.iter().map(|asked| asked.target.contains("token=")).collect();
        assert!(resumed.windows(2).all(|two| two != [true, true]), "{what}: {resumed:?}");
        assert!(resumed.contains(&true));
        assert!(asked.len() <= 2 * 65, "{what}: {} in a minute", asked.len());
        world.ci.replies("/watch", [history(&["success"], None)]);
        read.until(|history| history.events == ["success"]).within(3 * SECOND).await.unwrap();
    }
}

/// FC-19: the same for a conditional request.
#[tokio::test(start_paused = true)]
async fn fc_19_a_conditional_request_answered_with_nothing_leads_to_a_snapshot() {
    let world = World::spaced(MILLI);
    world.ci.on("/run", |asked| match asked.header("if-none-match") {
        Some(_) => Reply::status(200),
        None => run("running").header("etag", "\"100\""),
    });
    let read = world.get("/run").wait(MINUTE).observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    world.pass(MINUTE).await;
    let asked = world.ci.asked("/run");
    let named: Vec<_> = asked.iter().map(|asked| asked.header("if-none-match").is_some()).collect();
    assert!(named.windows(2).all(|two| two != [true, true]), "{named:?}");
    assert!(asked.len() <= 2 * 65, "{} in a minute", asked.len());
}

/// FC-19: a long poll that comes back at once, unchanged, every time: the pace bounds it.
#[tokio::test(start_paused = true)]
async fn fc_19_a_long_poll_that_is_not_held_is_paced() {
    let world = World::spaced(MILLI);
    world.ci.on("/run", |asked| match asked.header("if-none-match") {
        Some(_) => Reply::status(304),
        None => run("running").header("etag", "\"1\""),
    });
    let read = world.get("/run").wait(MINUTE).observe::<Run>().unwrap();
    world.pass(MINUTE).await;
    assert!(read.latest().is_fresh());
    assert!(world.ci.total() <= 68, "{} in a minute", world.ci.total());
}

/// FC-19: one that is held for a shorter time than the pace goes on no sooner than the pace permits.
#[tokio::test(start_paused = true)]
async fn fc_19_a_short_long_poll_is_paced() {
    let world = World::spaced(MILLI);
    world.ci.on("/run", |asked| match asked.header("if-none-match") {
        Some(_) => Reply::status(304).after(2 * SECOND),
        None => run("running").header("etag", "\"1\""),
    });
    let get = world.get("/run").pace(Pace::every(10 * SECOND)).wait(2 * SECOND);
    let read = get.observe::<Run>().unwrap();
    world.ci.until("/run", 8).await;
    let asked = world.ci.asked("/run");
    assert!(asked.windows(2).all(|two| two[1].at - two[0].at >= 9 * SECOND));
    assert!(read.latest().is_fresh());
}

/// FC-21, R4: the service restarts, counts from one again, and something changed while it was down. A cursor of its
/// former life, which it would accept and stay silent on, is not sent.
#[tokio::test(start_paused = true)]
async fn fc_21_a_service_that_restarts_and_counts_anew_is_read_whole() {
    // For a moment or for long: with a refused connection in between or without.
    for down in [MILLI, 10 * SECOND] {
        let world = World::new();
        world.ci.on("/watch", |asked| {
            if asked.target.contains("token=") { Reply::hang() } else { history(&["running"], Some("100")) }
        });
        let read = world.get("/watch").wait(10 * MINUTE).json::<History>().pages(page).observe().unwrap();
        let seen = Record::of(&read);
        assert!(world.ci.until("/watch", 2).await.target.contains("token=100"));
        world.pass(MINUTE).await;
        world.ci.kill();
        world.pass(down).await;
        world.ci.on("/watch", |asked| {
            if asked.target.contains("token=") { Reply::hang() } else { history(&["success"], Some("1")) }
        });
        world.ci.revive();
        read.until(|history| history.events == ["success"]).within(6 * SECOND).await.unwrap();
        assert_eq!(seen.end(), None);
    }
}

/// FC-21: the same with a tag that the new life uses again, for another value: after an outage it is not sent, whether the
/// service held the request or is polled.
#[tokio::test(start_paused = true)]
async fn fc_21_a_tag_of_a_former_life_is_not_sent_after_an_outage() {
    for (held, down) in [(true, MILLI), (true, 10 * SECOND), (false, 10 * SECOND)] {
        let world = World::new();
        world.ci.on("/run", move |asked| match asked.header("if-none-match") {
            Some(_) if held => Reply::hang(),
            Some(_) => Reply::status(304),
            None => run("running").header("etag", "\"1\""),
        });
        let get = world.get("/run");
        let get = if held { get.wait(10 * MINUTE) } else { get };
        let read = get.observe::<Run>().unwrap();
        world.ci.until("/run", 2).await;
        world.pass(MINUTE).await;
        world.ci.kill();
        world.pass(down).await;
        world.ci.on("/run", |asked| match asked.header("if-none-match") {
            Some("\"1\"") => Reply::status(304),
            Some(_) => Reply::hang(),
            None => run("success").header("etag", "\"1\""),
        });
        world.ci.revive();
        world.shows(&read, "success", 6 * SECOND).await;
    }
}

/// FC-45, R8: the budget for an outage begins at the first error, not with the long poll that it ended, and a retry is
/// made in any case.
#[tokio::test(start_paused = true)]
async fn fc_45_an_outage_is_counted_from_its_first_error() {
    let world = World::new();
    world.ci.replies("/run", [run("running").header("etag", "\"1\""), Reply::hang()]);
    let read = world.get("/run").wait(30 * MINUTE).give_up_after(2 * MINUTE).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.ci.until("/run", 2).await;
    world.pass(10 * MINUTE).await;
    world.ci.kill();
    world.pass(110 * SECOND).await;
    assert!(world.net.connects("ci.example") > 10, "only {} dials", world.net.connects("ci.example"));
    assert_eq!(seen.end(), None, "cancelled: {:?}", seen.causes());
    world.ci.replies("/run", [run("running"), run("success")]);
    world.ci.revive();
    world.shows(&read, "success", 10 * SECOND).await;
}

/// FC-45, R8: and it does end, as closed, once the outage has lasted so long.
#[tokio::test(start_paused = true)]
async fn fc_45_a_limit_that_was_asked_for_ends_the_read_as_closed() {
    let world = World::new();
    world.ci.replies("/run", [run("running").header("etag", "\"1\""), Reply::hang()]);
    let read = world.get("/run").wait(30 * MINUTE).give_up_after(2 * MINUTE).observe::<Run>().unwrap();
    world.ci.until("/run", 2).await;
    world.pass(10 * MINUTE).await;
    world.ci.kill();
    let (wait, took) = world.time(read.until(Run::is_over)).await;
    assert_eq!(wait.unwrap_err().end(), Some(End::Closed));
    assert!((2 * MINUTE..2 * MINUTE + SECOND).contains(&took), "after {took:?}");
    assert!(matches!(read.latest(), Reading::Ended { last: Some(_), .. }));
}

/// R7: a long poll that nobody answers is found in the time that it asked for and the bound on the first byte.
#[tokio::test(start_paused = true)]
async fn r7_a_long_poll_that_hangs_is_found() {
    let world = World::new();
    world.ci.replies("/run", [run("running").header("etag", "\"1\""), Reply::hang(), run("success")]);
    let read = world.get("/run").wait(MINUTE).observe::<Run>().unwrap();
    world.ci.until("/run", 2).await;
    let is = stalled(Phase::FirstByte, MINUTE + 15 * SECOND);
    doubted(&world.env, &read, MINUTE + 16 * SECOND, is).await;
    world.shows(&read, "success", SECOND).await;
    assert!(world.ci.asked("/run")[2].connection > world.ci.asked("/run")[1].connection);
}

/// `Prefer: wait` (RFC 7240, 4.3) is asked only of a request that names a state, and 304 then goes on at once.
#[tokio::test(start_paused = true)]
async fn a_request_that_names_a_state_asks_to_be_held() {
    let world = World::new();
    let wait = 30 * SECOND;
    world.ci.on("/run", move |asked| match asked.header("if-none-match") {
        Some(_) => Reply::status(304).after(wait),
        None => run("running").header("etag", "\"1\""),
    });
    let read = world.get("/run").wait(wait).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.ci.until("/run", 6).await;
    let asked = world.ci.asked("/run");
    assert_eq!(asked[0].header("prefer"), None);
    assert!(asked.iter().skip(1).all(|asked| asked.header("prefer") == Some("wait=30")));
    let between = asked.windows(2).skip(1).map(|two| two[1].at - two[0].at);
    assert!(between.into_iter().all(|gap| gap < wait + SECOND));
    assert!(seen.causes().is_empty(), "{:?}", seen.causes());
}

/// R3: 204 is "nothing yet" only for a request that asked to be held.
#[tokio::test(start_paused = true)]
async fn r3_204_to_a_plain_request_is_no_value() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), Reply::status(204)]);
    let read: Observable<Run> = world.get("/run").observe().unwrap();
    doubted(&world.env, &read, 3 * SECOND, |cause| *cause == Cause::Status { code: 204 }).await;
    assert!(read.until(Run::is_over).within(HOUR).await.unwrap_err().is_still_pending());
}

/// FC-19: 204 at once to a request that asked to be held is no "nothing yet": it confirms nothing.
#[tokio::test(start_paused = true)]
async fn fc_19_an_immediate_204_confirms_nothing() {
    let world = World::new();
    world.ci.replies("/run", [run("running").header("etag", "\"1\""), Reply::status(204)]);
    let read = world.get("/run").wait(30 * SECOND).observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    world.pass(10 * MINUTE).await;
    assert!(matches!(read.latest(), Reading::Stale { .. }), "{:?}", read.latest());
}
