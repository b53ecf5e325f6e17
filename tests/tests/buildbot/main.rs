//! A real Buildbot, killed and started again: what is read of it outlasts that, and ends with its verdict.

mod bare;
mod master;
mod seen;

use std::time::{Duration, Instant};

use bytes::Bytes;
use outlast::Reading;
use outlast::http::Agent;
use outlast::http::feed::{Feed, FeedEnd, FeedItem, FeedState, LogKind};
use outlast::http::push::Push;
use outlast::profile::{Profile, WorkState};

use bare::Verdict;
use master::Buildbot;
use seen::Seen;

/// What a result of Buildbot's says: its "Build Result Codes".
const SUCCESS: u64 = 0;
const FAILURE: u64 = 2;
const RETRY: u64 = 5;

/// The read that nothing tells when to look.
const POLLED: &str = "polled";

/// How many requests may reach a master that was up for so long by the default pace, one a second less a tenth: the first,
/// one more after the outage, and one where the read turns from the build to its request.
fn most_requests(up: Duration) -> usize {
    (up.as_secs_f64() / 0.9) as usize + 3
}

/// FC-01, FC-04, FC-17, R1, R5, R8, R10: the master is killed in mid-build and comes back. The same build request runs again as
/// another build, and the first build reads `complete` with result 5 (retry), which is no verdict.
#[tokio::test]
async fn a_build_request_outlasts_its_master() {
    let Some(bin) = master::installed() else { return };
    let mut buildbot = Buildbot::start(bin).await;
    buildbot.hold();
    let request = buildbot.force("long").await;
    let address = buildbot.url(&format!("/api/v2/buildrequests/{request}"));
    let (agent, profile) = (agent(), Profile::named("buildbot").unwrap());

    // Beside each other: reads of the request that only poll, or that the WebSocket or the event stream tells when to look;
    // one that begins at the build; and two loops of today.
    let consume = format!(r#"{{"cmd":"startConsuming","path":"buildrequests/{request}/*","_id":1}}"#);
    let websocket = Push::websocket(&buildbot.url("/ws")).hello(consume).confirmed_by(|text| text.contains("\"OK\""));
    let events = Push::events(&buildbot.url("/sse/listen/*/*/*"));
    let mut polled = profile.clone();
    polled.read.streams.clear();
    let get = |name| agent.get(&address).header("user-agent", name);
    let (first, first_log) = buildbot.log_of(request, 0, 3).await;
    let build = buildbot.url(&format!("/api/v2/builds/{first}"));
    let began = Instant::now();
    let reads = [
        (POLLED, polled.watch(get(POLLED))),
        ("websocket", profile.watch(get("websocket").push(websocket))),
        ("events", profile.watch(get("events").push(events))),
        ("build", profile.watch(agent.get(&build).header("user-agent", "build"))),
    ];
    let reads = reads.map(|(name, work)| (name, Seen::watch(work.unwrap())));
    let gave_up = tokio::spawn(bare::giving_up(build.clone()));
    let tried_again = tokio::spawn(bare::trying_again(build));
    let interrupted = log(&agent, &buildbot, first_log);
    interrupted.finish_when(reads[0].1.over());
    let interrupted = tokio::spawn(read(interrupted));
    for (_, work) in &reads {
        work.until(|reading| matches!(reading, Reading::Fresh(work) if work.state == WorkState::Running)).await;
    }

    let killed = Instant::now();
    buildbot.kill_master();
    for (_, work) in &reads {
        work.until(|reading| matches!(reading, Reading::Stale { .. })).await;
    }
    let back = buildbot.restart_master().await;

    // The same request, as another build.
    let (second, second_log) = buildbot.log_of(request, 1, 0).await;
    let (text, end) = read(log(&agent, &buildbot, second_log)).await;
    assert!(end.is_complete(), "{end}");
    assert_eq!(text, raw(&buildbot, second_log).await);
    assert_eq!(text.matches(": é → ✓\n").count(), 30);

    let mut known = None;
    for (name, work) in reads {
        let seen = work.recorded().await;
        let watched = began.elapsed();
        let answer = buildbot.get(&format!("/api/v2/buildrequests/{request}")).await;
        assert_eq!(answer["buildrequests"][0]["results"], SUCCESS, "{answer}");
        let last = seen.last();
        assert_eq!((last.state, &*last.status), (WorkState::Succeeded, "success"), "{name}");
        assert_eq!(*last.body, answer, "{name}: the request's own verdict, no more and no less");

        // Its streams tell when to look: none waits for the slow look of a minute.
        let over = *known.get_or_insert(seen.over());
        let late = seen.over().saturating_duration_since(over);
        assert!(late < Duration::from_secs(5), "{name}: knew the verdict {late:?} after the one that only polls");

        let outage = seen.outage(killed);
        assert!(!outage.state.is_terminal(), "{name}: {:?}", outage.state);
        let (stale, late) = (outage.stale - killed, outage.fresh.saturating_duration_since(back));
        let (requests, most) = (buildbot.requests_of(name), most_requests(watched - (outage.fresh - killed)));
        println!(
            "{name}: stale after {stale:?} ({}), fresh {late:?} after the master answered; {requests} requests in {watched:?}",
            outage.cause
        );
        assert!(late < Duration::from_secs(5), "{name}: fresh {late:?} after the master answered");
        assert!(requests <= most, "{name}: {requests} requests in {watched:?}, at most {most}");
        if let "websocket" | "build" = name {
            // The shipped profile has a stream of just this request: it is looked at where something happens.
            let polled = buildbot.requests_of(POLLED);
            assert!(requests < polled, "{name}: {requests} requests, {polled} of the one that only polls");
        }
    }

    // The log of the build that was interrupted: whatever the master has of it, once.
    let (text, end) = interrupted.await.unwrap();
    assert!(end.is_complete(), "{end}");
    assert_eq!(text, raw(&buildbot, first_log).await);

    // What became of the builds, and what the loops of today made of it.
    let builds = buildbot.builds(request).await;
    let results: Vec<_> = builds.iter().map(|build| (build["buildid"].as_u64(), build["results"].as_u64())).collect();
    assert_eq!(results, [(Some(first), Some(RETRY)), (Some(second), Some(SUCCESS))]);
    assert!(matches!(gave_up.await.unwrap(), Verdict::Error(_)), "it ended with the master");
    assert_eq!(tried_again.await.unwrap(), Verdict::Result(RETRY), "it took the retry for the verdict");
}

/// FC-09: the log of a build ends in good order, and the build failed. The verdict is that of the status alone.
#[tokio::test]
async fn fc_09_the_end_of_a_log_is_no_verdict() {
    let Some(bin) = master::installed() else { return };
    let buildbot = Buildbot::start(bin).await;
    let request = buildbot.force("broken").await;
    let agent = agent();
    let watched = agent.get(&buildbot.url(&format!("/api/v2/buildrequests/{request}")));
    let work = Seen::watch(Profile::named("buildbot").unwrap().watch(watched).unwrap());
    let (_, log_id) = buildbot.log_of(request, 0, 1).await;
    let log = log(&agent, &buildbot, log_id);
    let state = log.state();
    let (text, end) = read(log).await;
    assert!(end.is_complete(), "{end}");
    assert!(matches!(state.latest().last().map(|state| &**state), Some(FeedState::Ended(_))));
    assert_eq!(text, raw(&buildbot, log_id).await);

    let seen = work.recorded().await;
    let last = seen.last();
    assert_eq!((last.state, &*last.status), (WorkState::Failed, "failure"));
    assert_eq!(last.body["buildrequests"][0]["results"], FAILURE);
    assert_eq!(*last.body, buildbot.get(&format!("/api/v2/buildrequests/{request}")).await);

    // A profile finds that log by the lists of the service, here by pages of one.
    let get = agent.get(&buildbot.url(&format!("/#/buildrequests/{request}")));
    let text_of = Profile::text("buildbot").unwrap();
    let by_one = Profile::parse(&text_of.replace("&limit=100&offset={from}", "&limit=1&offset={from}")).unwrap();
    let logs = by_one.logs(get, last).await.unwrap();
    let mut found = Vec::new();
    for (name, log) in logs {
        let (text, end) = read(log).await;
        assert!(end.is_complete(), "{name}: {end}");
        found.push((name, text));
    }
    assert!(found.iter().any(|(name, log)| name.ends_with("/stdio") && *log == text), "{found:?}");
}

/// What reads without a proxy, whatever the variables of the machine say.
fn agent() -> Agent {
    Agent::builder().no_proxy().build().unwrap()
}

/// A feed of a log by the numbers of its lines.
fn log(agent: &Agent, buildbot: &Buildbot, log: u64) -> Feed<Bytes> {
    let contents = buildbot.url(&format!("/api/v2/logs/{log}/contents"));
    agent.get(&contents).log(LogKind::buildbot()).unwrap()
}

/// Reads a feed to its end.
async fn read(mut feed: Feed<Bytes>) -> (String, FeedEnd) {
    let mut text = Vec::new();
    while let Some(item) = feed.next().await {
        match item {
            FeedItem::Item(bytes) => text.extend_from_slice(&bytes),
            FeedItem::Gap { from, to } => panic!("a gap from {from:?} to {to:?}"),
            FeedItem::Ended(end) => return (String::from_utf8(text).unwrap(), end),
        }
    }
    unreachable!("a feed says how it ended")
}

/// The log as the master gives it as a file, without what it puts before it there: three lines that name the builder, the
/// build and the worker. The letters that begin the lines of `contents` are no part of the file.
async fn raw(buildbot: &Buildbot, log: u64) -> String {
    let file = buildbot.bytes(&format!("/api/v2/logs/{log}/raw_inline")).await;
    let file = String::from_utf8(file).unwrap();
    let mut lines = file.split_inclusive('\n');
    for name in ["Builder: ", "Build number: ", "Worker name: "] {
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(name), "{file}");
    }
    lines.collect()
}
