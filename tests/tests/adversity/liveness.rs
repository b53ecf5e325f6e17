//! Links that hang, fall silent or end at once.

use std::time::Duration;

use outlast::testing::{Fault, Relay};
use outlast_tests::{JobsClient, World};
use tokio::time::{Instant, sleep, timeout};

use crate::raw;
use crate::support::{HOUR, settle};

/// R7, R8, FC-26: a black hole in each phase: the established link, and new connects.
#[tokio::test(start_paused = true)]
async fn r7_a_black_hole_is_left_within_its_bounds() {
    let world = World::new(5);
    let _life = world.serve("jobs").await;
    let client = world.client(vec!["ws://path-1/".to_owned(), "ws://path-2/".to_owned()]).open().unwrap();
    let _first = Relay::start(&world.net, "path-1", Some("jobs"));
    let jobs = JobsClient::new(&client);
    let job = jobs.job("a".into());
    jobs.bump("a".into()).await.unwrap();
    job.until(|job| job.bumps == 1).await.unwrap();
    sleep(Duration::from_secs(900)).await;
    world.net.silence("path-1");
    let _second = Relay::start(&world.net, "path-2", Some("jobs"));
    let at = Instant::now();
    jobs.bump("a".into()).await.unwrap();
    assert!(at.elapsed() < Duration::from_secs(25), "took {:?}", at.elapsed());
    job.until(|job| job.bumps == 2).await.unwrap();
}

/// R7: relays that hang in the upgrade, several in a row.
#[tokio::test(start_paused = true)]
async fn r7_hanging_relays_are_left() {
    let world = World::new(6);
    let _life = world.serve("jobs").await;
    let relay = Relay::start(&world.net, "relay", Some("jobs"));
    for _ in 0..4 {
        relay.fault(Fault::Hang);
    }
    let client = world.client("ws://relay/").open().unwrap();
    let at = Instant::now();
    JobsClient::new(&client).bump("a".into()).await.unwrap();
    assert!(at.elapsed() < Duration::from_secs(40), "took {:?}", at.elapsed());
}

/// R7: an upgrade without a welcome, and a peer that takes no bytes.
#[tokio::test(start_paused = true)]
async fn r7_no_welcome_and_no_reading() {
    for reads in [false, true] {
        let world = World::new(43);
        let mut listener = world.net.listen("jobs");
        let evil = tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Some(io) = listener.accept().await {
                let Some(mut socket) = raw::accept(io).await else { continue };
                if reads {
                    raw::say(&mut socket, raw::WELCOME).await;
                }
                kept.push(socket);
            }
        });
        let client = world.client("ws://jobs/").open().unwrap();
        let jobs = JobsClient::new(&client);
        let large: Vec<_> = (0..20).map(|n| jobs.bump(format!("{n}{}", "x".repeat(300)))).collect();
        sleep(Duration::from_secs(100)).await;
        assert!(world.net.connects("jobs") >= 4, "{} dials", world.net.connects("jobs"));
        evil.abort();
        settle().await;
        let _life = world.serve("jobs").await;
        // The evil one spoke for another log: what was sent there is held, what was not is delivered.
        let fresh = timeout(HOUR, jobs.bump("a".into())).await.expect("delivered");
        assert!(fresh.is_ok());
        if !reads {
            for bump in large {
                timeout(HOUR, bump).await.expect("delivered").unwrap();
            }
        }
    }
}

/// R7: a cut in the middle of the handshake, of any length, from either side, with hanging connections in between, and
/// a service that moves at the same time.
#[tokio::test(start_paused = true)]
async fn fc42_each_attempt_resolves_afresh() {
    let world = World::new(30);
    world.net.name("jobs", ["gone"]);
    let client = world.client("ws://jobs/").open().unwrap();
    let bump = JobsClient::new(&client).bump("a".into());
    sleep(Duration::from_secs(300)).await;
    world.net.name("jobs", ["here"]);
    let _life = world.serve("here").await;
    let at = Instant::now();
    bump.await.unwrap();
    assert!(at.elapsed() <= Duration::from_secs(6), "{:?}", at.elapsed());
}

/// FC-49: a server that welcomes and ends at once, over and over: the delays grow.
#[tokio::test(start_paused = true)]
async fn fc49_welcome_and_end() {
    let world = World::new(26);
    let mut listener = world.net.listen("evil");
    tokio::spawn(async move {
        while let Some(io) = listener.accept().await {
            if let Some(mut socket) = raw::accept(io).await {
                raw::say(&mut socket, raw::WELCOME).await;
            }
        }
    });
    let client = world.client("ws://evil/").open().unwrap();
    let read = JobsClient::new(&client).job("a".into());
    sleep(Duration::from_secs(600)).await;
    let dials = world.net.connects("evil");
    assert!((60..500).contains(&dials), "{dials} dials in ten minutes");
    assert!(!read.latest().is_ended());
}

/// FC-50: close codes of a server.
#[tokio::test(start_paused = true)]
async fn fc50_close_codes() {
    use tokio_tungstenite::tungstenite::protocol::CloseFrame;
    for code in [1000_u16, 1001, 1006, 1008, 1011, 1012, 1013, 3000, 4001, 4401, 4999] {
        let world = World::new(31);
        let mut listener = world.net.listen("jobs");
        let first = tokio::spawn(async move {
            let io = listener.accept().await.unwrap();
            let mut socket = raw::accept(io).await.unwrap();
            raw::say(&mut socket, raw::WELCOME).await;
            sleep(Duration::from_secs(8)).await;
            let _ = socket.close(Some(CloseFrame { code: code.into(), reason: "".into() })).await;
            sleep(Duration::from_secs(1)).await;
        });
        let client = world.client("ws://jobs/").open().unwrap();
        let job = JobsClient::new(&client).job("a".into());
        first.await.unwrap();
        let _life = world.serve("jobs").await;
        let at = Instant::now();
        let bump = timeout(HOUR, JobsClient::new(&client).bump("a".into())).await;
        assert!(bump.is_ok_and(|bump| bump.is_ok()), "code {code}");
        assert!(at.elapsed() < Duration::from_secs(70), "code {code}: {:?}", at.elapsed());
        assert!(!job.latest().is_ended(), "code {code}: {:?}", job.latest());
    }
}
