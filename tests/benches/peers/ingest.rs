//! Values from a WebSocket into a read, through the whole client, against raw tungstenite and serde_json.
//!
//! Both sides have a server thread each, which writes frames that it has encoded before: it is never what
//! is waited for. Both clients have one runtime thread and the same buffers.

use std::hint::black_box;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use outlast::Timestamp;
use outlast::call::{Method, Params};
use outlast::client::Client;
use outlast::env::Env;
use outlast::key::Principal;
use outlast::wire::{ClientFrame, Cursor, Epoch, Incoming, LogId, MAX_FRAME, SUBPROTOCOL, ServerFrame, Welcome};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::runtime::Builder;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket, accept_hdr_with_config};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::harness::{Bench, Sample, Side};

const BUILD: Method = Method::new("build_farm.v1/build");

/// What is read; about 200 bytes of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Build {
    id: String,
    commit: String,
    status: Status,
    step: String,
    line: u64,
    lines: u64,
    started_ms: u64,
    passed: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Running,
}

impl Build {
    fn at(line: u64) -> Self {
        Self {
            id: "01KB3X7Q4YVJ5N9ZC2D8E6F0GH".to_owned(),
            commit: "6c227ceb9f1d3a5e7c8b0a2d4f6e8091a3b5c7d9".to_owned(),
            status: Status::Running,
            step: "compile outlast-tests v0.1.0".to_owned(),
            line,
            lines: 100_000_000,
            started_ms: 1_764_500_000_000,
            passed: None,
        }
    }
}

/// Runs the case.
pub(crate) fn run(bench: &Bench) {
    if !bench.wants("ingest") {
        return;
    }
    let count = bench.size(20_000, 10);
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");

    let mut server = Server::start();
    let client = runtime.block_on(async { Client::open(&format!("ws://{}/", server.address)) }).expect("a client");
    let build = client.caller().read::<Build>(&BUILD, Params::new().with("id", "1"));
    let ours = || {
        let last = server.prepare(count);
        let all = build.until(move |build| build.line == last);
        let elapsed = server.timed(|| drop(runtime.block_on(runtime.spawn(all)).expect("a task").expect("a value")));
        Sample { items: count, elapsed }
    };

    let mut raw_server = Server::start();
    let mut socket = Some(runtime.block_on(connect(raw_server.address)));
    let raw = || {
        let last = raw_server.prepare(count);
        let all = take_until(socket.take().expect("a socket"), last);
        let elapsed = raw_server.timed(|| socket = Some(runtime.block_on(runtime.spawn(all)).expect("a task")));
        Sample { items: count, elapsed }
    };

    let sides = vec![Side::new("Client -> Observable", ours), Side::new("tokio-tungstenite and serde_json", raw)];
    bench.compare("ingest", "values", Duration::from_secs(20), sides);

    client.close();
    drop(socket);
    drop(runtime);
    server.stop();
    raw_server.stop();
}

/// The settings of the client's own sockets, as `transport/websocket.rs` has them.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(4 << 10)
        .write_buffer_size(16 << 10)
        .max_write_buffer_size(4 * MAX_FRAME)
        .max_frame_size(Some(MAX_FRAME))
        .max_message_size(Some(MAX_FRAME))
}

/// A `value` frame, by someone who knows what comes.
#[derive(Deserialize)]
struct ValueFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    sub: u64,
    at: Timestamp,
    value: Build,
}

async fn connect(address: SocketAddr) -> WebSocketStream<tokio::net::TcpStream> {
    let stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let mut request = format!("ws://{address}/").into_client_request().expect("a request");
    request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    let (mut socket, _) = client_async_with_config(request, stream, Some(config())).await.expect("an upgrade");
    socket.next().await.expect("a welcome").expect("a welcome");
    let subscribe = r#"{"type":"subscribe","sub":1,"method":"build_farm.v1/build","params":{"id":"1"}}"#;
    socket.send(Message::text(subscribe)).await.expect("a subscription");
    socket
}

/// Decodes every value up to `last` and keeps the newest.
async fn take_until<S>(mut socket: WebSocketStream<S>, last: u64) -> WebSocketStream<S>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        let Message::Text(text) = socket.next().await.expect("a frame").expect("a frame") else { continue };
        let frame: ValueFrame<'_> = serde_json::from_str(&text).expect("a value");
        assert_eq!((frame.kind, frame.sub), ("value", 1));
        black_box(frame.at);
        if black_box(frame.value).line == last {
            return socket;
        }
    }
}

/// A server of one connection, on a thread of its own.
struct Server {
    address: SocketAddr,
    orders: Sender<Order>,
    ready: Receiver<()>,
    thread: JoinHandle<()>,
    last: u64,
}

enum Order {
    /// Encode the values from this one to that one.
    Encode(u64, u64),
    /// Write what is encoded.
    Write,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (orders, ordered) = mpsc::channel();
        let (tell, ready) = mpsc::channel();
        let thread = thread::spawn(move || serve(&listener, &ordered, &tell));
        Self { address, orders, ready, thread, last: 0 }
    }

    /// Has the next `count` values encoded; the number of the last.
    fn prepare(&mut self, count: usize) -> u64 {
        let first = self.last + 1;
        self.last += count as u64;
        self.order(Order::Encode(first, self.last));
        self.ready.recv().expect("a server");
        self.last
    }

    /// How long `received` takes from the first byte written.
    fn timed(&self, received: impl FnOnce()) -> Duration {
        let start = Instant::now();
        self.order(Order::Write);
        received();
        start.elapsed()
    }

    fn order(&self, order: Order) {
        self.orders.send(order).expect("a server");
    }

    fn stop(self) {
        drop(self.orders);
        self.thread.join().expect("a server");
    }
}

fn serve(listener: &TcpListener, orders: &Receiver<Order>, ready: &Sender<()>) {
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let mut socket = accept_hdr_with_config(stream, subprotocol, Some(config())).expect("an upgrade");
    let (log, env) = (LogId::new(Env::system().ulid()), Env::system());
    let welcome = ServerFrame::Welcome(Welcome {
        epoch: Epoch::new(env.ulid()),
        log,
        head: 0,
        durable: true,
        principal: Principal::new("runner-17").expect("a principal"),
        now: env.wall().millis(),
        heartbeat: Duration::from_secs(60),
        retention: Duration::from_secs(86_400),
        spread: Duration::ZERO,
    });
    socket.send(Message::text(welcome.to_text())).expect("a welcome");
    let sub = loop {
        if let Some(sub) = answer(&mut socket).expect("a subscription") {
            break sub;
        }
    };
    let mut encoded = Vec::new();
    loop {
        match orders.recv_timeout(Duration::from_millis(50)) {
            Ok(Order::Encode(first, last)) => {
                encoded.clear();
                (first..=last).for_each(|number| encode(sub, log, number, &mut encoded));
                ready.send(()).expect("a benchmark");
            }
            Ok(Order::Write) => socket.get_mut().write_all(&encoded).expect("a client"),
            Err(RecvTimeoutError::Timeout) => {
                socket.get_mut().set_nonblocking(true).expect("a socket");
                // Nothing to read, or at the end a client that has gone.
                let _ = answer(&mut socket);
                socket.get_mut().set_nonblocking(false).expect("a socket");
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
fn subprotocol(_: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    Ok(response)
}

/// Reads one frame and answers a ping; gives the subscription that it asked for.
fn answer(socket: &mut WebSocket<TcpStream>) -> Result<Option<u64>, tungstenite::Error> {
    let Message::Text(text) = socket.read()? else { return Ok(None) };
    match ClientFrame::parse(&text) {
        Ok(Incoming::Known(ClientFrame::Subscribe(subscribe))) => return Ok(Some(subscribe.sub)),
        Ok(Incoming::Known(ClientFrame::Ping { n })) => {
            let pong = ServerFrame::Pong { n, through: 0, head: 0, spread: Duration::ZERO };
            socket.send(Message::text(pong.to_text()))?;
        }
        _ => {}
    }
    Ok(None)
}

/// Adds the WebSocket frame of one value.
fn encode(sub: u64, log: LogId, number: u64, encoded: &mut Vec<u8>) {
    let value: Box<RawValue> = to_raw_value(&Build::at(number)).expect("a value");
    let frame = ServerFrame::Value { sub, at: Cursor::log(log, number), value: std::borrow::Cow::Owned(value) };
    Frame::message(frame.to_text(), OpCode::Data(Data::Text), true).format(encoded).expect("a frame");
}
