//! Whole fault schedules from a seed, in virtual time: whatever happens on the way, each command has one effect, no
//! read ends, and every handle settles once the service is back.

use std::time::Duration;

use futures::future::join_all;
use outlast::command::Settlement;
use outlast::env::Env;
use outlast::testing::{Fault, Relay};
use outlast_tests::{JobState, JobsClient, World};

/// How many schedules: enough to hit each window, few enough for the quick loop. `OUTLAST_SEEDS` asks for more.
const SEEDS: u64 = 150;

fn below(env: &Env, n: u64) -> u64 {
    env.draw() % n
}

/// R1, R8, W1, W2, S1: the server is killed at random instants, the relay cuts at random bytes, and each of many commands
/// runs once.
#[test]
fn s1_every_command_has_one_effect_in_any_schedule() {
    let seeds = std::env::var("OUTLAST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let run = tokio::time::timeout(Duration::from_secs(3600), schedule(seed)).await;
            assert!(run.is_ok(), "seed {seed}: not settled after an hour of virtual time");
        });
    }
}

async fn schedule(seed: u64) {
    let world = World::new(seed);
    let chaos = world.env(99);
    let relay = Relay::start(&world.net, "relay", Some("jobs"));
    let mut life = Some(world.serve("jobs").await);
    let client = world.client("ws://relay/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let job = jobs.job("a".into());
    let start = jobs.start("a".into());

    let mut bumps = Vec::new();
    for _ in 0..below(&chaos, 12) + 3 {
        match below(&chaos, 5) {
            0 => relay.fault(Fault::CutUp(below(&chaos, 900) as usize)),
            1 => relay.fault(Fault::CutDown(below(&chaos, 1500) as usize)),
            2 => relay.fault(if below(&chaos, 2) == 0 { Fault::Swallow } else { Fault::Hang }),
            3 => life = None,
            _ => {}
        }
        bumps.push(jobs.bump("a".into()));
        tokio::time::sleep(Duration::from_millis(below(&chaos, 4000))).await;
        if life.is_none() && below(&chaos, 3) > 0 {
            life = Some(world.serve("jobs").await);
        }
        assert!(!job.latest().is_ended(), "seed {seed}: R1");
    }
    if life.is_none() {
        life = Some(world.serve("jobs").await);
    }
    let count = bumps.len() as u64;
    for bumped in join_all(bumps).await {
        assert!(bumped.is_ok(), "seed {seed}: {bumped:?}");
    }
    let shown = job.until(move |job| job.bumps >= count && job.starts >= 1).await.unwrap();
    assert_eq!((shown.bumps, shown.starts), (count, 1), "seed {seed}: one effect for each key");

    // A cancel that races the claim and the finish: one terminal, and the same on both ends.
    let claim = jobs.claim("a".into());
    if below(&chaos, 2) == 0 {
        start.cancel();
    }
    drop(life.take_if(|_| below(&chaos, 2) == 0));
    tokio::time::sleep(Duration::from_millis(below(&chaos, 2000))).await;
    let _life = match life {
        Some(life) => life,
        None => world.serve("jobs").await,
    };
    let _ = claim.await;
    let last = job.until(|job| !matches!(job.state, JobState::Queued)).await.unwrap();
    match last.state {
        JobState::Canceling => drop(jobs.stopped("a".into()).await),
        JobState::Running => drop(jobs.finish("a".into(), true).await),
        JobState::Queued | JobState::Stopped | JobState::Done { .. } => {}
    }
    let end = start.settled().await.unwrap();
    let last = job.until(|job| matches!(job.state, JobState::Stopped | JobState::Done { .. })).await.unwrap();
    match end {
        Settlement::Succeeded(_) => assert_eq!(last.state, JobState::Done { ok: true }, "seed {seed}"),
        Settlement::Canceled => assert_eq!(last.state, JobState::Stopped, "seed {seed}"),
        Settlement::Failed(_) | Settlement::NotFound => panic!("seed {seed}: {end:?}"),
    }
}
