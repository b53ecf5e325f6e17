//! No secret is in any log. It has a process of its own: the log of a process is one.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use outlast::Credential;
use outlast::http::Agent;
use outlast::http::feed::LogKind;
use outlast::http::push::Push;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

const HELLO: &str = "s3cret-hello";

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is enough that it can be read")]
struct Run {
    status: String,
}

/// The credential, a proxy's, a secret query, what is said first, a cookie and a signed link are in no log, at the most
/// talkative level: of `tracing` and of `log`.
#[test]
fn no_secret_is_in_any_log() {
    log::set_logger(&Logger).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    tracing::subscriber::set_global_default(Subscriber).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(talk());
    drop(runtime);
    let seen = seen();
    assert!(!seen.is_empty(), "something is logged");
    let short = |line: &String| line.chars().take(300).collect::<String>();
    let leaks: Vec<_> = seen.iter().filter(|line| line.contains("s3cret")).map(short).collect();
    let mut kinds: Vec<_> = leaks.iter().map(|l| l.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
    kinds.sort();
    kinds.dedup();
    assert!(leaks.is_empty(), "{} lines with a secret, by {kinds:?}; such as {:#?}", leaks.len(), leaks.first());
}

/// Reads beside streams that are refused and taken, and a log behind a redirect.
async fn talk() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap();
    let reached = Arc::new(Reached::default());
    let mut life = JoinSet::new();
    life.spawn(serve(listener, Arc::clone(&reached)));
    let agent = Agent::builder().no_proxy().build().unwrap();
    let get = |path: &str| {
        let get = agent.get(&format!("http://{host}{path}?key=s3cret-query"));
        get.credential(Credential::bearer("s3cret-token").unwrap())
    };
    let socket = |path: &str| Push::websocket(&format!("ws://{host}{path}?key=s3cret-query")).hello(HELLO);
    let events = Push::events(&format!("http://{host}/events?key=s3cret-query"));
    let proxied = Agent::builder().proxy(format!("http://s3cret-user:s3cret-password@{host}")).build().unwrap();
    let tunnel = Push::websocket("ws://ci.example/ws?key=s3cret-query");
    let reads = [
        get("/moved").observe::<Run>().unwrap(),
        get("/run").push(socket("/refused")).observe::<Run>().unwrap(),
        get("/run").push(socket("/taken")).observe::<Run>().unwrap(),
        get("/run").push(events).observe::<Run>().unwrap(),
        proxied.get("http://ci.example/run").push(tunnel).observe::<Run>().unwrap(),
    ];
    let mut log = get("/moved").log(LogKind::Whole).unwrap();
    for read in &reads {
        read.until(|_| true).await.unwrap();
    }
    assert!(log.next().await.is_some());
    reached.greeting.notified().await;
    reached.tunnel.notified().await;
}

/// What has come as far as the service.
#[derive(Default)]
struct Reached {
    greeting: Notify,
    tunnel: Notify,
}

async fn serve(listener: TcpListener, reached: Arc<Reached>) {
    let mut connections = JoinSet::new();
    while let Ok((io, _)) = listener.accept().await {
        connections.spawn(answer(io, Arc::clone(&reached)));
    }
}

async fn answer(mut io: TcpStream, reached: Arc<Reached>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if io.read_exact(&mut byte).await.is_err() {
            return;
        }
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let mut length = 0;
    let (status, headers) = match head.split(['?', ' ']).nth(1) {
        Some("/moved") => {
            ("302 Found", "Location: /run?sig=s3cret-signature\r\nSet-Cookie: s=s3cret-cookie\r\n".to_owned())
        }
        // As a proxy, too.
        Some("/run" | "http://ci.example/run") => {
            length = RUN.len();
            ("200 OK", "Content-Type: application/json\r\n".to_owned())
        }
        Some("/taken") => {
            let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
            let accept = derive_accept_key(key.as_bytes());
            let answer = format!("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
            io.write_all(format!("HTTP/1.1 101 Go\r\n{answer}").as_bytes()).await.unwrap();
            return greet(io, &reached.greeting).await;
        }
        Some("ci.example:80") => {
            reached.tunnel.notify_one();
            ("407 No", String::new())
        }
        _ => ("503 No", String::new()),
    };
    let body = &RUN[..length];
    let answer = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let _ = io.write_all(answer.as_bytes()).await;
}

const RUN: &str = "{\"status\":\"running\"}";

/// Takes what is said first, which is a text in one frame (RFC 6455, 5.2), and stays.
async fn greet(mut io: TcpStream, greeted: &Notify) {
    let mut header = [0; 6];
    io.read_exact(&mut header).await.unwrap();
    let mut hello = [0; HELLO.len()];
    io.read_exact(&mut hello).await.unwrap();
    hello.iter_mut().zip(header[2..].iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    assert_eq!((header[0], &hello[..]), (0x81, HELLO.as_bytes()));
    greeted.notify_one();
    while io.read(&mut [0; 4096]).await.is_ok_and(|n| n > 0) {}
}

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn seen() -> MutexGuard<'static, Vec<String>> {
    SEEN.lock().unwrap()
}

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        seen().push(format!("log {} {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

struct Subscriber;

impl tracing::Subscriber for Subscriber {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut fields = Fields(format!("span {}", span.metadata().target()));
        span.record(&mut fields);
        seen().push(fields.0);
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, record: &tracing::span::Record<'_>) {
        let mut fields = Fields("record".into());
        record.record(&mut fields);
        seen().push(fields.0);
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields(format!("event {}", event.metadata().target()));
        event.record(&mut fields);
        seen().push(fields.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

struct Fields(String);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
