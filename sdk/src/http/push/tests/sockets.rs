//! WebSockets that do what they are for.

use super::*;

/// FC-17: a change between the first look and the subscription, with no event after it, is seen by the look at the attach.
#[tokio::test(start_paused = true)]
async fn fc_17_a_change_before_the_subscription_is_seen() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let push = Push::websocket(WS).hello("subscribe").confirmed_by(|text| text == "ok");
    let read = site.get().push(push).observe::<Value>().unwrap();
    shows(&read, 1, SECOND).await;
    let (mut peer, _) = accepted(&mut listener).await;
    assert_eq!(peer.next().await.unwrap().unwrap(), Message::text("subscribe"));
    let looks = site.looks();
    site.set(2);
    peer.send(Message::text("ok")).await.unwrap();
    let took = tokio::select! {
        took = shows(&read, 2, 10 * SECOND) => took,
        () = drain(&mut peer) => panic!("the link is let go of"),
    };
    assert!(took < 2 * SECOND, "{took:?}");
    assert_eq!(site.looks(), looks + 1);
}

/// FC-17: where nothing confirms, the answer to the first ping says that the service has taken what was said first.
#[tokio::test(start_paused = true)]
async fn fc_17_a_subscription_that_nobody_confirms_is_looked_after_once_it_is_taken() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS).hello("subscribe")).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    // The look at the attach is over before the service has read anything.
    sleep(3 * SECOND).await;
    shows(&read, 1, SECOND).await;
    site.set(2);
    let took = tokio::select! {
        took = shows(&read, 2, 30 * SECOND) => took,
        () = drain(&mut peer) => panic!("the link is let go of"),
    };
    assert!(took < 2 * SECOND, "{took:?}");
}

/// While the stream is up each message leads to a look, a binary one too, and the interval is the slow one.
#[tokio::test(start_paused = true)]
async fn a_message_is_a_hint() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, headers) = accepted(&mut listener).await;
    assert!(headers["user-agent"].to_str().unwrap().starts_with("outlast/"));
    shows(&read, 1, SECOND).await;
    hold(&mut peer, 5 * SECOND).await;
    let looks = site.looks();
    hold(&mut peer, 45 * SECOND).await;
    assert_eq!(site.looks(), looks, "nothing is polled meanwhile");
    for (n, message) in [(2, Message::text("{}")), (3, Message::binary(&b"\0"[..]))] {
        site.set(n);
        peer.send(message).await.unwrap();
        let took = shows(&read, n, 2 * SECOND).await;
        assert!(took <= SECOND, "{took:?}");
    }
    hold(&mut peer, 130 * SECOND).await;
    assert!(site.looks() >= looks + 4, "the slow interval goes on");
}

/// R8: a flood of messages does not become a flood of requests, and the last of them is seen.
#[tokio::test(start_paused = true)]
async fn r8_hints_coalesce_and_their_rate_is_bounded() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    shows(&read, 1, SECOND).await;
    hold(&mut peer, 3 * SECOND).await;
    let looks = site.looks();
    for n in 2..10_002 {
        site.set(n);
        peer.send(Message::text("changed")).await.unwrap();
        if n % 10 == 0 {
            hold(&mut peer, Duration::from_millis(10)).await;
        }
    }
    shows(&read, 10_001, 3 * SECOND).await;
    let looks = site.looks() - looks;
    assert!((5..=15).contains(&looks), "{looks} looks in ten seconds");
}

/// A value that was pushed is shown at once, and a message without one says nothing.
#[tokio::test(start_paused = true)]
async fn a_value_is_taken_out_of_a_message() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let push = Push::websocket(WS).values(|text| Some(Bytes::from(text.strip_prefix("run ")?.to_owned())));
    let read = versioned(site.get().push(push)).observe().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    shows(&read, 1, SECOND).await;
    hold(&mut peer, 5 * SECOND).await;
    let looks = site.looks();
    peer.send(Message::text("another")).await.unwrap();
    peer.send(Message::text(r#"run {"n":2}"#)).await.unwrap();
    assert!(shows(&read, 2, SECOND).await < Duration::from_millis(5));
    assert_eq!(site.looks(), looks);
    site.set(3);
    peer.send(Message::text("run nonsense")).await.unwrap();
    shows(&read, 3, 2 * SECOND).await;
    assert_eq!(site.looks(), looks + 1, "what cannot be read is a hint");
}

/// FC-88, R4: a poll that was asked for before the pushed value, and answered after it, changes nothing.
#[tokio::test(start_paused = true)]
async fn fc_88_an_older_poll_that_arrives_later_is_not_shown() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let push = Push::websocket(WS).values(|text| Some(Bytes::from(text.to_owned())));
    let read = versioned(site.get().push(push)).observe().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    shows(&read, 1, SECOND).await;
    hold(&mut peer, 5 * SECOND).await;
    // The next poll samples the state at once and answers late.
    let run = Arc::clone(&site.run);
    site.ci.on("/run", move |_| Reply::json(json!({ "n": *run.lock().unwrap() })).after(2 * SECOND));
    let looks = site.looks();
    site.set(2);
    peer.send(Message::text("nonsense")).await.unwrap();
    site.ci.until("/run", looks + 1).await;
    site.set(3);
    peer.send(Message::text(r#"{"n":3}"#)).await.unwrap();
    shows(&read, 3, SECOND).await;
    let mut seen = read.clone();
    let _ = timeout(20 * SECOND, async {
        while let Some(reading) = seen.next().await {
            assert_eq!(reading.last().unwrap()["n"], 3);
        }
        drain(&mut peer).await;
    })
    .await;
    assert!(site.looks() > looks + 1, "it was asked for again");
}

/// A subprotocol is asked for, and a service that does not agree on it is not listened to.
#[tokio::test(start_paused = true)]
async fn a_subprotocol_is_agreed_on() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS).subprotocol("builds.v1")).observe::<Value>().unwrap();
    let (_peer, headers) = accepted(&mut listener).await;
    assert_eq!(headers["sec-websocket-protocol"], "builds.v1");
    let (_peer, _) = accepted(&mut listener).await;
    shows(&read, 1, 10 * SECOND).await;
}

/// The credential goes along to the same origin, where `ws` is `http`, and nowhere else; nor do the caller's headers.
#[tokio::test(start_paused = true)]
async fn r3_the_credential_goes_to_the_same_origin_only() {
    for (url, host, same) in
        [(WS, HOST, true), ("http://ci.example:80/ws", HOST, true), ("ws://events.example/ws", "events.example", false)]
    {
        let site = Site::new();
        let mut listener = site.sockets.listen(host);
        let read = site.get().credential(crate::Credential::bearer("s3cret").unwrap());
        let read = read.header("X-Api-Key", "k3y").header("X-Team", "blue").push(Push::websocket(url));
        let _read = read.observe::<Value>().unwrap();
        let (_peer, headers) = accepted(&mut listener).await;
        assert_eq!(headers.get("authorization").is_some_and(|value| value == "Bearer s3cret"), same, "{url}");
        assert_eq!(headers.contains_key("x-api-key"), same, "{url}");
        assert_eq!(headers.contains_key("x-team"), same, "{url}");
    }
}

/// A stream that cannot be opened at all is an error when the read is set up.
#[tokio::test(start_paused = true)]
async fn what_is_malformed_is_an_error() {
    let site = Site::new();
    let bad: [(Push, &str); 5] = [
        (Push::websocket("ftp://ci.example/").into(), "push.url"),
        (Push::websocket("ws://user:secret@ci.example/").into(), "push.url"),
        (Push::events("ws://ci.example/").into(), "push.url"),
        (Push::events("events").into(), "push.url"),
        (Push::websocket(WS).subprotocol("a b").into(), "push.subprotocol"),
    ];
    for (push, field) in bad {
        let e = site.get().push(push).observe::<Value>().unwrap_err();
        assert!(e.to_string().contains(field) && !e.to_string().contains("secret"), "{e}");
    }
    let push: Push = Push::websocket("ws://ci.example/ws?token=s3cret").hello("s3cret").into();
    assert!(!format!("{push:?}").contains("s3cret"), "{push:?}");
}
