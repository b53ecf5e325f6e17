//! Services that no profile is shipped for, each with a habit that a naive loop falls for.

use outlast::http::Get;
use outlast::profile::{Profile, WorkState};
use outlast::testing::Reply;
use outlast::{Cause, End};
use serde_json::{Value, json};

use crate::rig::{Rig, Watched, pass, seconds};

fn watch(profile: &str, get: Get) -> Watched {
    Watched::of(&Profile::parse(profile).unwrap(), get)
}

/// As a Kubernetes Job: some time after it is over, a controller removes it.
const FORGETS: &str = r#"
    name = "forgets"
    [[stage]]
    name = "job"
    path = "/namespaces/{namespace}/jobs/{job}"
    vanishes_after = "20s"
    status = [{ at = "/phase", running = ["Active"], ok = ["Complete"], failed = ["Failed"] }]
"#;

const JOB: &str = "/namespaces/ci/jobs/a";

fn phase(phase: &str) -> Reply {
    Reply::json(json!({ "phase": phase }))
}

/// R10: success that turns into a 404 is success, for whoever waited and for whoever comes later. A job that runs for long is looked
/// at so often that its end is not missed.
#[tokio::test(start_paused = true)]
async fn r10_what_is_forgotten_once_it_is_over_stays_over() {
    for forgotten in [Reply::status(404), Reply::status(410)] {
        let rig = Rig::new();
        rig.ci.replies(JOB, [phase("Active")]);
        let watched = watch(FORGETS, rig.get(JOB));
        pass(seconds(1800)).await;
        let asked = rig.ci.asked(JOB);
        let longest = asked.windows(2).map(|pair| pair[1].at - pair[0].at).max().unwrap();
        assert!(longest <= seconds(10), "{longest:?}");

        rig.ci.replies(JOB, [phase("Complete")]);
        watched.ends_once(WorkState::Succeeded).await;
        rig.ci.replies(JOB, [forgotten]);
        pass(seconds(3600)).await;
        let late = watched.over().await;
        assert_eq!((late.state, watched.has_ended()), (WorkState::Succeeded, false));
        assert_eq!(watched.seen(), ["loading ()", "Active", "Complete"]);
    }
}

/// R3, R10: what was not over when it was seen last is gone, and nothing is said of how it ended.
#[tokio::test(start_paused = true)]
async fn r3_what_is_forgotten_while_nobody_could_look_is_gone() {
    let rig = Rig::new();
    rig.ci.replies(JOB, [phase("Active")]);
    let watched = watch(FORGETS, rig.get(JOB));
    watched.state(|_| true).await;
    rig.ci.kill();
    pass(seconds(600)).await;
    assert!(!watched.has_ended());
    rig.ci.replies(JOB, [Reply::status(404)]);
    rig.ci.revive();
    let e = watched.work.until(|work| work.state.is_terminal()).await.unwrap_err();
    assert_eq!(e.end(), Some(End::Gone));
    assert_eq!(e.last().last().unwrap().state, WorkState::Running);
}

/// R4, R10: an end that is not shown, since it is older than what is, confirms nothing that is: the work is gone. One that is
/// shown stays, whatever is not shown after it.
#[tokio::test(start_paused = true)]
async fn r4_what_is_forgotten_after_an_end_that_was_not_shown_is_gone() {
    let profile = FORGETS.replace("vanishes_after", "order = { kind = 'monotone', at = '/revision' }\nvanishes_after");
    let of = |phase: &str, revision: u64| Reply::json(json!({ "phase": phase, "revision": revision }));
    for (shown, behind) in [("Active", "Complete"), ("Complete", "Active")] {
        let rig = Rig::new();
        rig.ci.replies(JOB, [of(shown, 5)]);
        let watched = watch(&profile, rig.get(JOB));
        watched.state(|_| true).await;
        rig.ci.replies(JOB, [of(behind, 4)]);
        watched.doubts(|cause| *cause == Cause::Behind).await;
        rig.ci.replies(JOB, [Reply::status(404)]);
        if shown == "Complete" {
            watched.shows(|reading| reading.is_fresh()).await;
            pass(seconds(3600)).await;
            watched.ends_once(WorkState::Succeeded).await;
        } else {
            let e = watched.work.until(|work| work.state.is_terminal()).within(seconds(3600)).await.unwrap_err();
            assert_eq!(e.end(), Some(End::Gone));
            assert_eq!(watched.statuses(), ["Active"]);
        }
    }
}

/// Everything that a profile can say of stages, attempts and order.
const ODD: &str = r#"
    name = "odd"
    [[stage]]
    name = "ticket"
    path = "/tickets/{ticket}"
    status = [{ at = "/state", queued = ["waiting"], canceled = ["dropped"] }]
    next = [{ stage = "job", bind = { job = "/job" } }]
    [[stage]]
    name = "job"
    path = "/jobs/{job}"
    attempt = "/attempt"
    order = { kind = "monotone", at = "/revision" }
    next = [{ stage = "job", attempt = true, bind = { job = "/retried_in" } }]
    [[stage.status]]
    when = { at = "/blocked", is = [true] }
    at = "/state"
    parked = ["passed"]
    failed = ["failed"]
    [[stage.status]]
    at = "/state"
    running = ["busy"]
    ok = ["passed"]
    failed = ["failed"]
    names = { busy = "at it" }
"#;

const TICKET: &str = "/tickets/1";
const A: &str = "/jobs/a";
const B: &str = "/jobs/b";

/// Ids are taken as they are: as text or as a number, however large, and never rounded. What is no id leads nowhere (R3).
#[tokio::test(start_paused = true)]
async fn r3_ids_of_all_sorts() {
    for (id, path) in [
        ("70", "/jobs/70"),
        ("\"70\"", "/jobs/70"),
        // More than a fraction can hold, and than a signed number.
        ("9007199254740993", "/jobs/9007199254740993"),
        ("18446744073709551615", "/jobs/18446744073709551615"),
        ("\"123456789012345678901234567890\"", "/jobs/123456789012345678901234567890"),
        ("\"a/b\"", "/jobs/a%2Fb"),
        ("\"//evil.example/x?y#z\"", "/jobs/%2F%2Fevil.example%2Fx%3Fy%23z"),
        ("\"\\u00e9\"", "/jobs/%C3%A9"),
    ] {
        let rig = Rig::new();
        let ticket = format!("{{\"state\": \"waiting\", \"job\": {id}}}");
        rig.ci.replies(TICKET, [Reply::bytes(ticket).header("content-type", "application/json")]);
        rig.ci.replies(path, [Reply::json(json!({"state": "passed"}))]);
        watch(ODD, rig.get(TICKET)).ends_once(WorkState::Succeeded).await;
    }
    for id in ["1e20", "18446744073709551616", "7.5", "\"\"", "\"..\"", "\"a\\nb\"", "true", "{}", "[70]"] {
        let rig = Rig::new();
        let ticket = format!("{{\"state\": \"waiting\", \"job\": {id}}}");
        let waiting = || Reply::json(json!({"state": "waiting", "job": null}));
        rig.ci.replies(TICKET, [waiting()]);
        let watched = watch(ODD, rig.get(TICKET));
        watched.state(|_| true).await;
        rig.ci.replies(TICKET, [Reply::bytes(ticket).header("content-type", "application/json")]);
        let cause = watched.doubts(|_| true).await;
        assert!(cause.to_string().contains("at /job, found"), "{id}: {cause}");
        pass(seconds(60)).await;
        assert_eq!(rig.ci.total(), rig.ci.asked(TICKET).len(), "{id}: nothing else is asked");
        rig.ci.replies(TICKET, [Reply::json(json!({"state": "dropped"}))]);
        watched.ends_once(WorkState::Canceled).await;
    }
}

fn job(state: &str) -> Value {
    json!({ "state": state })
}

fn busy() -> Reply {
    Reply::json(job("busy"))
}

/// R10: each attempt has an id of its own. A failure is an end until the service names the attempt that follows; that may not be
/// visible yet (FC-14), and its end is the end.
#[tokio::test(start_paused = true)]
async fn r10_attempts_that_chain_from_id_to_id() {
    let rig = Rig::new();
    rig.ci.replies(TICKET, [Reply::json(json!({"state": "waiting", "job": "a"}))]);
    rig.ci.replies(A, [busy(), Reply::json(job("failed"))]);
    let watched = watch(ODD, rig.get(TICKET));
    let first = watched.ends_once(WorkState::Failed).await;
    assert_eq!(first.marks().attempt, None);
    rig.ci.replies(A, [Reply::json(json!({"state": "failed", "retried_in": "b"}))]);
    rig.ci.replies(B, [Reply::status(404), Reply::status(502), Reply::status(404), busy()]);
    watched.state(|work| &*work.status == "at it").await;
    let asked = rig.ci.asked(A).len();
    pass(seconds(60)).await;
    assert_eq!(rig.ci.asked(A).len(), asked, "the attempt before is not read any more");
    rig.ci.replies(B, [Reply::json(job("passed"))]);
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(watched.statuses(), ["waiting", "at it", "failed", "at it", "passed"]);
}

/// R10: work that waits for a person reads "passed" meanwhile. It is no end, and goes on once somebody has said so.
#[tokio::test(start_paused = true)]
async fn r10_parked_and_then_on() {
    let rig = Rig::new();
    let with = |state: &str, blocked: bool| Reply::json(json!({"state": state, "blocked": blocked}));
    rig.ci.replies(A, [with("busy", false), with("passed", true)]);
    let watched = watch(ODD, rig.get(A));
    let over = watched.work.until(|work| work.state.is_terminal());
    watched.state(|work| work.state == WorkState::Parked).await;
    pass(seconds(3600)).await;
    assert!(rig.ci.asked(A).len() > 100, "it is looked at all the same");
    // A word that only the other question knows is not lost, either.
    rig.ci.replies(A, [with("failing", true), with("busy", false)]);
    let odd = watched.state(|work| work.warning.is_some()).await;
    assert_eq!(odd.state, WorkState::Running);
    watched.state(|work| work.warning.is_none()).await;
    rig.ci.replies(A, [with("passed", false)]);
    assert_eq!(over.await.unwrap().state, WorkState::Succeeded);
    watched.ends_once(WorkState::Succeeded).await;
}

/// R4, R10: attempts and versions that go back, that are text, or that are missing for a while. None of it shows an end that is
/// not the latest attempt's.
#[tokio::test(start_paused = true)]
async fn r4_attempts_and_versions_that_go_astray() {
    let rig = Rig::new();
    let of = |state: &str, attempt: Value, revision: Value| {
        Reply::json(json!({"state": state, "attempt": attempt, "revision": revision}))
    };
    rig.ci.replies(A, [of("busy", json!(2), json!(7))]);
    let watched = watch(ODD, rig.get(A));
    watched.state(|_| true).await;
    for (astray, cause) in [
        (of("failed", json!("2"), json!(8)), "expected a whole number at /attempt, found a string"),
        (of("failed", json!(-1), json!(8)), "expected a whole number at /attempt, found a number"),
        (of("failed", json!(1), json!(9)), "behind"),
        (of("failed", json!(2), json!(6)), "behind"),
        (Reply::json(json!({"attempt": 2, "revision": 9})), "expected a string at /state, found none"),
        (Reply::json(json!({"state": null, "attempt": 2})), "expected a string at /state, found none"),
        (of("0", json!(3), json!({})), ""),
    ] {
        rig.ci.replies(A, [astray]);
        if cause.is_empty() {
            // A word that nobody knows, in a later attempt.
            watched.state(|work| work.warning.is_some() && work.attempt == Some(3)).await;
        } else {
            watched.doubts(|doubt| doubt.to_string().contains(cause)).await;
            pass(seconds(120)).await;
            assert!(watched.work.latest().cause().unwrap().to_string().contains(cause), "{cause}");
        }
        assert_eq!(watched.work.latest().last().unwrap().state, WorkState::Running, "{cause}");
        let attempt = watched.work.latest().last().unwrap().attempt.unwrap();
        rig.ci.replies(A, [of("busy", json!(attempt), json!(7))]);
        watched.shows(|reading| reading.is_fresh()).await;
    }
    // The largest attempt that there is, and then one that is none after it.
    rig.ci.replies(A, [of("busy", json!(u64::MAX), json!(1)), of("failed", json!(4), json!(99))]);
    watched.doubts(|cause| *cause == Cause::Behind).await;
    pass(seconds(120)).await;
    assert_eq!(watched.work.latest().last().unwrap().attempt, Some(u64::MAX));
    rig.ci.replies(A, [of("passed", json!(u64::MAX), json!("text says nothing of order"))]);
    watched.ends_once(WorkState::Succeeded).await;
    assert!(!watched.statuses().contains(&"failed".to_owned()), "{:?}", watched.seen());
}
