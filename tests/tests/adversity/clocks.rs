//! Clocks that jump or are wrong, and time that outlasts a retention.

use std::time::Duration;

use outlast::command::Settlement;
use outlast::server::Server;
use outlast::testing::Life;
use outlast_tests::{JobsClient, JobsServer, Workshop, World};
use tokio::time::{sleep, timeout};

use crate::support::{HOUR, settle};

/// W1: clocks jump both ways between send and answer, and while the service is away: one effect, and a settled handle.
#[tokio::test(start_paused = true)]
async fn w1_a_jumping_clock_makes_no_second_effect() {
    for (forward, back) in [(30, 0), (0, 30), (600, 600)] {
        let world = World::new(7);
        let life = world.serve("jobs").await;
        let client = world.client("ws://jobs/").open().unwrap();
        let jobs = JobsClient::new(&client);
        jobs.bump("a".into()).await.unwrap();
        life.kill();
        let bump = jobs.bump("a".into());
        world.clock.advance(Duration::from_secs(forward));
        sleep(Duration::from_secs(3)).await;
        world.clock.set_back(Duration::from_secs(back));
        let _life = world.serve("jobs").await;
        let end = timeout(HOUR, bump.settled()).await;
        assert!(matches!(end, Ok(Ok(Settlement::Succeeded(_)))), "{forward} {back}: {end:?}");
    }
}

/// S3: a client's clock that is behind by minutes does no harm; one that is further ahead than the service allows for is
/// named, and nothing is claimed about the work.
#[tokio::test(start_paused = true)]
async fn s3_a_clock_that_is_wrong_by_minutes_is_named() {
    for ahead in [true, false] {
        let world = World::new(8);
        let _life = world.serve("jobs").await;
        let clock = outlast::testing::SimulatedClock::new();
        if ahead {
            clock.advance(Duration::from_secs(300));
        } else {
            clock.set_back(Duration::from_secs(300));
        }
        let client = world.client("ws://jobs/").env(outlast::env::Env::new(clock, 5)).open().unwrap();
        let end = timeout(HOUR, JobsClient::new(&client).bump("a".into()).settled()).await;
        match (ahead, end) {
            (false, Ok(Ok(Settlement::Succeeded(_)))) => {}
            (true, Ok(Ok(Settlement::Failed(failure)))) => assert!(failure.to_string().contains("clock"), "{failure}"),
            (_, end) => panic!("ahead: {ahead}, {end:?}"),
        }
    }
}

/// R7: the wall clock is set back and forth by an hour while connected: at worst a probe, and the link holds.
#[tokio::test(start_paused = true)]
async fn r7_a_clock_that_is_set_does_not_cost_the_link() {
    let world = World::new(40);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    for round in 0..20 {
        if round % 2 == 0 {
            world.clock.advance(HOUR)
        } else {
            world.clock.set_back(HOUR)
        }
        sleep(Duration::from_secs(7)).await;
    }
    assert_eq!(world.net.connects("jobs"), 1);
}

/// S3: the record of a command is asked for after its retention; an open command outlives it.
#[tokio::test(start_paused = true)]
async fn w2_a_long_command_outlives_the_retention() {
    let world = World::new(27);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let start = jobs.start("a".into());
    jobs.job("a".into()).until(|job| job.starts == 1).await.unwrap();
    jobs.claim("a".into()).await.unwrap();
    world.clock.advance(Duration::from_secs(30 * 3600));
    sleep(Duration::from_secs(60)).await;
    jobs.finish("a".into(), true).await.unwrap();
    let end = timeout(HOUR, start.settled()).await;
    assert!(matches!(end, Ok(Ok(Settlement::Succeeded(_)))), "{end:?}");
}

/// S3: the retention of the service is short: a command held back by an outage longer than it.
#[tokio::test(start_paused = true)]
async fn s3_an_outage_longer_than_the_retention() {
    let world = World::new(32);
    let serve = async |world: &World| {
        let jobs = Workshop::new(world.log.clone());
        let server = Server::builder(world.log.clone())
            .env(world.env(1))
            .retention(Duration::from_secs(300))
            .project(jobs.projection())
            .service(JobsServer::new(jobs))
            .start()
            .await
            .unwrap();
        Life::serve(&world.net, "jobs", server.router())
    };
    let life = serve(&world).await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    // Sent into a black hole, and one that is issued during the outage.
    world.net.silence("jobs");
    let sent = jobs.bump("a".into());
    settle().await;
    life.kill();
    sleep(Duration::from_secs(60)).await;
    let queued = jobs.bump("b".into());
    sleep(Duration::from_secs(600)).await;
    world.net.heal("jobs");
    let _life = serve(&world).await;
    assert!(timeout(HOUR, queued).await.expect("settles").is_ok(), "nothing of it was sent: it is minted afresh");
    let end = timeout(HOUR, sent.settled()).await;
    assert!(end.is_ok(), "{end:?} {:?}", sent.state().latest());
}
