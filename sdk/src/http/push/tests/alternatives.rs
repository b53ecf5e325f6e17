//! Several streams of the same: where one cannot be had, another is open.

use super::*;

fn both() -> Push {
    Push::websocket(WS).or(Push::events(EVENTS))
}

/// Sends comments so that the event stream is not silent, while something else happens.
async fn beside<F: Future>(events: &crate::testing::StreamHandle, other: F) -> F::Output {
    let comments = async {
        loop {
            events.send(":\n\n");
            sleep(20 * SECOND).await;
        }
    };
    tokio::select! {
        output = other => output,
        () = comments => unreachable!(),
    }
}

/// An answer that says that there is no such stream opens the next at once: it begins with a look, and its events lead to
/// looks. The first has one attempt each ten minutes, and one stream is open at any time.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_there_gives_way_and_comes_back() {
    for status in [400, 404, 405, 410, 426, 501] {
        let site = Site::new();
        let mut listener = site.sockets.listen(HOST);
        let streams: Vec<_> = (0..2).map(|_| stream()).collect();
        site.ci.replies("/events", streams.iter().map(|(reply, _)| reply.clone()));
        let read = site.get().push(both()).observe::<Value>().unwrap();
        refused(&mut listener, status, &[]).await;
        let since = Instant::now();
        timeout(2 * SECOND, site.ci.until("/events", 1)).await.unwrap();
        let events = &streams[0].1;
        shows(&read, 1, SECOND).await;
        sleep(10 * SECOND).await;
        site.set(2);
        events.send("data: changed\n\n");
        let took = shows(&read, 2, 10 * SECOND).await;
        assert!(took < 2 * SECOND, "{status}: {took:?}");
        // Back, and once more away.
        beside(events, refused(&mut listener, 503, &[])).await;
        assert!((540 * SECOND..=601 * SECOND).contains(&since.elapsed()), "{status}: {:?}", since.elapsed());
        let since = Instant::now();
        site.set(3);
        let took = shows(&read, 3, 10 * SECOND).await;
        assert!(took < 3 * SECOND, "the look at the attach: {took:?}");
        timeout(2 * SECOND, site.ci.until("/events", 2)).await.unwrap();
        assert_eq!(events.readers(), 0, "{status}");
        // Back for good.
        let (mut peer, _) = beside(&streams[1].1, accepted(&mut listener)).await;
        assert!((540 * SECOND..=601 * SECOND).contains(&since.elapsed()), "{status}: {:?}", since.elapsed());
        hold(&mut peer, 10 * SECOND).await;
        assert_eq!(streams[1].1.readers(), 0, "{status}");
        site.set(4);
        peer.send(Message::text("changed")).await.unwrap();
        shows(&read, 4, 2 * SECOND).await;
        hold(&mut peer, 1200 * SECOND).await;
        assert_eq!((site.ci.asked("/events").len(), site.sockets.connects(HOST)), (2, 3), "{status}");
    }
}

/// Three attempts that come to nothing open the next stream, however they do: refused for now, cut, taken and closed
/// (FC-49), or never answered.
#[tokio::test(start_paused = true)]
async fn three_attempts_that_come_to_nothing_give_way() {
    for (how, within) in [("503", 2), ("cut", 2), ("closed", 2), ("silent", 20)] {
        let site = Site::new();
        let mut listener = site.sockets.listen(HOST);
        let (reply, _events) = stream();
        site.ci.replies("/events", [reply]);
        let _read = site.get().push(both()).observe::<Value>().unwrap();
        let mut held = Vec::new();
        let since = Instant::now();
        for _ in 0..3 {
            assert!(site.ci.asked("/events").is_empty(), "{how}: too early");
            match how {
                "503" => drop(refused(&mut listener, 503, &[]).await),
                "cut" => drop(listener.accept().await),
                "closed" => {
                    let (mut peer, _) = accepted(&mut listener).await;
                    peer.send(Message::text("hello")).await.unwrap();
                    close(&mut peer, 1001, "").await;
                }
                _ => held.push(listener.accept().await.unwrap()),
            }
        }
        site.ci.until("/events", 1).await;
        assert!(since.elapsed() < within * SECOND, "{how}: {:?}", since.elapsed());
        assert!(timeout(50 * SECOND, listener.accept()).await.is_err(), "{how}");
    }
}

/// What keeps a stream from being had gives way for an event stream, too; what was healthy is tried three times first.
#[tokio::test(start_paused = true)]
async fn an_event_stream_gives_way_to_a_websocket() {
    let html = || Reply::text("<html>").header("content-type", "text/html");
    let empty = || Reply::bytes("").header("content-type", "text/event-stream");
    for (reply, asked) in [
        (Reply::status(404), 1),
        (Reply::status(405), 1),
        (Reply::status(410), 1),
        (Reply::status(501), 1),
        (Reply::status(503), 3),
        (html(), 3),
        (empty(), 3),
        (Reply::close(), 6), // each is repeated on a fresh connection
        (Reply::hang(), 3),
    ] {
        let site = Site::new();
        let mut listener = site.sockets.listen(HOST);
        site.ci.replies("/events", [reply.clone()]);
        let _read = site.get().push(Push::events(EVENTS).or(Push::websocket(WS))).observe::<Value>().unwrap();
        let (mut peer, _) = timeout(50 * SECOND, accepted(&mut listener)).await.unwrap();
        hold(&mut peer, 60 * SECOND).await;
        assert_eq!(site.ci.asked("/events").len(), asked, "{reply:?}");
    }
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let (reply, events) = stream();
    site.ci.replies("/events", [reply, Reply::status(503)]);
    let _read = site.get().push(Push::events(EVENTS).or(Push::websocket(WS))).observe::<Value>().unwrap();
    site.ci.until("/events", 1).await;
    sleep(30 * SECOND).await;
    events.cut();
    let _peer = accepted(&mut listener).await;
    assert_eq!(site.ci.asked("/events").len(), 4);
}

/// R3: a refused credential is no reason for another stream, and the rate is none either. What was refused stays so when a
/// stream is opened again.
#[tokio::test(start_paused = true)]
async fn r3_a_refused_credential_opens_no_other_stream() {
    for (status, headers) in [(401, &[][..]), (403, &[]), (429, &[("retry-after", "1")])] {
        let site = Site::new();
        let mut listener = site.sockets.listen(HOST);
        let read = site.get().credential(crate::Credential::bearer("s3cret").unwrap());
        let _read = read.push(both()).observe::<Value>().unwrap();
        let _ = timeout(600 * SECOND, async {
            loop {
                refused(&mut listener, status, headers).await;
            }
        })
        .await;
        assert_eq!(site.ci.asked("/events").len(), 0, "{status}");

        let site = Site::new();
        let reply = headers.iter().fold(Reply::status(status), |reply, (name, value)| reply.header(*name, value));
        site.ci.replies("/events", [reply]);
        let read = site.get().credential(crate::Credential::bearer("s3cret").unwrap());
        let _read = read.push(Push::events(EVENTS).or(Push::websocket(WS))).observe::<Value>().unwrap();
        sleep(600 * SECOND).await;
        assert_eq!(site.sockets.connects(HOST), 0, "{status}");
    }
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().credential(crate::Credential::bearer("s3cret").unwrap()).push(both());
    let _read = read.observe::<Value>().unwrap();
    refused(&mut listener, 401, &[]).await;
    refused(&mut listener, 404, &[]).await;
    // The event stream is not there either: back to the WebSocket.
    refused(&mut listener, 401, &[]).await;
    assert!(timeout(600 * SECOND, listener.accept()).await.is_err(), "sent after two refusals");
}

/// A proxy that answers the upgrade with 403, or 401, where no credential was sent refuses the stream: the other one is open
/// at once. A stream on another origin than the read has no credential.
#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_credential_gives_way() {
    let elsewhere = Push::websocket("ws://ws.example/ws").or(Push::events(EVENTS));
    for (status, host, push, credential) in
        [(401, HOST, both(), false), (403, HOST, both(), false), (403, "ws.example", elsewhere, true)]
    {
        let site = Site::new();
        let mut listener = site.sockets.listen(host);
        let (reply, _events) = stream();
        site.ci.replies("/events", [reply]);
        let mut read = site.get();
        if credential {
            read = read.credential(crate::Credential::bearer("s3cret").unwrap());
        }
        let _read = read.push(push).observe::<Value>().unwrap();
        refused(&mut listener, status, &[]).await;
        timeout(2 * SECOND, site.ci.until("/events", 1)).await.unwrap_or_else(|_| panic!("{status} of {host}"));

        let site = Site::new();
        let mut listener = site.sockets.listen(HOST);
        site.ci.replies("/events", [Reply::status(status)]);
        let _read = site.get().push(Push::events(EVENTS).or(Push::websocket(WS))).observe::<Value>().unwrap();
        let _peer = timeout(3 * SECOND, accepted(&mut listener)).await.unwrap_or_else(|_| panic!("{status} of events"));
        assert_eq!(site.ci.asked("/events").len(), 1, "{status}");
    }
}

/// A stream that says that it is over (204) is not asked for again, not even after the other was tried.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_over_stays_over() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    site.ci.replies("/events", [Reply::status(204)]);
    let _read = site.get().push(both()).observe::<Value>().unwrap();
    refused(&mut listener, 404, &[]).await;
    for _ in 0..5 {
        let since = Instant::now();
        refused(&mut listener, 404, &[]).await;
        assert!(since.elapsed() > 500 * SECOND, "{:?}", since.elapsed());
    }
    assert_eq!(site.ci.asked("/events").len(), 1);
}

/// R8: a service that is down for an hour is not asked more often with two streams than with one.
#[tokio::test(start_paused = true)]
async fn r8_two_streams_ask_a_dead_service_no_more_often_than_one() {
    let mut asked = Vec::new();
    for push in [Push::websocket(WS).into(), both(), Push::events(EVENTS).or(Push::websocket(WS))] {
        let site = Site::new();
        site.ci.replies("/events", [Reply::status(503)]);
        let _read = site.get().push(push).observe::<Value>().unwrap();
        sleep(3600 * SECOND).await;
        asked.push(site.sockets.connects(HOST) + site.ci.asked("/events").len() as u64);
    }
    let [one, two, other] = asked[..] else { panic!("{asked:?}") };
    assert!(one > 200 && two.max(other) < one + one / 5, "{asked:?}");
    assert!(two.min(other) > one / 2, "nor given up: {asked:?}");
}

/// R5: the stream that is left for the first one is told to be down, though it was up: nothing tells of changes until the
/// first one is up, or the other again.
#[tokio::test(start_paused = true)]
async fn r5_between_two_streams_none_is_up() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let (reply, events) = stream();
    site.ci.replies("/events", [reply]);
    let (_, requester, _) = site.get().checked(crate::http::answer::Expected::EventStream).unwrap();
    let mut push = both().open(&requester, &RUN.parse().unwrap());
    let first = tokio::join!(push.next(), refused(&mut listener, 404, &[])).0;
    assert!(matches!(first, Happening::Attached) && push.is_attached());
    let next = beside(&events, push.next()).await;
    assert!(matches!(next, Happening::Detached(_)) && !push.is_attached(), "{next:?}");
    let next = tokio::join!(push.next(), accepted(&mut listener)).0;
    assert!(matches!(next, Happening::Attached) && push.is_attached(), "{next:?}");
}

/// Dropping the read ends whichever stream is open.
#[tokio::test(start_paused = true)]
async fn it_ends_with_the_read() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let (reply, events) = stream();
    site.ci.replies("/events", [reply]);
    let read = site.get().push(both()).observe::<Value>().unwrap();
    refused(&mut listener, 404, &[]).await;
    site.ci.until("/events", 1).await;
    sleep(SECOND).await;
    assert_eq!(events.readers(), 1);
    drop(read);
    sleep(SECOND).await;
    assert_eq!(events.readers(), 0);
    assert!(timeout(1200 * SECOND, listener.accept()).await.is_err());
}
