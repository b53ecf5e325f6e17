//! Jenkins: queue items, builds, a controller that restarts in mid-build, progressive logs.

use outlast::http::feed::{FeedItem, LogKind, Position};
use outlast::profile::{Profile, WorkState};
use outlast::testing::{Asked, Reply};
use outlast::{Cause, Credential, End};
use serde_json::{Value, json};

use crate::rig::{Rig, Watched, all, item, now, pass, seconds};

const ITEM: &str = "/queue/item/41/api/json";
const BUILD: &str = "/job/a/job/b/7/api/json";
const SEARCH: &str = "/job/a/job/b/api/json";
const LOG: &str = "/job/a/job/b/7/logText/progressiveText";

fn queued(class: &str, executable: Value) -> Reply {
    Reply::json(json!({
        "_class": format!("hudson.model.Queue${class}"), "id": 41, "executable": executable,
        "task": {"url": "http://inside:8080/job/a/job/b/"},
    }))
}

fn waiting() -> Reply {
    queued("WaitingItem", json!(null))
}

/// Its address begins with what the administrator has set.
fn started() -> Reply {
    queued("LeftItem", json!({"number": 7, "url": "http://inside:8080/job/a/job/b/7/"}))
}

fn build(running: bool, result: Value) -> Reply {
    Reply::json(json!({"number": 7, "queueId": 41, "inProgress": running, "building": running, "result": result}))
}

fn running() -> Reply {
    build(true, json!(null))
}

/// R10: from a queue item to its build, on the origin that was asked. A pipeline may set its result before it is over.
#[tokio::test(start_paused = true)]
async fn r10_an_item_becomes_a_build() {
    let rig = Rig::new();
    rig.ci.replies(ITEM, [waiting(), queued("BuildableItem", json!(null)), queued("LeftItem", json!(null)), started()]);
    rig.ci.replies(BUILD, [running(), build(true, json!("UNSTABLE")), build(false, json!("UNSTABLE"))]);
    let watched = rig.watch("jenkins", "/queue/item/41/");
    watched.ends_once(WorkState::Failed).await;
    assert_eq!(watched.seen(), ["loading ()", "waiting", "buildable", "left the queue", "in progress", "UNSTABLE"]);
    let (last, first) = (rig.ci.asked(ITEM).pop().unwrap(), rig.ci.until(BUILD, 1).await);
    assert!(first.at - last.at < seconds(1) / 2, "the build is read at once: {:?}", first.at - last.at);
}

/// R3: an item is forgotten five minutes after it left the queue. Its build is looked for, and the read says meanwhile
/// that nothing confirms what it shows (R5).
#[tokio::test(start_paused = true)]
async fn r3_an_item_that_was_forgotten_leads_to_its_build() {
    let rig = Rig::new();
    rig.ci.replies(ITEM, [waiting()]);
    let watched = rig.watch("jenkins", "/queue/item/41/");
    watched.state(|_| true).await;
    pass(seconds(300)).await;
    rig.ci.replies(ITEM, [Reply::status(404)]);
    rig.ci.replies(
        SEARCH,
        [Reply::json(json!({"builds": [{"number": 8, "queueId": 44}, {"number": 7, "queueId": 41}]}))],
    );
    rig.ci.replies(BUILD, [running(), build(false, json!("SUCCESS"))]);
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(rig.ci.asked(SEARCH).len(), 1);
    assert_eq!(watched.seen(), ["loading ()", "waiting", "stale (not visible yet)", "in progress", "SUCCESS"]);
}

/// R3, R5: work that neither the queue nor the job knows is not fresh, and gone once the grace is over.
#[tokio::test(start_paused = true)]
async fn r3_an_item_that_is_nowhere_is_gone() {
    let rig = Rig::new();
    rig.ci.replies(ITEM, [waiting(), Reply::status(404)]);
    rig.ci.replies(SEARCH, [Reply::json(json!({"builds": []}))]);
    let watched = rig.watch("jenkins", "/queue/item/41/");
    watched.doubts(|cause| *cause == Cause::NotYetVisible).await;
    let start = now();
    let e = watched.work.until(|work| work.state.is_terminal()).await.unwrap_err();
    assert_eq!(e.end(), Some(End::Gone));
    assert!((seconds(9)..seconds(15)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(rig.ci.total() < 60, "{} requests", rig.ci.total());
    assert_eq!(watched.seen(), ["loading ()", "waiting", "stale (not visible yet)", "ended (Gone)"]);
}

/// R3: whatever was not known while the controller could not be asked does not count for the grace, in whatever way it
/// could not be asked.
#[tokio::test(start_paused = true)]
async fn r3_an_outage_is_no_absence() {
    for outage in [None, Some(Reply::status(503)), Some(Reply::close()), Some(Reply::hang())] {
        let rig = Rig::new();
        rig.ci.replies(ITEM, [started()]);
        rig.ci.replies(BUILD, [Reply::status(404)]);
        let watched = rig.watch("jenkins", "/queue/item/41/");
        watched.doubts(|cause| *cause == Cause::NotYetVisible).await;
        let is_killed = outage.is_none();
        match outage {
            None => rig.ci.kill(),
            Some(reply) => rig.ci.replies(BUILD, [reply]),
        }
        pass(seconds(60)).await;
        rig.ci.replies(BUILD, [Reply::status(404), Reply::status(404), running(), build(false, json!("SUCCESS"))]);
        if is_killed {
            rig.ci.revive();
        }
        watched.ends_once(WorkState::Succeeded).await;
    }
}

/// R10: an item that is canceled in the queue never becomes a build.
#[tokio::test(start_paused = true)]
async fn r10_an_item_is_canceled_in_the_queue() {
    let rig = Rig::new();
    let canceled = json!({"_class": "hudson.model.Queue$LeftItem", "id": 41, "cancelled": true,
                          "task": {"url": "http://inside:8080/job/a/job/b/"}});
    rig.ci.replies(ITEM, [waiting(), Reply::json(canceled)]);
    let watched = rig.watch("jenkins", "/queue/item/41/");
    watched.ends_once(WorkState::Canceled).await;
}

/// R1: the controller restarts in mid-build: refused, then a page that asks to wait, then the build goes on.
#[tokio::test(start_paused = true)]
async fn r1_a_restart_in_mid_build() {
    let rig = Rig::new();
    rig.ci.replies(BUILD, [running()]);
    let watched = Watched::new(
        "jenkins",
        rig.get("/job/a/job/b/7/console").credential(Credential::basic("ci", "api-token").unwrap()),
    );
    watched.state(|_| true).await;
    rig.ci.kill();
    watched.doubts(|cause| matches!(cause, Cause::Unreachable { .. } | Cause::Dropped { .. })).await;
    pass(seconds(20)).await;
    let page = Reply::text("<html>Please wait while Jenkins is getting ready to work...</html>");
    rig.ci.replies(BUILD, [page.with_status(503).header("content-type", "text/html;charset=utf-8")]);
    rig.ci.revive();
    watched.doubts(|cause| *cause == Cause::Status { code: 503 }).await;
    pass(seconds(40)).await;
    let ready = now();
    rig.ci.replies(BUILD, [running()]);
    watched.shows(|reading| reading.is_fresh()).await;
    assert!(ready.elapsed() <= seconds(5), "{:?}", ready.elapsed());
    rig.ci.replies(BUILD, [build(false, json!("SUCCESS"))]);
    watched.ends_once(WorkState::Succeeded).await;
    assert_eq!(watched.statuses(), ["in progress", "SUCCESS"]);
    // `ci:api-token`, in base64.
    assert_eq!(rig.ci.until(BUILD, 1).await.header("authorization"), Some("Basic Y2k6YXBpLXRva2Vu"));
}

/// R3: while Jenkins loads its jobs it may not know them. One 404 is no end of a build that was seen.
#[tokio::test(start_paused = true)]
async fn r3_a_single_404_after_a_restart_is_no_end() {
    let rig = Rig::new();
    rig.ci.replies(
        BUILD,
        [
            running(),
            Reply::status(404),
            Reply::status(503),
            Reply::status(404),
            running(),
            build(false, json!("ABORTED")),
        ],
    );
    let watched = rig.watch("jenkins", "/job/a/job/b/7/");
    watched.ends_once(WorkState::Canceled).await;
    assert!(watched.seen().contains(&"stale (not visible yet)".into()), "{:?}", watched.seen());
}

/// `progressiveText` of `text`: from `start` on, and from 0 again without a word where that is past the end.
fn progressive(asked: &Asked, text: &str, more: bool) -> Reply {
    let start: usize = asked.target.split_once("start=").unwrap().1.parse().unwrap();
    let start = if start > text.len() { 0 } else { start };
    let reply = Reply::text(&text[start..]).header("X-Text-Size", text.len());
    if more { reply.header("X-More-Data", "true") } else { reply }
}

/// R6: a progressive log, through a restart of the controller.
#[tokio::test(start_paused = true)]
async fn r6_a_progressive_log() {
    let rig = Rig::new();
    rig.ci.on(LOG, |asked| progressive(asked, "one\n", true));
    let mut log = rig.get(LOG).log(LogKind::jenkins()).unwrap();
    assert_eq!(item(&mut log).await, "one\n");
    rig.ci.kill();
    pass(seconds(30)).await;
    rig.ci.on(LOG, |asked| progressive(asked, "one\ntwo\n", true));
    rig.ci.revive();
    assert_eq!(item(&mut log).await, "two\n");
    rig.ci.on(LOG, |asked| progressive(asked, "one\ntwo\nFinished: FAILURE\n", false));
    let (text, gaps, end) = all(&mut log).await;
    assert_eq!((&*text, gaps), ("Finished: FAILURE\n", 0));
    assert!(end.is_complete(), "{end}");
}

/// R6: a log that is shorter after a restart begins at 0 again without a word: one gap, and nothing twice in silence.
#[tokio::test(start_paused = true)]
async fn r6_a_progressive_log_that_silently_starts_anew_is_a_gap() {
    let rig = Rig::new();
    rig.ci.on(LOG, |asked| progressive(asked, "a long first line\n", true));
    let mut log = rig.get(LOG).log(LogKind::jenkins()).unwrap();
    assert_eq!(item(&mut log).await, "a long first line\n");
    rig.ci.on(LOG, |asked| progressive(asked, "anew\n", true));
    let gap = log.next().await.unwrap();
    assert_eq!(gap, FeedItem::Gap { from: Some(Position::Byte(18)), to: Some(Position::Byte(0)) });
    assert_eq!(item(&mut log).await, "anew\n");
    rig.ci.on(LOG, |asked| progressive(asked, "anew\nend\n", false));
    let (text, gaps, _) = all(&mut log).await;
    assert_eq!((&*text, gaps), ("end\n", 0));
}

/// R6, R10: the log of a build that was followed from the queue, as the profile knows it, until the build is over.
#[tokio::test(start_paused = true)]
async fn r6_the_profile_leads_to_the_log() {
    let rig = Rig::new();
    rig.ci.replies(ITEM, [started()]);
    rig.ci.replies(BUILD, [running()]);
    rig.ci.on(LOG, |asked| progressive(asked, "one\n", true));
    let watched = rig.watch("jenkins", "/queue/item/41/");
    let work = watched.state(|work| &*work.stage == "build").await;
    let jenkins = Profile::named("jenkins").unwrap();
    let mut logs = jenkins.logs(rig.get("/queue/item/41/"), &work).await.unwrap();
    assert_eq!((logs.len(), &*logs[0].0), (1, "build"));
    let (_, mut log) = logs.pop().unwrap();
    log.finish_with(&watched.work, |work| work.state.is_terminal());
    assert_eq!(item(&mut log).await, "one\n");
    rig.ci.kill();
    pass(seconds(30)).await;
    rig.ci.on(LOG, |asked| progressive(asked, "one\ntwo\n", false));
    rig.ci.replies(BUILD, [build(false, json!("SUCCESS"))]);
    rig.ci.revive();
    let (text, gaps, end) = all(&mut log).await;
    assert_eq!((&*text, gaps), ("two\n", 0));
    assert!(end.is_complete(), "{end}");

    // Neither a queue item nor another service has such a log.
    rig.ci.replies(ITEM, [waiting()]);
    let item = rig.watch("jenkins", "/queue/item/41/").state(|_| true).await;
    let e = jenkins.logs(rig.get("/queue/item/41/"), &item).await.unwrap_err();
    assert!(e.to_string().starts_with("work.stage: expected build"), "{e}");
    let elsewhere = rig.agent.get("http://elsewhere.example/queue/item/41/");
    let e = jenkins.logs(elsewhere, &work).await.unwrap_err();
    assert!(e.to_string().starts_with("url:"), "{e}");
}
