//! Buildbot: the request decides, over all its builds; JSON that calls itself text; logs by line.

use outlast::http::feed::LogKind;
use outlast::profile::{Profile, WorkState};
use outlast::testing::{Asked, Reply};
use serde_json::{Value, json};

use crate::rig::{Rig, all, item, now, pass, seconds};

const REQUEST: &str = "/api/v2/buildrequests/12";
const BUILD: &str = "/api/v2/builders/1/builds/2";

fn request(complete: bool, claimed: bool, results: i64) -> Value {
    json!({
        "buildrequests": [{"buildrequestid": 12, "complete": complete, "claimed": claimed, "results": results}],
        "meta": {},
    })
}

fn build(complete: bool, results: Value) -> Value {
    json!({
        "builds": [{"buildid": 5, "number": 2, "buildrequestid": 12, "complete": complete, "results": results}],
        "meta": {},
    })
}

/// As Buildbot answers whoever does not ask for JSON by name.
fn text(value: &Value) -> Reply {
    Reply::text(value.to_string())
}

/// R10: unclaimed, claimed, over.
#[tokio::test(start_paused = true)]
async fn r10_a_request_from_unclaimed_to_success() {
    let rig = Rig::new();
    rig.ci.replies(
        REQUEST,
        [request(false, false, -1), request(false, true, -1), request(true, true, 1)].map(Reply::json),
    );
    let watched = rig.watch("buildbot", "/#/buildrequests/12");
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(watched.seen(), ["loading ()", "unclaimed", "claimed", "warnings"]);
    assert_eq!(rig.ci.until(REQUEST, 1).await.header("accept"), Some("application/json"));
}

/// R10: the master is killed in mid-build. Its build is over with result 5, which decides nothing: the request is
/// claimed anew, and only what it says in the end counts.
#[tokio::test(start_paused = true)]
async fn r10_a_build_that_is_retried_is_no_end() {
    let rig = Rig::new();
    rig.ci.replies(BUILD, [Reply::json(build(false, json!(null)))]);
    rig.ci.replies(REQUEST, [Reply::json(request(false, true, -1))]);
    let watched = rig.watch("buildbot", "/#/builders/1/builds/2");
    watched.state(|work| &*work.status == "claimed").await;
    rig.ci.kill();
    pass(seconds(30)).await;
    rig.ci.replies(BUILD, [Reply::json(build(true, json!(5)))]);
    rig.ci.replies(
        REQUEST,
        [request(false, false, -1), request(false, true, -1), request(false, true, -1), request(true, true, 2)]
            .map(Reply::json),
    );
    rig.ci.revive();
    watched.ends_once(WorkState::Failed).await;
    assert_eq!(watched.statuses(), ["building", "claimed", "unclaimed", "claimed", "failure"]);
}

/// R10: whoever comes when the first build is over already with result 5 is led to the request as well.
#[tokio::test(start_paused = true)]
async fn r10_a_build_that_was_retried_before_leads_to_its_request() {
    for results in [5, 2] {
        let rig = Rig::new();
        rig.ci.replies(BUILD, [Reply::json(build(true, json!(results)))]);
        rig.ci.replies(REQUEST, [Reply::json(request(false, true, -1)), Reply::json(request(true, true, 0))]);
        let watched = rig.watch("buildbot", "/#/builders/1/builds/2/");
        watched.ends_once(WorkState::Succeeded).await;
        assert!(!watched.statuses().contains(&"failure".into()), "{:?}", watched.seen());
    }
}

/// R1: the master restarts: refused, and a proxy before it that has nobody to ask.
#[tokio::test(start_paused = true)]
async fn r1_a_restart_of_the_master() {
    let rig = Rig::new();
    rig.ci.replies(REQUEST, [Reply::json(request(false, true, -1))]);
    let watched = rig.watch("buildbot", "/#/buildrequests/12");
    watched.state(|_| true).await;
    rig.ci.kill();
    pass(seconds(10)).await;
    rig.ci.replies(REQUEST, [Reply::status(502).header("content-type", "text/html").body("<html>Bad Gateway</html>")]);
    rig.ci.revive();
    pass(seconds(10)).await;
    assert!(!watched.has_ended());
    let ready = now();
    rig.ci.replies(REQUEST, [Reply::json(request(true, true, 6))]);
    watched.ends_once(WorkState::Canceled).await;
    assert!(ready.elapsed() <= seconds(5), "{:?}", ready.elapsed());
}

/// JSON that calls itself plain text is JSON all the same: for a profile, for a typed read, and for a log.
#[tokio::test(start_paused = true)]
async fn json_that_calls_itself_text() {
    let rig = Rig::new();
    rig.ci.replies(REQUEST, [text(&request(false, true, -1)), text(&request(true, true, 0))]);
    let watched = rig.watch("buildbot", "/#/buildrequests/12");
    watched.ends_once(WorkState::Succeeded).await;
    let read = rig.get(REQUEST).observe::<Value>().unwrap();
    let value = read.until(|_| true).within(seconds(60)).await.unwrap();
    assert_eq!(value["buildrequests"][0]["results"], 0);

    serve_log(&rig, |value| Reply::text(value.to_string()), &["one", "two"], true);
    let mut log = rig.get(CONTENTS).log(LogKind::buildbot()).unwrap();
    let (lines, gaps, end) = all(&mut log).await;
    assert_eq!((&*lines, gaps), ("one\ntwo\n", 0));
    assert!(end.is_complete(), "{end}");
}

const ABOUT: &str = "/api/v2/logs/3";
const CONTENTS: &str = "/api/v2/logs/3/contents";

/// A log of these lines on the channel for what a command prints.
fn serve_log(rig: &Rig, reply: fn(&Value) -> Reply, lines: &[&str], complete: bool) {
    serve_typed(rig, reply, lines, complete, "s");
}

/// A log of that type. Only the lines of an `s` log begin with a letter for their channel.
fn serve_typed(rig: &Rig, reply: fn(&Value) -> Reply, lines: &[&str], complete: bool, kind: &str) {
    let about =
        json!({"logs": [{"logid": 3, "num_lines": lines.len(), "complete": complete, "type": kind}], "meta": {}});
    rig.ci.on(ABOUT, move |_| reply(&about));
    let mark = if kind == "s" { "o" } else { "" };
    let lines: Vec<String> = lines.iter().map(|line| format!("{mark}{line}\n")).collect();
    rig.ci.on(CONTENTS, move |asked| {
        let (from, limit) = (parameter(asked, "offset"), parameter(asked, "limit"));
        let content: String = lines.iter().skip(from).take(limit).map(String::as_str).collect();
        reply(&json!({"logchunks": [{"logid": 3, "firstline": from, "content": content}], "meta": {}}))
    });
}

fn parameter(asked: &Asked, name: &str) -> usize {
    let query = asked.target.split_once('?').unwrap().1;
    let of = |pair: &str| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
    query.split('&').find_map(of).unwrap()
}

/// R6: a log by its lines, through a restart, until the service says that it is complete.
#[tokio::test(start_paused = true)]
async fn r6_a_log_by_lines() {
    let rig = Rig::new();
    serve_log(&rig, |value| Reply::json(value), &["one"], false);
    let mut log = rig.get(CONTENTS).log(LogKind::buildbot()).unwrap();
    assert_eq!(item(&mut log).await, "one\n");
    rig.ci.kill();
    pass(seconds(30)).await;
    serve_log(&rig, |value| Reply::json(value), &["one", "two", "three"], false);
    rig.ci.revive();
    assert_eq!(item(&mut log).await, "two\nthree\n");
    serve_log(&rig, |value| Reply::json(value), &["one", "two", "three", "four"], true);
    let (lines, gaps, end) = all(&mut log).await;
    assert_eq!((&*lines, gaps), ("four\n", 0));
    assert!(end.is_complete(), "{end}");
}

/// R6: a log is byte for byte what was written, of whatever type it is: only the lines of a log of type `s` have a mark
/// that is no part of them. A log whose type is not said is not guessed at.
#[tokio::test(start_paused = true)]
async fn r6_only_the_lines_of_an_s_log_lose_a_letter() {
    let lines = ["hello", "", "o", "world", "\u{e9}t\u{e9}"];
    for kind in ["s", "t", "h"] {
        let rig = Rig::new();
        serve_typed(&rig, |value| Reply::json(value), &lines, true, kind);
        let mut log = rig.get(CONTENTS).log(LogKind::buildbot()).unwrap();
        let (text, gaps, end) = all(&mut log).await;
        assert_eq!((text, gaps), (lines.join("\n") + "\n", 0), "{kind}");
        assert!(end.is_complete(), "{end}");
        let (about, contents) = (rig.ci.asked(ABOUT), rig.ci.asked(CONTENTS));
        assert!(about[0].at <= contents[0].at, "the type is known before the first page");
    }
    let rig = Rig::new();
    serve_log(&rig, |value| Reply::json(value), &lines, true);
    rig.ci.replies(ABOUT, [Reply::json(json!({"logs": [{"num_lines": 5, "complete": true}]}))]);
    let log = rig.get(CONTENTS).log(LogKind::buildbot()).unwrap();
    pass(seconds(60)).await;
    assert_eq!(rig.ci.asked(CONTENTS).len(), 0);
    drop(log);
}

/// A list as Buildbot gives it: a page of it, and how many there are in all.
fn serve_list(rig: &Rig, path: &str, key: &'static str, list: Vec<Value>) {
    rig.ci.on(path, move |asked| {
        let page = list.iter().skip(parameter(asked, "offset")).take(parameter(asked, "limit"));
        Reply::json(json!({key: page.collect::<Vec<_>>(), "meta": {"total": list.len()}}))
    });
}

/// R6: the logs of the latest build of a request, step by step as the profile finds them; each is byte for byte what was
/// written, whatever its type. What is not there for a while is waited for (R1).
#[tokio::test(start_paused = true)]
async fn r6_the_profile_leads_to_the_logs() {
    let rig = Rig::new();
    rig.ci.replies(REQUEST, [Reply::json(request(true, true, 0))]);
    let work = rig.watch("buildbot", "/#/buildrequests/12").over().await;
    rig.ci.replies("/api/v2/builds", [Reply::status(502), Reply::json(json!({"builds": [{"buildid": 5}]}))]);
    let steps = vec![json!({"stepid": 8, "name": "compile"}), json!({"stepid": 9, "name": "test"})];
    serve_list(&rig, "/api/v2/builds/5/steps", "steps", steps);
    let log = |id: u64, slug: &str, kind: &str| vec![json!({"logid": id, "slug": slug, "type": kind})];
    serve_list(&rig, "/api/v2/steps/8/logs", "logs", log(3, "stdio", "s"));
    serve_list(&rig, "/api/v2/steps/9/logs", "logs", log(4, "report", "t"));
    for (id, mark) in [(3, "o"), (4, "")] {
        let about = json!({"logs": [{"num_lines": 2, "complete": true}]});
        rig.ci.replies(&format!("/api/v2/logs/{id}"), [Reply::json(about)]);
        let content = format!("{mark}hello\n{mark}world\n");
        let page = json!({"logchunks": [{"firstline": 0, "content": content}]});
        rig.ci.replies(&format!("/api/v2/logs/{id}/contents"), [Reply::json(page)]);
    }
    let buildbot = Profile::named("buildbot").unwrap();
    let logs = buildbot.logs(rig.get("/#/buildrequests/12"), &work).await.unwrap();
    let names: Vec<&str> = logs.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["compile/stdio", "test/report"]);
    for (name, mut log) in logs {
        let (text, gaps, end) = all(&mut log).await;
        assert_eq!((&*text, gaps), ("hello\nworld\n", 0), "{name}");
        assert!(end.is_complete(), "{end}");
    }
    let asked = rig.ci.asked("/api/v2/logs/3/contents").pop().unwrap();
    assert!(asked.target.ends_with("/contents?offset=0&limit=1000"), "{}", asked.target);
}

/// R6: a build of more steps than a page has is read page by page, and a list that ends before its total is no list.
#[tokio::test(start_paused = true)]
async fn r6_a_build_of_many_steps() {
    let rig = Rig::new();
    rig.ci.replies(REQUEST, [Reply::json(request(true, true, 0))]);
    let work = rig.watch("buildbot", "/#/buildrequests/12").over().await;
    rig.ci.replies("/api/v2/builds", [Reply::json(json!({"builds": [{"buildid": 5}]}))]);
    const STEPS: &str = "/api/v2/builds/5/steps";
    let steps = |n: u64| (0..n).map(|id| json!({"stepid": id, "name": format!("step {id}")})).collect::<Vec<_>>();
    serve_list(&rig, STEPS, "steps", steps(230));
    for id in 0..230 {
        serve_list(&rig, &format!("/api/v2/steps/{id}/logs"), "logs", vec![json!({"logid": id, "slug": "stdio"})]);
    }
    let buildbot = Profile::named("buildbot").unwrap();
    let logs = buildbot.logs(rig.get("/#/buildrequests/12"), &work).await.unwrap();
    assert_eq!((logs.len(), &*logs[0].0, &*logs[229].0), (230, "step 0/stdio", "step 229/stdio"));
    let asked: Vec<String> = rig.ci.asked(STEPS).into_iter().map(|asked| asked.target).collect();
    let page = |offset: u64| format!("{STEPS}?order=number&limit=100&offset={offset}");
    assert_eq!(asked, [page(0), page(100), page(200)]);
    drop(logs);

    let short = json!({"steps": steps(3), "meta": {"total": 4}});
    rig.ci.replies(STEPS, [Reply::json(short), Reply::json(json!({"steps": [], "meta": {"total": 4}}))]);
    let e = buildbot.logs(rig.get("/#/buildrequests/12"), &work).await.unwrap_err();
    assert!(e.is_retryable() && e.to_string().ends_with("expected 4 elements, found 3"), "{e}");
}
