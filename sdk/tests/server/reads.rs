//! Subscriptions over the wire.

use serde_json::{Value, json};

use crate::farm::{Farm, wait};
use crate::peer::Peer;

const BUILD: &str = "farm.v1/build";

async fn resume(peer: &mut Peer, sub: u64, id: &str, after: Value) -> Value {
    let params = json!({ "id": id });
    peer.send(json!({"type": "subscribe", "sub": sub, "method": BUILD, "params": params, "after": after})).await;
    peer.next().await
}

/// R3, R4, R5: absent, then its values in order, each before the watermark that covers it, then gone.
#[tokio::test(start_paused = true)]
async fn r3_r4_a_read_from_absent_to_gone() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let log = peer.welcome["log"].clone();
    let absent = peer.subscribe(1, BUILD, json!({"id": "b"})).await;
    assert_eq!(absent, json!({"type": "absent", "sub": 1, "at": {"log": log, "seq": 0}}));
    for (seq, event, state) in [(1, "submitted", "queued"), (2, "claimed", "running")] {
        farm.append("b", event).await;
        let value = peer.frame().await;
        assert_eq!(
            value,
            json!({"type": "value", "sub": 1, "at": {"log": log, "seq": seq}, "value": {"state": state}})
        );
        assert_eq!(peer.frame().await, json!({"type": "watermark", "through": seq}));
    }
    farm.append("other", "submitted").await;
    assert_eq!(peer.frame().await, json!({"type": "watermark", "through": 3}), "and nobody is woken");
    let pong = peer.ping(9).await;
    assert_eq!((&pong["n"], &pong["through"], &pong["head"]), (&json!(9), &json!(3), &json!(3)));
    farm.append("b", "removed").await;
    assert_eq!(peer.frame().await, json!({"type": "end", "sub": 1, "reason": "gone"}));
    assert_eq!(peer.subscribe(1, BUILD, json!({"id": "b"})).await["type"], "end", "the id is free again");
}

/// R4: a resumed read gets what changed after its cursor, and nothing if nothing did; another log's
/// cursor is not trusted; a cursor ahead of the projections waits for them.
#[tokio::test(start_paused = true)]
async fn r4_a_resumed_read_gets_what_changed() {
    let farm = Farm::new();
    farm.append("b", "submitted").await;
    farm.append("other", "submitted").await;
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let log = peer.welcome["log"].clone();
    let at = |seq: u64| json!({"log": log, "seq": seq});
    assert_eq!(peer.welcome["head"], 2);
    for (sub, seq) in [(1, 1), (2, 2)] {
        let unchanged = resume(&mut peer, sub, "b", at(seq)).await;
        assert_eq!(unchanged, json!({"type": "unchanged", "sub": sub, "at": at(2)}), "{seq}");
    }
    assert_eq!(resume(&mut peer, 3, "b", at(0)).await["type"], "value");
    let foreign = json!({"log": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "seq": 2});
    assert_eq!(resume(&mut peer, 4, "b", foreign).await["type"], "value");
    let epoch = json!({"epoch": peer.welcome["epoch"], "count": 5});
    assert_eq!(resume(&mut peer, 5, "b", epoch).await["type"], "value", "not a cursor of this source");

    peer.send(json!({"type": "subscribe", "sub": 6, "method": BUILD, "params": {"id": "b"}, "after": at(4)})).await;
    assert_eq!(peer.ping(1).await["type"], "pong", "no answer yet");
    farm.append("other", "claimed").await;
    assert_eq!(peer.ping(2).await["type"], "pong", "no answer yet");
    farm.append("other", "claimed").await;
    assert_eq!(peer.next().await, json!({"type": "unchanged", "sub": 6, "at": at(4)}));
    farm.append("b", "claimed").await;
    for sub in 1..=6 {
        let value = peer.next().await;
        assert_eq!((&value["sub"], &value["at"]), (&json!(sub), &at(5)));
    }
}

/// R4, R5: after a restart no read is answered from less than the log held at the start.
#[tokio::test(start_paused = true)]
async fn r5_a_restarted_server_answers_from_the_whole_log() {
    let farm = Farm::new();
    for _ in 0..1_000 {
        farm.append("b", "submitted").await;
    }
    farm.append("b", "claimed").await;
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let value = peer.subscribe(1, BUILD, json!({"id": "b"})).await;
    assert_eq!((&value["value"]["state"], &value["at"]["seq"]), (&json!("running"), &json!(1001)));
    let count = peer.subscribe(2, "farm.v1/events", json!({})).await;
    assert_eq!(count["value"], 1001);
}

/// R3: what cannot be served says why, and only an authority ends a read.
#[tokio::test(start_paused = true)]
async fn r3_refused_subscriptions_name_the_reason() {
    let farm = Farm::new();
    let server = farm.builder().subscriptions_per_connection(2).start().await.unwrap();
    let mut peer = Peer::connect(&server, "alice").await;
    let unserved = |answer: &Value, code: &str, detail: &str| {
        assert_eq!((&answer["type"], &answer["code"]), (&json!("unserved"), &json!(code)), "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains(detail), "{answer}");
    };
    unserved(&peer.subscribe(1, "farm.v1/nothing", json!({})).await, "invalid", "method: expected a read");
    unserved(&peer.subscribe(1, "farm.v1/touch", json!({})).await, "invalid", "method: expected a read");
    unserved(&peer.subscribe(1, BUILD, json!({"id": 7})).await, "invalid", "id: expected");
    unserved(&peer.subscribe(1, BUILD, json!({})).await, "invalid", "id: expected");
    unserved(&peer.subscribe(1, BUILD, json!({"id": "broken"})).await, "unavailable", "panicked");
    let denied = peer.subscribe(1, BUILD, json!({"id": "secret"})).await;
    assert_eq!(denied, json!({"type": "end", "sub": 1, "reason": "denied"}));

    peer.subscribe(1, BUILD, json!({"id": "a"})).await;
    peer.subscribe(2, BUILD, json!({"id": "b"})).await;
    let over = peer.subscribe(3, BUILD, json!({"id": "c"})).await;
    unserved(&over, "rate_limited", "subscriptions: expected at most 2");
    assert_eq!(over["retry_after_ms"], 1000);
    assert_eq!(peer.subscribe(2, BUILD, json!({"id": "c"})).await["type"], "fault");
    peer.send(json!({"type": "unsubscribe", "sub": 1})).await;
    assert_eq!(peer.subscribe(3, BUILD, json!({"id": "c"})).await["type"], "absent");
    farm.append("a", "submitted").await;
    farm.append("c", "submitted").await;
    assert_eq!(peer.next().await["sub"], 3, "nothing of what was unsubscribed");
}

/// R4, R6: a source without a log counts within the server's life, coalesces, and its end is no end of the read.
#[tokio::test(start_paused = true)]
async fn r6_a_source_without_a_log() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let first = peer.subscribe(1, "farm.v1/uptime", json!({})).await;
    assert_eq!((&first["value"], &first["at"]["epoch"]), (&json!(0), &peer.welcome["epoch"]));
    for n in 1..=10_u64 {
        farm.uptime.send_replace(n);
    }
    let next = peer.next().await;
    assert_eq!(next["value"], 10);
    assert!(next["at"]["count"].as_u64() > first["at"]["count"].as_u64());
    let second = peer.subscribe(2, "farm.v1/uptime", json!({})).await;
    assert!(second["at"]["count"].as_u64() > next["at"]["count"].as_u64(), "also on another subscription");
    drop(farm);
    for sub in [1, 2] {
        let value = peer.next().await;
        assert_eq!((&value["type"], &value["sub"]), (&json!("value"), &json!(sub)));
    }
    for sub in [1, 2] {
        let unserved = peer.next().await;
        assert_eq!((&unserved["type"], &unserved["sub"]), (&json!("unserved"), &json!(sub)));
    }
}

/// R6: a reader that was slow sees the newest value, once.
#[tokio::test(start_paused = true)]
async fn r6_a_slow_reader_sees_the_newest() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::with_buffer(&server, "alice", 512).await;
    peer.subscribe(1, "farm.v1/events", json!({})).await;
    for i in 0..2_000 {
        farm.append("b", "submitted").await;
        if i % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    wait(&farm.env, std::time::Duration::from_secs(5)).await;
    let (mut values, mut last) = (0, 0);
    while last < 2_000 {
        let value = peer.next().await;
        assert!(value["value"].as_u64().unwrap() > last, "never backwards");
        (values, last) = (values + 1, value["value"].as_u64().unwrap());
    }
    assert!(values < 200, "{values} values were sent to a reader that took none");
}
