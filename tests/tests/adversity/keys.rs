//! Keys that are odd, shared, unknown or in conflict.

use std::time::Duration;

use futures::future::join_all;
use outlast::command::Settlement;
use outlast_tests::{JobsClient, World};
use tokio::time::{sleep, timeout};

use crate::support::HOUR;

/// K1, FC-79: one key for two commands; another principal's key is as one never seen.
#[tokio::test(start_paused = true)]
async fn k1_keys_and_what_they_name() {
    let world = World::new(13);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.with_key("release:42").bump("a".into()).await.unwrap();
    let e = jobs.with_key("release:42").bump("b".into()).await.unwrap_err();
    assert!(e.is_conflict(), "{e}");
    let e = jobs.with_key("release:42").finish("a".into(), true).await.unwrap_err();
    assert!(e.is_conflict(), "{e}");
    let again = jobs.with_key("release:42").bump("a".into()).await.unwrap();
    assert!(again.timestamp().is_some());
    let unknown = client.attach("release:43").settled().await.unwrap();
    assert!(matches!(unknown, Settlement::NotFound), "{unknown:?}");
    assert!(matches!(client.attach("release:42").settled().await.unwrap(), Settlement::Succeeded(_)));
    for odd in [String::new(), "x".repeat(257), "x".repeat(1 << 21), "a\0b".into(), "ü".repeat(128), " ".into()] {
        let end = timeout(HOUR, jobs.with_key(odd.as_str()).bump("a".into()).settled()).await;
        assert!(matches!(end, Ok(Ok(_))), "{} bytes: {end:?}", odd.len());
    }
}

/// W5: a cancel of an attached key that nobody has sent: it fences the key, and a later call is canceled.
#[tokio::test(start_paused = true)]
async fn w5_cancel_of_an_unknown_key() {
    let world = World::new(19);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let attached = client.attach("k");
    attached.cancel();
    let end = timeout(HOUR, attached.settled()).await.expect("settles").unwrap();
    assert!(matches!(end, Settlement::Canceled | Settlement::NotFound), "{end:?}");
    let late = jobs.with_key("k").bump("a".into()).settled().await.unwrap();
    match end {
        Settlement::Canceled => assert!(matches!(late, Settlement::Canceled), "{late:?}"),
        _ => assert!(matches!(late, Settlement::Succeeded(_)), "{late:?}"),
    }
}

/// K1: 50 handles of one L3 key at once: one effect, one timestamp.
#[tokio::test(start_paused = true)]
async fn fc78_fifty_handles_of_one_key() {
    let world = World::new(34);
    let _life = world.serve("jobs").await;
    let (one, two) =
        (world.client("ws://jobs/").open().unwrap(), world.client("ws://jobs/").env(world.env(7)).open().unwrap());
    let handles = (0..50).map(|n| JobsClient::new(if n % 2 == 0 { &one } else { &two }).with_key("k").bump("a".into()));
    let done = join_all(handles).await;
    let first = done[0].as_ref().unwrap().timestamp();
    assert!(done.iter().all(|done| done.as_ref().unwrap().timestamp() == first));
    assert_eq!(JobsClient::new(&one).job("a".into()).until(|job| job.bumps > 0).await.unwrap().bumps, 1);
}

/// K2: a semantic key is the same command from any handle; another attempt is another; an L3 key beside it is told.
#[tokio::test(start_paused = true)]
async fn k2_the_ladder() {
    let world = World::new(44);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let (one, two, three) = (jobs.start("a".into()), jobs.start("a".into()), jobs.attempt(2).start("a".into()));
    assert_eq!(one.key(), two.key());
    assert_ne!(one.key(), three.key());
    let four = jobs.with_key("mine").start("a".into());
    assert_eq!((four.key(), four.overridden().map(|key| key.as_str())), (one.key(), Some("mine")));
    jobs.job("a".into()).until(|job| job.starts == 2).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(jobs.job("a".into()).until(|_| true).await.unwrap().starts, 2);
}
