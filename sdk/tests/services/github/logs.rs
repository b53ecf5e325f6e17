//! The logs of a run, job by job and attempt by attempt, as the profile finds them.

use outlast::http::feed::FeedEnd;
use outlast::profile::{Profile, WorkState};
use outlast::testing::{Reply, Script};
use outlast::{Cause, Known};
use serde_json::{Value, json};

use super::{PAGE, RUN, attempt, run, running, succeeded, token};
use crate::rig::{Rig, Watched, all, pass, seconds};

const JOBS: &str = "/api/v3/repos/o/r/actions/runs/7/attempts/1/jobs";
const SECOND: &str = "/api/v3/repos/o/r/actions/runs/7/attempts/2/jobs";

fn log_of(job: u64) -> String {
    format!("/api/v3/repos/o/r/actions/jobs/{job}/logs")
}

fn jobs(jobs: impl IntoIterator<Item = u64>, total: usize) -> Reply {
    let job = |id| json!({"id": id, "run_id": 7, "name": format!("job {id}"), "status": "in_progress"});
    Reply::json(json!({"total_count": total, "jobs": jobs.into_iter().map(job).collect::<Vec<Value>>()}))
}

fn elsewhere(job: u64) -> Reply {
    Reply::status(302).header("location", format!("http://store.example/{job}?sig=s"))
}

fn github() -> Profile {
    Profile::named("github-actions").unwrap()
}

fn watch(rig: &Rig) -> Watched {
    Watched::new("github-actions", rig.get(PAGE).credential(token("t")))
}

/// R6, R10: each job's log is 404 until that job has ended, and comes from another origin, without the token. Links that have run out and
/// answers that are cut are tried again; in the end each log is byte for byte what was written.
#[tokio::test(start_paused = true)]
async fn r6_each_log_comes_when_its_job_has_ended() {
    let whole = "\u{feff}2025-11-25T00:01:02.0000000Z one\r\n2025-11-25T00:01:03.0000000Z two\r\n";
    let rig = Rig::new();
    let store = Script::serve(&rig.net, "store.example");
    rig.ci.replies(RUN, [running()]);
    let login = Reply::bytes("<html>Sign in</html>").header("content-type", "text/html");
    let error = Reply::json(json!({"message": "Server Error"}));
    rig.ci.replies(JOBS, [Reply::status(502), login, error, Reply::close(), jobs([70, 71], 2)]);
    for job in [70, 71] {
        rig.ci.replies(&log_of(job), [Reply::json(json!({"message": "Not Found"})).with_status(404)]);
    }
    let watched = watch(&rig);
    let work = watched.state(|_| true).await;
    let logs = github().logs(rig.get(PAGE).credential(token("t")), &work).await.unwrap();
    let [(first, mut one), (second, mut two)] = <[_; 2]>::try_from(logs).unwrap();
    assert_eq!((&*first, &*second), ("job 70", "job 71"));
    one.finish_with(&watched.work, |work| work.state.is_terminal());
    two.finish_with(&watched.work, |work| work.state.is_terminal());
    pass(seconds(60)).await;
    assert!(rig.ci.asked(&log_of(70)).len() > 5 && store.total() == 0);

    let denied = Reply::bytes("<?xml version=\"1.0\"?><Error>AuthenticationFailed</Error>").with_status(403);
    store.replies("/70", [denied, Reply::text(whole).cut(20), Reply::text(whole)]);
    rig.ci.replies(&log_of(70), [elsewhere(70)]);
    let (text, gaps, end) = all(&mut one).await;
    assert_eq!((&*text, gaps), (whole, 0));
    assert!(end.is_complete(), "{end}");
    assert!(!watched.work.latest().last().unwrap().state.is_terminal(), "a log is no verdict");

    // The other one is not there yet when the run is over.
    store.replies("/71", [Reply::text("three\n")]);
    rig.ci.replies(&log_of(71), [Reply::status(404), Reply::status(503), Reply::status(404), elsewhere(71)]);
    rig.ci.replies(RUN, [succeeded()]);
    let (text, gaps, end) = all(&mut two).await;
    assert_eq!((&*text, gaps), ("three\n", 0));
    assert!(end.is_complete(), "{end}");
    watched.ends_once(WorkState::Succeeded).await;

    assert!(store.asked("/70").len() >= 3);
    let strangers = [store.asked("/70"), store.asked("/71")].concat();
    assert!(strangers.iter().all(|asked| asked.header("authorization").is_none()));
    let own = [rig.ci.asked(JOBS), rig.ci.asked(&log_of(70)), rig.ci.asked(&log_of(71))].concat();
    assert!(own.iter().all(|asked| asked.header("authorization") == Some("Bearer t")));
}

/// R10: the logs of work are those of the attempt that was seen, also once another one runs, and of one that was asked for
/// by its page.
#[tokio::test(start_paused = true)]
async fn r10_logs_are_of_their_attempt() {
    let rig = Rig::new();
    let text = |job: u64| Reply::text(format!("of {job}\n"));
    rig.ci.replies(JOBS, [jobs([70], 1)]);
    rig.ci.replies(SECOND, [jobs([80], 1)]);
    for job in [70, 80] {
        rig.ci.replies(&log_of(job), [text(job)]);
    }
    rig.ci.replies(RUN, [run(3, "completed", Some("failure"))]);
    let watched = watch(&rig);
    let first = watched.over().await;
    rig.ci.replies(RUN, [Reply::json(attempt(2, 10, "in_progress", None))]);
    let second = watched.state(|work| work.attempt == Some(2)).await;
    rig.ci.replies(&format!("{RUN}/attempts/1"), [run(3, "completed", Some("failure"))]);
    let page = format!("{PAGE}/attempts/1");
    let pinned = Watched::new("github-actions", rig.get(&page).credential(token("t"))).over().await;
    for (work, page, expected) in [(first, PAGE, "of 70\n"), (second, PAGE, "of 80\n"), (pinned, &*page, "of 70\n")] {
        let mut logs = github().logs(rig.get(page).credential(token("t")), &work).await.unwrap();
        assert_eq!(logs.len(), 1);
        let (text, gaps, end) = all(&mut logs[0].1).await;
        assert_eq!((&*text, gaps), (expected, 0), "{:?}", work.attempt);
        assert!(end.is_complete(), "{end}");
    }
}

async fn over(rig: &Rig) -> Known<outlast::profile::Work> {
    rig.ci.replies(RUN, [succeeded()]);
    watch(rig).over().await
}

/// R6: more jobs than a page has. Links lead on along another path, as GitHub's do; where one names another origin, this
/// one is asked. A list that goes on under way has some jobs twice: each has one log.
#[tokio::test(start_paused = true)]
async fn r6_the_logs_of_more_jobs_than_a_page_has() {
    const NEXT: &str = "/api/v3/repositories/1/actions/runs/7/attempts/1/jobs";
    let rig = Rig::new();
    let other = Script::serve(&rig.net, "inside.example");
    let link = |page: u64| {
        let rel = |page, rel| format!("<http://inside.example{NEXT}?per_page=100&page={page}>; rel=\"{rel}\"");
        [rel(1, "prev"), rel(page, "next"), rel(3, "last")].join(", ")
    };
    rig.ci.replies(JOBS, [jobs(1..=100, 249).header("link", link(2))]);
    let page = |n: u64| format!("{NEXT}?per_page=100&page={n}");
    rig.ci.replies(&page(2), [Reply::status(502), jobs(100..=199, 250).header("link", link(3))]);
    rig.ci.replies(&page(3), [jobs(200..=250, 251)]);
    for job in 1..=250 {
        rig.ci.replies(&log_of(job), [Reply::text(format!("of {job}\n"))]);
    }
    let work = over(&rig).await;
    let logs = github().logs(rig.get(PAGE).credential(token("t")), &work).await.unwrap();
    assert_eq!(logs.len(), 250);
    for ((name, mut log), job) in logs.into_iter().zip(1..) {
        assert_eq!(*name, format!("job {job}"));
        let (text, gaps, end) = all(&mut log).await;
        assert_eq!((text, gaps), (format!("of {job}\n"), 0));
        assert!(end.is_complete(), "{end}");
    }
    assert_eq!(other.total(), 0);
    let asked: Vec<String> = rig.ci.asked(JOBS).into_iter().map(|asked| asked.target).collect();
    assert_eq!(asked, [format!("{JOBS}?per_page=100")]);
    assert!(rig.ci.asked(NEXT).iter().all(|asked| asked.header("authorization") == Some("Bearer t")));
}

/// R6: what would leave logs out is an error, and is told apart: a proxy that takes the links away, pages in a circle, too
/// many jobs, a list that is refused or gone.
#[tokio::test(start_paused = true)]
async fn r6_a_list_that_cannot_be_had_whole_is_an_error() {
    let next = |page: &str| format!("<{JOBS}?page={page}>; rel=\"next\"");
    let circle = [jobs([1], 9).header("link", next("2")), jobs([2], 9).header("link", next("2"))];
    for (replies, said) in [
        (vec![jobs(1..=100, 130)], "expected 130 elements, found 100"),
        (Vec::from(circle), "found one that leads back"),
        (vec![jobs(1..=10_001, 10_001)], "expected at most 10000 elements, found more"),
        (vec![Reply::status(401)], "access is denied"),
        (vec![Reply::status(404)], "the resource is gone"),
    ] {
        let rig = Rig::new();
        rig.ci.replies(JOBS, replies);
        let work = over(&rig).await;
        let e = github().logs(rig.get(PAGE).credential(token("t")), &work).await.unwrap_err();
        assert!(e.to_string().contains(said), "{said}: {e}");
        assert_eq!(e.is_denied(), said.contains("denied"), "{e}");
        assert!(!format!("{e} {e:?}").contains("Bearer"), "{e}");
    }
}

/// R10, FC-09: whatever becomes of a log, the verdict is the run's, and the read of the run is as fresh as before.
#[tokio::test(start_paused = true)]
async fn fc_09_logs_that_fail_are_no_verdict() {
    let rig = Rig::new();
    let refusals =
        [Reply::status(410), Reply::status(403), Reply::status(500), Reply::close(), Reply::hang(), Reply::status(404)];
    let count = refusals.len();
    rig.ci.replies(JOBS, [jobs(0..count as u64, count)]);
    for (job, refusal) in (0..).zip(refusals) {
        rig.ci.replies(&log_of(job), [refusal]);
    }
    rig.ci.replies(RUN, [running()]);
    let watched = watch(&rig);
    let work = watched.state(|_| true).await;
    let logs = github().logs(rig.get(PAGE).credential(token("t")), &work).await.unwrap();
    assert_eq!(logs.len(), count);
    for (_, log) in &logs {
        log.finish_with(&watched.work, |work| work.state.is_terminal());
    }
    pass(seconds(120)).await;
    assert_eq!(watched.seen(), ["loading ()", "in_progress"]);
    rig.ci.replies(RUN, [succeeded()]);
    watched.ends_once(WorkState::Succeeded).await;
    for (name, mut log) in logs {
        let (text, gaps, end) = all(&mut log).await;
        assert_eq!((&*text, gaps), ("", 0), "{name}");
        match &*name {
            "job 0" => assert!(matches!(end, FeedEnd::Gone { .. }), "{name}: {end}"),
            "job 5" => assert!(matches!(end, FeedEnd::Incomplete { cause: Cause::NotYetVisible, .. }), "{name}: {end}"),
            _ => assert!(matches!(end, FeedEnd::Incomplete { .. }), "{name}: {end}"),
        }
    }
    assert_eq!(watched.seen(), ["loading ()", "in_progress", "success"]);
}
