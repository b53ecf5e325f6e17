//! A client that is closed with everything open.

use std::time::Duration;

use futures::future::join_all;
use outlast::{End, Reading};
use outlast_tests::{JobsClient, World};
use tokio::time::{sleep, timeout};

use crate::support::settle;

/// The client is closed, and its runtime is dropped, with everything open: everything ends as closed, nothing hangs.
#[test]
fn closing_ends_everything() {
    for drop_runtime in [true, false] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (client, life, command, read, link) = runtime.block_on(async {
            let world = World::new(12);
            let life = world.serve("jobs").await;
            let client = world.client("ws://jobs/").open().unwrap();
            let jobs = JobsClient::new(&client);
            let command = jobs.start("a".into());
            let read = jobs.job("a".into());
            read.until(|job| job.starts == 1).await.unwrap();
            (client.clone(), life, command, read, client.connection())
        });
        if drop_runtime {
            drop(life);
            drop(runtime);
        } else {
            client.close();
            runtime.block_on(async { sleep(Duration::from_secs(2)).await });
        }
        let other = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        other.block_on(async {
            let settled = timeout(Duration::from_secs(2), command.settled()).await.expect("no hang");
            assert!(settled.as_ref().is_err_and(|e| !e.is_still_pending()), "{settled:?}");
            assert!(matches!(read.latest(), Reading::Ended { end: End::Closed, .. }), "{:?}", read.latest());
            assert!(link.latest().is_ended(), "{:?}", link.latest());
            // And what comes after.
            let jobs = JobsClient::new(&client);
            assert!(timeout(Duration::from_secs(2), jobs.bump("a".into()).settled()).await.expect("no hang").is_err());
            let late = jobs.job("b".into());
            assert!(timeout(Duration::from_secs(2), late.until(|_| true)).await.expect("no hang").is_err());
        });
    }
}

/// R1, R9: waits on a link state, on a map and on `at_least` after a close all end.
#[tokio::test(start_paused = true)]
async fn every_wait_ends_with_the_client() {
    let world = World::new(29);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let done = jobs.bump("a".into()).await.unwrap();
    let job = jobs.job("a".into());
    let later = outlast::Timestamp { seq: done.timestamp().unwrap().seq + 1_000, ..done.timestamp().unwrap() };
    let waits = [
        job.until(|job| job.bumps == 7),
        job.at_least(later).until(|_| true),
        job.map(|job| job.clone()).until(|job| job.bumps == 7),
    ];
    let waits = tokio::spawn(join_all(waits));
    settle().await;
    client.close();
    let ended = timeout(Duration::from_secs(5), waits).await.expect("no hang").unwrap();
    assert!(ended.iter().all(|ended| ended.is_err()));
}
