//! What the exchange does with its connections, and HTTP/2 against a hand-driven service.
#![expect(clippy::disallowed_methods, reason = "a test waits in virtual time")]

use std::time::Duration;

use ::http::{Response, StatusCode, Version};
use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::error::Phase;
use crate::http::Exchange;
use crate::http::exchange::{Connection, FailureKind, Progress, Request};
use crate::testing::{Net, Reply, Script, SimulatedExchange};

const LONG: Duration = Duration::from_secs(3600);

fn get(url: &str) -> Request {
    Request::get(url.parse().unwrap())
}

fn fresh(url: &str) -> Request {
    let mut request = get(url);
    request.connection = Connection::Fresh;
    request
}

async fn settle() {
    tokio::time::sleep(Duration::from_nanos(1)).await;
}

#[tokio::test(start_paused = true)]
async fn the_phases_are_told_so_that_each_can_be_bounded() {
    for http2 in [false, true] {
        let net = Net::new();
        let exchange = SimulatedExchange::new(net.clone());
        let exchange = if http2 { exchange.http2() } else { exchange };
        let (progress, phases) = Progress::observed();
        let mut request = get("http://ci.example/");
        request.progress = progress;
        net.silence("ci.example");
        assert!(timeout(LONG, exchange.send(request.clone())).await.is_err());
        assert_eq!(phases.last(), Phase::Connect);
        net.heal("ci.example");
        let _listener = net.listen("ci.example"); // and it never says anything
        assert!(timeout(Duration::from_secs(10), exchange.send(request)).await.is_err());
        assert_eq!(phases.last(), Phase::FirstByte);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pooled_connection_begins_with_the_request() {
    let net = Net::new();
    let script = Script::serve(&net, "ci.example");
    script.replies("/", [Reply::text("ok")]);
    let exchange = SimulatedExchange::new(net.clone());
    exchange.send(get("http://ci.example/")).await.unwrap().chunk().await.unwrap();
    net.name("ci.example", []); // it would not resolve any more
    exchange.send(get("http://ci.example/")).await.unwrap();
    assert_eq!(exchange.send(fresh("http://ci.example/")).await.unwrap_err().kind, FailureKind::Resolve);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_kept_for_90_s() {
    let net = Net::new();
    let script = Script::serve(&net, "ci.example");
    let exchange = SimulatedExchange::new(net);
    for (idle, connections) in [(0, 1), (89, 1), (90, 2)] {
        tokio::time::sleep(Duration::from_secs(idle)).await;
        let mut answer = exchange.send(get("http://ci.example/")).await.unwrap();
        while answer.chunk().await.unwrap().is_some() {}
        assert_eq!(script.connections(), connections, "after {idle} s");
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_and_ports_do_not_share_connections() {
    let net = Net::new();
    let script = Script::serve(&net, "10.0.0.1");
    for name in ["a.example", "b.example"] {
        net.name(name, ["10.0.0.1"]);
    }
    let exchange = SimulatedExchange::new(net);
    for url in ["http://a.example/", "http://b.example/", "http://a.example:81/", "http://a.example:80/"] {
        let mut answer = exchange.send(get(url)).await.unwrap();
        while answer.chunk().await.unwrap().is_some() {}
    }
    assert_eq!(script.connections(), 3, "port 80 is the same as none");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_says_so() {
    let exchange = SimulatedExchange::new(Net::new());
    for exchange in [exchange.clone(), exchange.http2()] {
        let failure = exchange.send(get("https://user:secret@ci.example/?token=secret")).await.unwrap_err();
        assert_eq!((failure.kind, &*failure.detail), (FailureKind::Request, "url: expected http://, found https://"));
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_exchange_ends_its_connections_and_unfinished_answers() {
    let net = Net::new();
    let script = Script::serve(&net, "ci.example");
    script.replies("/hang", [Reply::hang()]);
    script.replies("/stall", [Reply::text("first second").stalls(6)]);
    let exchange = SimulatedExchange::new(net);
    let mut waits = JoinSet::new();
    waits.spawn(exchange.send(get("http://ci.example/hang")));
    let mut answer = exchange.send(get("http://ci.example/stall")).await.unwrap();
    answer.chunk().await.unwrap();
    exchange.send(get("http://ci.example/idle")).await.unwrap().chunk().await.unwrap();
    assert_eq!(script.open(), 3);
    drop(exchange);
    assert_eq!(answer.chunk().await.unwrap_err().kind, FailureKind::Incomplete);
    assert_eq!(waits.join_next().await.unwrap().unwrap().unwrap_err().kind, FailureKind::Closed);
    settle().await;
    assert_eq!(script.open(), 0);
}

/// What the HTTP/2 service does with a request, by its path.
async fn act(path: &str, mut respond: SendResponse<Bytes>) {
    match path {
        "/refused" => respond.send_reset(Reason::REFUSED_STREAM),
        "/broken" => respond.send_reset(Reason::INTERNAL_ERROR),
        "/half" => {
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data("half".into(), false).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            body.send_reset(Reason::INTERNAL_ERROR);
        }
        "/hang" => std::future::pending().await,
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            respond.send_response(Response::new(()), true).unwrap();
        }
        _ => {
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data(path.to_owned().into(), true).unwrap();
        }
    }
}

/// An HTTP/2 service, which leaves with a GOAWAY when asked for `/leave`.
fn service(net: &Net) -> JoinSet<()> {
    let mut listener = net.listen("ci.example");
    let mut life = JoinSet::new();
    life.spawn(async move {
        let mut connections = JoinSet::new();
        while let Some(io) = listener.accept().await {
            connections.spawn(async move {
                let mut streams = JoinSet::new();
                let mut connection = h2::server::handshake(io).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    let path = request.uri().path().to_owned();
                    if path == "/leave" {
                        connection.graceful_shutdown();
                    }
                    streams.spawn(async move { act(&path, respond).await });
                }
            });
        }
    });
    life
}

struct World {
    net: Net,
    life: JoinSet<()>,
    exchange: SimulatedExchange,
}

impl World {
    fn new() -> Self {
        let net = Net::new();
        let exchange = SimulatedExchange::new(net.clone()).http2();
        Self { life: service(&net), net, exchange }
    }

    /// The kind of failure of a whole exchange.
    async fn failure(&self, path: &str) -> FailureKind {
        let mut answer = match self.exchange.send(get(&format!("http://ci.example{path}"))).await {
            Ok(answer) => answer,
            Err(failure) => return failure.kind,
        };
        loop {
            match answer.chunk().await {
                Ok(piece) => assert!(piece.is_some(), "a whole answer"),
                Err(failure) => return failure.kind,
            }
        }
    }

    async fn ok(&self, path: &str) {
        let mut answer = self.exchange.send(get(&format!("http://ci.example{path}"))).await.unwrap();
        assert_eq!((answer.status, answer.version), (StatusCode::OK, Version::HTTP_2));
        assert_eq!(answer.chunk().await.unwrap().unwrap(), path);
        assert_eq!(answer.chunk().await, Ok(None));
    }
}

#[tokio::test(start_paused = true)]
async fn http2_requests_share_one_connection() {
    let world = World::new();
    tokio::join!(world.ok("/a"), world.ok("/b"), world.ok("/c"));
    world.ok("/d").await;
    assert_eq!(world.net.connects("ci.example"), 1);
    world.exchange.send(fresh("http://ci.example/")).await.unwrap();
    world.ok("/e").await;
    assert_eq!(world.net.connects("ci.example"), 2, "a fresh one takes its place");
}

/// RFC 9113, 8.7.
#[tokio::test(start_paused = true)]
async fn http2_streams_that_were_refused_were_not_processed() {
    let world = World::new();
    assert_eq!(world.failure("/refused").await, FailureKind::NotProcessed);
    assert_eq!(world.failure("/broken").await, FailureKind::Closed, "this one may have been");
    assert_eq!(world.failure("/half").await, FailureKind::Incomplete);
    world.ok("/a").await;
    assert_eq!(world.net.connects("ci.example"), 1, "a stream that failed is no reason to leave a connection");
}

/// RFC 9113, 6.8: what lies past the last stream of a GOAWAY was not processed, what lies before may have been.
#[tokio::test(start_paused = true)]
async fn http2_requests_past_a_goaway_were_not_processed() {
    let net = Net::new();
    let mut listener = net.listen("ci.example");
    let mut life = JoinSet::new();
    life.spawn(async move {
        let io = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(io).await.unwrap();
        let first = connection.accept().await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The second request is in the pipe, unread; h2 says goodbye without a look at it.
        connection.abrupt_shutdown(Reason::NO_ERROR);
        let _ = std::future::poll_fn(|cx| connection.poll_closed(cx)).await;
        drop(first);
    });
    let exchange = SimulatedExchange::new(net.clone()).http2();
    let second = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        exchange.send(get("http://ci.example/second")).await
    };
    let (first, second) = tokio::join!(exchange.send(get("http://ci.example/first")), second);
    assert_eq!(second.unwrap_err().kind, FailureKind::NotProcessed);
    assert_eq!(first.unwrap_err().kind, FailureKind::Closed);
    assert_eq!(net.connects("ci.example"), 1);
}

#[tokio::test(start_paused = true)]
async fn http2_a_connection_that_was_left_finishes_its_requests_and_takes_no_more() {
    let world = World::new();
    let (slow, ()) = tokio::join!(world.exchange.send(get("http://ci.example/slow")), async {
        settle().await;
        world.ok("/leave").await;
        settle().await;
        world.ok("/next").await;
    });
    assert_eq!(slow.unwrap().status, StatusCode::OK);
    assert_eq!(world.net.connects("ci.example"), 2);
}

/// FC-91: a connection that fell silent is found by its pings, within 15 s, and is not used again.
#[tokio::test(start_paused = true)]
async fn http2_a_silent_connection_ends_within_interval_and_timeout() {
    let world = World::new();
    world.ok("/a").await;
    let hang = async {
        let failure = world.failure("/hang").await;
        (failure, Instant::now())
    };
    let silence = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.net.silence("ci.example");
        Instant::now()
    };
    let ((failure, noticed), silent) = tokio::join!(hang, silence);
    assert_eq!(failure, FailureKind::Closed);
    assert!(noticed - silent <= Duration::from_secs(15), "after {:?}", noticed - silent);
    world.net.heal("ci.example");
    world.ok("/b").await;
    assert_eq!(world.net.connects("ci.example"), 2);

    // And one that is idle all the while.
    world.net.silence("ci.example");
    tokio::time::sleep(Duration::from_secs(16)).await;
    world.net.heal("ci.example");
    timeout(Duration::from_secs(1), world.ok("/c")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn http2_a_service_that_dies_ends_its_requests() {
    let mut world = World::new();
    world.ok("/a").await;
    let mut hang = Box::pin(world.exchange.send(get("http://ci.example/hang")));
    assert!(timeout(Duration::from_secs(1), &mut hang).await.is_err());
    world.life = service(&world.net);
    assert_eq!(hang.await.unwrap_err().kind, FailureKind::Closed);
    world.ok("/b").await;
}

#[tokio::test(start_paused = true)]
async fn http2_what_is_not_http2_is_malformed() {
    let net = Net::new();
    let _script = Script::serve(&net, "ci.example"); // speaks HTTP/1.1
    let exchange = SimulatedExchange::new(net).http2();
    assert_eq!(exchange.send(get("http://ci.example/")).await.unwrap_err().kind, FailureKind::Malformed);
}
