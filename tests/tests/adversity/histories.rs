//! A log that is restored, replaced, empty or without memory.

use std::time::Duration;

use outlast::Reading;
use outlast::call::{Args, Method, Params};
use outlast::command::{CommandStatus, Delivery, Hold, Settlement};
use outlast::log::{AnyLog, MemoryLog, Subject};
use outlast::server::{Routes, RpcScope, Server};
use outlast::testing::{Fault, Life, Relay};
use outlast_tests::{JobsClient, World};
use tokio::time::{sleep, timeout};

use crate::support::HOUR;

/// W2, R4: a backup is restored under the same log id. What was sent to the lost history stays held, also after the
/// restored log has grown past what was seen of the lost one; what was sent to the restored one goes on.
#[tokio::test(start_paused = true)]
async fn w2_a_restored_backup_stays_another_log_when_it_has_grown() {
    let world = World::new(1);
    let log = MemoryLog::declared_durable(&world.env(3));
    let life = world.serve_on("jobs", &AnyLog::new(log.clone())).await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    let backup = log.store();
    for _ in 0..5 {
        jobs.bump("a".into()).await.unwrap();
    }
    let job = jobs.job("a".into());
    job.until(|job| job.bumps == 6).await.unwrap();
    // A start that the lost history takes; its answer is known: Accepted.
    let start = jobs.start("lost".into());
    jobs.job("lost".into()).until(|job| job.starts == 1).await.unwrap();
    start.state().until(|state| state.delivery() == Delivery::Accepted).await.unwrap();

    life.kill();
    let restored = MemoryLog::from_store(backup, &world.env(4), true);
    let other = AnyLog::new(restored.clone());
    let life = world.serve_on("jobs", &other).await;
    sleep(Duration::from_secs(20)).await;
    let hold = start.state().latest().last().unwrap().hold();
    assert_eq!(hold, Some(Hold::OtherLog), "held at first: {:?}", start.state().latest());
    // Issued to the restored history; goes on for long.
    let here = jobs.start("here".into());
    jobs.job("here".into()).until(|job| job.starts == 1).await.unwrap();

    // The restored history grows past what was seen of the lost one.
    let second = world.client("ws://jobs/").env(world.env(77)).open().unwrap();
    for _ in 0..40 {
        JobsClient::new(&second).bump("b".into()).await.unwrap();
    }
    jobs.job("b".into()).until(|job| job.bumps == 40).await.unwrap();
    life.kill();
    let _life = world.serve_on("jobs", &other).await;
    sleep(Duration::from_secs(20)).await;
    assert_eq!(start.state().latest().last().unwrap().hold(), Some(Hold::OtherLog), "still held");
    assert_eq!(here.state().latest().last().unwrap().hold(), None, "what was sent to the restored history is not held");
    jobs.claim("here".into()).await.unwrap();
    jobs.finish("here".into(), true).await.unwrap();
    assert!(timeout(HOUR, here.settled()).await.expect("settles").is_ok());
}

/// W2: the same with a command whose answer is lost: it is not run by the restored history.
#[tokio::test(start_paused = true)]
async fn w2_a_lost_answer_is_not_resent_to_a_restored_backup_that_has_grown() {
    let world = World::new(2);
    let log = MemoryLog::declared_durable(&world.env(3));
    let life = world.serve_on("jobs", &AnyLog::new(log.clone())).await;
    let relay = Relay::start(&world.net, "relay", Some("jobs"));
    let first = world.client("ws://jobs/").env(world.env(76)).open().unwrap();
    JobsClient::new(&first).bump("a".into()).await.unwrap();
    let backup = log.store();
    for _ in 0..3 {
        JobsClient::new(&first).bump("a".into()).await.unwrap();
    }
    // How many bytes a welcome takes: the connection under test is cut one byte behind it, so no answer comes through.
    let probe = world.client("ws://relay/").env(world.env(78)).open().unwrap();
    probe.connection().until(|link| link.is_up()).await.unwrap();
    relay.fault(Fault::CutDown(relay.passed().1 + 1));
    probe.close();
    let client = world.client("ws://relay/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let bump = jobs.bump("x".into());
    while log.store().head(&Subject::of(["job", "x"])).is_none() {
        tokio::task::yield_now().await;
    }
    assert_ne!(bump.state().latest().last().unwrap().status(), CommandStatus::Succeeded, "the answer was cut off");
    life.kill();
    let restored = MemoryLog::from_store(backup, &world.env(4), true);
    let other = AnyLog::new(restored.clone());
    let life = world.serve_on("jobs", &other).await;
    sleep(Duration::from_secs(20)).await;
    let second = world.client("ws://jobs/").env(world.env(77)).open().unwrap();
    for _ in 0..40 {
        JobsClient::new(&second).bump("b".into()).await.unwrap();
    }
    jobs.job("b".into()).until(|job| job.bumps == 40).await.unwrap();
    life.kill();
    let _life = world.serve_on("jobs", &other).await;
    sleep(Duration::from_secs(20)).await;
    assert!(restored.store().head(&Subject::of(["job", "x"])).is_none(), "ran again in another history");
}

/// FC-66, W8: a service that forgets (its log dies with it): the command runs once more, under the same key.
#[tokio::test(start_paused = true)]
async fn fc66_a_service_without_memory_gets_the_command_once_more() {
    let world = World::new(15);
    let life = world.serve_on("jobs", &AnyLog::new(MemoryLog::new(&world.env(3)))).await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let start = jobs.start("a".into());
    let job = jobs.job("a".into());
    job.until(|job| job.starts == 1).await.unwrap();
    life.kill();
    let _life = world.serve_on("jobs", &AnyLog::new(MemoryLog::new(&world.env(4)))).await;
    job.until(|job| job.starts == 1).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert!(matches!(job.latest(), Reading::Fresh { .. }), "{:?}", job.latest());
    jobs.claim("a".into()).await.unwrap();
    jobs.finish("a".into(), true).await.unwrap();
    assert!(matches!(timeout(HOUR, start.settled()).await, Ok(Ok(Settlement::Succeeded(_)))));
}

/// R1: a server that goes back and forth between two logs, for a while; nothing ends and the read comes to rest.
#[tokio::test(start_paused = true)]
async fn r1_two_logs_in_turn() {
    let world = World::new(17);
    let other = AnyLog::new(MemoryLog::declared_durable(&world.env(9)));
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let life = world.serve("jobs").await;
    jobs.bump("a".into()).await.unwrap();
    let job = jobs.job("a".into());
    job.until(|job| job.bumps == 1).await.unwrap();
    life.kill();
    let life = world.serve_on("jobs", &other).await;
    sleep(Duration::from_secs(5)).await;
    assert!(!job.latest().is_ended(), "{:?}", job.latest());
    life.kill();
    let _life = world.serve("jobs").await;
    job.until(|job| job.bumps == 1).await.unwrap();
}

/// R3: a value that was shown by one log is not declared gone by another that never knew it: the service has been
/// pointed at an empty log by mistake.
#[tokio::test(start_paused = true)]
async fn r3_another_log_is_no_authority_over_what_the_first_has_shown() {
    let world = World::new(18);
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let life = world.serve("jobs").await;
    jobs.bump("a".into()).await.unwrap();
    let job = jobs.job("a".into());
    job.until(|job| job.bumps == 1).await.unwrap();
    life.kill();
    let empty = AnyLog::new(MemoryLog::declared_durable(&world.env(9)));
    let life = world.serve_on("jobs", &empty).await;
    sleep(Duration::from_secs(60)).await;
    let shown = job.latest();
    life.kill();
    let _life = world.serve("jobs").await;
    assert!(!shown.is_ended(), "{shown:?}");
}

const COUNT: Method = Method::new("counter.v1/count");

/// FC-21: a source without a log: the service restarts with its counter reset, and nothing changes afterwards.
#[tokio::test(start_paused = true)]
async fn fc21_a_reset_counter_converges() {
    let world = World::new(38);
    let serve = async |world: &World, values: &[u64]| {
        let (sender, receiver) = tokio::sync::watch::channel(0_u64);
        let routes = Routes::new("counter", 1).read(&COUNT, move |_: &RpcScope, _: Args| Ok(receiver.clone()));
        let server = Server::builder(world.log.clone())
            .env(world.env(values.len() as u64))
            .service(routes)
            .start()
            .await
            .unwrap();
        for value in values {
            sender.send_replace(*value);
        }
        (Life::serve(&world.net, "counter", server.router()), sender)
    };
    let (life, sender) = serve(&world, &[1, 2, 3]).await;
    let client = world.client("ws://counter/").open().unwrap();
    let count = client.caller().read::<u64>(&COUNT, Params::new());
    for value in 10..60 {
        sender.send_replace(value);
        count.until(move |shown| *shown == value).await.unwrap();
    }
    life.kill();
    let (_life, _sender) = serve(&world, &[99]).await;
    assert!(timeout(Duration::from_secs(60), count.until(|shown| *shown == 99)).await.expect("converges").is_ok());
}

/// R4: a restored backup that has grown past what one read has shown, though not past what the client has seen, is
/// another history for that read too: a value that was lost is not called fresh.
#[tokio::test(start_paused = true)]
async fn r4_a_read_does_not_believe_a_backup_that_has_grown_past_it() {
    let world = World::new(31);
    let log = MemoryLog::declared_durable(&world.env(3));
    let life = world.serve_on("jobs", &AnyLog::new(log.clone())).await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    let backup = log.store();
    jobs.bump("a".into()).await.unwrap();
    let read = jobs.job("a".into());
    read.until(|job| job.bumps == 2).await.unwrap();
    for _ in 0..8 {
        jobs.bump("b".into()).await.unwrap();
    }
    life.kill();
    let restored = AnyLog::new(MemoryLog::from_store(backup, &world.env(4), true));
    let _elsewhere = world.serve_on("elsewhere", &restored).await;
    let other = world.client("ws://elsewhere/").env(world.env(77)).open().unwrap();
    for _ in 0..4 {
        JobsClient::new(&other).bump("b".into()).await.unwrap();
    }
    let _life = world.serve_on("jobs", &restored).await;
    sleep(Duration::from_secs(20)).await;
    assert!(matches!(read.latest(), Reading::Fresh(ref job) if job.bumps == 1), "{:?}", read.latest());
}
