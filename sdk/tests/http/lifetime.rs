//! How reads begin and end, and what wakes them.

use std::time::Duration;

use outlast::http::feed::{FeedEnd, FeedItem, LogKind};
use outlast::http::poll::Pace;
use outlast::testing::{Net, Reply, SimulatedExchange, env};
use outlast::{Cause, End, Reading, WaitError};

use crate::world::{HOUR, MILLI, MINUTE, Record, Run, SECOND, World, doubted, run};

/// R8: a read gives up only where that was asked for; then it ends as closed, and its last value stays readable.
#[tokio::test(start_paused = true)]
async fn r8_a_read_gives_up_only_if_asked_to() {
    let world = World::new();
    world.ci.replies("/run", [run("running")]);
    let patient = world.get("/run").observe::<Run>().unwrap();
    let other = world.get("/run").give_up_after(MINUTE).observe::<Run>().unwrap();
    for read in [&patient, &other] {
        world.shows(read, "running", SECOND).await;
    }
    world.ci.kill();
    let (wait, took) = world.time(other.until(Run::is_over)).await;
    assert!(matches!(wait, Err(WaitError::Ended { end: End::Closed, .. })));
    assert!((MINUTE..MINUTE + 2 * SECOND).contains(&took), "after {took:?}");
    assert!(matches!(other.latest(), Reading::Ended { last: Some(last), .. } if last.status == "running"));
    world.pass(24 * HOUR).await;
    assert!(matches!(patient.latest(), Reading::Stale { .. }));
    world.ci.replies("/run", [run("success")]);
    world.ci.revive();
    world.shows(&patient, "success", 5 * SECOND + SECOND).await;
}

/// Dropping the last observer stops the requests, and abandons the one under way.
#[tokio::test(start_paused = true)]
async fn a_read_that_nobody_observes_stops() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), run("running"), run("running"), Reply::hang()]);
    let read = world.get("/run").observe::<Run>().unwrap();
    let (clone, wait) = (read.clone(), read.until(Run::is_over));
    drop(read);
    world.ci.until("/run", 2).await;
    drop(clone);
    world.ci.until("/run", 4).await; // a wait observes as well
    assert_eq!(world.ci.open(), 1);
    drop(wait);
    world.pass(MILLI).await;
    assert_eq!(world.ci.open(), 0, "the request under way goes on");
    world.pass(HOUR).await;
    assert_eq!(world.ci.total(), 4);
}

/// Reads keep their agent, and its budgets.
#[tokio::test(start_paused = true)]
async fn a_read_outlives_the_handle_of_its_agent() {
    let World { ci, env, agent, net: _net, clock: _clock } = World::new();
    ci.replies("/run", [run("running"), run("running"), run("success")]);
    let read = agent.get("http://ci.example/run").observe::<Run>().unwrap();
    drop(agent);
    let known = read.until(Run::is_over).within(MINUTE).await.unwrap();
    assert_eq!(known.status, "success");
    drop(env);
}

/// R9: a wait's own budget is no verdict; the read goes on and another wait succeeds.
#[tokio::test(start_paused = true)]
async fn r9_a_wait_without_time_says_still_pending() {
    let world = World::new();
    world.ci.replies("/run", [run("running")]);
    let read = world.get("/run").observe::<Run>().unwrap();
    let (wait, took) = world.time(read.until(Run::is_over).within(30 * SECOND)).await;
    let wait = wait.unwrap_err();
    assert!(wait.is_still_pending() && wait.last().is_fresh());
    assert!((30 * SECOND..30 * SECOND + 2 * MILLI).contains(&took), "after {took:?}");
    world.ci.replies("/run", [run("failure")]);
    assert_eq!(read.until(Run::is_over).within(2 * SECOND).await.unwrap().status, "failure");
}

/// R6: an observer that never looks delays no other, and sees the last value when it does.
#[tokio::test(start_paused = true)]
async fn r6_a_slow_observer_sees_the_newest() {
    let world = World::new();
    let values: Vec<_> = (0..50).map(|n| run(&format!("{n}"))).chain([run("success")]).collect();
    world.ci.replies("/run", values);
    let mut slow = world.get("/run").observe::<Run>().unwrap();
    assert!(matches!(slow.next().await, Some(Reading::Loading { .. })));
    world.shows(&slow.clone(), "success", MINUTE).await;
    assert!(matches!(slow.next().await, Some(Reading::Fresh(run)) if run.status == "success"));
}

/// Each look is told, and when the next one is planned.
#[tokio::test(start_paused = true)]
async fn looks_are_told() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), Reply::status(503).header("retry-after", 30), run("success")]);
    // The last interval is longer than the distance that a refusal for the rate leaves behind.
    let get = world.get("/run").pace(Pace::every(40 * SECOND));
    let (read, looks) = get.json::<Run>().observe_with_looks().unwrap();
    let first = looks.until(|look| look.number == 1).within(SECOND).await.unwrap();
    assert_eq!(first.status, Some(200));
    assert!((36 * SECOND..=40 * SECOND).contains(&first.next), "{:?}", first.next);
    let second = looks.until(|look| look.number == 2).within(41 * SECOND).await.unwrap();
    assert_eq!((second.status, second.next), (Some(503), 30 * SECOND));
    world.shows(&read, "success", 32 * SECOND).await;
    let third = looks.until(|look| look.number == 3).within(SECOND).await.unwrap();
    assert_eq!(third.status, Some(200));
    world.ci.kill();
    let none = looks.until(|look| look.status.is_none()).within(41 * SECOND).await.unwrap();
    assert!(none.next < SECOND, "{:?}", none.next);
}

/// Outside a runtime a read is refused, and says so.
#[test]
fn a_read_outside_a_runtime_is_an_error() {
    let error = outlast::http::get("http://ci.example/run").observe::<Run>().unwrap_err();
    assert!(error.is_invalid(), "{error:?}");
    assert!(error.to_string().starts_with("runtime: expected"), "{error}");
    let error = outlast::http::Agent::builder().build().unwrap_err();
    assert!(error.to_string().starts_with("runtime: expected"), "{error}");
}

/// An agent that has a runtime reads on it, wherever the read begins.
#[test]
fn an_agent_reads_on_its_own_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let net = Net::new();
    let (agent, ci) = runtime.block_on(async {
        let ci = outlast::testing::Script::serve(&net, "ci.example");
        ci.replies("/run", [run("success")]);
        let exchange = SimulatedExchange::new(net.clone());
        (outlast::http::Agent::builder().exchange(exchange).env(env(1)).build().unwrap(), ci)
    });
    let read = agent.get("http://ci.example/run").observe::<Run>().unwrap();
    let known = runtime.block_on(async { read.until(Run::is_over).within(SECOND).await.unwrap() });
    assert_eq!((known.status.clone(), ci.total()), ("success".to_owned(), 1));
}

/// The end of the agent's runtime ends its reads as closed: nobody is left waiting.
#[test]
fn the_end_of_the_runtime_closes_its_reads() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let net = Net::new();
    let read = runtime.block_on(async {
        let agent = outlast::http::Agent::builder().exchange(SimulatedExchange::new(net)).env(env(1)).build().unwrap();
        agent.get("http://ci.example/run").observe::<Run>().unwrap()
    });
    drop(runtime);
    assert!(matches!(read.latest(), Reading::Ended { end: End::Closed, .. }), "{:?}", read.latest());
}

/// Nor is who begins with that agent elsewhere: what it gives ends as closed at once. Over real sockets.
#[test]
fn an_agent_whose_runtime_is_over_leaves_nobody_waiting() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let over = runtime();
    let address = "http://127.0.0.1:1/";
    let agent = over.block_on(async { outlast::http::Agent::builder().build().unwrap() });
    let running = over.block_on(async { agent.get(address).observe::<Run>().unwrap() });
    drop(over);
    runtime().block_on(async {
        let closed = |wait: WaitError<Run>| assert_eq!(wait.end(), Some(End::Closed), "{wait}");
        closed(running.until(Run::is_over).within(5 * SECOND).await.unwrap_err());
        let late = agent.get(address).observe::<Run>().unwrap();
        closed(late.until(Run::is_over).within(5 * SECOND).await.unwrap_err());
        let mut log = agent.get(address).log(LogKind::Whole).unwrap();
        log.finish();
        let env = env(1);
        tokio::select! {
            item = log.next() => assert_eq!(item, Some(FeedItem::Ended(FeedEnd::Closed))),
            () = env.sleep_until(Some(env.instant() + 5 * SECOND)) => panic!("nothing comes"),
        }
    });
}

/// Bad input is a typed error that names the field, and nothing is sent.
#[tokio::test(start_paused = true)]
async fn bad_input_is_a_typed_error() {
    let world = World::new();
    for (url, field) in [
        ("", "url: expected an absolute"),
        ("/run", "url: expected an absolute"),
        ("ci.example/run", "url: expected an absolute"),
        ("ftp://ci.example/run", "url: expected an http://"),
        ("mailto:a@b", "url: expected an http://"),
        ("http://", "url: expected an absolute"),
        ("http://user@ci.example/", "url: expected no user"),
        ("http://:pass@ci.example/", "url: expected no user"),
    ] {
        let error = world.agent.get(url).observe::<Run>().unwrap_err();
        assert!(error.is_invalid() && error.to_string().starts_with(field), "{url}: {error}");
    }
    for (name, value, field) in [
        ("", "v", "header.name"),
        ("a b", "v", "header.name"),
        ("a", "v\r\nb: c", "header.value"),
        ("a", "\0", "header.value"),
        ("Host", "other.example", "header.name: expected none that frames or routes"),
        ("content-length", "5", "header.name"),
        ("transfer-encoding", "chunked", "header.name"),
        ("connection", "close", "header.name"),
        ("upgrade", "h2c", "header.name"),
    ] {
        let error = world.get("/run").header(name, value).header("b", "c").observe::<Run>().unwrap_err();
        assert!(error.is_invalid() && error.to_string().starts_with(field), "{name}: {error}");
    }
    world.pass(MINUTE).await;
    assert_eq!(world.ci.total(), 0);
}

/// What is asked for is what is sent: headers, query and all, without the fragment.
#[tokio::test(start_paused = true)]
async fn a_request_has_what_was_asked_for() {
    let world = World::new();
    world.ci.replies("/run", [run("running")]);
    let get = world.get("/run?a=1&a=%2F2#part").header("x-trace", "1").header("accept", "application/vnd.ci+json");
    let read = get.observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    let asked = &world.ci.asked("/run")[0];
    assert_eq!(asked.target, "/run?a=1&a=%2F2");
    assert_eq!((asked.header("x-trace"), asked.header("accept")), (Some("1"), Some("application/vnd.ci+json")));
    assert!(asked.header("user-agent").unwrap().starts_with("outlast/"));
}

/// R1: what fails while nobody looks is shown with the time since when.
#[tokio::test(start_paused = true)]
async fn r1_a_stale_value_says_since_when() {
    let world = World::new();
    world.ci.replies("/run", [run("running")]);
    let read = world.get("/run").observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    world.ci.kill();
    let start = world.env.tokio_instant(world.env.instant());
    world.pass(10 * MINUTE).await;
    let Reading::Stale { since, cause: Cause::Unreachable { .. }, .. } = read.latest() else {
        panic!("{:?}", read.latest());
    };
    assert!(since - start <= Duration::from_secs(1));
    doubted(&world.env, &read, MILLI, |cause| matches!(cause, Cause::Unreachable { .. })).await;
}

/// The record of an ended read ends as well.
#[tokio::test(start_paused = true)]
async fn nothing_follows_an_end() {
    let world = World::new();
    world.ci.replies("/run", [Reply::status(410)]);
    let mut read = world.get("/run").observe::<Run>().unwrap();
    let seen = Record::of(&read);
    while read.next().await.is_some() {}
    assert_eq!((seen.end(), world.ci.total()), (Some(End::Gone), 1));
}
