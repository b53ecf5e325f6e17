//! Many reads, short reads, and a read that nobody looks at.

use std::time::Duration;

use futures::future::join_all;
use outlast::Reading;
use outlast_tests::{JobsClient, World};
use tokio::time::{Instant, sleep, timeout};

use crate::support::HOUR;

/// 1,001 reads on one client: the last one is served once another is given up, and none ends.
#[tokio::test(start_paused = true)]
async fn a_thousand_and_one_reads() {
    let world = World::new(9);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").idle(Duration::from_secs(1)).open().unwrap();
    let jobs = JobsClient::new(&client);
    join_all((0..1_001).map(|n| jobs.bump(n.to_string()))).await.into_iter().for_each(|done| drop(done.unwrap()));
    let mut reads: Vec<_> = (0..1_001).map(|n| jobs.job(n.to_string())).collect();
    for read in &reads[..1_000] {
        read.until(|job| job.bumps == 1).await.unwrap();
    }
    sleep(Duration::from_secs(3)).await;
    assert!(matches!(reads[1_000].latest(), Reading::Loading { cause: Some(_), .. }), "{:?}", reads[1_000].latest());
    reads.remove(0);
    timeout(Duration::from_secs(60), reads[999].until(|job| job.bumps == 1)).await.expect("is served").unwrap();
}

/// R6, FC-25: a consumer that is paused sees the newest and never misses the last; others are not slowed.
#[tokio::test(start_paused = true)]
async fn fc25_a_paused_consumer_sees_the_last() {
    let world = World::new(10);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let mut paused = jobs.job("a".into());
    for _ in 0..300 {
        jobs.bump("a".into()).await.unwrap();
    }
    jobs.job("a".into()).until(|job| job.bumps == 300).await.unwrap();
    let seen = timeout(HOUR, paused.next()).await.expect("something").unwrap();
    assert_eq!(seen.last().unwrap().bumps, 300);
}

/// Many short reads of different things, one after another: none ends, none waits for long.
#[tokio::test(start_paused = true)]
async fn many_short_reads_in_turn() {
    let world = World::new(39);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let at = Instant::now();
    for n in 0..2_500 {
        let id = n.to_string();
        jobs.bump(id.clone()).await.unwrap();
        timeout(HOUR, jobs.job(id).until(|job| job.bumps == 1)).await.unwrap().unwrap();
    }
    assert!(at.elapsed() < Duration::from_secs(10), "took {:?}", at.elapsed());
}
