//! Each misbehaviour of a script, as the simulated exchange sees it.
#![expect(clippy::disallowed_methods, reason = "a test waits in virtual time")]

use std::time::Duration;

use ::http::{Method, Version};
use bytes::Bytes;
use serde_json::json;
use tokio::time::{Instant, timeout};
use url::Url;

use crate::http::Exchange;
use crate::http::exchange::{Answer, Connection, Failure, FailureKind, Request};
use crate::testing::{Net, Reply, Script, SimulatedExchange};

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(3600);

fn get(target: &str) -> Request {
    Request::get(Url::parse("http://ci.example/").unwrap().join(target).unwrap())
}

fn fresh(target: &str) -> Request {
    let mut request = get(target);
    request.connection = Connection::Fresh;
    request
}

struct World {
    script: Script,
    exchange: SimulatedExchange,
}

impl World {
    fn of(replies: impl IntoIterator<Item = Reply>) -> Self {
        let net = Net::new();
        let script = Script::serve(&net, "ci.example");
        script.replies("/run", replies);
        Self { script, exchange: SimulatedExchange::new(net) }
    }

    async fn head(&self) -> Result<Answer, Failure> {
        self.exchange.send(get("/run")).await
    }

    async fn body(&self) -> Result<Bytes, Failure> {
        body(&mut self.head().await?).await
    }

    /// The kind of failure of a whole exchange.
    async fn failure(&self) -> FailureKind {
        self.body().await.unwrap_err().kind
    }
}

async fn body(answer: &mut Answer) -> Result<Bytes, Failure> {
    let mut all = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all.into())
}

/// Lets every task run until all wait.
async fn settle() {
    tokio::time::sleep(Duration::from_nanos(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_and_its_connection_is_used_again() {
    let world = World::of([Reply::json(json!({ "status": "running" })).header("etag", "\"7\""), Reply::status(304)]);
    let mut answer = world.exchange.send(get("/run?page=2")).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.version), (200, Version::HTTP_11));
    assert_eq!(answer.headers["etag"], "\"7\"");
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(body(&mut answer).await.unwrap(), r#"{"status":"running"}"#);
    for _ in 0..2 {
        // Without a body nobody has to ask for its end.
        assert_eq!(world.head().await.unwrap().status, 304);
    }
    assert_eq!((world.script.connections(), world.script.total()), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_end_is_not_asked_for_does_not_hold_its_connection() {
    let world = World::of([Reply::text("done")]);
    assert_eq!(world.head().await.unwrap().chunk().await.unwrap().unwrap(), "done");
    world.body().await.unwrap();
    assert_eq!(world.script.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_service_sees_the_request_as_it_was_made() {
    let world = World::of([]);
    let mut request = Request::get("http://user:secret@ci.example:8080/run?page=2#top".parse().unwrap());
    request.method = Method::POST;
    request.headers.insert("accept", "text/plain".parse().unwrap());
    request.body = "hello".into();
    let at = Instant::now();
    assert_eq!(world.exchange.send(request).await.unwrap().status, 404);
    let asked = world.script.until("/run", 1).await;
    assert_eq!((&asked.method, &*asked.target, asked.path()), (&Method::POST, "/run?page=2", "/run"));
    assert_eq!((asked.header("host"), asked.header("accept")), (Some("ci.example:8080"), Some("text/plain")));
    assert_eq!((asked.header("content-length"), asked.header("authorization")), (Some("5"), None));
    assert_eq!((&*asked.body, asked.at, asked.connection), (&b"hello"[..], at, 1));
    assert!(!format!("{asked:?}").contains("page"), "a query may hold secrets");
}

#[tokio::test(start_paused = true)]
async fn a_target_with_its_query_goes_before_one_without() {
    let world = World::of([Reply::status(200)]);
    world.script.replies("/run?page=2", [Reply::status(502), Reply::status(503)]);
    let mut n = 0;
    world.script.on("/count", move |asked| {
        n += 1;
        Reply::text(format!("{} {n}", asked.method))
    });
    for (target, status) in [("/run?page=1", 200), ("/run?page=2", 502), ("/run?page=2", 503), ("/run?page=2", 503)] {
        assert_eq!(world.exchange.send(get(target)).await.unwrap().status, status);
    }
    for expected in ["GET 1", "GET 2"] {
        assert_eq!(body(&mut world.exchange.send(get("/count")).await.unwrap()).await.unwrap(), expected);
    }
    assert_eq!((world.script.asked("/run").len(), world.script.asked("/run?page=2").len()), (4, 3));
    world.script.replies("/run?page=2", []);
    assert_eq!(world.exchange.send(get("/run?page=2")).await.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_can_be_waited_for() {
    let world = World::of([Reply::status(200)]);
    let asks = async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.head().await.unwrap();
        }
    };
    let begun = Instant::now();
    let (third, ()) = tokio::join!(world.script.until("/run", 3), asks);
    assert_eq!(third.at - begun, Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_body_may_be_larger_than_what_the_network_holds() {
    let large = Bytes::from(vec![b'x'; 1 << 20]);
    let world = World::of([Reply::bytes(large.clone()), Reply::chunked([large.clone()]).ends()]);
    assert_eq!(world.body().await.unwrap(), large);
    assert_eq!(world.body().await.unwrap(), large);
    assert_eq!(world.script.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_when_it_should() {
    let world = World::of([Reply::text("late").after(Duration::from_secs(30))]);
    let begun = Instant::now();
    assert_eq!(world.body().await.unwrap(), "late");
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn nothing_that_listens_is_no_connection_and_no_name_is_unresolved() {
    let net = Net::new();
    let exchange = SimulatedExchange::new(net.clone());
    assert_eq!(exchange.send(get("/")).await.unwrap_err().kind, FailureKind::Connect);
    net.name("ci.example", []);
    assert_eq!(exchange.send(get("/")).await.unwrap_err().kind, FailureKind::Resolve);
    net.name("ci.example", ["10.0.0.1", "10.0.0.2"]);
    let script = Script::serve(&net, "10.0.0.2");
    assert_eq!(exchange.send(get("/")).await.unwrap().status, 404);
    assert_eq!((net.connects("10.0.0.1"), script.asked("/")[0].header("host")), (1, Some("ci.example")));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_before_the_head_is_closed() {
    for reply in [Reply::close(), Reply::raw(""), Reply::raw("HTTP/1.1 200 OK\r\ncontent-le")] {
        let world = World::of([reply.clone()]);
        assert_eq!(world.failure().await, FailureKind::Closed, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_before_its_end_is_incomplete() {
    let pieces = || Reply::chunked(["first ", "second"]).ends();
    for (reply, begin) in [
        (Reply::text("first second").cut(8), "first se"),
        (Reply::text("first second").cut(0), ""),
        (Reply::text("first second").length(100), "first second"),
        (pieces().cut(8), "first se"),
        (pieces().cut(6), "first "),
        (pieces().cut(12), "first second"), // all of it, but not the last chunk
        (Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfour"), "four"),
    ] {
        let world = World::of([reply.clone()]);
        let mut answer = world.head().await.unwrap();
        let mut came = Vec::new();
        let failure = loop {
            match answer.chunk().await {
                Ok(piece) => came.extend_from_slice(&piece.expect("no complete end")),
                Err(failure) => break failure.kind,
            }
        };
        assert_eq!((failure, &*came), (FailureKind::Incomplete, begin.as_bytes()), "{reply:?}");
        assert_eq!(answer.chunk().await, Ok(None), "nothing follows a failure");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_http_is_malformed() {
    for reply in [
        Reply::raw("SSH-2.0-OpenSSH_9.6\r\n"),
        Reply::raw("HTTP/1.1 twohundred OK\r\n\r\n"),
        Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"),
        Reply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
        Reply::text("ok").header("bad name", "1"),
        (0..200).fold(Reply::text("ok"), |reply, n| reply.header(format!("x-{n}"), n)),
    ] {
        let world = World::of([reply.clone()]);
        assert_eq!(world.failure().await, FailureKind::Malformed, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_service_says_nothing_until_it_dies() {
    let world = World::of([Reply::hang()]);
    let mut answer = Box::pin(world.head());
    assert!(timeout(LONG, &mut answer).await.is_err());
    assert_eq!(world.script.total(), 1);
    world.script.kill();
    assert_eq!(answer.await.unwrap_err().kind, FailureKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_body_says_nothing_until_the_service_dies() {
    for reply in [
        Reply::text("first second").stalls(6),
        Reply::chunked(["first ", "second"]).ends().stalls(6),
        Reply::chunked(["first "]), // without its end
        Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nfirst second").stalls(45),
    ] {
        let world = World::of([reply.clone()]);
        let mut answer = world.head().await.unwrap();
        assert_eq!(answer.chunk().await.unwrap().unwrap(), "first ", "{reply:?}");
        assert!(timeout(LONG, answer.chunk()).await.is_err(), "{reply:?}");
        world.script.kill();
        assert_eq!(answer.chunk().await.unwrap_err().kind, FailureKind::Incomplete, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_grows_comes_piece_by_piece_and_from_its_start_for_each() {
    let (reply, events) = Reply::stream();
    let world = World::of([reply.header("content-type", "text/event-stream")]);
    events.send("one");
    events.send("");
    let mut answer = world.head().await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "one");
    assert!(timeout(LONG, answer.chunk()).await.is_err());
    events.send("two");
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "two");
    let mut another = world.head().await.unwrap();
    assert_eq!((another.chunk().await.unwrap().unwrap(), events.readers()), ("one".into(), 2));
    drop(another);
    settle().await;
    assert_eq!(events.readers(), 1, "who goes is seen to go");
    events.end();
    assert_eq!(answer.chunk().await, Ok(None));
    assert_eq!(world.body().await.unwrap(), "onetwo");

    let (reply, events) = Reply::stream();
    let world = World::of([reply]);
    let mut answer = world.head().await.unwrap();
    events.cut();
    assert_eq!(answer.chunk().await.unwrap_err().kind, FailureKind::Incomplete);
}

/// FC-90: the service ends an idle connection exactly when the next request arrives on it.
#[tokio::test(start_paused = true)]
async fn a_pooled_connection_that_ends_under_a_request_is_closed_and_a_fresh_one_answers() {
    let world = World::of([Reply::text("ok")]);
    world.body().await.unwrap();
    world.script.close_idle_on_next_request();
    let failure = world.head().await.unwrap_err();
    assert_eq!((failure.kind, failure.is_unsent()), (FailureKind::Closed, false));
    assert_eq!((world.script.total(), world.script.hung_up()), (1, 1));
    world.body().await.unwrap();
    world.body().await.unwrap();
    assert_eq!((world.script.connections(), world.script.hung_up()), (2, 1), "only what was idle is ended");
}

/// FC-90: a fresh connection is never one of the pool, so that one retry is enough however many are stale.
#[tokio::test(start_paused = true)]
async fn a_fresh_request_does_not_touch_the_pool() {
    let world = World::of([Reply::text("ok")]);
    let (a, b) = tokio::join!(world.head(), world.head());
    for answer in [a, b] {
        body(&mut answer.unwrap()).await.unwrap();
    }
    world.script.close_idle_on_next_request();
    body(&mut world.exchange.send(fresh("/run")).await.unwrap()).await.unwrap();
    assert_eq!((world.script.connections(), world.script.hung_up()), (3, 0));
    world.body().await.unwrap();
    assert_eq!(world.script.connections(), 3, "the newest is used first");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ended_while_idle_is_no_failure() {
    let world = World::of([Reply::text("ok").closes(), Reply::text("ok")]);
    world.body().await.unwrap();
    world.body().await.unwrap();
    assert_eq!(world.script.connections(), 2, "the first was closed as announced");
    world.script.kill();
    world.script.revive();
    world.body().await.unwrap();
    assert_eq!(world.script.connections(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_follows_an_answer_unasked_spoils_the_connection_and_no_other_answer() {
    let world = World::of([Reply::text("onetwo").length(3), Reply::text("ok")]);
    assert_eq!(world.body().await.unwrap(), "one");
    assert_eq!(world.body().await.unwrap(), "ok");
    assert_eq!(world.script.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_script_outlives_the_service() {
    let world = World::of([Reply::text("one"), Reply::text("two")]);
    world.body().await.unwrap();
    world.script.kill();
    assert_eq!(world.script.open(), 0, "at once");
    assert_eq!(world.failure().await, FailureKind::Connect, "its connection is gone, not about to go");
    world.script.revive();
    assert_eq!(world.body().await.unwrap(), "two");
    assert_eq!((world.script.asked("/run").len(), world.script.connections(), world.script.open()), (2, 2, 1));
    drop(world.script);
    assert_eq!(world.exchange.send(fresh("/run")).await.unwrap_err().kind, FailureKind::Connect);
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_waiting_ends_the_connection() {
    let world = World::of([Reply::hang(), Reply::text("first second").stalls(6)]);
    assert!(timeout(LONG, world.head()).await.is_err());
    settle().await;
    assert_eq!((world.script.connections(), world.script.open()), (1, 0), "before the head");
    let mut answer = world.head().await.unwrap();
    answer.chunk().await.unwrap();
    settle().await;
    assert_eq!(world.script.open(), 1);
    drop(answer);
    settle().await;
    assert_eq!((world.script.connections(), world.script.open()), (2, 0), "in the body");
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_body_has_none() {
    let world = World::of([Reply::text("body")]);
    let mut head = get("/run");
    head.method = Method::HEAD;
    let mut answer = world.exchange.send(head).await.unwrap();
    assert_eq!(answer.headers["content-length"], "4");
    assert_eq!(answer.chunk().await, Ok(None));
    for status in [204, 304] {
        world.script.replies("/run", [Reply::text("no").with_status(status)]);
        let mut answer = world.head().await.unwrap();
        assert_eq!((answer.headers.contains_key("content-length"), answer.chunk().await), (false, Ok(None)));
    }
    assert_eq!(world.script.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_informational_answer_is_skipped() {
    let world = World::of([Reply::raw(
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    )]);
    assert_eq!(world.body().await.unwrap(), "ok");
}
