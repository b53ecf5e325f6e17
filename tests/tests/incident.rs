//! The incident that this crate exists for, in virtual time: a single instance goes away in mid-operation,
//! there is no other, and it comes back somewhere else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use outlast::client::Client;
use outlast::command::Settlement;
use outlast::testing::Relay;
use outlast::{Error, Observable, Reading};
use outlast_tests::{Job, JobState, JobsClient, World};

/// What a read has shown so far.
#[derive(Clone, Default)]
struct Shown {
    readings: Arc<Mutex<Vec<Reading<Job>>>>,
}

impl Shown {
    fn record(read: &Observable<Job>) -> Self {
        let shown = Self::default();
        let (readings, mut stream) = (Arc::clone(&shown.readings), read.readings());
        tokio::spawn(async move {
            while let Some(reading) = stream.next().await {
                readings.lock().unwrap().push(reading);
            }
        });
        shown
    }

    fn count(&self, f: impl Fn(&Reading<Job>) -> bool) -> usize {
        self.readings.lock().unwrap().iter().filter(|reading| f(reading)).count()
    }
}

async fn settle() {
    // Lets everything that is ready run: paused time moves only when nothing is.
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// R1, R2, R5, R8, W1, W2, W4: gone for 60 s, zero alternatives, back under another address.
#[tokio::test(start_paused = true)]
async fn a_single_instance_is_gone_for_a_minute_and_back_elsewhere() {
    let world = World::new(7);
    world.net.name("jobs", ["jobs-1"]);
    let life = world.serve("jobs-1").await;
    let client = world.client("ws://jobs/").open().unwrap();
    outage(&world, &client, Duration::from_secs(60), || life.kill(), || world.net.name("jobs", ["jobs-2"])).await;
}

/// The same through two relays that accept and then end without a byte, because nothing is behind them.
#[tokio::test(start_paused = true)]
async fn the_same_through_two_relays_that_accept_and_end_without_a_byte() {
    let world = World::new(8);
    let relays =
        [Relay::start(&world.net, "relay-1", Some("jobs-1")), Relay::start(&world.net, "relay-2", Some("jobs-1"))];
    let life = world.serve("jobs-1").await;
    let client = world.client(vec!["ws://relay-1/".to_owned(), "ws://relay-2/".to_owned()]).open().unwrap();
    let up = || relays.iter().for_each(|relay| relay.point(Some("jobs-2")));
    outage(&world, &client, Duration::from_secs(60), || life.kill(), up).await;
    assert!(world.net.connects("relay-1") > 3, "the relays were dialed while nothing was behind them");
}

/// A build is followed and settled across an outage; `down` takes the server away, `up` says where it is again.
async fn outage(world: &World, client: &Client, gone: Duration, down: impl FnOnce(), up: impl FnOnce()) {
    let jobs = JobsClient::new(client);
    let command = jobs.start("a".into());
    let job = jobs.job("a".into());
    job.until(|job| job.starts == 1).await.unwrap();
    jobs.claim("a".into()).await.unwrap();
    job.until(|job| job.state == JobState::Running).await.unwrap();
    let shown = Shown::record(&job);

    down();
    settle().await;
    assert!(matches!(job.latest(), Reading::Stale { ref last, .. } if last.state == JobState::Running), "{job:?}");
    // Issued while there is nobody to take it: it waits (W4).
    let bump = jobs.bump("a".into());
    tokio::time::sleep(gone).await;
    assert!(!job.latest().is_ended());
    assert!(job.latest().last().is_some(), "R1: the last value stays");

    let back = tokio::time::Instant::now();
    up();
    let _life = world.serve("jobs-2").await;
    job.until(|job| job.bumps == 1).await.unwrap();
    assert!(back.elapsed() < Duration::from_secs(5), "R8: back within the cap, took {:?}", back.elapsed());
    bump.await.unwrap();
    jobs.finish("a".into(), true).await.unwrap();
    assert!(matches!(command.settled().await.unwrap(), Settlement::Succeeded(_)));

    let end = job.until(|job| job.state == JobState::Done { ok: true }).await.unwrap();
    assert_eq!((end.starts, end.bumps), (1, 1), "each command ran once");
    settle().await;
    assert_eq!(shown.count(Reading::is_ended), 0, "R1: no read ended");
    assert!(shown.count(|reading| reading.cause().is_some()) >= 1, "it went stale and said why");
}

/// W2, R1: the connection is cut after every byte of a submit, and after every byte of its answer: one effect each time.
#[tokio::test(start_paused = true)]
async fn w2_cut_after_every_byte_of_a_submit_and_of_its_answer() {
    use outlast::testing::Fault;

    let (up, down) = {
        let (passed, _) = submit_through(None).await;
        passed
    };
    assert!(up > 400 && down > 300, "the handshake, the submit and the answers: {up} up, {down} down");
    for cut in (0..=up).map(Fault::CutUp).chain((0..=down).map(Fault::CutDown)) {
        let (_, bumps) = submit_through(Some(cut.clone())).await;
        assert_eq!(bumps, 1, "one effect with {cut:?}");
    }
}

/// Submits one command through a relay with `fault` on its first connection; the bytes passed, and the effects.
async fn submit_through(fault: Option<outlast::testing::Fault>) -> ((usize, usize), u64) {
    let world = World::new(9);
    let _life = world.serve("jobs-1").await;
    let relay = Relay::start(&world.net, "relay", Some("jobs-1"));
    if let Some(fault) = fault {
        relay.fault(fault);
    }
    let client = world.client("ws://relay/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    let passed = relay.passed();
    let bumps = jobs.job("a".into()).until(|job| job.bumps > 0).await.unwrap().bumps;
    client.close();
    (passed, bumps)
}

/// The incident with real sockets inside one paused runtime: the same code over TCP.
#[tokio::test(start_paused = true)]
async fn the_incident_over_real_sockets() {
    let world = World::new(10);
    let port = Arc::new(Mutex::new(None::<u16>));
    let first = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    *port.lock().unwrap() = Some(first.local_addr().unwrap().port());
    let life = serve_tcp(&world, first).await;
    let asked = Arc::clone(&port);
    let client = Client::builder(move || {
        let port = *asked.lock().unwrap();
        async move {
            port.map(|port| vec![format!("ws://127.0.0.1:{port}/")]).ok_or_else(|| Error::unavailable("nobody there"))
        }
    })
    .env(world.env(2))
    .open()
    .unwrap();
    let jobs = JobsClient::new(&client);
    let command = jobs.start("a".into());
    let job = jobs.job("a".into());
    job.until(|job| job.starts == 1).await.unwrap();
    let shown = Shown::record(&job);

    life.abort();
    assert!(life.await.unwrap_err().is_cancelled());
    *port.lock().unwrap() = None;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(matches!(job.latest(), Reading::Stale { .. }));
    let second = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    *port.lock().unwrap() = Some(second.local_addr().unwrap().port());
    let life = serve_tcp(&world, second).await;
    jobs.claim("a".into()).await.unwrap();
    jobs.finish("a".into(), true).await.unwrap();
    assert!(matches!(command.settled().await.unwrap(), Settlement::Succeeded(_)));
    assert_eq!(job.until(|job| job.state == JobState::Done { ok: true }).await.unwrap().starts, 1);
    assert_eq!(shown.count(Reading::is_ended), 0, "R1");
    life.abort();
}

async fn serve_tcp(world: &World, listener: tokio::net::TcpListener) -> tokio::task::JoinHandle<()> {
    let router = world.router().await;
    // `axum::serve` spawns its connections by itself, so they are run here to die with their server.
    tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let router = router.clone();
            connections.spawn(outlast::testing::serve_connection(stream, router));
        }
    })
}

/// R9: a wait whose next permitted attempt lies past its budget says so at once, with the cause; it never says that the
/// work failed, and a longer one outlasts the hint.
#[tokio::test(start_paused = true)]
async fn r9_a_wait_that_cannot_be_helped_says_so_at_once() {
    let world = World::new(11);
    // A service that turns everyone away for a minute (429 with Retry-After).
    let busy =
        axum::Router::new().fallback(|| async { (axum::http::StatusCode::TOO_MANY_REQUESTS, [("retry-after", "60")]) });
    let away = outlast::testing::Life::serve(&world.net, "jobs", busy);
    let client = world.client("ws://jobs/").open().unwrap();
    let job = JobsClient::new(&client).job("a".into());
    settle().await;
    let asked = tokio::time::Instant::now();
    let e = job.until(|_| true).within(Duration::from_secs(30)).await.unwrap_err();
    assert!(e.is_still_pending() && asked.elapsed() < Duration::from_secs(1), "{e} after {:?}", asked.elapsed());
    assert!(e.to_string().contains("rate limited"), "{e}");

    away.kill();
    let _life = world.serve("jobs").await;
    JobsClient::new(&client).bump("a".into()).await.unwrap();
    assert!(asked.elapsed() >= Duration::from_secs(59), "R8: not before the hint");
}

/// R8: a policy of the caller's says the delays, and the default goes on when it has no more: recovery does not give up.
#[tokio::test(start_paused = true)]
async fn r8_an_iterator_of_delays_is_a_policy() {
    let world = World::new(12);
    let mut delays = [7, 7, 7].into_iter().map(Duration::from_secs);
    let client = world.client("ws://jobs/").schedule(move |_, _| delays.next()).open().unwrap();
    tokio::time::sleep(Duration::from_millis(20_900)).await;
    assert_eq!(world.net.connects("jobs"), 3, "dialed at 0, 7 and 14 s");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(world.net.connects("jobs") > 10, "the default goes on");
    let _life = world.serve("jobs").await;
    JobsClient::new(&client).bump("a".into()).await.unwrap();
}

/// W4, S6 (row 24): nothing new is sent to a service that is going away; it is sent to the next one.
#[tokio::test(start_paused = true)]
async fn s6_a_command_called_during_a_drain_goes_to_the_next_server() {
    let world = World::new(13);
    let server = world.server().await;
    let life = outlast::testing::Life::serve(&world.net, "jobs", server.router());
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    // A call in flight holds the drain up: the handler of `wait` is slow.
    let slow = jobs.wait(5_000);
    settle().await;
    let draining = {
        let server = server.clone();
        tokio::spawn(async move { server.drain().await })
    };
    settle().await;
    let late = jobs.bump("a".into());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let state = late.state().latest();
    assert_eq!(state.last().unwrap().delivery(), outlast::command::Delivery::Queued, "nothing was sent");
    slow.await.unwrap();
    draining.await.unwrap();
    life.kill();
    let _life = world.serve("jobs").await;
    late.await.unwrap();
    assert_eq!(jobs.job("a".into()).until(|job| job.bumps == 2).await.unwrap().bumps, 2);
}

/// R7: a thin line is slow, not stalled: a command and a value arrive over one link, though each takes longer than the
/// bound on a write that makes no progress.
#[tokio::test(start_paused = true)]
async fn r7_a_thin_line_is_not_a_stalled_one() {
    let world = World::new(14);
    let relay = Relay::start(&world.net, "relay", Some("jobs"));
    relay.rate(20_000);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://relay/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    let long = "x".repeat(288_000);
    let sent = tokio::time::Instant::now();
    jobs.note("a".into(), long.clone()).await.unwrap();
    assert!(sent.elapsed() > Duration::from_secs(14), "it took its time: {:?}", sent.elapsed());
    let job = jobs.job("a".into()).until(|job| !job.note.is_empty()).await.unwrap();
    assert_eq!(job.note, long);
    assert_eq!(world.net.connects("relay"), 1, "the link held");
}

/// W5: a cancel is not lost with its handle.
#[tokio::test(start_paused = true)]
async fn w5_a_cancel_is_not_lost_with_its_handle() {
    for seed in 0..32 {
        let world = World::new(100 + seed);
        let _life = world.serve("jobs").await;
        let client = world.client("ws://jobs/").open().unwrap();
        let jobs = JobsClient::new(&client);
        let start = jobs.start("a".into());
        let job = jobs.job("a".into());
        job.until(|job| job.starts == 1).await.unwrap();
        settle().await;
        start.cancel();
        drop(start);
        let stopped = job.until(|job| job.state == JobState::Stopped).within(Duration::from_secs(60)).await;
        assert!(stopped.is_ok(), "seed {seed}: {stopped:?}");
    }
}
