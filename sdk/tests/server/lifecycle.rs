//! From the upgrade to the end of a connection, and of the server.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, SinkExt};
use http::StatusCode;
use outlast::server::{Routes, RpcScope, Server};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use crate::farm::{Farm, START, wait};
use crate::peer::{Peer, call_frame, dial, request};

/// The welcome says everything that a client plans with.
#[tokio::test(start_paused = true)]
async fn the_welcome_comes_first_and_says_it_all() {
    let farm = Farm::new();
    farm.append("b", "submitted").await;
    let server = farm.start().await;
    let peer = Peer::connect(&server, "alice").await;
    assert_eq!(
        peer.welcome,
        json!({
            "type": "welcome", "epoch": server.epoch(), "log": server.log_id(), "head": 1, "durable": false,
            "principal": "alice", "now": START, "heartbeat_ms": 10_000, "retention_ms": 86_400_000, "spread_ms": 0,
        })
    );
    let second = Peer::connect(&server, "bob").await;
    assert_eq!(second.welcome["spread_ms"], 20, "two connections at a hundred a second");
}

/// R3, S6: a request is turned away with a status that says what to do, before anything is upgraded.
#[tokio::test(start_paused = true)]
async fn refused_upgrades_say_why() {
    let farm = Farm::new();
    let server = farm.start().await;
    let status = async |request| Peer::status(&server, request).await;
    let (code, headers) = status(request(None)).await;
    assert_eq!((code, headers["www-authenticate"].as_bytes()), (StatusCode::UNAUTHORIZED, &b"Bearer"[..]));
    let (code, headers) = status(request(Some("down"))).await;
    assert_eq!((code, headers["retry-after"].as_bytes()), (StatusCode::SERVICE_UNAVAILABLE, &b"1"[..]));
    let mut other = request(Some("alice"));
    other.headers_mut().insert("sec-websocket-protocol", "outlast.v9".parse().unwrap());
    assert_eq!(status(other).await.0, StatusCode::BAD_REQUEST);
    let mut old = request(Some("alice"));
    old.headers_mut().insert("sec-websocket-version", "8".parse().unwrap());
    let (code, headers) = status(old).await;
    assert_eq!((code, headers["sec-websocket-version"].as_bytes()), (StatusCode::UPGRADE_REQUIRED, &b"13"[..]));
    let mut elsewhere = request(Some("alice"));
    *elsewhere.uri_mut() = "ws://farm.test/elsewhere".parse().unwrap();
    assert_eq!(status(elsewhere).await.0, StatusCode::NOT_FOUND);
    assert_eq!(server.connections(), 0);
}

/// Frames of a later version are ignored; malformed ones are answered and name the field.
#[tokio::test(start_paused = true)]
async fn strange_frames_do_not_end_a_connection() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    peer.send(json!({"type": "telepathy", "sub": 1})).await;
    for (frame, names) in [
        (r#"{"type":"attach","call":"1"}"#, "`call`"),
        (r#"{"type":"unsubscribe"}"#, "`sub`"),
        (r#"{"type":"unsubscribe","sub":"one"}"#, "`sub`"),
        (r#"{"type":"ping","n":-1}"#, "`n`"),
        (r#"{"sub":1}"#, "`type`"),
        ("not json", "frame"),
        ("[]", "frame"),
    ] {
        peer.socket.send(Message::text(frame)).await.unwrap();
        let fault = peer.next().await;
        assert_eq!(fault["type"], "fault");
        assert!(fault["detail"].as_str().unwrap().contains(names), "{frame}: {fault}");
    }
    // Whoever waits for an answer gets one.
    for (frame, answer, names) in [
        (r#"{"type":"attach","call":1}"#, "refused", "`key`"),
        (r#"{"type":"call","call":2,"method":7}"#, "refused", "`method`"),
        (r#"{"type":"subscribe","sub":3}"#, "unserved", "`method`"),
    ] {
        peer.socket.send(Message::text(frame)).await.unwrap();
        let refused = peer.next().await;
        assert_eq!((&refused["type"], &refused["code"]), (&json!(answer), &json!("invalid")));
        assert!(refused["detail"].as_str().unwrap().contains(names), "{frame}: {refused}");
    }
    peer.socket.send(Message::binary(vec![1, 2])).await.unwrap();
    assert_eq!(peer.next().await["type"], "fault");
    assert_eq!(peer.ping(1).await["n"], 1);
    let _ = peer.socket.send(Message::text(" ".repeat((1 << 20) + 1))).await; // it may be cut off in the middle
    assert_eq!(peer.end().await, Some(1009), "a frame beyond 1 MiB");
}

/// R7: a connection silent for two heartbeats is dropped, one that pings is not.
#[tokio::test(start_paused = true)]
async fn r7_silence_ends_a_connection() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    for n in 0..5 {
        wait(&farm.env, Duration::from_secs(19)).await;
        assert_eq!(peer.ping(n).await["n"], n);
    }
    let began = farm.env.instant();
    assert_eq!(peer.end().await, None);
    assert_eq!(farm.env.instant().since(began), Duration::from_secs(20));
    assert_eq!(server.connections(), 0);
}

/// R7: a frame that comes slowly is no silence: bytes count, not whole frames.
#[tokio::test(start_paused = true)]
async fn r7_a_slow_frame_is_no_silence() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let text = br#"{"type":"ping","n":7}"#;
    // A text frame of the client, its mask all zero (RFC 6455, 5.2).
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(text);
    for byte in frame {
        peer.socket.get_mut().write_all(&[byte]).await.unwrap();
        wait(&farm.env, Duration::from_secs(5)).await;
    }
    assert_eq!(peer.next().await["n"], 7, "after more than two minutes");
}

/// R7: a peer that takes nothing is dropped after the write's bound, and nobody else waits for it.
#[tokio::test(start_paused = true)]
async fn r7_a_stalled_write_ends_a_connection() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::with_buffer(&server, "alice", 256).await;
    let mut other = Peer::connect(&server, "bob").await;
    peer.subscribe(1, "farm.v1/build", json!({"id": "b"})).await;
    other.subscribe(1, "farm.v1/build", json!({"id": "b"})).await;
    for n in 0..100 {
        farm.append("b", "submitted").await;
        assert_eq!(other.next().await["type"], "value");
        assert_eq!(other.ping(n).await["type"], "pong");
    }
    // Neither side's silence: the stalled one is dropped first.
    wait(&farm.env, Duration::from_secs(10) + Duration::from_millis(1)).await;
    assert_eq!(server.connections(), 1);
}

/// S6: a drain tells, keeps heartbeats, refuses new connections, resolves what is in flight, closes with 1012.
#[tokio::test(start_paused = true)]
async fn s6_a_drain_resolves_what_is_in_flight() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    peer.send(call_frame(1, "farm.v1/slow", "k", json!({}))).await;
    peer.ping(1).await;
    let draining = server.clone();
    let drained = tokio::task::LocalSet::new();
    let drained = drained.run_until(async {
        let drain = tokio::task::spawn_local(async move { draining.drain().await });
        assert_eq!(peer.next().await, json!({"type": "drain"}));
        wait(&farm.env, Duration::from_secs(5)).await;
        assert_eq!(peer.ping(2).await["n"], 2);
        let (code, headers) = Peer::status(&server, request(Some("bob"))).await;
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        assert!(headers.contains_key("retry-after"));
        assert!(!drain.is_finished());
        farm.gate.notify_one();
        assert_eq!(peer.answer(1).await["status"], "SUCCEEDED");
        assert_eq!(peer.end().await, Some(1012));
        drop(peer);
        drain.await.unwrap();
    });
    drained.await;
    assert_eq!(server.connections(), 0);
}

/// S6: a drain ends within its bound, whatever hangs.
#[tokio::test(start_paused = true)]
async fn s6_a_drain_is_bounded() {
    let farm = Farm::new();
    let server = farm.builder().drain_limit(Duration::from_secs(2)).start().await.unwrap();
    let mut peer = Peer::connect(&server, "alice").await;
    peer.send(call_frame(1, "farm.v1/slow", "k", json!({}))).await;
    peer.ping(1).await;
    let began = farm.env.instant();
    server.drain().await;
    assert!(farm.env.instant().since(began) <= Duration::from_secs(5));
    assert_eq!(peer.next().await["type"], "drain");
    assert_eq!(peer.end().await, Some(1012));
}

/// S6: a drain goes on when its caller stops waiting for it: no client is left on a server that takes nothing new.
#[tokio::test(start_paused = true)]
async fn s6_a_drain_outlives_its_future() {
    let farm = Farm::new();
    let server = farm.builder().drain_limit(Duration::from_secs(2)).start().await.unwrap();
    let mut peer = Peer::connect(&server, "alice").await;
    peer.send(call_frame(1, "farm.v1/slow", "k", json!({}))).await;
    peer.ping(1).await;
    assert!(server.drain().now_or_never().is_none());
    assert_eq!(peer.next().await["type"], "drain");
    assert_eq!(peer.end().await, Some(1012));
}

/// W6: an aborted or dropped server leaves nothing behind but its log.
#[tokio::test(start_paused = true)]
async fn a_dropped_server_frees_everything() {
    for abort in [false, true] {
        let farm = Farm::new();
        let server = farm.start().await;
        let mut peer = Peer::connect(&server, "alice").await;
        peer.subscribe(1, "farm.v1/build", json!({"id": "b"})).await;
        peer.send(call_frame(1, "farm.v1/slow", "k", json!({}))).await;
        peer.ping(1).await;
        let router = server.router();
        assert!(Arc::strong_count(&farm.alive) > 1);
        if abort {
            server.abort();
            assert_eq!(peer.end().await, None);
            assert_eq!(Peer::status(&server, request(Some("alice"))).await.0, StatusCode::SERVICE_UNAVAILABLE);
        }
        drop(server);
        if !abort {
            assert_eq!(peer.ping(2).await["n"], 2, "the router keeps it alive");
        }
        drop(router);
        assert_eq!(peer.end().await, None);
        wait(&farm.env, Duration::from_millis(1)).await;
        assert_eq!(Arc::strong_count(&farm.alive), 1, "no handler, so no task, is left");
    }
}

/// A server does not start with routes that cannot be told apart.
#[tokio::test(start_paused = true)]
async fn routes_are_checked_at_the_start() {
    use outlast::call::{Args, Method};
    use outlast::server::Events;
    let route = |service: &str, method: &'static str| {
        let handler = |_: RpcScope, _: Args| async { Ok(Events::none()) };
        Routes::new(service, 1).command(&Method::new(method), handler)
    };
    let farm = Farm::new();
    let start = async |routes: Vec<Routes>| {
        let builder = Server::builder(farm.log.clone()).env(farm.env.clone());
        routes.into_iter().fold(builder, |builder, routes| builder.service(routes)).start().await
    };
    assert!(start(vec![route("farm", "farm.v1/a"), route("shop", "shop.v1/a")]).await.is_ok());
    assert!(start(vec![route("farm", "farm.v2/a")]).await.unwrap_err().is_invalid());
    assert!(start(vec![route("farm", "farm.v1/a"), route("farm", "farm.v1/a")]).await.unwrap_err().is_invalid());
    let twice = route("farm", "farm.v1/a").command(&Method::new("farm.v1/a"), |_, _| async { Ok(Events::none()) });
    assert!(start(vec![twice]).await.unwrap_err().is_invalid());
}

/// The router works under `axum::serve`, by default for everybody.
#[tokio::test]
async fn the_router_serves_over_tcp() {
    let farm = Farm::new();
    let server = Server::builder(farm.log.clone()).start().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    let router = server.router();
    tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(request(None), stream).await.unwrap();
    let welcome = futures::StreamExt::next(&mut socket).await.unwrap().unwrap().into_text().unwrap();
    assert!(welcome.contains(r#""principal":"anonymous""#), "{welcome}");
    server.drain().await;
    assert!(dial(&server, request(None), 4096).await.is_err());
}
