//! GitLab: pipelines and jobs, a header of its own for the token, limits that are sometimes told, traces.

mod logs;

use std::sync::atomic::{AtomicBool, Ordering};

use outlast::http::feed::{LogKind, Offsets};
use outlast::profile::WorkState;
use outlast::testing::{Reply, Script};
use outlast::{Cause, Credential};
use serde_json::json;

use crate::rig::{Rig, Watched, all, item, now, pass, seconds};

const PAGE: &str = "/group/project/-/pipelines/9";
const PIPELINE: &str = "/api/v4/projects/group%2Fproject/pipelines/9";
const TRACE: &str = "/api/v4/projects/group%2Fproject/jobs/3/trace";
const START: u64 = 1_764_028_800;

fn pipeline(minute: u64, status: &str) -> Reply {
    Reply::json(json!({"id": 9, "status": status, "updated_at": format!("2025-11-25T00:{minute:02}:00.000Z")}))
}

fn token() -> Credential {
    Credential::header("PRIVATE-TOKEN", "glpat-1").unwrap()
}

/// R10: each status on the way. A manual pipeline waits for a person, and one that is being canceled is not over yet.
#[tokio::test(start_paused = true)]
async fn r10_a_pipeline_from_created_to_success() {
    let rig = Rig::new();
    let on_its_way =
        ["created", "waiting_for_resource", "preparing", "pending", "running", "manual", "running", "canceling"];
    let mut replies: Vec<Reply> = (0..).zip(on_its_way).map(|(minute, status)| pipeline(minute, status)).collect();
    replies.push(pipeline(20, "success"));
    rig.ci.replies(PIPELINE, replies);
    let watched = rig.watch("gitlab", PAGE);
    let parked = watched.state(|work| work.state == WorkState::Parked).await;
    assert_eq!(&*parked.status, "manual");
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(
        watched.seen(),
        [
            "loading ()",
            "created",
            "waiting_for_resource",
            "preparing",
            "pending",
            "running",
            "manual",
            "running",
            "canceling",
            "success"
        ]
    );
}

/// R10, FC-88: a retry opens the same id again, without an attempt. It is believed once a second read a second later
/// says so too; one answer of a replica that lags is not.
#[tokio::test(start_paused = true)]
async fn r10_a_retry_opens_the_pipeline_again() {
    let rig = Rig::new();
    rig.ci.replies(PIPELINE, [pipeline(1, "running"), pipeline(2, "failed")]);
    let watched = rig.watch("gitlab", PAGE);
    watched.ends_once(WorkState::Failed).await;
    // A replica that has the time of the end and not its status.
    rig.ci.replies(PIPELINE, [pipeline(2, "running"), pipeline(2, "failed")]);
    watched.doubts(|cause| *cause == Cause::Behind).await;
    watched.shows(|reading| reading.is_fresh()).await;
    assert_eq!(watched.statuses(), ["running", "failed"]);

    let reads = rig.ci.total();
    rig.ci.replies(PIPELINE, [pipeline(3, "running")]);
    let open = watched.state(|work| work.state == WorkState::Running).await;
    assert_eq!(&*open.status, "running");
    let first = rig.ci.until(PIPELINE, reads + 1).await;
    assert!(now() - first.at >= seconds(1), "{:?}", now() - first.at);
    assert!(rig.ci.total() >= reads + 2);
    rig.ci.replies(PIPELINE, [pipeline(4, "success")]);
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(watched.statuses(), ["running", "failed", "running", "success"]);
}

/// R3: the token goes in a header of GitLab's own, along a redirect of a renamed project, and to no other origin.
#[tokio::test(start_paused = true)]
async fn the_token_stays_on_its_origin() {
    let rig = Rig::new();
    let store = Script::serve(&rig.net, "store.example");
    rig.ci.replies(PIPELINE, [Reply::status(301).header("location", "/api/v4/projects/42/pipelines/9")]);
    rig.ci.replies("/api/v4/projects/42/pipelines/9", [pipeline(1, "success")]);
    let watched = Watched::new("gitlab", rig.get(PAGE).credential(token()));
    watched.ends_once(WorkState::Succeeded).await;
    let asked = rig.ci.until("/api/v4/projects/42/pipelines/9", 1).await;
    assert_eq!(asked.header("private-token"), Some("glpat-1"));
    assert_eq!(asked.header("authorization"), None);

    rig.ci.replies(TRACE, [Reply::status(302).header("location", "http://store.example/trace")]);
    store.replies("/trace", [Reply::text("one\n")]);
    let mut log = rig.get(TRACE).credential(token()).log(LogKind::Whole).unwrap();
    assert_eq!(item(&mut log).await, "one\n");
    assert_eq!(rig.ci.until(TRACE, 1).await.header("private-token"), Some("glpat-1"));
    assert_eq!(store.until("/trace", 1).await.header("private-token"), None);
}

/// R8: what the headers say is kept to, and 429 without any is a limit all the same.
#[tokio::test(start_paused = true)]
async fn r8_limits_that_are_told_and_limits_that_are_not() {
    let rig = Rig::new();
    let start = now();
    let told = pipeline(1, "running")
        .header("RateLimit-Limit", 60)
        .header("RateLimit-Remaining", 0)
        .header("RateLimit-Reset", START + 40);
    let untold = || Reply::text("Retry later\n").with_status(429);
    rig.ci.replies(PIPELINE, [told, untold(), untold(), untold(), pipeline(1, "running"), pipeline(5, "success")]);
    let watched = Watched::new("gitlab", rig.get(PAGE).credential(token()));
    let second = rig.ci.until(PIPELINE, 2).await;
    assert!(second.at - start >= seconds(40), "{:?}", second.at - start);
    watched.ends_once(WorkState::Succeeded).await;
    assert!(watched.seen().iter().any(|shown| shown.contains("rate limited")), "{:?}", watched.seen());
    assert_eq!(watched.statuses(), ["running", "success"]);
}

/// R6: a trace comes whole each time, and each byte of it is delivered once.
#[tokio::test(start_paused = true)]
async fn r6_a_trace_that_comes_whole() {
    let rig = Rig::new();
    let text = |text: &str| Reply::text(text).header("etag", format!("W/\"{}\"", text.len()));
    rig.ci.replies(
        TRACE,
        [
            Reply::status(404),
            text("one\n"),
            Reply::status(502),
            text("one\ntwo\n").cut(6),
            text("one\ntwo\n"),
            text("one\ntwo\nthree\n"),
        ],
    );
    rig.ci.replies(PIPELINE, [pipeline(1, "running")]);
    let watched = Watched::new("gitlab", rig.get(PAGE).credential(token()));
    let mut log = rig.get(TRACE).credential(token()).log(LogKind::Whole).unwrap();
    log.finish_with(&watched.work, |work| work.state.is_terminal());
    pass(seconds(120)).await;
    rig.ci.replies(PIPELINE, [pipeline(5, "canceled")]);
    let (text, gaps, end) = all(&mut log).await;
    assert_eq!((&*text, gaps), ("one\ntwo\nthree\n", 0));
    assert!(end.is_complete(), "{end}");
    watched.ends_once(WorkState::Canceled).await;
}

/// R6: where ranges are offered only the rest is asked for, in the bytes of the log itself; and without a tag that would
/// tell one log from another, all of it once more at its end.
#[tokio::test(start_paused = true)]
async fn r6_a_trace_by_range() {
    let rig = Rig::new();
    let (whole, begins) = ("0123456789", AtomicBool::new(true));
    rig.ci.on(TRACE, move |asked| {
        assert_eq!(asked.header("accept-encoding"), Some("identity"));
        let Some(range) = asked.header("range") else {
            return Reply::text(if begins.swap(false, Ordering::Relaxed) { &whole[..4] } else { whole });
        };
        let from: usize = range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap();
        Reply::text(&whole[from..]).with_status(206).header("content-range", format!("bytes {from}-9/10"))
    });
    let mut log = rig.get(TRACE).log(LogKind::Bytes(Offsets::Range)).unwrap();
    assert_eq!(item(&mut log).await, "0123");
    assert_eq!(item(&mut log).await, "456789");
    log.finish();
    let (rest, gaps, end) = all(&mut log).await;
    assert!(rest.is_empty() && gaps == 0 && end.is_complete(), "{end}");
    let asked = rig.ci.asked(TRACE);
    assert_eq!(asked.iter().filter(|asked| asked.header("range").is_none()).count(), 2);
}

/// R6: a retried job starts its trace anew. That is a gap, and never a rest of the old one.
#[tokio::test(start_paused = true)]
async fn r6_a_trace_that_starts_anew_is_a_gap() {
    let rig = Rig::new();
    rig.ci.replies(TRACE, [Reply::text("old one\nold two\n"), Reply::text("new\n")]);
    let mut log = rig.get(TRACE).log(LogKind::Whole).unwrap();
    assert_eq!(item(&mut log).await, "old one\nold two\n");
    pass(seconds(30)).await;
    log.finish();
    let (text, gaps, end) = all(&mut log).await;
    assert_eq!((&*text, gaps), ("new\n", 1));
    assert!(!end.is_complete(), "{end}");
}
