//! GitHub Actions, as an Enterprise Server has it: runs, attempts, limits, and the logs of jobs.

mod logs;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast::http::feed::{FeedEnd, LogKind};
use outlast::profile::WorkState;
use outlast::testing::{Reply, Script};
use outlast::{Cause, Credential, End};
use serde_json::{Value, json};

use crate::rig::{Rig, Watched, all, item, now, pass, seconds};

/// The page of a run, as people paste it, and where it is read.
const PAGE: &str = "/o/r/actions/runs/7";
const RUN: &str = "/api/v3/repos/o/r/actions/runs/7";
const LOGS: &str = "/api/v3/repos/o/r/actions/jobs/70/logs";

/// When the simulated clock starts, in seconds since 1970.
const START: u64 = 1_764_028_800;

/// A run of an attempt; `minute` is when it last changed.
fn attempt(attempt: u64, minute: u64, status: &str, conclusion: Option<&str>) -> Value {
    json!({
        "id": 7, "run_attempt": attempt, "status": status, "conclusion": conclusion,
        "updated_at": format!("2025-11-25T00:{minute:02}:00Z"),
    })
}

fn run(minute: u64, status: &str, conclusion: Option<&str>) -> Reply {
    Reply::json(attempt(1, minute, status, conclusion))
}

fn running() -> Reply {
    run(1, "in_progress", None)
}

fn succeeded() -> Reply {
    run(5, "completed", Some("success"))
}

fn watch(rig: &Rig) -> Watched {
    rig.watch("github-actions", PAGE)
}

fn token(text: &str) -> Credential {
    Credential::bearer(text).unwrap()
}

/// R10: each status on the way, null while there is no conclusion, and a run that waits for a reviewer is no end.
#[tokio::test(start_paused = true)]
async fn r10_a_run_from_queued_to_completed() {
    let rig = Rig::new();
    rig.ci.replies(RUN, [run(0, "queued", None), run(1, "waiting", None), run(2, "in_progress", None), succeeded()]);
    let watched = watch(&rig);
    let parked = watched.state(|work| work.state == WorkState::Parked).await;
    assert_eq!((&*parked.status, parked.attempt), ("waiting", Some(1)));
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(watched.seen(), ["loading ()", "queued", "waiting", "in_progress", "success"]);
    let asked = rig.ci.until(RUN, 1).await;
    assert_eq!(asked.header("accept"), Some("application/vnd.github+json"));
    assert_eq!(asked.header("x-github-api-version"), Some("2022-11-28"));
}

/// R3: `completed` before its conclusion is there says nothing yet.
#[tokio::test(start_paused = true)]
async fn r3_completed_without_a_conclusion_is_unreadable() {
    let rig = Rig::new();
    rig.ci.replies(RUN, [running(), run(4, "completed", None), run(4, "completed", Some("failure"))]);
    let watched = watch(&rig);
    assert_eq!(watched.doubts(|_| true).await, undecodable("expected a string at /conclusion, found none"));
    watched.ends_once(WorkState::Failed).await;
}

fn undecodable(detail: &str) -> Cause {
    Cause::Undecodable { detail: detail.into() }
}

/// R4, R10: a run that is run again keeps its id: its second attempt is followed, and what a replica still says of the
/// first is dropped.
#[tokio::test(start_paused = true)]
async fn r10_a_second_attempt_is_followed_and_a_late_answer_of_the_first_is_not_shown() {
    let rig = Rig::new();
    let first = || run(3, "completed", Some("failure"));
    let again = |minute, status, conclusion| Reply::json(attempt(2, minute, status, conclusion));
    rig.ci.replies(RUN, [running(), first()]);
    let watched = watch(&rig);
    let over = watched.ends_once(WorkState::Failed).await;
    assert_eq!(over.attempt, Some(1));
    rig.ci.replies(
        RUN,
        [
            again(10, "queued", None),
            first(),
            again(11, "in_progress", None),
            first(),
            again(12, "completed", Some("success")),
        ],
    );
    let over = watched.state(|work| work.state == WorkState::Succeeded).await;
    assert_eq!(over.attempt, Some(2));
    assert_eq!(
        watched.seen(),
        [
            "loading ()",
            "in_progress",
            "failure",
            "queued",
            "stale (behind)",
            "in_progress",
            "stale (behind)",
            "success"
        ]
    );
}

/// R4: within an attempt a run does not go back to what it was before.
#[tokio::test(start_paused = true)]
async fn r4_a_replica_that_lags_is_not_shown() {
    let rig = Rig::new();
    rig.ci.replies(RUN, [running(), run(0, "queued", None), running(), succeeded()]);
    let watched = watch(&rig);
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(watched.statuses(), ["in_progress", "success"]);
    assert!(watched.seen().contains(&"stale (behind)".into()), "{:?}", watched.seen());
}

/// FC-01: what fails in the middle, in three ways, is a cause and never an end (R1).
#[tokio::test(start_paused = true)]
async fn fc_01_failures_in_the_middle() {
    let rig = Rig::new();
    let page = Reply::status(502).body("<html>Unicorn!</html>").header("content-type", "text/html");
    rig.ci.replies(
        RUN,
        [running(), running(), running(), running(), page, Reply::status(500), Reply::close(), running(), succeeded()],
    );
    let watched = watch(&rig);
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(watched.statuses(), ["in_progress", "success"]);
    let seen = watched.seen();
    assert!(seen.contains(&"stale (HTTP status 502)".into()), "{seen:?}");
    assert!(seen.contains(&"stale (HTTP status 500)".into()), "{seen:?}");
}

/// R8: the service is away for half an hour, and is asked meanwhile at a bounded rate.
#[tokio::test(start_paused = true)]
async fn r8_a_long_outage() {
    let rig = Rig::new();
    rig.ci.replies(RUN, [running()]);
    let watched = watch(&rig);
    watched.state(|_| true).await;
    rig.ci.kill();
    pass(seconds(1800)).await;
    assert!(matches!(watched.work.latest().cause(), Some(Cause::Unreachable { .. })), "{:?}", watched.work.latest());
    rig.ci.replies(RUN, [succeeded()]);
    let back = now();
    rig.ci.revive();
    watched.ends_once(WorkState::Succeeded).await;
    assert!(back.elapsed() <= seconds(5), "{:?}", back.elapsed());
}

/// R9: the wait's own bound says nothing of the run.
#[tokio::test(start_paused = true)]
async fn r9_a_wait_that_runs_out_is_still_pending() {
    let rig = Rig::new();
    rig.ci.replies(RUN, [running()]);
    let watched = watch(&rig);
    let start = now();
    let e = watched.work.until(|work| work.state.is_terminal()).within(seconds(90)).await.unwrap_err();
    assert!(e.is_still_pending(), "{e}");
    assert_eq!(&*e.last().last().unwrap().status, "in_progress");
    assert_eq!(start.elapsed(), seconds(90));
}

/// R8: a secondary limit is said in the body alone. It is no refusal of the token, and the service is asked less.
#[tokio::test(start_paused = true)]
async fn r8_a_secondary_limit_is_no_refusal() {
    let rig = Rig::new();
    let limit = Reply::json(json!({
        "message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    }));
    let limited = Arc::new(AtomicBool::new(false));
    let is_limited = Arc::clone(&limited);
    rig.ci
        .on(RUN, move |_| if is_limited.load(Ordering::Relaxed) { limit.clone().with_status(403) } else { running() });
    let watched = Watched::new("github-actions", rig.get(PAGE).credential(token("t")));
    watched.state(|_| true).await;
    limited.store(true, Ordering::Relaxed);
    let cause = watched.doubts(|_| true).await;
    assert!(matches!(cause, Cause::RateLimited { .. }), "{cause}");
    let before = rig.ci.total();
    pass(seconds(600)).await;
    let asked = rig.ci.total() - before;
    assert!((1..=20).contains(&asked), "{asked} requests in ten minutes");
    limited.store(false, Ordering::Relaxed);
    watched.shows(|reading| reading.is_fresh()).await;
    rig.ci.replies(RUN, [succeeded()]);
    watched.ends_once(WorkState::Succeeded).await;
    assert!(!watched.seen().iter().any(|shown| shown.contains("credential")), "{:?}", watched.seen());
}

/// R8, R9, FC-55: with nothing left in the primary limit nothing is sent before it starts anew, and a shorter wait
/// knows that at once.
#[tokio::test(start_paused = true)]
async fn r9_a_primary_limit_is_waited_for() {
    let rig = Rig::new();
    let start = now();
    let spent = Reply::json(json!({"message": "API rate limit exceeded for user ID 1."}))
        .with_status(403)
        .header("x-ratelimit-limit", 5000)
        .header("x-ratelimit-remaining", 0)
        .header("x-ratelimit-resource", "core")
        .header("x-ratelimit-reset", START + 300);
    rig.ci.replies(RUN, [running(), spent, succeeded()]);
    let watched = Watched::new("github-actions", rig.get(PAGE).credential(token("t")));
    let cause = watched.doubts(|_| true).await;
    assert!(matches!(cause, Cause::RateLimited { .. }), "{cause}");
    let waits = now();
    let e = watched.work.until(|work| work.state.is_terminal()).within(seconds(60)).await.unwrap_err();
    assert!(e.is_still_pending(), "{e}");
    assert!(waits.elapsed() < seconds(1), "{:?}", waits.elapsed());
    watched.ends_once(WorkState::Succeeded).await;
    let third = rig.ci.until(RUN, 3).await;
    assert!(third.at - start >= seconds(300), "{:?}", third.at - start);
}

/// A validator is sent once there is one: 304 confirms what is shown, and costs nothing of the limit.
#[tokio::test(start_paused = true)]
async fn what_has_not_changed_is_confirmed_by_304() {
    let rig = Rig::new();
    rig.ci.on(RUN, |asked| match asked.header("if-none-match") {
        Some("W/\"one\"") => Reply::status(304).header("etag", "\"one\""),
        Some(other) => panic!("{other}"),
        None => running().header("etag", "W/\"one\""),
    });
    let watched = watch(&rig);
    pass(seconds(120)).await;
    assert_eq!(watched.seen(), ["loading ()", "in_progress"]);
    let asked = rig.ci.asked(RUN);
    assert!(asked.len() > 10);
    assert_eq!(asked.iter().filter(|asked| asked.header("if-none-match").is_none()).count(), 1);
}

/// R3: a token that is replaced behind the program is asked for again after the first refusal. Tags belong to the token.
#[tokio::test(start_paused = true)]
async fn r3_a_token_is_rotated() {
    let rig = Rig::new();
    let rotated = Arc::new(AtomicBool::new(false));
    let (is_rotated, gives_rotated) = (Arc::clone(&rotated), Arc::clone(&rotated));
    rig.ci.on(RUN, move |asked| {
        let (now, tag) =
            if is_rotated.load(Ordering::Relaxed) { ("Bearer new", "\"new\"") } else { ("Bearer old", "\"old\"") };
        match (asked.header("authorization"), asked.header("if-none-match")) {
            (Some(token), _) if token != now => Reply::json(json!({"message": "Bad credentials"})).with_status(401),
            (Some(_), None) => running().header("etag", tag),
            (Some(_), Some(known)) if known == tag => Reply::status(304),
            (_, known) => panic!("a request with the tag {known:?}"),
        }
    });
    let source = move || {
        let token = token(if gives_rotated.load(Ordering::Relaxed) { "new" } else { "old" });
        async move { Ok(token) }
    };
    let watched = Watched::new("github-actions", rig.get(PAGE).credential(source));
    watched.state(|_| true).await;
    pass(seconds(60)).await;
    rotated.store(true, Ordering::Relaxed);
    watched.doubts(|cause| *cause == Cause::Unauthorized).await;
    watched.shows(|reading| reading.is_fresh()).await;
    let refused =
        rig.ci.asked(RUN).iter().rev().filter(|asked| asked.header("authorization") == Some("Bearer old")).count();
    pass(seconds(60)).await;
    let asked = rig.ci.asked(RUN);
    assert_eq!(asked.iter().filter(|asked| asked.header("authorization") == Some("Bearer old")).count(), refused);
    assert!(!watched.has_ended());
}

/// R3: one token that is refused twice is not sent a third time.
#[tokio::test(start_paused = true)]
async fn r3_a_revoked_token_is_denied() {
    let rig = Rig::new();
    let refusal = || Reply::json(json!({"message": "Bad credentials"})).with_status(401);
    rig.ci.replies(RUN, [running(), refusal()]);
    let watched = Watched::new("github-actions", rig.get(PAGE).credential(token("t")));
    let e = watched.work.until(|work| work.state.is_terminal()).await.unwrap_err();
    assert_eq!(e.end(), Some(End::Denied));
    assert_eq!(rig.ci.total(), 3);
    assert_eq!(&*e.last().last().unwrap().status, "in_progress");
}

/// R10, FC-09: the log of a job is there once the job is over, at another origin, to which the token does not go.
#[tokio::test(start_paused = true)]
async fn the_log_of_a_job_comes_at_its_end_from_elsewhere_without_the_token() {
    let rig = Rig::new();
    let store = Script::serve(&rig.net, "store.example");
    rig.ci.replies(LOGS, [Reply::status(404)]);
    rig.ci.replies(RUN, [running()]);
    let watched = Watched::new("github-actions", rig.get(PAGE).credential(token("t")));
    let mut log = rig.get(LOGS).credential(token("t")).log(LogKind::AtEnd).unwrap();
    log.finish_with(&watched.work, |work| work.state.is_terminal());
    pass(seconds(60)).await;
    assert!(rig.ci.asked(LOGS).len() > 5);

    store.replies("/signed", [Reply::text("one\ntwo\n")]);
    rig.ci.replies(LOGS, [Reply::status(302).header("location", "http://store.example/signed?sig=s")]);
    assert_eq!(item(&mut log).await, "one\ntwo\n");
    let (rest, gaps, end) = all(&mut log).await;
    assert_eq!((&*rest, gaps), ("", 0));
    assert!(end.is_complete(), "{end}");
    assert!(!watched.work.latest().last().unwrap().state.is_terminal(), "a log is no verdict");

    let asked = store.until("/signed", 1).await;
    assert_eq!(asked.header("authorization"), None);
    let asked = rig.ci.until(LOGS, 1).await;
    assert_eq!(asked.header("authorization"), Some("Bearer t"));
    rig.ci.replies(RUN, [run(5, "completed", Some("failure"))]);
    watched.ends_once(WorkState::Failed).await;
}

/// R8: a limit that only a body speaks of holds for logs as well: they share the budget of the token.
#[tokio::test(start_paused = true)]
async fn r8_a_log_keeps_to_a_secondary_limit() {
    let rig = Rig::new();
    let limit = Reply::json(json!({"message": "You have exceeded a secondary rate limit."})).with_status(403);
    rig.ci.replies(LOGS, [limit]);
    let mut log = rig.get(LOGS).credential(token("t")).log(LogKind::AtEnd).unwrap();
    pass(seconds(600)).await;
    let asked = rig.ci.asked(LOGS).len();
    assert!((2..=30).contains(&asked), "{asked} requests in ten minutes");
    rig.ci.replies(LOGS, [Reply::text("one\n")]);
    assert_eq!(item(&mut log).await, "one\n");
}

/// R10: a link that has run out, and a log that was deleted, are the log's affair.
#[tokio::test(start_paused = true)]
async fn a_log_that_is_gone_says_so_and_nothing_else() {
    let rig = Rig::new();
    rig.ci.replies(LOGS, [Reply::status(410)]);
    rig.ci.replies(RUN, [succeeded()]);
    let watched = watch(&rig);
    let mut log = rig.get(LOGS).log(LogKind::AtEnd).unwrap();
    let (_, _, end) = all(&mut log).await;
    assert!(matches!(end, FeedEnd::Gone { .. }), "{end}");
    watched.ends_once(WorkState::Succeeded).await;
}
