//! The traces of a pipeline's jobs, as the profile finds them.

use std::sync::{Arc, Mutex};

use outlast::http::Get;
use outlast::http::feed::FeedEnd;
use outlast::profile::{LogKind, Profile, WorkState};
use outlast::testing::{Asked, Reply, Script};
use serde_json::{Value, json};

use super::{PAGE, PIPELINE, pipeline, token};
use crate::rig::{Rig, Watched, all, pass, seconds};

const JOBS: &str = "/api/v4/projects/group%2Fproject/pipelines/9/jobs";

fn trace_of(job: u64) -> String {
    format!("/api/v4/projects/group%2Fproject/jobs/{job}/trace")
}

/// Jobs as they are listed: the newest first.
fn jobs(jobs: impl IntoIterator<Item = u64>) -> Reply {
    let job = |id| json!({"id": id, "name": format!("job {id}"), "status": "created", "pipeline": {"id": 9}});
    Reply::json(jobs.into_iter().map(job).collect::<Vec<Value>>())
}

fn gitlab() -> Profile {
    Profile::named("gitlab").unwrap()
}

fn get(rig: &Rig) -> Get {
    rig.get(PAGE).credential(token())
}

fn watch(rig: &Rig) -> Watched {
    Watched::new("gitlab", get(rig))
}

/// A trace as a test writes it, piece by piece.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<String>>);

impl Trace {
    fn write(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }

    /// Served whole, with a tag, to whoever has not got that already.
    fn whole(&self) -> impl FnMut(&Asked) -> Reply + Send + 'static {
        let text = Arc::clone(&self.0);
        move |asked| {
            let text = text.lock().unwrap().clone();
            let tag = format!("W/\"{}\"", text.len());
            match asked.header("if-none-match") {
                Some(known) if known == tag => Reply::status(304).header("etag", tag),
                _ => Reply::text(text).header("etag", tag),
            }
        }
    }

    /// Served from the byte that is asked for (RFC 9110, 14).
    fn ranged(&self) -> impl FnMut(&Asked) -> Reply + Send + 'static {
        let text = Arc::clone(&self.0);
        move |asked| {
            let text = text.lock().unwrap().clone();
            let from = asked.header("range").map(|range| range.trim_start_matches("bytes=").trim_end_matches('-'));
            let Some(from) = from.map(|from| from.parse::<usize>().unwrap()) else { return Reply::text(text) };
            let length = text.len();
            if from >= length {
                return Reply::status(416).header("content-range", format!("bytes */{length}"));
            }
            let range = format!("bytes {from}-{}/{length}", length - 1);
            Reply::text(&text[from..]).with_status(206).header("content-range", range)
        }
    }
}

/// R6: traces that grow while their jobs run, whole each time or by range, through an outage. A job that has not begun has an
/// empty trace, or none. In the end each is byte for byte what was written.
#[tokio::test(start_paused = true)]
async fn r6_each_trace_as_it_grows() {
    for kind in [LogKind::Whole, LogKind::Bytes] {
        let rig = Rig::new();
        let (one, two) = (Trace::default(), Trace::default());
        one.write("\u{1b}[0KRunning with gitlab-runner\n");
        let serve = |trace: &Trace, job: u64| {
            if kind == LogKind::Bytes {
                rig.ci.on(&trace_of(job), trace.ranged());
            } else {
                rig.ci.on(&trace_of(job), trace.whole());
            }
        };
        serve(&one, 3);
        serve(&two, 4);
        rig.ci.replies(JOBS, [Reply::status(503), jobs([5, 4, 3])]);
        rig.ci.replies(PIPELINE, [pipeline(1, "running")]);
        let watched = watch(&rig);
        let work = watched.state(|_| true).await;
        let mut gitlab = gitlab();
        gitlab.log.as_mut().unwrap().kind = kind;
        let logs = gitlab.logs(get(&rig), &work).await.unwrap();
        let [(_, mut third), (_, mut second), (name, mut first)] = <[_; 3]>::try_from(logs).unwrap();
        assert_eq!(&*name, "job 3");
        for log in [&first, &second, &third] {
            log.finish_with(&watched.work, |work| work.state.is_terminal());
        }
        pass(seconds(20)).await;
        one.write("a line of \u{e9}t\u{e9}\n");
        pass(seconds(20)).await;
        // Restarted in mid-build; meanwhile both went on.
        rig.ci.kill();
        one.write("Job succeeded");
        two.write("all of it\r\n");
        pass(seconds(60)).await;
        rig.ci.revive();
        pass(seconds(20)).await;
        one.write("\n");
        rig.ci.replies(PIPELINE, [pipeline(5, "success")]);
        let (text, gaps, end) = all(&mut first).await;
        let whole = "\u{1b}[0KRunning with gitlab-runner\na line of \u{e9}t\u{e9}\nJob succeeded\n";
        assert_eq!((&*text, gaps), (whole, 0), "{kind:?}");
        assert!(end.is_complete(), "{end}");
        let (text, gaps, end) = all(&mut second).await;
        assert_eq!((&*text, gaps), ("all of it\r\n", 0), "{kind:?}");
        assert!(end.is_complete(), "{end}");
        // It never began: GitLab has nothing of it.
        let (text, _, end) = all(&mut third).await;
        assert!(text.is_empty() && matches!(end, FeedEnd::Incomplete { .. }), "{end}");
        watched.ends_once(WorkState::Succeeded).await;

        let asked = rig.ci.asked(&trace_of(3));
        assert!(asked.iter().all(|asked| asked.header("private-token") == Some("glpat-1")));
        assert_eq!(asked.iter().any(|asked| asked.header("range").is_some()), kind == LogKind::Bytes);
    }
}

/// R6: more jobs than a page has, the newest first: what begins meanwhile pushes jobs on to the next page. Links have the address
/// that the administrator has set, which is not the one that was asked for.
#[tokio::test(start_paused = true)]
async fn r6_the_traces_of_more_jobs_than_a_page_has() {
    let rig = Rig::new();
    let inside = Script::serve(&rig.net, "gitlab.internal");
    let page = |n: u64| format!("{JOBS}?id=group%2Fproject&include_retried=false&page={n}&per_page=100&pipeline_id=9");
    let link = |n: u64| {
        let rel = |n, rel| format!("<http://gitlab.internal{}>; rel=\"{rel}\"", page(n));
        format!("{}, {}, {}", rel(n, "next"), rel(1, "first"), rel(3, "last"))
    };
    let from = |ids: Vec<u64>, n: u64| jobs(ids).header("link", link(n)).header("x-next-page", n);
    rig.ci.replies(&format!("{JOBS}?per_page=100"), [from((151..=250).rev().collect(), 2)]);
    rig.ci.replies(&page(2), [Reply::close(), from((53..=152).rev().collect(), 3)]);
    rig.ci.replies(&page(3), [jobs((1..=52).rev()).header("x-next-page", "")]);
    for job in 1..=250 {
        rig.ci.replies(&trace_of(job), [Reply::text(format!("of {job}\n"))]);
    }
    rig.ci.replies(PIPELINE, [pipeline(5, "failed")]);
    let work = watch(&rig).over().await;
    let logs = gitlab().logs(get(&rig), &work).await.unwrap();
    assert_eq!(logs.len(), 250);
    for ((name, mut log), job) in logs.into_iter().zip((1..=250).rev()) {
        assert_eq!(*name, format!("job {job}"));
        let (text, gaps, end) = all(&mut log).await;
        assert_eq!((text, gaps), (format!("of {job}\n"), 0));
        assert!(end.is_complete(), "{end}");
    }
    assert_eq!(inside.total(), 0);
    assert!(rig.ci.asked(JOBS).iter().all(|asked| asked.header("private-token") == Some("glpat-1")));
}

/// R6: a job that is retried is another job of the same name. The latest one is listed; a copy of the profile that asks for all has
/// both, each with its own trace.
#[tokio::test(start_paused = true)]
async fn r6_a_retried_job_is_another_log() {
    let rig = Rig::new();
    let named = |id: u64| json!({"id": id, "name": "test", "status": "failed"});
    let all_of = vec![named(12), named(3)];
    rig.ci.replies(&format!("{JOBS}?per_page=100"), [Reply::json(vec![named(3)]), Reply::json(vec![named(12)])]);
    rig.ci.replies(&format!("{JOBS}?per_page=100&include_retried=true"), [Reply::json(all_of)]);
    rig.ci.replies(&trace_of(3), [Reply::text("red\n")]);
    rig.ci.replies(&trace_of(12), [Reply::text("green\n")]);
    rig.ci.replies(PIPELINE, [pipeline(2, "failed")]);
    let watched = watch(&rig);
    let failed = watched.over().await;
    let mut logs = gitlab().logs(get(&rig), &failed).await.unwrap();
    let (text, _, end) = all(&mut logs[0].1).await;
    assert_eq!((&*text, logs.len(), end.is_complete()), ("red\n", 1, true));

    rig.ci.replies(PIPELINE, [pipeline(4, "running"), pipeline(4, "running"), pipeline(6, "success")]);
    let green = watched.state(|work| work.state == WorkState::Succeeded).await;
    let mut logs = gitlab().logs(get(&rig), &green).await.unwrap();
    let (text, _, end) = all(&mut logs[0].1).await;
    assert_eq!((&*text, logs.len(), end.is_complete()), ("green\n", 1, true));

    let text = Profile::text("gitlab").unwrap();
    let every = Profile::parse(&text.replace("jobs?per_page=100", "jobs?per_page=100&include_retried=true")).unwrap();
    let logs = every.logs(get(&rig), &green).await.unwrap();
    let mut found = Vec::new();
    for (name, mut log) in logs {
        found.push((name.to_string(), all(&mut log).await.0));
    }
    assert_eq!(found, [("test".into(), "green\n".into()), ("test".into(), "red\n".into())]);
}

/// R10, FC-09: a trace that is forbidden, erased, elsewhere or a page says nothing of the pipeline, and the token goes nowhere else.
#[tokio::test(start_paused = true)]
async fn fc_09_traces_that_fail_are_no_verdict() {
    let rig = Rig::new();
    let store = Script::serve(&rig.net, "store.example");
    store.replies("/trace", [Reply::status(403)]);
    let refusals = [
        Reply::json(json!({"message": "403 Forbidden"})).with_status(403),
        Reply::json(json!({"message": "404 Not Found"})).with_status(404),
        Reply::bytes("<html>Sign in</html>").header("content-type", "text/html"),
        Reply::status(302).header("location", "http://store.example/trace"),
        Reply::text("half").cut(2),
        Reply::hang(),
    ];
    let count = refusals.len() as u64;
    rig.ci.replies(JOBS, [jobs(0..count)]);
    for (job, refusal) in (0..).zip(refusals) {
        rig.ci.replies(&trace_of(job), [refusal]);
    }
    rig.ci.replies(PIPELINE, [pipeline(1, "running")]);
    let watched = watch(&rig);
    let work = watched.state(|_| true).await;
    let logs = gitlab().logs(get(&rig), &work).await.unwrap();
    for (_, log) in &logs {
        log.finish_with(&watched.work, |work| work.state.is_terminal());
    }
    pass(seconds(120)).await;
    assert_eq!(watched.seen(), ["loading ()", "running"]);
    rig.ci.replies(PIPELINE, [pipeline(5, "success")]);
    watched.ends_once(WorkState::Succeeded).await;
    for (name, mut log) in logs {
        let (text, gaps, end) = all(&mut log).await;
        assert_eq!((&*text, gaps), (if &*name == "job 4" { "ha" } else { "" }, 0), "{name}");
        assert!(matches!(end, FeedEnd::Incomplete { .. }), "{name}: {end}");
    }
    assert_eq!(watched.seen(), ["loading ()", "running", "success"]);
    assert!(store.total() > 0 && store.asked("/trace").iter().all(|asked| asked.header("private-token").is_none()));
}
