//! Server-sent events beside a read.

use super::*;
use crate::http::pacing::Limits;

fn events(site: &Site, replies: impl IntoIterator<Item = Reply>) {
    site.ci.replies("/events", replies);
}

/// FC-17, R5: each event leads to a look; what changed before the stream was up is seen by the look at the attach.
#[tokio::test(start_paused = true)]
async fn fc_17_an_event_is_a_hint_and_the_attach_a_look() {
    let site = Site::new();
    let (reply, handle) = stream();
    events(&site, [reply.after(2 * SECOND)]);
    let read = site.get().push(Push::events(EVENTS)).observe::<Value>().unwrap();
    shows(&read, 1, SECOND).await;
    site.ci.until("/events", 1).await;
    sleep(1_900 * SECOND / 1_000).await;
    site.set(2);
    let took = shows(&read, 2, 10 * SECOND).await;
    assert!(took < 2 * SECOND, "{took:?}");
    sleep(5 * SECOND).await;
    let looks = site.looks();
    handle.send(": a comment\n\n");
    sleep(40 * SECOND).await;
    assert_eq!(site.looks(), looks, "nothing is polled meanwhile");
    site.set(3);
    handle.send("data: changed\n\n");
    assert!(shows(&read, 3, 2 * SECOND).await < SECOND);
    assert_eq!(site.ci.asked("/events").len(), 1);
    assert_eq!(site.ci.asked("/events")[0].header("accept"), Some("text/event-stream"));
}

/// Only events of the named types count.
#[tokio::test(start_paused = true)]
async fn only_what_is_named_counts() {
    let site = Site::new();
    let (reply, handle) = stream();
    events(&site, [reply]);
    let read = site.get().push(Push::events(EVENTS).named(["run", "message"])).observe::<Value>().unwrap();
    shows(&read, 1, SECOND).await;
    sleep(5 * SECOND).await;
    let looks = site.looks();
    site.set(2);
    handle.send("event: other\ndata: x\n\n");
    sleep(10 * SECOND).await;
    assert_eq!(site.looks(), looks);
    handle.send("event: run\ndata: x\n\n");
    shows(&read, 2, 2 * SECOND).await;
    sleep(2 * SECOND).await;
    site.set(3);
    handle.send("data: x\n\n");
    shows(&read, 3, 2 * SECOND).await;
}

/// FC-88: the data is the value, shown at once; a poll that is older and arrives after it changes nothing.
#[tokio::test(start_paused = true)]
async fn fc_88_a_value_is_shown_and_an_older_poll_is_not() {
    let site = Site::new();
    let (reply, handle) = stream();
    events(&site, [reply]);
    let read = versioned(site.get().push(Push::events(EVENTS).values())).observe().unwrap();
    shows(&read, 1, SECOND).await;
    sleep(5 * SECOND).await;
    let run = Arc::clone(&site.run);
    site.ci.on("/run", move |_| Reply::json(json!({ "n": *run.lock().unwrap() })).after(2 * SECOND));
    let looks = site.looks();
    site.set(2);
    handle.send("data: nonsense\n\n");
    site.ci.until("/run", looks + 1).await;
    site.set(3);
    handle.send("data: {\"n\":3}\n\n");
    assert!(shows(&read, 3, SECOND).await < Duration::from_millis(5));
    let mut seen = read.clone();
    let _ = timeout(20 * SECOND, async {
        while let Some(reading) = seen.next().await {
            assert_eq!(reading.last().unwrap()["n"], 3);
        }
    })
    .await;
}

/// FC-23: the stream is cut, and what happened meanwhile is told by nobody: the look at the next attach sees it, each time.
#[tokio::test(start_paused = true)]
async fn fc_23_each_reconnect_is_a_look() {
    let site = Site::new();
    let handles: Vec<_> = (0..6).map(|_| stream()).collect();
    events(&site, handles.iter().map(|(reply, _)| reply.clone()));
    let read = site.get().push(Push::events(EVENTS)).observe::<Value>().unwrap();
    for (n, (_, handle)) in (2..).zip(handles) {
        site.ci.until("/events", n - 1).await;
        // Idle, then cut without a word.
        sleep(10 * SECOND).await;
        assert!(handle.readers() <= 1, "one subscription at a time");
        site.set(n as u64);
        handle.cut();
        let took = shows(&read, n as u64, 10 * SECOND).await;
        assert!(took < 3 * SECOND, "{took:?}");
    }
}

/// FC-23: a stream that ended and is up again before anybody looked is told as such, with the gap.
#[tokio::test(start_paused = true)]
async fn fc_23_a_reconnect_that_nobody_saw_is_told() {
    let site = Site::new();
    let streams: Vec<_> = (0..2).map(|_| stream()).collect();
    events(&site, streams.iter().map(|(reply, _)| reply.clone()));
    let (_, requester, _) = site.get().checked(crate::http::answer::Expected::EventStream).unwrap();
    let mut push = Push::from(Push::events(EVENTS)).open(&requester, &RUN.parse().unwrap());
    assert!(matches!(push.next().await, Happening::Attached));
    streams[0].1.send("data: 1\n\n");
    assert!(matches!(push.next().await, Happening::Hint));
    let mut streams = streams.into_iter();
    streams.next().unwrap().1.cut();
    site.ci.until("/events", 2).await;
    sleep(SECOND).await;
    assert!(matches!(push.next().await, Happening::Detached(_)));
    assert!(!push.is_attached());
    assert!(matches!(push.next().await, Happening::Attached));
    assert!(matches!(push.next().await, Happening::Hint), "what happened in between is not to be had");
    assert!(push.is_attached());
    assert!(timeout(10 * SECOND, push.next()).await.is_err());
}

/// FC-19: the service answers each request with an empty stream at once. No loop of requests, and the read stays right.
#[tokio::test(start_paused = true)]
async fn fc_19_empty_streams_are_no_loop() {
    let site = Site::new();
    events(&site, [Reply::bytes("").header("content-type", "text/event-stream")]);
    let read = site.get().push(Push::events(EVENTS)).observe::<Value>().unwrap();
    sleep(600 * SECOND).await;
    let (asked, looks) = (site.ci.asked("/events").len(), site.looks());
    assert!((100..450).contains(&asked), "{asked}");
    assert!(looks <= 601, "{looks}");
    site.set(2);
    shows(&read, 2, 31 * SECOND).await;
}

/// R7: a stream that is silent for longer than it may is asked for anew, and each time the read looks.
#[tokio::test(start_paused = true)]
async fn r7_a_silent_stream_is_asked_for_anew() {
    let site = Site::new();
    let streams: Vec<_> = (0..20).map(|_| stream()).collect();
    events(&site, streams.iter().map(|(reply, _)| reply.clone()));
    let read = site.get().push(Push::events(EVENTS).quiet(20 * SECOND)).observe::<Value>().unwrap();
    sleep(30 * SECOND).await;
    assert_eq!(site.ci.asked("/events").len(), 2);
    site.set(2);
    shows(&read, 2, 25 * SECOND).await;
}

/// A service that refuses the stream, has none, sends something else, or says to stay away: the read is polled at its pace
/// and never denied or gone, and no credential is sent there after two refusals.
#[tokio::test(start_paused = true)]
async fn r3_a_stream_that_is_refused_does_the_read_no_harm() {
    for (reply, most) in [
        (Reply::status(401), 2),
        (Reply::status(403), 2),
        (Reply::status(404), 400),
        (Reply::status(410), 12),
        (Reply::status(204), 1),
        (Reply::text("<html>").header("content-type", "text/html"), 400),
        (Reply::close(), 800),
    ] {
        let site = Site::new();
        events(&site, [reply.clone()]);
        let read = site.get().credential(crate::Credential::bearer("s3cret").unwrap());
        let read = read.push(Push::events(EVENTS)).observe::<Value>().unwrap();
        sleep(600 * SECOND).await;
        let asked = site.ci.asked("/events").len();
        assert!((1..=most).contains(&asked), "{reply:?}: {asked}");
        site.set(2);
        shows(&read, 2, 31 * SECOND).await;
    }
}

/// R8: open streams hold no place among the requests under way, or many reads would wait for one another.
#[tokio::test(start_paused = true)]
async fn r8_open_streams_hold_no_place_of_the_budget() {
    let net = Net::new();
    let ci = Script::serve(&net, HOST);
    ci.replies("/run", [Reply::json(json!({ "n": 1 }))]);
    let (reply, _handle) = stream();
    ci.replies("/events", [reply]);
    let limits = Limits { in_flight: 2, ..Limits::default() };
    let agent = Agent::builder().exchange(SimulatedExchange::new(net)).limits(limits).env(env(6)).build().unwrap();
    let reads: Vec<_> = (0..5).map(|_| agent.get(RUN).push(Push::events(EVENTS)).observe::<Value>().unwrap()).collect();
    // Before a silent stream is asked for anew.
    timeout(10 * SECOND, ci.until("/events", 5)).await.unwrap();
    for read in &reads {
        shows(read, 1, 10 * SECOND).await;
    }
}

/// The credential stays with its origin.
#[tokio::test(start_paused = true)]
async fn r3_the_credential_goes_to_the_same_origin_only() {
    let net = Net::new();
    let (ci, other) = (Script::serve(&net, HOST), Script::serve(&net, "events.example"));
    ci.replies("/run", [Reply::json(json!({ "n": 1 }))]);
    let streams: Vec<_> = (0..2).map(|_| stream()).collect();
    ci.replies("/events", [streams[0].0.clone()]);
    other.replies("/events", [streams[1].0.clone()]);
    let agent = Agent::builder().exchange(SimulatedExchange::new(net)).env(env(6)).build().unwrap();
    for (url, script, same) in [(EVENTS, &ci, true), ("http://events.example/events", &other, false)] {
        let read = agent.get(RUN).credential(crate::Credential::bearer("s3cret").unwrap()).header("X-Api-Key", "k3y");
        let _read = read.push(Push::events(url)).observe::<Value>().unwrap();
        let asked = script.until("/events", 1).await;
        assert_eq!(asked.header("authorization").is_some(), same);
        assert_eq!(asked.header("x-api-key").is_some(), same);
    }
}
