//! Peers that speak the protocol wrongly.

use std::time::Duration;

use outlast_tests::{JobsClient, World};
use tokio::time::{sleep, timeout};

use crate::raw;

/// Serves the hostile frames, one list per connection round, answering pings; counts connections.
fn hostile(
    world: &World,
    address: &str,
    welcome: &'static str,
    answer: fn(&serde_json::Value) -> Vec<String>,
) -> tokio::task::JoinSet<()> {
    let mut listener = world.net.listen(address);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Some(io) = listener.accept().await {
            connections.spawn(async move {
                let Some(mut socket) = raw::accept(io).await else { return };
                raw::say(&mut socket, welcome).await;
                while let Some(frame) = raw::hear(&mut socket).await {
                    for text in answer(&frame) {
                        raw::say(&mut socket, text).await;
                    }
                }
            });
        }
    });
    tasks
}

fn pong(frame: &serde_json::Value) -> Option<String> {
    (frame["type"] == "ping")
        .then(|| format!(r#"{{"type":"pong","n":{},"through":5,"head":5,"spread_ms":0}}"#, frame["n"]))
}

/// R1, R8: a server that answers everything with what cannot be read: no panic, no storm of dials, no end.
#[tokio::test(start_paused = true)]
async fn r8_malformed_answers_make_no_storm() {
    let world = World::new(23);
    let _hostile = hostile(&world, "evil", raw::WELCOME, |frame| match &frame["type"] {
        kind if kind == "subscribe" || kind == "call" => vec!["{".into()],
        _ => pong(frame).into_iter().collect(),
    });
    let client = world.client("ws://evil/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let (read, bump) = (jobs.job("a".into()), jobs.bump("a".into()));
    sleep(Duration::from_secs(600)).await;
    let dials = world.net.connects("evil");
    assert!(!read.latest().is_ended() && !bump.state().latest().is_ended());
    assert!((10..600).contains(&dials), "{dials} dials in ten minutes");
}

/// Extreme numbers in every field of an answer: nothing overflows, nothing ends, the client can be closed.
#[tokio::test(start_paused = true)]
async fn extreme_numbers_from_a_server() {
    const MAX: &str = "18446744073709551615";
    for welcome in [
        raw::WELCOME.into(),
        raw::WELCOME.replace("10000,", "0,"),
        raw::WELCOME.replace("10000,", &format!("{MAX},")),
        raw::WELCOME.replace("86400000", MAX),
        raw::WELCOME.replace("86400000", "0"),
        raw::WELCOME.replace("1764028800000", MAX),
        raw::WELCOME.replace("\"spread_ms\":0", &format!("\"spread_ms\":{MAX}")),
        raw::WELCOME.replace("\"head\":5", &format!("\"head\":{MAX}")),
    ] {
        let world = World::new(24);
        let welcome: &'static str = String::leak(welcome);
        let _hostile = hostile(&world, "evil", welcome, |frame| {
            let (sub, call) = (&frame["sub"], &frame["call"]);
            match frame["type"].as_str().unwrap_or_default() {
                "subscribe" if sub.as_u64().unwrap_or(0) % 2 == 0 => vec![format!(
                    r#"{{"type":"unserved","sub":{sub},"code":"rate_limited","detail":"","retry_after_ms":{MAX}}}"#
                )],
                "subscribe" => vec![format!(
                    r#"{{"type":"absent","sub":{sub},"at":{{"log":"01KAW6D4000000000000000002","seq":{MAX}}}}}"#
                )],
                "call" if call.as_u64().unwrap_or(0) % 2 == 0 => vec![format!(
                    r#"{{"type":"refused","call":{call},"code":"unavailable","detail":"","retry_after_ms":{MAX}}}"#
                )],
                "call" => {
                    vec![format!(r#"{{"type":"report","call":{call},"status":"RUNNING","accepted":{MAX},"at":{MAX}}}"#)]
                }
                "ping" => vec![format!(
                    r#"{{"type":"pong","n":{},"through":{MAX},"head":{MAX},"spread_ms":{MAX}}}"#,
                    frame["n"]
                )],
                _ => vec![],
            }
        });
        let client = world.client("ws://evil/").open().unwrap();
        let jobs = JobsClient::new(&client);
        let (one, two, three, four) =
            (jobs.job("a".into()), jobs.job("b".into()), jobs.bump("a".into()), jobs.bump("b".into()));
        sleep(Duration::from_secs(300)).await;
        assert!(!client.connection().latest().is_ended(), "the client's task is alive after {welcome}");
        drop((one, two));
        client.close();
        for command in [three, four] {
            let state = command.state().latest();
            let end = timeout(Duration::from_secs(5), command.settled()).await;
            assert!(
                end.is_ok(),
                "{state:?} {:?} {:?} {welcome}",
                command.state().latest(),
                client.connection().latest()
            );
        }
    }
}

/// Frames of a hostile client: each is answered, refused or ends its own connection; another client is served.
#[tokio::test(start_paused = true)]
async fn hostile_clients_hurt_only_themselves() {
    let world = World::new(25);
    let _life = world.serve("jobs").await;
    let good = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&good);
    jobs.with_key("theirs").bump("a".into()).await.unwrap();
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let call = |params: &str, rest: &str| {
        format!(
            r#"{{"type":"call","call":1,"method":"jobs.v1/bump","params":{params},"key":"k","level":"explicit","minted":1764028800000,"attempt":1,"id":"01KAW6D4000000000000000001","metadata":{{}}{rest}}}"#
        )
    };
    let frames = [
        "{".to_owned(),
        "null".into(),
        "[]".into(),
        deep.clone(),
        format!(r#"{{"type":{deep}}}"#),
        call(&deep, ""),
        call(&format!(r#"{{"id":{deep}}}"#), ""),
        call(r#"{"id":"a","id":"b"}"#, ""),
        call("null", ""),
        call(r#"{"id":1e400}"#, ""),
        call(r#"{"id":"a"}"#, "").replace("1764028800000", "18446744073709551615"),
        call(r#"{"id":"a"}"#, "").replace("\"attempt\":1", "\"attempt\":4294967295"),
        call(r#"{"id":"a"}"#, "").replace("\"k\"", "\"\\u0000\""),
        r#"{"type":"subscribe","sub":1,"method":"jobs.v1/job","params":{"id":"a"},"after":{"log":"01KAW6D4000000000000000002","seq":18446744073709551615}}"#.into(),
        r#"{"type":"cancel","call":2,"key":"","minted":0}"#.into(),
        r#"{"type":"attach","call":18446744073709551615,"key":"theirs"}"#.into(),
        r#"{"type":"forget","call":9}{"type":"forget","call":9}"#.into(),
        r#"{"type":"ping","n":-1}"#.into(),
        "x".repeat(2 << 20),
    ];
    for frame in frames {
        let mut socket = raw::connect(&world.net, "jobs").await;
        raw::say(&mut socket, frame.clone()).await;
        raw::say(&mut socket, r#"{"type":"ping","n":7}"#).await;
        let answered = async {
            while let Some(heard) = raw::hear(&mut socket).await {
                if heard["type"] == "pong" {
                    return true;
                }
            }
            false
        };
        let answered = timeout(Duration::from_secs(60), answered).await;
        let start: String = frame.chars().take(80).collect();
        assert!(answered.is_ok(), "hangs after {start}");
        assert!(frame.len() > 1 << 20 || answered.unwrap(), "the connection ended after {start}");
    }
    jobs.bump("a".into()).await.unwrap();
    assert!(good.connection().latest().last().is_some_and(|link| link.is_up()));
}
