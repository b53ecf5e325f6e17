//! Tokens that expire, are denied, or are somebody else's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use outlast::command::{Hold, Settlement};
use outlast::env::WallClock;
use outlast::error::Phase;
use outlast::key::Principal;
use outlast::server::{Server, Unauthenticated};
use outlast::testing::{Life, SimulatedClock};
use outlast::{Cause, Credential, Credentials, End, Error, Reading, credential};
use outlast_tests::{JobState, JobsClient, JobsServer, Workshop, World};
use tokio::time::{sleep, timeout};

use crate::support::HOUR;

/// A service that lets in whoever has the token of the moment.
async fn serve(world: &World, valid: &Arc<Mutex<String>>) -> Life {
    let valid = Arc::clone(valid);
    serve_at(world, "jobs", move |token| token == *valid.lock().unwrap()).await
}

/// A service on `address` that lets in the tokens that `lets_in` does.
async fn serve_at(world: &World, address: &str, lets_in: impl Fn(&str) -> bool + Send + Sync + 'static) -> Life {
    let jobs = Workshop::new(world.log.clone());
    let server = Server::builder(world.log.clone())
        .env(world.env(1))
        .authenticate(move |headers: &axum::http::HeaderMap| {
            let given = headers.get("authorization").and_then(|v| v.to_str().ok()).unwrap_or_default();
            if given.strip_prefix("Bearer ").is_some_and(&lets_in) {
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
    Life::serve(&world.net, address, server.router())
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
    timeout(HOUR, bump).await.expect("goes on").unwrap();
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

/// Gives tokens that are good for ten minutes, and knows them again.
#[derive(Clone)]
struct Mint(Arc<Inside>);

struct Inside {
    clock: SimulatedClock,
    takes: Mutex<Duration>,
    asked: AtomicUsize,
    refused: AtomicUsize,
}

const TEN_MINUTES: Duration = Duration::from_secs(600);

impl Mint {
    fn new(world: &World) -> Self {
        let (asked, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(Inside { clock: world.clock.clone(), takes: Mutex::default(), asked, refused }))
    }

    /// How long it takes from now on to give one.
    fn takes(&self, time: Duration) {
        *self.0.takes.lock().unwrap() = time;
    }

    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// How often a token was shown that is good no more.
    fn refused(&self) -> usize {
        self.0.refused.load(Ordering::Relaxed)
    }

    async fn serve(&self, world: &World, address: &str) -> Life {
        let mint = Arc::clone(&self.0);
        serve_at(world, address, move |token| {
            let good = Duration::from_millis(token.parse().unwrap()) > mint.clock.now().since_epoch();
            mint.refused.fetch_add(usize::from(!good), Ordering::Relaxed);
            good
        })
        .await
    }
}

impl Credentials for Mint {
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>> {
        let mint = Arc::clone(&self.0);
        mint.asked.fetch_add(1, Ordering::Relaxed);
        async move {
            let takes = *mint.takes.lock().unwrap();
            sleep(takes).await;
            let until = (mint.clock.now() + TEN_MINUTES).millis();
            Ok(Credential::bearer(until.to_string())?.lasting(TEN_MINUTES))
        }
        .boxed()
    }
}

/// R3: a token that expires while the link is up leaves the link alone, and is renewed before the next dial: none is refused.
#[tokio::test(start_paused = true)]
async fn r3_a_token_that_expires_on_a_link_is_renewed_before_the_next_dial() {
    let world = World::new(51);
    let mint = Mint::new(&world);
    let client = world.client("ws://jobs/").credential(mint.clone()).open().unwrap();
    let jobs = JobsClient::new(&client);
    for life in 1..5 {
        let service = mint.serve(&world, "jobs").await;
        timeout(HOUR, jobs.bump("a".into())).await.expect("goes on").unwrap();
        let connects = world.net.connects("jobs");
        sleep(HOUR).await;
        jobs.bump("a".into()).await.unwrap();
        assert_eq!(world.net.connects("jobs"), connects, "the same link, long after its token");
        assert_eq!((mint.asked(), mint.refused()), (life, 0));
        service.kill();
    }
}

/// R3, R7: thirty dials, the rounds that they take and a machine that sleeps in between share one ask.
#[tokio::test(start_paused = true)]
async fn r3_a_token_is_renewed_once_for_all_dials() {
    let world = World::new(52);
    let mint = Mint::new(&world);
    let replicas: Vec<String> = (0..30).map(|n| format!("replica{n}")).collect();
    let discover: Vec<String> = replicas.iter().map(|replica| format!("ws://{replica}/")).collect();
    let client = world.client(discover).credential(mint.clone()).open().unwrap();
    let jobs = JobsClient::new(&client);
    let first = mint.serve(&world, &replicas[0]).await;
    jobs.bump("a".into()).await.unwrap();
    sleep(TEN_MINUTES).await;
    mint.takes(Duration::from_secs(3));
    for replica in &replicas[..29] {
        world.net.silence(replica);
    }
    first.kill();
    let is_asked = async {
        while mint.asked() == 1 {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(HOUR, is_asked).await.expect("the link is lost");
    world.clock.advance(HOUR);
    let _last = mint.serve(&world, &replicas[29]).await;
    timeout(HOUR, jobs.bump("a".into())).await.expect("goes on").unwrap();
    assert!(replicas[1..].iter().all(|replica| world.net.connects(replica) > 0), "all were dialed");
    assert_eq!((mint.asked(), mint.refused()), (2, 0));
}

/// R3: in the last minute of a token the next one is asked for behind the dial, which does not wait for it.
#[tokio::test(start_paused = true)]
async fn r3_a_token_that_lasts_is_used_while_the_next_is_asked_for() {
    let world = World::new(53);
    let mint = Mint::new(&world);
    let client = world.client("ws://jobs/").credential(mint.clone()).open().unwrap();
    let jobs = JobsClient::new(&client);
    let first = mint.serve(&world, "jobs").await;
    jobs.bump("a".into()).await.unwrap();
    sleep(TEN_MINUTES - Duration::from_secs(30)).await;
    mint.takes(HOUR);
    first.kill();
    let _second = mint.serve(&world, "jobs").await;
    timeout(Duration::from_secs(1), jobs.bump("a".into())).await.expect("at once").unwrap();
    assert_eq!((mint.asked(), mint.refused()), (2, 0));
}

/// R3, R7: a token that has expired is not shown while its source hangs; that is a cause, and no end.
#[tokio::test(start_paused = true)]
async fn r3_an_expired_token_is_not_shown_while_its_source_hangs() {
    let world = World::new(54);
    let mint = Mint::new(&world);
    let client = world.client("ws://jobs/").credential(mint.clone()).open().unwrap();
    let jobs = JobsClient::new(&client);
    let first = mint.serve(&world, "jobs").await;
    jobs.bump("a".into()).await.unwrap();
    sleep(TEN_MINUTES).await;
    mint.takes(HOUR);
    first.kill();
    let _second = mint.serve(&world, "jobs").await;
    let connects = world.net.connects("jobs");
    sleep(HOUR).await;
    assert_eq!((world.net.connects("jobs"), mint.refused()), (connects, 0));
    let bound = Duration::from_secs(5);
    let link = client.connection().latest();
    assert_eq!(link.last().and_then(|link| link.cause()), Some(&Cause::Stalled { phase: Phase::Credential, bound }));
    mint.takes(Duration::ZERO);
    timeout(Duration::from_secs(30), jobs.bump("a".into())).await.expect("goes on").unwrap();
    assert_eq!(mint.refused(), 0);
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
