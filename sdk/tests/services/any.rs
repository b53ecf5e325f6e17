//! What holds for every service alike: login pages, words that nobody knows, and logs that say otherwise.

use outlast::http::feed::{self, FeedEnd, LogKind};
use outlast::http::poll::Pace;
use outlast::profile::{Profile, WorkState};
use outlast::testing::Reply;
use outlast::{Cause, Credential, End, Reading};
use serde_json::{Value, json};

use crate::rig::{Rig, Watched, all, now, pass, seconds};

/// One service: where its work is read, and what is said there.
struct Service {
    profile: &'static str,
    path: &'static str,
    running: Value,
    ok: Value,
    failed: Value,
    /// With a word that the profile does not know.
    unknown: Value,
    /// With a status that is no word at all.
    wrong: Vec<Value>,
}

fn services() -> [Service; 5] {
    let github = |status: Value, conclusion: Value| json!({"id": 7, "run_attempt": 1, "status": status, "conclusion": conclusion});
    let gitlab = |status: Value| json!({"id": 9, "status": status});
    let jenkins = |running: Value, result: Value| json!({"inProgress": running, "result": result});
    let buildbot = |complete: Value, results: Value| json!({"buildrequests": [{"buildrequestid": 12, "complete": complete, "claimed": true, "results": results}], "meta": {}});
    [
        Service {
            profile: "github-actions",
            path: "/api/v3/repos/o/r/actions/runs/7",
            running: github(json!("in_progress"), json!(null)),
            ok: github(json!("completed"), json!("success")),
            failed: github(json!("completed"), json!("failure")),
            unknown: github(json!("simmering"), json!(null)),
            wrong: vec![github(json!(3), json!("success")), github(json!("completed"), json!(true)), json!([])],
        },
        Service {
            profile: "gitlab",
            path: "/api/v4/projects/g%2Fp/pipelines/9",
            running: gitlab(json!("running")),
            ok: gitlab(json!("success")),
            failed: gitlab(json!("failed")),
            unknown: gitlab(json!("simmering")),
            wrong: vec![gitlab(json!(1)), gitlab(json!(null)), json!({"message": "success"})],
        },
        Service {
            profile: "gitlab",
            path: "/api/v4/projects/g%2Fp/jobs/3",
            running: gitlab(json!("running")),
            ok: gitlab(json!("success")),
            failed: gitlab(json!("failed")),
            unknown: gitlab(json!("simmering")),
            wrong: vec![gitlab(json!({})), json!("success")],
        },
        Service {
            profile: "jenkins",
            path: "/job/a/job/b/7/api/json",
            running: jenkins(json!(true), json!(null)),
            ok: jenkins(json!(false), json!("SUCCESS")),
            failed: jenkins(json!(false), json!("FAILURE")),
            unknown: jenkins(json!(false), json!("SIMMERING")),
            wrong: vec![jenkins(json!(false), json!(0)), jenkins(json!("false"), json!("SUCCESS")), json!({})],
        },
        Service {
            profile: "buildbot",
            path: "/api/v2/buildrequests/12",
            running: buildbot(json!(false), json!(-1)),
            ok: buildbot(json!(true), json!(0)),
            failed: buildbot(json!(true), json!(2)),
            unknown: buildbot(json!(true), json!(77)),
            wrong: vec![buildbot(json!(true), json!("0")), buildbot(json!(1), json!(0)), json!({"buildrequests": []})],
        },
    ]
}

/// R3: a login page with status 200, before anything was seen and in the middle, is neither a value nor an end.
#[tokio::test(start_paused = true)]
async fn r3_a_login_page_is_no_answer() {
    for service in services() {
        let rig = Rig::new();
        let login = || Reply::text("<html>Sign in</html>").header("x-frame-options", "DENY");
        let html = || Reply::bytes("<html>Sign in</html>").header("content-type", "text/html; charset=utf-8");
        let running = || Reply::json(&service.running);
        rig.ci.replies(service.path, [html(), login(), running(), html(), html(), login(), Reply::json(&service.ok)]);
        let watched = rig.watch(service.profile, service.path);
        watched.doubts(|cause| matches!(cause, Cause::Undecodable { .. })).await;
        watched.state(|work| work.state == WorkState::Running).await;
        watched.doubts(|cause| matches!(cause, Cause::Undecodable { .. })).await;
        watched.ends_once(WorkState::Succeeded).await;
        assert_eq!(watched.statuses().len(), 2, "{:?}", watched.seen());
    }
}

/// R3: some services send a reader without a session to a page of theirs.
#[tokio::test(start_paused = true)]
async fn r3_a_redirect_to_a_login_page_is_no_answer() {
    for service in services() {
        let rig = Rig::new();
        let away = Reply::status(302).header("location", "/login?from=x");
        rig.ci.replies("/login", [Reply::bytes("<html>").header("content-type", "text/html")]);
        rig.ci.replies(service.path, [Reply::json(&service.running), away.clone(), away, Reply::json(&service.ok)]);
        let watched = rig.watch(service.profile, service.path);
        watched.ends_once(WorkState::Succeeded).await;
        assert!(watched.seen().iter().any(|shown| shown.contains("undecodable")), "{:?}", watched.seen());
    }
}

/// R10: a word that the profile does not know means running, with a warning; and what is no word is unreadable (R3).
#[tokio::test(start_paused = true)]
async fn r10_a_word_that_nobody_knows_is_running_and_what_is_none_is_unreadable() {
    for service in services() {
        let rig = Rig::new();
        rig.ci.replies(service.path, [Reply::json(&service.unknown)]);
        let watched = rig.watch(service.profile, service.path);
        let work = watched.state(|_| true).await;
        assert_eq!(work.state, WorkState::Running, "{}", service.profile);
        assert!(work.warning.as_ref().is_some_and(|warning| warning.contains("unknown status")), "{:?}", work.warning);
        for wrong in &service.wrong {
            rig.ci.replies(service.path, [Reply::json(wrong)]);
            watched.doubts(|cause| matches!(cause, Cause::Undecodable { .. })).await;
            pass(seconds(600)).await;
            let latest = watched.work.latest();
            assert!(matches!(latest.cause(), Some(Cause::Undecodable { .. })), "{wrong}: {latest:?}");
            rig.ci.replies(service.path, [Reply::json(&service.running)]);
            watched.shows(|reading| reading.is_fresh()).await;
        }
        rig.ci.replies(service.path, [Reply::json(&service.failed)]);
        watched.ends_once(WorkState::Failed).await;
    }
}

/// R9: whatever the service, the wait's own bound says `StillPending`, fresh or stale.
#[tokio::test(start_paused = true)]
async fn r9_waits_that_run_out() {
    for service in services() {
        let rig = Rig::new();
        rig.ci.replies(service.path, [Reply::json(&service.running)]);
        let watched = rig.watch(service.profile, service.path);
        let e = watched.work.until(|work| work.state.is_terminal()).within(seconds(30)).await.unwrap_err();
        assert!(e.is_still_pending() && e.last().is_fresh(), "{e}");
        rig.ci.replies(service.path, [Reply::hang()]);
        let e = watched.work.until(|work| work.state.is_terminal()).within(seconds(120)).await.unwrap_err();
        assert!(e.is_still_pending(), "{e}");
        assert!(matches!(e.cause(), Some(Cause::Stalled { .. })), "{e}");
    }
}

/// FC-14: work that is not visible yet is waited for; work that is not there for the whole grace is gone (R3).
#[tokio::test(start_paused = true)]
async fn fc_14_not_visible_yet() {
    for service in services() {
        let rig = Rig::new();
        let absent = || Reply::json(json!({"message": "404 Not Found"})).with_status(404);
        rig.ci.replies(service.path, [absent(), absent(), absent(), Reply::json(&service.running)]);
        let watched = rig.watch(service.profile, service.path);
        watched.doubts(|cause| *cause == Cause::NotYetVisible).await;
        watched.state(|_| true).await;

        rig.ci.replies(service.path, [absent()]);
        let other = rig.watch(service.profile, service.path);
        let start = now();
        let e = other.work.until(|_| true).await.unwrap_err();
        assert_eq!(e.end(), Some(End::Gone));
        assert!((seconds(10)..seconds(12)).contains(&start.elapsed()), "{:?}", start.elapsed());
    }
}

/// FC-09, R10: the verdict is the status channel's, whether the log ends well, is refused, or is cut again and again.
#[tokio::test(start_paused = true)]
async fn fc_09_the_verdict_is_not_the_logs() {
    for service in services() {
        // The log is complete while the work goes on, and then fails.
        let rig = Rig::new();
        rig.ci.replies("/log", [Reply::text("all is well\n")]);
        rig.ci.replies(service.path, [Reply::json(&service.running)]);
        let watched = rig.watch(service.profile, service.path);
        let mut log = rig.get("/log").log(LogKind::AtEnd).unwrap();
        let (text, _, end) = all(&mut log).await;
        assert!(text == "all is well\n" && end.is_complete(), "{end}");
        pass(seconds(60)).await;
        assert!(!watched.work.latest().last().unwrap().state.is_terminal());
        rig.ci.replies(service.path, [Reply::json(&service.failed)]);
        watched.ends_once(WorkState::Failed).await;

        // The log is refused while the work succeeds.
        for refusal in [Reply::status(403), Reply::status(500), Reply::close(), Reply::hang()] {
            let rig = Rig::new();
            rig.ci.replies("/log", [refusal]);
            rig.ci.replies(service.path, [Reply::json(&service.running), Reply::json(&service.ok)]);
            let watched = rig.watch(service.profile, service.path);
            let mut log = rig.get("/log").log(LogKind::Whole).unwrap();
            log.finish_with(&watched.work, |work| work.state.is_terminal());
            watched.ends_once(WorkState::Succeeded).await;
            let (text, _, end) = all(&mut log).await;
            assert!(text.is_empty() && matches!(end, FeedEnd::Incomplete { .. }), "{end}");
            assert!(watched.work.latest().is_fresh(), "{:?}", watched.work.latest());
        }
    }
}

/// R3: whoever answers 401 after a redirect to another port was sent no credential, so it has refused none.
#[tokio::test(start_paused = true)]
async fn r3_a_credential_that_was_not_sent_is_not_refused() {
    for service in services() {
        let rig = Rig::new();
        let away = Reply::status(302).header("location", "http://ci.example:8080/elsewhere");
        rig.ci.replies("/elsewhere", [Reply::status(401)]);
        rig.ci.replies(service.path, [away]);
        rig.ci.replies("/log", [Reply::status(302).header("location", "http://ci.example:8080/elsewhere")]);
        let token = || Credential::bearer("t").unwrap();
        let watched = Watched::new(service.profile, rig.get(service.path).credential(token()));
        let log = rig.get("/log").credential(token()).log(LogKind::Whole).unwrap();
        watched.doubts(|cause| matches!(cause, Cause::Misdirected { .. })).await;
        pass(seconds(120)).await;
        assert!(
            matches!(watched.work.latest().cause(), Some(Cause::Misdirected { .. })),
            "{:?}",
            watched.work.latest()
        );
        let state = log.state().latest();
        assert!(matches!(state.last().map(|state| &**state), Some(feed::FeedState::Stale { .. })), "{state:?}");
        assert!(rig.ci.asked("/elsewhere").iter().all(|asked| asked.header("authorization").is_none()));
    }
}

/// What an answer can be beside a whole value of the right kind.
fn odd(service: &Service) -> [(&'static str, Reply); 22] {
    let whole = serde_json::to_vec(&service.ok).unwrap();
    let html = |status| Reply::status(status).header("content-type", "text/html").body("<html>");
    let ok = || Reply::json(&service.ok);
    [
        ("empty", Reply::bytes("").header("content-type", "application/json")),
        (
            "part with the length of the part",
            Reply::bytes(whole[..whole.len() - 1].to_vec()).header("content-type", "application/json"),
        ),
        ("cut", ok().cut(whole.len() - 1)),
        ("stalled", ok().stalls(whole.len() - 1)),
        ("longer than announced", ok().length(whole.len() - 1)),
        ("chunked without its end", Reply::chunked([whole.clone()]).header("content-type", "application/json")),
        ("two values", Reply::bytes([&*whole, &*whole].concat()).header("content-type", "application/json")),
        ("no JSON", Reply::text("OK")),
        ("null", Reply::json(json!(null))),
        ("an empty object", Reply::json(json!({}))),
        ("an unknown coding", ok().header("content-encoding", "br")),
        ("not what it says", ok().header("content-encoding", "gzip")),
        ("changed by a proxy", ok().with_status(203)),
        ("accepted", ok().with_status(202)),
        ("no content", Reply::status(204)),
        ("a part", ok().with_status(206)),
        ("unchanged, to whom did not ask", Reply::status(304)),
        ("a redirect without a place", Reply::status(302)),
        ("a circle", Reply::status(302).header("location", service.path)),
        ("a value beside a failure", ok().with_status(500)),
        ("of a proxy", html(407)),
        ("no HTTP", Reply::raw("220 mail.example ESMTP\r\n")),
    ]
}

/// R1, R3: nothing that an answer can be but a whole value of the right kind is taken for one, and none of it is an end.
#[tokio::test(start_paused = true)]
async fn r3_odd_answers_are_neither_values_nor_ends() {
    let services = services();
    // Each by one service: all go the same way.
    for nth in 0..22 {
        let service = &services[nth % services.len()];
        let (name, reply) = odd(service)[nth].clone();
        let rig = Rig::new();
        rig.ci.replies(service.path, [reply.clone()]);
        let watched = rig.watch(service.profile, service.path);
        watched.doubts(|_| true).await;
        pass(seconds(120)).await;
        assert!(matches!(watched.work.latest(), Reading::Loading { .. }), "{name}: {:?}", watched.work.latest());

        rig.ci.replies(service.path, [Reply::json(&service.running)]);
        watched.state(|_| true).await;
        rig.ci.replies(service.path, [reply]);
        watched.doubts(|_| true).await;
        pass(seconds(120)).await;
        let latest = watched.work.latest();
        assert!(
            matches!(&latest, Reading::Stale { last, .. } if last.state == WorkState::Running),
            "{name}: {latest:?}"
        );
        assert!(rig.ci.total() < 700, "{name}: {} requests in four minutes", rig.ci.total());

        rig.ci.replies(service.path, [Reply::json(&service.failed)]);
        watched.ends_once(WorkState::Failed).await;
    }
}

/// R3: work that was seen is gone once the service says so for the grace, and at once where it says that it is no more.
#[tokio::test(start_paused = true)]
async fn r3_work_that_is_deleted_is_gone() {
    for service in services() {
        for (status, longest, most) in [(404, 11, 25), (410, 1, 1)] {
            let rig = Rig::new();
            rig.ci.replies(service.path, [Reply::json(&service.running)]);
            let watched = rig.watch(service.profile, service.path);
            watched.state(|_| true).await;
            rig.ci.replies(service.path, [Reply::status(status)]);
            let before = rig.ci.asked(service.path).len();
            let e = watched.work.until(|work| work.state.is_terminal()).await.unwrap_err();
            assert_eq!(e.end(), Some(End::Gone));
            assert_eq!(e.last().last().unwrap().state, WorkState::Running);
            let first = rig.ci.until(service.path, before + 1).await;
            assert!(now() - first.at <= seconds(longest), "{:?}", now() - first.at);
            pass(seconds(60)).await;
            assert!(rig.ci.asked(service.path).len() <= before + most, "nothing is asked after the end");
        }
    }
}

/// A pace that is set for a watch holds, also where it is the one that a read has by default; otherwise the profile's.
#[tokio::test(start_paused = true)]
async fn the_pace_of_a_profile_gives_way_to_what_is_set() {
    let [service, ..] = services();
    let mut profile = Profile::named(service.profile).unwrap();
    profile.pace = Pace::every(seconds(30));
    for (set, expected) in [(false, 2..=4), (true, 10..=40)] {
        let rig = Rig::new();
        rig.ci.replies(service.path, [Reply::json(&service.running)]);
        let get = rig.get(service.path);
        let work = profile.watch(if set { get.pace(Pace::default()) } else { get }).unwrap();
        pass(seconds(60)).await;
        let asked = rig.ci.asked(service.path).len();
        assert!(expected.contains(&asked), "{asked} requests, expected {expected:?}");
        drop(work);
    }
}
