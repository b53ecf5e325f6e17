//! Commands that are dropped, canceled, slow, drained or contended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast::Reading;
use outlast::call::{Args, Method, Params};
use outlast::command::{CommandStatus, Delivery, Settlement};
use outlast::log::Subject;
use outlast::server::{Events, Routes, RpcScope, Server};
use outlast::testing::Life;
use outlast_tests::{JobState, JobsClient, JobsServer, Workshop, World};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{HOUR, settle};

/// W4, FC-74: the future of a command is dropped at each await point, and the command is delivered once.
#[tokio::test(start_paused = true)]
async fn fc74_dropped_at_every_await() {
    let world = World::new(11);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    for polls in 0..40_u64 {
        let mut bump = Box::pin(async { jobs.bump("a".into()).await });
        for _ in 0..=polls {
            if futures::poll!(&mut bump).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(bump);
        jobs.job("a".into()).until(move |job| job.bumps == polls + 1).await.unwrap();
    }
    settle().await;
    assert_eq!(jobs.job("a".into()).until(|_| true).await.unwrap().bumps, 40);
}

/// W5, FC-71: cancel at every virtual millisecond around claim and finish; one terminal state, the same at both ends.
#[tokio::test(start_paused = true)]
async fn fc71_a_cancel_races_everything() {
    for round in 0..60_u64 {
        let world = World::new(100 + round);
        let _life = world.serve("jobs").await;
        let client = world.client("ws://jobs/").open().unwrap();
        let jobs = JobsClient::new(&client);
        let start = jobs.start("a".into());
        let work = async {
            if jobs.job("a".into()).until(|job| job.starts == 1).await.is_err() {
                return; // canceled before it was sent
            }
            let _ = jobs.claim("a".into()).await;
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            let state = jobs.job("a".into()).until(|job| job.state != JobState::Queued).await.unwrap().state;
            match state {
                JobState::Running => drop(jobs.finish("a".into(), true).await),
                JobState::Canceling => drop(jobs.stopped("a".into()).await),
                _ => {}
            }
        };
        let cancel = async {
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            start.cancel();
        };
        tokio::join!(work, cancel);
        if jobs.job("a".into()).until(|_| true).await.is_ok_and(|job| job.state == JobState::Canceling) {
            jobs.stopped("a".into()).await.unwrap();
        }
        let end = timeout(HOUR, start.settled()).await;
        match end {
            Ok(Ok(Settlement::Succeeded(_) | Settlement::Canceled)) => {}
            Ok(Ok(Settlement::NotFound)) | Err(_) => {
                panic!("round {round}: {end:?} {:?}", jobs.job("a".into()).latest())
            }
            Ok(other) => panic!("round {round}: {other:?}"),
        }
        settle().await;
        let job = jobs.job("a".into()).until(|_| true).await;
        if let (Ok(Ok(Settlement::Canceled)), Ok(job)) = (end, job) {
            assert!(!matches!(job.state, JobState::Done { .. }), "round {round}: {job:?}");
        }
    }
}

/// FC-76, FC-27: a handler slower than the client's question is asked again and has one effect.
#[tokio::test(start_paused = true)]
async fn fc76_a_slow_handler_has_one_effect() {
    const SLOW: Method = Method::new("slow.v1/slow");
    let world = World::new(16);
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&runs);
    let routes = Routes::new("slow", 1).command(&SLOW, move |_: RpcScope, _: Args| {
        seen.fetch_add(1, Ordering::Relaxed);
        async move {
            sleep(Duration::from_secs(25)).await;
            Ok(Events::on(Subject::of(["slow"])).push(&1))
        }
    });
    let server = Server::builder(world.log.clone()).env(world.env(1)).service(routes).start().await.unwrap();
    let _life = Life::serve(&world.net, "slow", server.router());
    let client = world.client("ws://slow/").open().unwrap();
    let at = Instant::now();
    client.caller().call(&SLOW, Params::new()).await.unwrap();
    assert!(at.elapsed() < Duration::from_secs(26), "{:?}", at.elapsed());
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

/// S6: a drain in the middle of many commands: each has one effect, every handle settles with the next server.
#[tokio::test(start_paused = true)]
async fn s6_a_drain_in_mid_flight() {
    for round in 0..20_u32 {
        let world = World::new(200 + u64::from(round));
        let jobs = Workshop::new(world.log.clone());
        let server = Server::builder(world.log.clone())
            .env(world.env(1))
            .project(jobs.projection())
            .service(JobsServer::new(jobs))
            .start()
            .await
            .unwrap();
        let life = Life::serve(&world.net, "jobs", server.router());
        let client = world.client("ws://jobs/").open().unwrap();
        let jobs = JobsClient::new(&client);
        let long = jobs.start("long".into());
        let bumps: Vec<_> = (0..50).map(|_| jobs.bump("a".into())).collect();
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        let drained = timeout(Duration::from_secs(30), server.drain()).await;
        assert!(drained.is_ok());
        drop((life, server));
        let _life = world.serve("jobs").await;
        for bump in bumps {
            timeout(HOUR, bump).await.expect("settles").unwrap();
        }
        assert_eq!(jobs.job("a".into()).until(|job| job.bumps >= 50).await.unwrap().bumps, 50);
        long.cancel();
        assert!(matches!(timeout(HOUR, long.settled()).await, Ok(Ok(Settlement::Canceled))));
    }
}

/// W4, R5: the state of a command whose handle was dropped goes on being true: it follows, or ends; it does not stay
/// `Fresh` with what was once so.
#[tokio::test(start_paused = true)]
async fn w4_a_state_that_outlives_its_handle_is_not_fresh_for_ever() {
    let world = World::new(28);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let state = jobs.start("a".into()).state();
    jobs.job("a".into()).until(|job| job.starts == 1).await.unwrap();
    jobs.claim("a".into()).await.unwrap();
    jobs.finish("a".into(), true).await.unwrap();
    sleep(Duration::from_secs(120)).await;
    let latest = state.latest();
    let status = latest.last().map(|state| state.status());
    assert!(status == Some(CommandStatus::Succeeded) || !matches!(latest, Reading::Fresh { .. }), "{latest:?}");
}

/// W4: attached from another client, across a restart; and a canceled attach.
#[tokio::test(start_paused = true)]
async fn w4_attached_across_a_restart() {
    let world = World::new(35);
    let life = world.serve("jobs").await;
    let one = world.client("ws://jobs/").open().unwrap();
    let two = world.client("ws://jobs/").env(world.env(7)).open().unwrap();
    let start = JobsClient::new(&one).start("a".into());
    JobsClient::new(&one).job("a".into()).until(|job| job.starts == 1).await.unwrap();
    let attached = two.attach(start.key().clone());
    attached.state().until(|state| state.delivery() == Delivery::Accepted).await.unwrap();
    life.kill();
    attached.cancel();
    sleep(Duration::from_secs(15)).await;
    let _life = world.serve("jobs").await;
    assert!(matches!(timeout(HOUR, attached.settled()).await, Ok(Ok(Settlement::Canceled))));
    assert!(matches!(timeout(HOUR, start.settled()).await, Ok(Ok(Settlement::Canceled))));
}

/// W4: the client and every handle are dropped while the service is away: what was called is still delivered.
#[tokio::test(start_paused = true)]
async fn w4_detached_during_an_outage() {
    let world = World::new(37);
    {
        let client = world.client("ws://jobs/").open().unwrap();
        let jobs = JobsClient::new(&client);
        jobs.bump("a".into()).detach();
        drop(jobs.bump("a".into()));
    }
    sleep(Duration::from_secs(300)).await;
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").env(world.env(7)).open().unwrap();
    let job = JobsClient::new(&client).job("a".into());
    assert!(timeout(Duration::from_secs(60), job.until(|job| job.bumps == 2)).await.expect("delivered").is_ok());
}

/// S1: two hundred commands that state the same version: each settles, none is lost.
#[tokio::test(start_paused = true)]
async fn s1_contention_on_one_subject_settles() {
    let world = World::new(42);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    let claims: Vec<_> = (0..200).map(|_| jobs.claim("a".into())).collect();
    for claim in claims {
        timeout(HOUR, claim).await.expect("settles").unwrap();
    }
}
