//! Paths that fall silent, services that move, connections that end at the wrong moment.

use std::time::Duration;

use bytes::Bytes;
use outlast::Cause;
use outlast::error::Phase;
use outlast::http::poll::Pace;
use outlast::testing::{Net, Script, SimulatedExchange};
use tokio::task::JoinSet;

use crate::world::{MILLI, MINUTE, Record, Run, SECOND, World, doubted, run, stalled};

/// FC-26, R7: after idle minutes the path loses every packet without a word. It is found within the bound on the first
/// byte, and the next request goes out on another connection.
#[tokio::test(start_paused = true)]
async fn fc_26_a_path_that_fell_silent_is_found_and_left() {
    let world = World::new();
    world.ci.replies("/run", [run("queued"), run("running")]);
    // Sooner than a pooled connection is given up for its age.
    let read = world.get("/run").pace(Pace::every(80 * SECOND)).observe::<Run>().unwrap();
    world.shows(&read, "queued", SECOND).await;
    world.pass(10 * SECOND).await;
    world.net.silence("ci.example");
    world.net.heal("ci.example");
    // The next look is at most 70 s away; then the bound, and one step.
    let is = stalled(Phase::FirstByte, 15 * SECOND);
    doubted(&world.env, &read, 70 * SECOND + 15 * SECOND + MILLI, is).await;
    world.shows(&read, "running", 500 * MILLI).await;
    let asked = world.ci.asked("/run");
    assert_eq!((asked[0].connection, asked[1].connection, asked.len()), (1, 2, 2));
}

/// FC-26: what else is pooled is not trusted either: the next request is not written to another dead connection.
#[tokio::test(start_paused = true)]
async fn fc_26_a_pool_of_silent_connections_is_left_at_once() {
    let world = World::new();
    world.ci.replies("/run", [run("queued").after(SECOND)]);
    let others: Vec<_> = (0..3).map(|_| world.get("/run").observe::<Run>().unwrap()).collect();
    let read = world.get("/run").pace(Pace::every(20 * SECOND)).observe::<Run>().unwrap();
    world.shows(&read, "queued", 3 * SECOND).await;
    drop(others);
    world.pass(2 * SECOND).await;
    let open = world.ci.connections();
    assert!(open > 1, "nothing else is pooled");
    world.ci.replies("/run", [run("running")]);
    world.net.silence("ci.example");
    world.net.heal("ci.example");
    doubted(&world.env, &read, 36 * SECOND, stalled(Phase::FirstByte, 15 * SECOND)).await;
    world.shows(&read, "running", 500 * MILLI).await;
    assert_eq!(world.ci.connections(), open + 1);
}

/// FC-26: while the path stays dark, each round is bounded, and the first one after it is light again succeeds.
#[tokio::test(start_paused = true)]
async fn fc_26_a_dark_path_is_dialed_until_it_is_light() {
    let world = World::new();
    world.ci.replies("/run", [run("running")]);
    let read = world.get("/run").observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.shows(&read, "running", SECOND).await;
    world.net.silence("ci.example");
    world.pass(10 * MINUTE).await;
    let dials = world.net.connects("ci.example");
    assert!((50..200).contains(&dials), "{dials} dials in ten minutes");
    assert!(seen.causes().iter().any(stalled(Phase::Connect, 5 * SECOND)), "{:?}", seen.causes());
    world.net.heal("ci.example");
    // The dial that hangs, and the longest delay.
    world.shows(&read, "running", 5 * SECOND + 5 * SECOND + SECOND).await;
    assert_eq!(seen.end(), None);
}

/// FC-42, R8: the service comes back at another address while it is being dialed. Each attempt resolves afresh: it is
/// found within one step, whether the old address refuses or is dark.
#[tokio::test(start_paused = true)]
async fn fc_42_a_service_that_moves_is_found_within_one_step() {
    for dark in [false, true] {
        let world = World::new();
        world.net.name("ci.example", ["10.0.0.1"]);
        let before = Script::serve(&world.net, "10.0.0.1");
        before.replies("/run", [run("running")]);
        let read = world.get("/run").observe::<Run>().unwrap();
        let seen = Record::of(&read);
        world.shows(&read, "running", SECOND).await;
        if dark {
            world.net.silence("10.0.0.1");
        }
        before.kill();
        world.pass(MINUTE).await;
        assert!(!read.latest().is_fresh());
        let after = Script::serve(&world.net, "10.0.0.2");
        after.replies("/run", [run("success")]);
        world.net.name("ci.example", ["10.0.0.2"]);
        // A twentieth of the outage; of a dark address the connect that hangs is to be waited for.
        let step = 3_300 * MILLI + if dark { 5 * SECOND } else { Duration::ZERO };
        world.shows(&read, "success", step).await;
        assert_eq!(seen.end(), None);
    }
}

/// FC-90, R1: the service closes an idle connection exactly when the next request is written to it. One more request
/// goes out, on a fresh connection, and nobody sees anything of it.
#[tokio::test(start_paused = true)]
async fn fc_90_a_request_on_a_connection_that_ends_is_repeated_once() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), run("success")]);
    let read = world.get("/run").observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.shows(&read, "running", SECOND).await;
    world.ci.close_idle_on_next_request();
    world.shows(&read, "success", 1_500 * MILLI).await;
    assert_eq!((world.ci.hung_up(), world.ci.total(), world.ci.connections()), (1, 2, 2));
    assert_eq!(world.ci.asked("/run")[1].connection, 2);
    assert!(seen.causes().is_empty(), "{:?}", seen.causes());
    assert_eq!(seen.statuses(), ["running", "success"]);
}

/// FC-90: once, and no more: what ends every request is an outage.
#[tokio::test(start_paused = true)]
async fn fc_90_a_service_that_ends_every_request_is_an_outage() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), outlast::testing::Reply::close()]);
    let read = world.get("/run").observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    doubted(&world.env, &read, 2 * SECOND, |cause| matches!(cause, Cause::Dropped { .. })).await;
    assert_eq!(world.ci.total(), 3);
    world.pass(10 * MINUTE).await;
    let asked = world.ci.total();
    world.pass(MINUTE).await;
    assert!(world.ci.total() - asked <= 70, "{} in a minute", world.ci.total() - asked);
}

/// An HTTP/2 service that holds each request that asks it to, and answers any other with `status`.
fn http2(net: &Net, status: &'static str) -> JoinSet<()> {
    let mut listener = net.listen("ci.example");
    let mut life = JoinSet::new();
    life.spawn(async move {
        let mut connections = JoinSet::new();
        while let Some(io) = listener.accept().await {
            connections.spawn(async move {
                let mut connection = h2::server::handshake(io).await.unwrap();
                let mut held = Vec::new();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    if request.headers().contains_key("prefer") {
                        held.push(respond);
                        continue;
                    }
                    let head = http::Response::builder().header("etag", "\"1\"");
                    let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
                    body.send_data(Bytes::from(format!("{{\"status\":\"{status}\"}}")), true).unwrap();
                }
            });
        }
    });
    life
}

/// FC-91, R7: an HTTP/2 connection with ten reads on it is black-holed. It is evicted within 45 s, though each long poll
/// may take an hour, every read says why, and all succeed on another connection.
#[tokio::test(start_paused = true)]
async fn fc_91_a_black_holed_http2_connection_is_evicted() {
    let net = Net::new();
    let exchange = SimulatedExchange::new(net.clone()).http2();
    let world = World::over(net, exchange, MILLI);
    let before = http2(&world.net, "running");
    let reads: Vec<_> =
        (0..10).map(|n| world.get(&format!("/{n}")).wait(60 * MINUTE).observe::<Run>().unwrap()).collect();
    for read in &reads {
        world.shows(read, "running", SECOND).await;
    }
    world.pass(10 * MINUTE).await;
    assert_eq!(world.net.connects("ci.example"), 1, "one connection for all");
    let seen: Vec<_> = reads.iter().map(Record::of).collect();
    world.net.silence("ci.example");
    drop(before);
    let _after = http2(&world.net, "success");
    world.net.heal("ci.example");
    let start = world.env.instant();
    for read in &reads {
        world.shows(read, "success", 45 * SECOND).await;
    }
    assert!(world.env.instant().since(start) <= 45 * SECOND);
    assert!(seen.iter().all(|seen| seen.end().is_none()));
    let late = world.get("/late").observe::<Run>().unwrap();
    world.shows(&late, "success", SECOND).await;
}
