//! Calls, replays, cancels and settlements over the wire.

use std::time::Duration;

use futures::SinkExt;
use outlast::key::{KeyLevel, semantic};
use outlast::log::{Append, AppendId, Expect, Log, MemoryLog, Subject};
use outlast::testing::env;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::farm::{Farm, START, wait};
use crate::flaky::{Fault, Flaky};
use crate::peer::{Peer, call_frame};

const KEYED: &str = "farm.v1/submit";

fn sha_key(sha: &str, attempt: u32) -> String {
    let params = serde_json::value::to_raw_value(&json!({ "sha": sha })).unwrap();
    let key = semantic(KEYED, &params, &["sha"], attempt).unwrap();
    assert_eq!(key.level(), KeyLevel::Semantic);
    key.as_str().to_owned()
}

/// S2, W6, FC-81: a replay says the same timestamp: on the connection, on another, after a restart.
#[tokio::test(start_paused = true)]
async fn s2_fc81_every_replay_has_the_stored_timestamp() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let first = peer.call(1, "farm.v1/touch", "k", json!({"id": "b"})).await;
    assert_eq!((&first["status"], &first["accepted"], &first["at"]), (&json!("SUCCEEDED"), &json!(2), &json!(2)));
    farm.append("b", "claimed").await;

    let again = peer.call(2, "farm.v1/touch", "k", json!({"id": "b"})).await;
    let mut other = Peer::connect(&server, "alice").await;
    let elsewhere = other.attach(7, "k").await;
    drop(server);
    let server = farm.start().await;
    let mut restarted = Peer::connect(&server, "alice").await;
    assert_ne!(restarted.welcome["epoch"], peer.welcome["epoch"]);
    let after = restarted.call(1, "farm.v1/touch", "k", json!({"id": "b"})).await;
    for replay in [again, elsewhere, after] {
        assert_eq!((&replay["accepted"], &replay["status"]), (&first["accepted"], &first["status"]), "{replay}");
    }
    assert_eq!(farm.events("b").await, 2, "one effect, and the claim");
}

/// K1, FC-79: another fingerprint of a key is refused, on any method, and learns nothing.
#[tokio::test(start_paused = true)]
async fn k1_fc79_a_key_names_one_command() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    peer.send(call_frame(1, "farm.v1/slow", "k", json!({}))).await;
    let refusal = json!({
        "type": "refused", "code": "key_conflict",
        "detail": "key: expected one that is not bound to another command",
    });
    let conflict = |call: u64| {
        let mut refusal = refusal.clone();
        refusal["call"] = call.into();
        refusal
    };
    assert_eq!(peer.call(2, "farm.v1/slow", "k", json!({"x": 1})).await, conflict(2), "while the first still runs");
    farm.gate.notify_one();
    assert_eq!(peer.answer(1).await["status"], "SUCCEEDED");
    assert_eq!(peer.call(3, "farm.v1/touch", "k", json!({"id": "b"})).await, conflict(3));
    let exact = |n: &str| -> Value { serde_json::from_str(&format!(r#"{{"id":"b","n":{n}}}"#)).unwrap() };
    peer.call(4, "farm.v1/touch", "n", exact("9007199254740992")).await;
    assert_eq!(peer.call(5, "farm.v1/touch", "n", exact("9007199254740993")).await, conflict(5), "exact integers");
    assert_eq!(farm.events("b").await, 1);
}

/// K1: until a call is answered it is told nothing of what happens to its key: it may be another's.
#[tokio::test(start_paused = true)]
async fn k1_an_unanswered_call_is_told_nothing() {
    let env = env(1);
    let (inner, key) = (MemoryLog::new(&env), Subject::of(["key", "alice", "k"]));
    let log = Flaky::new(inner.clone());
    let farm = Farm::on(log.clone(), env);
    let server = farm.start().await;
    let (mut first, mut second) = (Peer::connect(&server, "alice").await, Peer::connect(&server, "alice").await);
    let spec = json!({"sha": "a"});
    let accepted = first.call(1, KEYED, "x", spec).await;
    assert_eq!(accepted["status"], "PENDING");
    let key = Subject::of(key.tokens().take(2).chain([sha_key("a", 1)]));
    log.set(Fault::Hang); // so the second call, which is another command, has no answer yet
    second.send(call_frame(1, KEYED, "x", json!({"sha": "a", "spec": "another"}))).await;
    second.ping(1).await;
    let append = Append::new(AppendId::new(farm.env.ulid()), farm.env.wall());
    inner.append(append.write(key, Expect::Any, r#"{"k":"started"}"#)).await;
    assert_eq!(first.answer(1).await["status"], "RUNNING");
    assert_eq!(second.answer(1).await["code"], "unavailable", "not a report");
    log.set(Fault::None);
    assert_eq!(second.call(2, KEYED, "x", json!({"sha": "a", "spec": "another"})).await["code"], "key_conflict");
}

/// K1: another principal's key answers as never seen, and is free.
#[tokio::test(start_paused = true)]
async fn k1_principals_never_meet() {
    let farm = Farm::new();
    let server = farm.start().await;
    let (mut alice, mut bob) = (Peer::connect(&server, "alice").await, Peer::connect(&server, "bob").await);
    alice.call(1, "farm.v1/touch", "k", json!({"id": "b"})).await;
    let never = bob.attach(1, "never seen").await;
    let mut others = bob.attach(2, "k").await;
    others["call"] = json!(1);
    assert_eq!((&never["code"], &never), (&json!("not_found"), &others));
    assert_eq!(bob.call(3, "farm.v1/touch", "k", json!({"id": "other"})).await["status"], "SUCCEEDED");
    assert_eq!(bob.welcome["principal"], "bob");
}

/// K2, FC-75: the key of a method with key arguments is computed here; what the client sent is ignored,
/// unless it claims to be computed and is another.
#[tokio::test(start_paused = true)]
async fn k2_fc75_semantic_keys_are_recomputed() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let first = peer.call(1, KEYED, "01ARZ3NDEKTSV4RRFFQ69G5FAV", json!({"sha": "a", "spec": "x"})).await;
    assert_eq!(first["status"], "PENDING");
    assert_eq!(peer.attach(2, &sha_key("a", 1)).await["accepted"], first["accepted"]);
    assert_eq!(peer.attach(3, "01ARZ3NDEKTSV4RRFFQ69G5FAV").await["code"], "not_found");
    // Byte for byte another text, the same parameters.
    let again = r#"{"type":"call","call":4,"method":"farm.v1/submit","params":{ "spec":"x" , "sha":"\u0061"},
        "key":"mine","level":"minted","minted":1764028800000,"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","later":1}"#;
    peer.socket.send(Message::text(again)).await.unwrap();
    assert_eq!(peer.answer(4).await["accepted"], first["accepted"]);
    let mut wrong = call_frame(5, KEYED, &sha_key("b", 1), json!({"sha": "a", "spec": "x"}));
    wrong["level"] = "semantic".into();
    peer.send(wrong).await;
    assert_eq!(peer.answer(5).await["code"], "key_conflict");
    let mut second = call_frame(6, KEYED, &sha_key("c", 2), json!({"sha": "c"}));
    (second["level"], second["attempt"]) = ("semantic".into(), 2.into());
    peer.send(second).await;
    assert_eq!(peer.answer(6).await["status"], "PENDING", "the attempt is part of the key");
    let missing = peer.call(7, KEYED, "k", json!({"spec": "x"})).await;
    assert_eq!((&missing["code"], missing["detail"].as_str().unwrap().starts_with("sha:")), (&json!("invalid"), true));
}

/// A running command is reported as others move it, on any replica of the log.
#[tokio::test(start_paused = true)]
async fn w3_observers_are_told_what_other_replicas_append() {
    let farm = Farm::new();
    let (here, there) = (farm.start().await, farm.start().await);
    let (mut alice, mut worker) = (Peer::connect(&here, "alice").await, Peer::connect(&there, "worker").await);
    let accepted = alice.call(1, KEYED, "", json!({"sha": "a"})).await;
    assert_eq!(accepted["code"], "invalid", "an empty key: {accepted}");
    let accepted = alice.call(2, KEYED, "x", json!({"sha": "a"})).await;
    let mut watcher = Peer::connect(&there, "alice").await;
    assert_eq!(watcher.attach(1, &sha_key("a", 1)).await["status"], "PENDING");

    assert_eq!(worker.call(1, "farm.v1/claim", "c", json!({"id": "a"})).await["status"], "SUCCEEDED");
    assert_eq!(alice.answer(2).await["status"], "RUNNING");
    assert_eq!(watcher.answer(1).await["status"], "RUNNING");
    let late = worker.call(2, "farm.v1/claim", "d", json!({"id": "a"})).await;
    assert_eq!((&late["status"], &late["failure"]["retry"]), (&json!("FAILED"), &json!("never")), "W7");

    worker.call(3, "farm.v1/finish", "f", json!({"id": "a", "ok": false})).await;
    for settled in
        [alice.answer(2).await, watcher.answer(1).await, alice.call(3, KEYED, "x", json!({"sha": "a"})).await]
    {
        assert_eq!((&settled["status"], &settled["accepted"]), (&json!("FAILED"), &accepted["accepted"]));
        assert_eq!(
            settled["failure"],
            json!({"reason": "verdict", "retry": "new_key", "message": "two checks failed"})
        );
    }
}

/// W5, FC-71: a cancel is recorded; `CANCELED` comes when the executor says that it stopped.
#[tokio::test(start_paused = true)]
async fn w5_fc71_a_running_command_is_canceled_by_its_executor() {
    let farm = Farm::new();
    let server = farm.start().await;
    let (mut alice, mut worker) = (Peer::connect(&server, "alice").await, Peer::connect(&server, "worker").await);
    alice.call(1, KEYED, "x", json!({"sha": "a"})).await;
    worker.call(1, "farm.v1/claim", "c", json!({"id": "a"})).await;
    assert_eq!(alice.answer(1).await["status"], "RUNNING");
    // On the command's own call id.
    assert_eq!(alice.cancel(1, &sha_key("a", 1)).await["status"], "CANCEL_REQUESTED");
    assert_eq!(alice.cancel(1, &sha_key("a", 1)).await["status"], "CANCEL_REQUESTED", "idempotent");
    let mut executor = Peer::connect(&server, "worker").await;
    assert_eq!(executor.subscribe(1, "farm.v1/build", json!({"id": "a"})).await["value"]["state"], "stopping");
    worker.call(2, "farm.v1/stopped", "s", json!({"id": "a"})).await;
    assert_eq!(alice.answer(1).await["status"], "CANCELED");
    let late = worker.call(3, "farm.v1/finish", "f", json!({"id": "a", "ok": true})).await;
    assert_eq!(late["status"], "SUCCEEDED", "that command is the worker's own");
    assert_eq!(alice.attach(2, &sha_key("a", 1)).await["status"], "CANCELED", "what is over stays over");

    // Before anybody has claimed it, and before it has arrived at all.
    alice.call(3, KEYED, "x", json!({"sha": "b"})).await;
    assert_eq!(alice.cancel(4, &sha_key("b", 1)).await["status"], "CANCELED");
    assert_eq!(alice.answer(3).await["status"], "CANCELED", "its own observers too");
    assert_eq!(alice.cancel(5, &sha_key("c", 1)).await["status"], "CANCELED");
    assert_eq!(alice.call(6, KEYED, "x", json!({"sha": "c"})).await["status"], "CANCELED");
    assert_eq!(farm.events("c").await, 0);
}

/// W7, W8: what leaves no record says so, names the field, and the key is free.
#[tokio::test(start_paused = true)]
async fn w7_w8_refusals_leave_no_record() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let unknown = peer.call(1, "farm.v1/nothing", "k", json!({})).await;
    assert_eq!((&unknown["type"], &unknown["code"]), (&json!("refused"), &json!("invalid")));
    let long = peer.call(1, &"x".repeat(100_000), "k", json!({})).await;
    assert!(long["detail"].as_str().unwrap().len() < 200, "it is not sent back");
    let wrong = peer.call(2, "farm.v1/touch", "k", json!({"id": 7})).await;
    assert!(wrong["detail"].as_str().unwrap().starts_with("id:"), "{wrong}");
    let twice = r#"{"type":"call","call":3,"method":"farm.v1/touch","params":{"id":"a","id":"b"},"key":"k",
        "level":"minted","minted":1764028800000,"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}"#;
    peer.socket.send(Message::text(twice)).await.unwrap();
    assert_eq!(peer.answer(3).await["code"], "invalid", "an argument twice has no meaning");
    assert_eq!(peer.call(4, "farm.v1/fail", "k", json!({"retry": "same_key"})).await["code"], "unavailable");
    assert_eq!(peer.attach(5, "k").await["code"], "not_found");
    let failed = peer.call(6, "farm.v1/fail", "k", json!({"retry": "never"})).await;
    assert_eq!((&failed["status"], &failed["failure"]["reason"]), (&json!("FAILED"), &json!("rejected")));
}

/// S6: a handler that panics is answered, records nothing and frees the key's slot.
#[tokio::test(start_paused = true)]
async fn s6_a_panic_is_a_retryable_refusal() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    for call in [1, 2] {
        let refused = peer.call(call, "farm.v1/panic", "k", json!({"id": "broken"})).await;
        assert_eq!((&refused["code"], &refused["detail"]), (&json!("unavailable"), &json!("the handler panicked")));
    }
    assert_eq!(peer.call(3, "farm.v1/panic", "k", json!({"id": "fine"})).await["status"], "SUCCEEDED");
}

/// S3: keys from outside the retention are refused, unless they have a record.
#[tokio::test(start_paused = true)]
async fn s3_old_keys_are_expired_and_replays_are_not() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    let minted = |call, key: String, minted: u64| {
        let mut frame = call_frame(call, "farm.v1/touch", &key, json!({"id": "b"}));
        frame["minted"] = minted.into();
        frame
    };
    let day = 24 * 3600 * 1000;
    for (call, at, accepted) in
        [(1, START - day, true), (2, START - day - 1000, false), (3, START + 59_000, true), (4, START + 61_000, false)]
    {
        peer.send(minted(call, format!("k{call}"), at)).await;
        let answer = peer.answer(call).await;
        assert_eq!(answer["type"] == "report", accepted, "{answer}");
        let refused = if at < START { "expired" } else { "invalid" };
        assert!(accepted || answer["code"] == refused, "{answer}");
    }
    peer.send(minted(5, "k1".to_owned(), 0)).await;
    assert_eq!(peer.answer(5).await["status"], "SUCCEEDED");
}

/// FC-35, S6: a connection that goes away takes nothing with it: what is in flight is resolved.
#[tokio::test(start_paused = true)]
async fn fc35_s6_a_closed_connection_leaves_nothing_in_flight() {
    let farm = Farm::new();
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    for call in 1..=5_u64 {
        peer.send(call_frame(call, "farm.v1/slow", &format!("k{call}"), json!({}))).await;
    }
    assert_eq!(peer.ping(1).await["type"], "pong");
    drop(peer);
    let mut other = Peer::connect(&server, "alice").await;
    other.send(json!({"type": "attach", "call": 1, "key": "k1"})).await;
    for _ in 0..5 {
        farm.gate.notify_one();
        wait(&farm.env, Duration::from_millis(1)).await;
    }
    assert_eq!(other.answer(1).await["status"], "SUCCEEDED");
    for call in 2..=5_u64 {
        assert_eq!(other.attach(call, &format!("k{call}")).await["status"], "SUCCEEDED");
    }
    assert_eq!((farm.events("slow").await, server.connections()), (5, 1));
}

/// FC-78: parallel copies on many connections of two replicas have one effect and one answer.
#[tokio::test(start_paused = true)]
async fn fc78_parallel_copies_have_one_effect() {
    let farm = Farm::new();
    let servers = [farm.start().await, farm.start().await];
    let mut peers = Vec::new();
    for i in 0..10 {
        let mut peer = Peer::connect(&servers[i % 2], "alice").await;
        peer.send(call_frame(1, "farm.v1/touch", "k", json!({"id": "b"}))).await;
        peers.push(peer);
    }
    for peer in &mut peers {
        assert_eq!(peer.answer(1).await["accepted"], 2);
    }
    assert_eq!(farm.events("b").await, 1);
}

/// S4, FC-77: an unavailable log fails closed within the bound; nothing is left that blocks the key.
#[tokio::test(start_paused = true)]
async fn s4_fc77_an_unavailable_log_fails_closed() {
    let env = env(1);
    let log = Flaky::new(MemoryLog::new(&env));
    let farm = Farm::on(log.clone(), env);
    let server = farm.start().await;
    let mut peer = Peer::connect(&server, "alice").await;
    for (call, fault) in [(1, Fault::Down), (2, Fault::Hang)] {
        log.set(fault);
        let began = farm.env.instant();
        let refused = peer.call(call, "farm.v1/touch", "k", json!({"id": "b"})).await;
        assert_eq!(refused["code"], "unavailable");
        assert!(farm.env.instant().since(began) <= Duration::from_secs(10));
        assert_eq!(peer.ping(call).await["type"], "pong", "the connection stays");
    }
    log.set(Fault::None);
    peer.send(call_frame(3, "farm.v1/slow", "s", json!({}))).await;
    wait(&farm.env, Duration::from_millis(1)).await;
    log.set(Fault::Down); // it fails only once the handler has decided
    farm.gate.notify_one();
    peer.ping(3).await;
    peer.send(json!({"type": "ping", "n": 4})).await;
    wait(&farm.env, Duration::from_secs(5)).await;
    assert_eq!(peer.next().await["type"], "pong");
    assert_eq!(peer.answer(3).await["code"], "unavailable");
    log.set(Fault::Ambiguous);
    let done = peer.call(5, "farm.v1/touch", "k", json!({"id": "b"})).await;
    assert_eq!((&done["status"], farm.events("b").await), (&json!("SUCCEEDED"), 1), "repeated, not doubled");
}

/// A connection's open calls are bounded, and an id names one call.
#[tokio::test(start_paused = true)]
async fn calls_are_bounded_and_ids_are_unique() {
    let farm = Farm::new();
    let server = farm.builder().calls_per_connection(2).start().await.unwrap();
    let mut peer = Peer::connect(&server, "alice").await;
    assert_eq!(peer.call(1, KEYED, "x", json!({"sha": "a"})).await["status"], "PENDING");
    peer.call(2, KEYED, "x", json!({"sha": "b"})).await;
    let over = peer.call(3, KEYED, "x", json!({"sha": "c"})).await;
    assert_eq!((&over["code"], &over["retry_after_ms"]), (&json!("rate_limited"), &json!(1000)));
    assert!(over["detail"].as_str().unwrap().starts_with("calls: expected at most 2"), "{over}");
    peer.send(call_frame(1, KEYED, "x", json!({"sha": "d"}))).await;
    assert_eq!(peer.next().await["type"], "fault");
    peer.send(json!({"type": "cancel", "call": 1, "key": "another", "minted": START})).await;
    assert_eq!(peer.next().await["type"], "fault", "a cancel on another key's call id");
    peer.send(json!({"type": "forget", "call": 1})).await;
    assert_eq!(peer.call(4, KEYED, "x", json!({"sha": "c"})).await["status"], "PENDING");
}

/// A call that is forgotten counts until it is answered: forgetting makes no room for more handlers.
#[tokio::test(start_paused = true)]
async fn forgotten_calls_are_bounded() {
    let farm = Farm::new();
    let server = farm.builder().calls_per_connection(2).start().await.unwrap();
    let mut peer = Peer::connect(&server, "alice").await;
    for call in [1, 2] {
        peer.send(call_frame(call, "farm.v1/slow", &format!("k{call}"), json!({}))).await;
        peer.send(json!({"type": "forget", "call": call})).await;
    }
    let over = peer.call(3, KEYED, "x", json!({"sha": "c"})).await;
    assert_eq!(over["code"], "rate_limited", "{over}");
}
