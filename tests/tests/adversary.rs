//! What an adversary tried, from outside, through the public API.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use outlast::call::{Args, Method, Params};
use outlast::command::{CommandStatus, Delivery, Hold, Settlement};
use outlast::connection::Credential;
use outlast::key::Principal;
use outlast::log::{AnyLog, Entry, MemoryLog, Prefix, Subject};
use outlast::server::{Cells, Changes, Events, Projection, Routes, RpcScope, Server, Unauthenticated};
use outlast::testing::{Fault, Life, Relay};
use outlast::{End, Reading};
use outlast_tests::{JobState, JobsClient, JobsServer, Workshop, World};
use tokio::time::{Instant, sleep, timeout};

async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

const HOUR: Duration = Duration::from_secs(3600);

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

struct Brittle {
    cells: Cells<String, u64>,
    count: u64,
}

impl Projection for Brittle {
    fn prefix(&self) -> Prefix {
        Prefix::of(["n"])
    }

    fn apply(&mut self, entry: &Entry, changes: &mut Changes<'_>) {
        self.count += 1;
        assert!(self.count != 2, "a bug of the projection");
        changes.set(&self.cells, entry.subject.tokens().last().unwrap(), self.count);
    }
}

const NUMBER: Method = Method::new("numbers.v1/number");
const ADD: Method = Method::new("numbers.v1/add");

/// R5: a projection that has died leaves its reads behind the log; they must not go on reading as fresh for ever.
#[tokio::test(start_paused = true)]
async fn r5_a_dead_projection_is_not_fresh_for_ever() {
    let world = World::new(3);
    let cells: Cells<String, u64> = Cells::new();
    let live = cells.clone();
    let routes = Routes::new("numbers", 1)
        .read(&NUMBER, move |_: &RpcScope, mut args: Args| Ok(live.live(&args.take("id")?)))
        .command(&ADD, |_: RpcScope, mut args: Args| async move {
            Ok(Events::on(Subject::of(["n", &args.take::<String>("id")?])).push(&1))
        });
    let server = Server::builder(world.log.clone())
        .env(world.env(1))
        .project(Brittle { cells, count: 0 })
        .service(routes)
        .start()
        .await
        .unwrap();
    let _life = Life::serve(&world.net, "numbers", server.router());
    let client = world.client("ws://numbers/").open().unwrap();
    let caller = client.caller();
    let add = || caller.call(&ADD, Params::new().with("id", "a"));
    add().await.unwrap();
    let number = caller.read::<u64>(&NUMBER, Params::new().with("id", "a"));
    assert_eq!(*number.until(|_| true).await.unwrap(), 1);
    add().detach(); // the projection dies of this one
    sleep(Duration::from_secs(60)).await;
    server.stopped().await;
    assert!(
        !matches!(number.latest(), Reading::Fresh { .. }),
        "two effects behind after a minute: {:?}",
        number.latest()
    );
}

/// R3, FC-51: a token expires while the client is connected; the link drops; the source is asked once and the next
/// dial is let in. Nothing ends.
#[tokio::test(start_paused = true)]
async fn fc51_an_expired_token_is_renewed() {
    let world = World::new(4);
    let valid = Arc::new(Mutex::new("one".to_owned()));
    let serve = async |world: &World| {
        let jobs = Workshop::new(world.log.clone());
        let valid = Arc::clone(&valid);
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
    };
    let asked = Arc::new(AtomicUsize::new(0));
    let (source, count) = (Arc::clone(&valid), Arc::clone(&asked));
    let client = world
        .client("ws://jobs/")
        .credential(move || {
            count.fetch_add(1, Ordering::Relaxed);
            let token = source.lock().unwrap().clone();
            async move { Credential::bearer(token) }
        })
        .open()
        .unwrap();
    let life = serve(&world).await;
    let jobs = JobsClient::new(&client);
    let job = jobs.job("a".into());
    jobs.bump("a".into()).await.unwrap();
    job.until(|job| job.bumps == 1).await.unwrap();
    let before = asked.load(Ordering::Relaxed);
    "two".clone_into(&mut valid.lock().unwrap());
    life.kill();
    let bump = jobs.bump("a".into());
    let _life = serve(&world).await;
    bump.await.unwrap();
    job.until(|job| job.bumps == 2).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed) - before, 1, "one refresh");
}

/// R7, R8, FC-26: a black hole in each phase: the established link, and new connects.
#[tokio::test(start_paused = true)]
async fn r7_a_black_hole_is_left_within_its_bounds() {
    let world = World::new(5);
    let _life = world.serve("jobs").await;
    let client = world.client(vec!["ws://path-1/".to_owned(), "ws://path-2/".to_owned()]).open().unwrap();
    let _first = Relay::start(&world.net, "path-1", Some("jobs"));
    let jobs = JobsClient::new(&client);
    let job = jobs.job("a".into());
    jobs.bump("a".into()).await.unwrap();
    job.until(|job| job.bumps == 1).await.unwrap();
    sleep(Duration::from_secs(900)).await;
    world.net.silence("path-1");
    let _second = Relay::start(&world.net, "path-2", Some("jobs"));
    let at = Instant::now();
    jobs.bump("a".into()).await.unwrap();
    assert!(at.elapsed() < Duration::from_secs(25), "took {:?}", at.elapsed());
    job.until(|job| job.bumps == 2).await.unwrap();
}

/// R7: relays that hang in the upgrade, several in a row.
#[tokio::test(start_paused = true)]
async fn r7_hanging_relays_are_left() {
    let world = World::new(6);
    let _life = world.serve("jobs").await;
    let relay = Relay::start(&world.net, "relay", Some("jobs"));
    for _ in 0..4 {
        relay.fault(Fault::Hang);
    }
    let client = world.client("ws://relay/").open().unwrap();
    let at = Instant::now();
    JobsClient::new(&client).bump("a".into()).await.unwrap();
    assert!(at.elapsed() < Duration::from_secs(40), "took {:?}", at.elapsed());
}

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

/// A caller's code that panics: in discovery, the credential, a map. The client goes on.
#[tokio::test(start_paused = true)]
async fn panics_of_the_callers_code() {
    let world = World::new(20);
    let _life = world.serve("jobs").await;
    let first = Arc::new(AtomicBool::new(true));
    let once = Arc::clone(&first);
    let client = world
        .client(move || {
            assert!(!once.swap(false, Ordering::Relaxed), "a bug of the caller");
            async { Ok(vec!["ws://jobs/".to_owned()]) }
        })
        .open()
        .unwrap();
    let jobs = JobsClient::new(&client);
    timeout(Duration::from_secs(60), jobs.bump("a".into())).await.expect("goes on").unwrap();
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

mod raw {
    use futures::{SinkExt, StreamExt};
    use outlast::transport::{Io, Network};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

    pub type Socket = WebSocketStream<Box<dyn Io>>;

    pub const WELCOME: &str = r#"{"type":"welcome","epoch":"01KAW6D4000000000000000001","log":"01KAW6D4000000000000000002","head":5,"durable":true,"principal":"anonymous","now":1764028800000,"heartbeat_ms":10000,"retention_ms":86400000,"spread_ms":0}"#;

    #[expect(clippy::result_large_err, reason = "tungstenite's")]
    pub async fn accept(io: Box<dyn Io>) -> Option<Socket> {
        let answer = |_: &Request, mut response: Response| {
            response.headers_mut().insert("sec-websocket-protocol", "outlast.v1".parse().unwrap());
            Ok(response)
        };
        tokio_tungstenite::accept_hdr_async(io, answer).await.ok()
    }

    pub async fn connect(net: &outlast::testing::Net, address: &str) -> Socket {
        let io = net.connect(address.into()).await.unwrap();
        let mut request = "ws://jobs/".into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "outlast.v1".parse().unwrap());
        tokio_tungstenite::client_async(request, io).await.unwrap().0
    }

    pub async fn say(socket: &mut Socket, text: impl Into<String>) -> bool {
        socket.send(Message::text(text.into())).await.is_ok()
    }

    pub async fn hear(socket: &mut Socket) -> Option<serde_json::Value> {
        loop {
            match socket.next().await? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Serves the hostile frames, one list per connection round, answering pings; counts connections.
fn hostile(
    world: &World,
    address: &str,
    welcome: &'static str,
    answer: fn(&serde_json::Value) -> Vec<String>,
) -> tokio::task::JoinSet<()> {
    let mut listener = world.net.listen(address);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Some(io) = listener.accept().await {
            connections.spawn(async move {
                let Some(mut socket) = raw::accept(io).await else { return };
                raw::say(&mut socket, welcome).await;
                while let Some(frame) = raw::hear(&mut socket).await {
                    for text in answer(&frame) {
                        raw::say(&mut socket, text).await;
                    }
                }
            });
        }
    });
    tasks
}

fn pong(frame: &serde_json::Value) -> Option<String> {
    (frame["type"] == "ping")
        .then(|| format!(r#"{{"type":"pong","n":{},"through":5,"head":5,"spread_ms":0}}"#, frame["n"]))
}

/// R1, R8: a server that answers everything with what cannot be read: no panic, no storm of dials, no end.
#[tokio::test(start_paused = true)]
async fn r8_malformed_answers_make_no_storm() {
    let world = World::new(23);
    let _hostile = hostile(&world, "evil", raw::WELCOME, |frame| match &frame["type"] {
        kind if kind == "subscribe" || kind == "call" => vec!["{".into()],
        _ => pong(frame).into_iter().collect(),
    });
    let client = world.client("ws://evil/").open().unwrap();
    let jobs = JobsClient::new(&client);
    let (read, bump) = (jobs.job("a".into()), jobs.bump("a".into()));
    sleep(Duration::from_secs(600)).await;
    let dials = world.net.connects("evil");
    assert!(!read.latest().is_ended() && !bump.state().latest().is_ended());
    assert!((10..600).contains(&dials), "{dials} dials in ten minutes");
}

/// Extreme numbers in every field of an answer: nothing overflows, nothing ends, the client can be closed.
#[tokio::test(start_paused = true)]
async fn extreme_numbers_from_a_server() {
    const MAX: &str = "18446744073709551615";
    for welcome in [
        raw::WELCOME.into(),
        raw::WELCOME.replace("10000,", "0,"),
        raw::WELCOME.replace("10000,", &format!("{MAX},")),
        raw::WELCOME.replace("86400000", MAX),
        raw::WELCOME.replace("86400000", "0"),
        raw::WELCOME.replace("1764028800000", MAX),
        raw::WELCOME.replace("\"spread_ms\":0", &format!("\"spread_ms\":{MAX}")),
        raw::WELCOME.replace("\"head\":5", &format!("\"head\":{MAX}")),
    ] {
        let world = World::new(24);
        let welcome: &'static str = String::leak(welcome);
        let _hostile = hostile(&world, "evil", welcome, |frame| {
            let (sub, call) = (&frame["sub"], &frame["call"]);
            match frame["type"].as_str().unwrap_or_default() {
                "subscribe" if sub.as_u64().unwrap_or(0) % 2 == 0 => vec![format!(
                    r#"{{"type":"unserved","sub":{sub},"code":"rate_limited","detail":"","retry_after_ms":{MAX}}}"#
                )],
                "subscribe" => vec![format!(
                    r#"{{"type":"absent","sub":{sub},"at":{{"log":"01KAW6D4000000000000000002","seq":{MAX}}}}}"#
                )],
                "call" if call.as_u64().unwrap_or(0) % 2 == 0 => vec![format!(
                    r#"{{"type":"refused","call":{call},"code":"unavailable","detail":"","retry_after_ms":{MAX}}}"#
                )],
                "call" => {
                    vec![format!(r#"{{"type":"report","call":{call},"status":"RUNNING","accepted":{MAX},"at":{MAX}}}"#)]
                }
                "ping" => vec![format!(
                    r#"{{"type":"pong","n":{},"through":{MAX},"head":{MAX},"spread_ms":{MAX}}}"#,
                    frame["n"]
                )],
                _ => vec![],
            }
        });
        let client = world.client("ws://evil/").open().unwrap();
        let jobs = JobsClient::new(&client);
        let (one, two, three, four) =
            (jobs.job("a".into()), jobs.job("b".into()), jobs.bump("a".into()), jobs.bump("b".into()));
        sleep(Duration::from_secs(300)).await;
        assert!(!client.connection().latest().is_ended(), "the client's task is alive after {welcome}");
        drop((one, two));
        client.close();
        for command in [three, four] {
            let state = command.state().latest();
            let end = timeout(Duration::from_secs(5), command.settled()).await;
            assert!(
                end.is_ok(),
                "{state:?} {:?} {:?} {welcome}",
                command.state().latest(),
                client.connection().latest()
            );
        }
    }
}

/// Frames of a hostile client: each is answered, refused or ends its own connection; another client is served.
#[tokio::test(start_paused = true)]
async fn hostile_clients_hurt_only_themselves() {
    let world = World::new(25);
    let _life = world.serve("jobs").await;
    let good = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&good);
    jobs.with_key("theirs").bump("a".into()).await.unwrap();
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let call = |params: &str, rest: &str| {
        format!(
            r#"{{"type":"call","call":1,"method":"jobs.v1/bump","params":{params},"key":"k","level":"explicit","minted":1764028800000,"attempt":1,"id":"01KAW6D4000000000000000001","metadata":{{}}{rest}}}"#
        )
    };
    let frames = [
        "{".to_owned(),
        "null".into(),
        "[]".into(),
        deep.clone(),
        format!(r#"{{"type":{deep}}}"#),
        call(&deep, ""),
        call(&format!(r#"{{"id":{deep}}}"#), ""),
        call(r#"{"id":"a","id":"b"}"#, ""),
        call("null", ""),
        call(r#"{"id":1e400}"#, ""),
        call(r#"{"id":"a"}"#, "").replace("1764028800000", "18446744073709551615"),
        call(r#"{"id":"a"}"#, "").replace("\"attempt\":1", "\"attempt\":4294967295"),
        call(r#"{"id":"a"}"#, "").replace("\"k\"", "\"\\u0000\""),
        r#"{"type":"subscribe","sub":1,"method":"jobs.v1/job","params":{"id":"a"},"after":{"log":"01KAW6D4000000000000000002","seq":18446744073709551615}}"#.into(),
        r#"{"type":"cancel","call":2,"key":"","minted":0}"#.into(),
        r#"{"type":"attach","call":18446744073709551615,"key":"theirs"}"#.into(),
        r#"{"type":"forget","call":9}{"type":"forget","call":9}"#.into(),
        r#"{"type":"ping","n":-1}"#.into(),
        "x".repeat(2 << 20),
    ];
    for frame in frames {
        let mut socket = raw::connect(&world.net, "jobs").await;
        raw::say(&mut socket, frame.clone()).await;
        raw::say(&mut socket, r#"{"type":"ping","n":7}"#).await;
        let answered = async {
            while let Some(heard) = raw::hear(&mut socket).await {
                if heard["type"] == "pong" {
                    return true;
                }
            }
            false
        };
        let answered = timeout(Duration::from_secs(60), answered).await;
        let start: String = frame.chars().take(80).collect();
        assert!(answered.is_ok(), "hangs after {start}");
        assert!(frame.len() > 1 << 20 || answered.unwrap(), "the connection ended after {start}");
    }
    jobs.bump("a".into()).await.unwrap();
    assert!(good.connection().latest().last().is_some_and(|link| link.is_up()));
}

/// FC-49: a server that welcomes and ends at once, over and over: the delays grow.
#[tokio::test(start_paused = true)]
async fn fc49_welcome_and_end() {
    let world = World::new(26);
    let mut listener = world.net.listen("evil");
    tokio::spawn(async move {
        while let Some(io) = listener.accept().await {
            if let Some(mut socket) = raw::accept(io).await {
                raw::say(&mut socket, raw::WELCOME).await;
            }
        }
    });
    let client = world.client("ws://evil/").open().unwrap();
    let read = JobsClient::new(&client).job("a".into());
    sleep(Duration::from_secs(600)).await;
    let dials = world.net.connects("evil");
    assert!((60..500).contains(&dials), "{dials} dials in ten minutes");
    assert!(!read.latest().is_ended());
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

/// R7: a cut in the middle of the handshake, of any length, from either side, with hanging connections in between, and
/// a service that moves at the same time.
#[tokio::test(start_paused = true)]
async fn fc42_each_attempt_resolves_afresh() {
    let world = World::new(30);
    world.net.name("jobs", ["gone"]);
    let client = world.client("ws://jobs/").open().unwrap();
    let bump = JobsClient::new(&client).bump("a".into());
    sleep(Duration::from_secs(300)).await;
    world.net.name("jobs", ["here"]);
    let _life = world.serve("here").await;
    let at = Instant::now();
    bump.await.unwrap();
    assert!(at.elapsed() <= Duration::from_secs(6), "{:?}", at.elapsed());
}

/// FC-50: close codes of a server.
#[tokio::test(start_paused = true)]
async fn fc50_close_codes() {
    use tokio_tungstenite::tungstenite::protocol::CloseFrame;
    for code in [1000_u16, 1001, 1006, 1008, 1011, 1012, 1013, 3000, 4001, 4401, 4999] {
        let world = World::new(31);
        let mut listener = world.net.listen("jobs");
        let first = tokio::spawn(async move {
            let io = listener.accept().await.unwrap();
            let mut socket = raw::accept(io).await.unwrap();
            raw::say(&mut socket, raw::WELCOME).await;
            sleep(Duration::from_secs(8)).await;
            let _ = socket.close(Some(CloseFrame { code: code.into(), reason: "".into() })).await;
            sleep(Duration::from_secs(1)).await;
        });
        let client = world.client("ws://jobs/").open().unwrap();
        let job = JobsClient::new(&client).job("a".into());
        first.await.unwrap();
        let _life = world.serve("jobs").await;
        let at = Instant::now();
        let bump = timeout(HOUR, JobsClient::new(&client).bump("a".into())).await;
        assert!(bump.is_ok_and(|bump| bump.is_ok()), "code {code}");
        assert!(at.elapsed() < Duration::from_secs(70), "code {code}: {:?}", at.elapsed());
        assert!(!job.latest().is_ended(), "code {code}: {:?}", job.latest());
    }
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

/// R7: an upgrade without a welcome, and a peer that takes no bytes.
#[tokio::test(start_paused = true)]
async fn r7_no_welcome_and_no_reading() {
    for reads in [false, true] {
        let world = World::new(43);
        let mut listener = world.net.listen("jobs");
        let evil = tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Some(io) = listener.accept().await {
                let Some(mut socket) = raw::accept(io).await else { continue };
                if reads {
                    raw::say(&mut socket, raw::WELCOME).await;
                }
                kept.push(socket);
            }
        });
        let client = world.client("ws://jobs/").open().unwrap();
        let jobs = JobsClient::new(&client);
        let large: Vec<_> = (0..20).map(|n| jobs.bump(format!("{n}{}", "x".repeat(300)))).collect();
        sleep(Duration::from_secs(100)).await;
        assert!(world.net.connects("jobs") >= 4, "{} dials", world.net.connects("jobs"));
        evil.abort();
        settle().await;
        let _life = world.serve("jobs").await;
        // The evil one spoke for another log: what was sent there is held, what was not is delivered.
        let fresh = timeout(HOUR, jobs.bump("a".into())).await.expect("delivered");
        assert!(fresh.is_ok());
        if !reads {
            for bump in large {
                timeout(HOUR, bump).await.expect("delivered").unwrap();
            }
        }
    }
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

/// A caller's map and predicate that panic hurt only who called them.
#[tokio::test(start_paused = true)]
async fn panics_of_observers() {
    let world = World::new(45);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    let job = jobs.job("a".into());
    let waited = tokio::spawn(job.until(|_| panic!("a bug of the caller"))).await;
    assert!(waited.is_err());
    let mapped = job.map(|_| -> u64 { panic!("a bug of the caller") });
    let waited = tokio::spawn(mapped.until(|_| true)).await;
    assert!(waited.is_err());
    jobs.bump("a".into()).await.unwrap();
    assert!(timeout(Duration::from_secs(5), job.until(|job| job.bumps == 2)).await.expect("goes on").is_ok());
}
