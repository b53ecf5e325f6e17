//! Streams over a network in memory, in virtual time, beside a read of a scripted service.
#![expect(clippy::disallowed_methods, reason = "waits in virtual time")]

mod alternatives;
mod events;
mod faults;
mod profiles;
mod sockets;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use ::http::HeaderMap;

use super::*;
use crate::http::poll::Marks;
use crate::http::{Agent, Get, Read};
use crate::testing::{Listener, Net, Reply, Script, SimulatedExchange, env};
use crate::transport::Io;
use crate::{Observable, Reading};

const SECOND: Duration = Duration::from_secs(1);
const HOST: &str = "ci.example";
const RUN: &str = "http://ci.example/run";
const WS: &str = "ws://ci.example/ws";
const EVENTS: &str = "http://ci.example/events";

/// A service whose `/run` has a number, and whose WebSockets are accepted by hand.
struct Site {
    ci: Script,
    /// Where WebSockets connect: the same names, another network.
    sockets: Net,
    agent: Agent,
    run: Arc<Mutex<u64>>,
}

impl Site {
    fn new() -> Self {
        let (rest, sockets) = (Net::new(), Net::new());
        let ci = Script::serve(&rest, HOST);
        let run = Arc::new(Mutex::new(1));
        let read = Arc::clone(&run);
        ci.on("/run", move |_| Reply::json(json!({ "n": *read.lock().unwrap() })));
        let exchange = SimulatedExchange::new(rest);
        let agent = Agent::builder().exchange(exchange).network(sockets.clone()).env(env(5)).build().unwrap();
        Self { ci, sockets, agent, run }
    }

    fn set(&self, n: u64) {
        *self.run.lock().unwrap() = n;
    }

    fn get(&self) -> Get {
        self.agent.get(RUN)
    }

    fn looks(&self) -> usize {
        self.ci.asked("/run").len()
    }
}

/// Another stream takes the place of one only where it was set up otherwise.
#[test]
fn two_streams_tell_of_the_same_where_all_that_was_set_up_is_the_same() {
    let events = || Push::events(EVENTS);
    let socket = || Push::websocket(WS);
    let told = socket().confirmed_by(|_| true).values(|_| None);
    let kinds: Vec<Push> = vec![
        events().into(),
        events().named(["push"]).into(),
        events().values().into(),
        events().replays(true).into(),
        events().quiet(SECOND).into(),
        Push::events("http://ci.example/others").into(),
        socket().into(),
        socket().hello("hello").into(),
        socket().subprotocol("v1").into(),
        socket().confirmed_by(|_| true).into(),
        socket().confirmed_by(|_| true).into(),
        socket().values(|_| None).into(),
        socket().values(|_| None).into(),
        told.clone().into(),
        told.values(|_| None).into(),
        socket().or(events()),
    ];
    for (n, one) in kinds.iter().enumerate() {
        for (m, other) in kinds.iter().enumerate() {
            assert_eq!(one.is(&other.clone()), n == m, "{n} {m}");
        }
    }
}

/// Waits until the read is fresh with that number, at most so long; how long it took.
async fn shows(read: &Observable<Value>, n: u64, within: Duration) -> Duration {
    let since = Instant::now();
    let mut read = read.clone();
    let shown = async {
        while let Some(reading) = read.next().await {
            if matches!(&reading, Reading::Fresh(run) if run["n"] == n) {
                return;
            }
        }
        panic!("ended");
    };
    timeout(within, shown).await.unwrap_or_else(|_| panic!("{n} is not shown within {within:?}"));
    since.elapsed()
}

/// A read whose number is the version of its value.
fn versioned(get: Get) -> Read<Value> {
    get.json().marks(|run: &Value| Marks { version: run["n"].as_u64(), ..Marks::default() })
}

type Peer = WebSocketStream<Box<dyn Io>>;

/// The next connection, upgraded, with the headers of its request.
async fn accepted(listener: &mut Listener) -> (Peer, HeaderMap) {
    let io = listener.accept().await.unwrap();
    let mut headers = HeaderMap::new();
    #[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
    let look = |request: &Request, response: Response| {
        headers = request.headers().clone();
        Ok(response)
    };
    let peer = accept_hdr_async(io, look).await.unwrap();
    (peer, headers)
}

/// The next connection, answered with that status; the headers of its request.
async fn refused(listener: &mut Listener, status: u16, headers: &[(&str, &str)]) -> HeaderMap {
    let io = listener.accept().await.unwrap();
    let mut asked = HeaderMap::new();
    #[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
    let look = |request: &Request, _: Response| -> Result<Response, ErrorResponse> {
        asked = request.headers().clone();
        let mut response = ErrorResponse::new(None);
        *response.status_mut() = status.try_into().unwrap();
        for (name, value) in headers {
            response.headers_mut().insert(::http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        Err(response)
    };
    assert!(accept_hdr_async(io, look).await.is_err());
    asked
}

/// An event stream that the handle sends.
fn stream() -> (Reply, crate::testing::StreamHandle) {
    let (reply, handle) = Reply::stream();
    (reply.header("content-type", "text/event-stream"), handle)
}

/// Reads until the peer ends it, answering pings.
async fn drain(peer: &mut Peer) {
    while let Some(Ok(_)) = peer.next().await {}
}

async fn close(peer: &mut Peer, code: u16, reason: &'static str) {
    let _ = peer.close(Some(CloseFrame { code: code.into(), reason: reason.into() })).await;
}

/// Keeps a peer alive for so long, answering its pings.
async fn hold(peer: &mut Peer, long: Duration) {
    let _ = timeout(long, drain(peer)).await;
}
