//! What is more than a frame or a connection takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast::Reading;
use outlast::call::{Args, Method, Params};
use outlast::command::Settlement;
use outlast::server::{Events, Routes, RpcScope, Server};
use outlast::testing::Life;
use outlast_tests::{JobsClient, JobsServer, Workshop, World};
use tokio::time::{sleep, timeout};

use crate::support::HOUR;

/// Parameters of every size: too large ones fail or settle, and do not break the connection for the others.
#[tokio::test(start_paused = true)]
async fn odd_parameters_settle_and_do_not_hurt_others() {
    let world = World::new(14);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let ok = jobs.job("ok".into());
    jobs.bump("ok".into()).await.unwrap();
    ok.until(|job| job.bumps == 1).await.unwrap();
    let losses = Arc::new(AtomicUsize::new(0));
    let (count, mut link) = (Arc::clone(&losses), client.connection());
    tokio::spawn(async move {
        while let Some(reading) = link.next().await {
            if reading.last().is_some_and(|link| !link.is_up()) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    for size in [1, 300, 1_000, 70_000, 1_000_000, 1_048_000, 1_048_576, 3_000_000] {
        let end = timeout(HOUR, jobs.bump("x".repeat(size)).settled()).await;
        assert!(
            matches!(end, Ok(Ok(_))),
            "a command of {size} bytes: {end:?}, {} losses",
            losses.load(Ordering::Relaxed)
        );
        let read = jobs.job("y".repeat(size));
        let _ = timeout(Duration::from_secs(30), read.until(|_| true)).await;
    }
    assert_eq!(losses.load(Ordering::Relaxed), 0, "the link held");
}

/// A frame beyond the limit: the one command fails before it is sent, and nobody else notices.
#[tokio::test(start_paused = true)]
async fn a_command_beyond_the_frame_limit_fails_alone() {
    let world = World::new(21);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    let large = jobs.bump("x".repeat(1 << 20));
    sleep(Duration::from_secs(60)).await;
    let up = client.connection().latest();
    let end = timeout(Duration::from_secs(1), large.settled()).await;
    assert!(matches!(end, Ok(Ok(Settlement::Failed(_)))), "after a minute: {end:?}, the connection {up:?}");
}

/// The same for a read.
#[tokio::test(start_paused = true)]
async fn a_read_beyond_the_frame_limit_loads_nothing_and_hurts_nobody() {
    let world = World::new(22);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let job = jobs.job("a".into());
    jobs.bump("a".into()).await.unwrap();
    job.until(|job| job.bumps == 1).await.unwrap();
    let _large = jobs.job("x".repeat(1 << 20));
    sleep(Duration::from_secs(60)).await;
    assert!(matches!(job.latest(), Reading::Fresh { .. }), "{:?}", job.latest());
}

const VERDICT: Method = Method::new("loud.v1/verdict");
const DETAIL: Method = Method::new("loud.v1/detail");

/// An answer beyond the frame limit: a recorded failure with a message of two megabytes, and a refusal with one.
#[tokio::test(start_paused = true)]
async fn an_answer_beyond_the_frame_limit_settles_and_hurts_nobody() {
    use outlast::CommandFailure;
    use outlast::command::Retry;
    for method in [&VERDICT, &DETAIL] {
        let world = World::new(33);
        let routes = Routes::new("loud", 1)
            .command(&VERDICT, |_: RpcScope, _: Args| async move {
                Ok(outlast::server::Outcome::Failed(CommandFailure::verdict(Retry::NewKey, "x".repeat(2 << 20))))
            })
            .command(&DETAIL, |_: RpcScope, _: Args| async move {
                Err::<Events, _>(outlast::Error::invalid("id", "x".repeat(2 << 20)))
            });
        let server = Server::builder(world.log.clone()).env(world.env(1)).service(routes).start().await.unwrap();
        let _life = Life::serve(&world.net, "loud", server.router());
        let client = world.client("ws://loud/").open().unwrap();
        let end = timeout(Duration::from_secs(120), client.caller().call(method, Params::new()).settled()).await;
        let dials = world.net.connects("loud");
        assert!(
            matches!(end, Ok(Ok(Settlement::Failed(_)))),
            "{}: unsettled after two minutes, {dials} dials",
            method.name()
        );
        assert_eq!(dials, 1);
    }
}

/// More open commands than a connection may have: all of them settle in the end.
#[tokio::test(start_paused = true)]
async fn more_commands_than_a_connection_takes() {
    let world = World::new(41);
    let jobs = Workshop::new(world.log.clone());
    let server = Server::builder(world.log.clone())
        .env(world.env(1))
        .calls_per_connection(50)
        .project(jobs.projection())
        .service(JobsServer::new(jobs))
        .start()
        .await
        .unwrap();
    let _life = Life::serve(&world.net, "jobs", server.router());
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let starts: Vec<_> = (0..60).map(|n| jobs.start(n.to_string())).collect();
    sleep(Duration::from_secs(30)).await;
    // A cancel needs a call too.
    for start in &starts {
        start.cancel();
    }
    for start in starts {
        assert!(matches!(timeout(HOUR, start.settled()).await, Ok(Ok(Settlement::Canceled))));
    }
}
