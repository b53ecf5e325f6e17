//! Tokens that expire, are denied, or are somebody else's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::command::{Hold, Settlement};
use outlast::key::Principal;
use outlast::server::{Server, Unauthenticated};
use outlast::testing::Life;
use outlast::{Credential, Credentials, End, Reading, credential};
use outlast_tests::{JobState, JobsClient, JobsServer, Workshop, World};
use tokio::time::{sleep, timeout};

use crate::support::HOUR;

/// A service that lets in whoever has the token of the moment.
async fn serve(world: &World, valid: &Arc<Mutex<String>>) -> Life {
    let jobs = Workshop::new(world.log.clone());
    let valid = Arc::clone(valid);
    let server = Server::builder(world.log.clone())
        .env(world.env(1))
        .authenticate(move |headers: &axum::http::HeaderMap| {
            let given = headers.get("authorization").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
            if given == format!("Bearer {}", valid.lock().unwrap()) {
                Ok(Principal::new("alice").unwrap())
            } else {
                Err(Unauthenticated::Refused)
            }
        })
        .project(jobs.projection())
        .service(JobsServer::new(jobs))
        .start()
        .await
        .unwrap();
    Life::serve(&world.net, "jobs", server.router())
}

/// A read and a write before and after the token `one` gave way to `two`. `renew` puts that where the client finds it.
async fn outlasts_its_token(world: &World, credentials: impl Credentials, renew: impl FnOnce()) {
    let valid = Arc::new(Mutex::new("one".to_owned()));
    let client = world.client("ws://jobs/").credential(credentials).open().unwrap();
    let life = serve(world, &valid).await;
    let jobs = JobsClient::new(&client);
    let job = jobs.job("a".into());
    jobs.bump("a".into()).await.unwrap();
    job.until(|job| job.bumps == 1).await.unwrap();
    renew();
    "two".clone_into(&mut valid.lock().unwrap());
    life.kill();
    let bump = jobs.bump("a".into());
    let _life = serve(world, &valid).await;
    bump.await.unwrap();
    job.until(|job| job.bumps == 2).await.unwrap();
}

/// R3, FC-51: a token expires while the client is connected; the link drops; the source is asked once and the next
/// dial is let in. Nothing ends.
#[tokio::test(start_paused = true)]
async fn fc51_an_expired_token_is_renewed() {
    let token = Arc::new(Mutex::new("one"));
    let asked = Arc::new(AtomicUsize::new(0));
    let (source, count) = (Arc::clone(&token), Arc::clone(&asked));
    let credentials = move || {
        count.fetch_add(1, Ordering::Relaxed);
        let token = *source.lock().unwrap();
        async move { Credential::bearer(token) }
    };
    let before = Arc::new(AtomicUsize::new(0));
    let renew = || {
        before.store(asked.load(Ordering::Relaxed), Ordering::Relaxed);
        *token.lock().unwrap() = "two";
    };
    outlasts_its_token(&World::new(4), credentials, renew).await;
    assert_eq!(asked.load(Ordering::Relaxed) - before.load(Ordering::Relaxed), 1, "one refresh");
}

/// FC-51: the same with a token in a file, which is replaced.
#[tokio::test(start_paused = true)]
async fn fc51_a_token_is_renewed_in_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "one\n").unwrap();
    let renew = || std::fs::write(&path, "two\n").unwrap();
    outlasts_its_token(&World::new(5), credential::file(&path), renew).await;
}

/// K1, R3: principals; a denied credential, and its recovery.
#[tokio::test(start_paused = true)]
async fn k1_principals_and_denial() {
    let world = World::new(36);
    let jobs = Workshop::new(world.log.clone());
    let server = Server::builder(world.log.clone())
        .env(world.env(1))
        .authenticate(|headers: &axum::http::HeaderMap| {
            let given = headers.get("authorization").and_then(|v| v.to_str().ok()).unwrap_or_default();
            match given.strip_prefix("Bearer ") {
                Some("bad") | None => Err(Unauthenticated::Refused),
                Some(name) => Ok(Principal::new(name).unwrap()),
            }
        })
        .project(jobs.projection())
        .service(JobsServer::new(jobs))
        .start()
        .await
        .unwrap();
    let _life = Life::serve(&world.net, "jobs", server.router());
    let client = |name: &'static str| {
        world
            .client("ws://jobs/")
            .env(world.env(name.len() as u64 + 40))
            .credential(Credential::bearer(name).unwrap())
            .open()
            .unwrap()
    };
    let (alice, mallory) = (client("alice"), client("mallory"));
    let start = JobsClient::new(&alice).start("a".into());
    JobsClient::new(&alice).job("a".into()).until(|job| job.starts == 1).await.unwrap();
    let theirs = mallory.attach(start.key().clone());
    assert!(matches!(theirs.settled().await.unwrap(), Settlement::NotFound));
    let stolen = mallory.attach(start.key().clone());
    stolen.cancel();
    let _ = timeout(HOUR, stolen.settled()).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(JobsClient::new(&alice).job("a".into()).until(|_| true).await.unwrap().state, JobState::Queued);
    JobsClient::new(&mallory).with_key("k").bump("b".into()).await.unwrap();
    JobsClient::new(&alice).with_key("k").bump("b".into()).await.unwrap();
    assert_eq!(JobsClient::new(&alice).job("b".into()).until(|job| job.bumps > 1).await.unwrap().bumps, 2);

    let token = Arc::new(Mutex::new("bad"));
    let source = Arc::clone(&token);
    let denied = world
        .client("ws://jobs/")
        .env(world.env(50))
        .credential(move || {
            let token = *source.lock().unwrap();
            async move { Credential::bearer(token) }
        })
        .open()
        .unwrap();
    let jobs = JobsClient::new(&denied);
    let (read, bump) = (jobs.job("b".into()), jobs.bump("b".into()));
    sleep(Duration::from_secs(60)).await;
    assert!(matches!(read.latest(), Reading::Ended { end: End::Denied, .. }), "{:?}", read.latest());
    assert_eq!(bump.state().latest().last().unwrap().hold(), Some(Hold::Denied));
    *token.lock().unwrap() = "alice";
    assert!(timeout(HOUR, bump).await.expect("goes on with a new credential").is_ok());
    assert_eq!(jobs.job("b".into()).until(|job| job.bumps > 2).await.unwrap().bumps, 3);
}
