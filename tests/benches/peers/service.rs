//! A small HTTP/1.1 service, on threads of its own.
//!
//! What it answers is encoded before it is asked for, so it is never what is waited for.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use reqwest::Client;
use serde::{Deserialize, Serialize};

/// The tag of the value that does not change.
pub(crate) const TAG: &str = "\"5e8b9d1f\"";

/// What is read; in JSON 1 KiB with its padding.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) commit: String,
    pub(crate) status: Status,
    pub(crate) line: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) padding: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Running,
    Completed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) status: Status,
    pub(crate) started_ms: u64,
}

impl Run {
    /// At that line, which is always written with ten digits.
    pub(crate) fn at(line: u64) -> Self {
        let step = |name: &str| Step {
            name: format!("{name} outlast-tests v0.1.0"),
            status: Status::Running,
            started_ms: 1_764_500_000_000,
        };
        let mut run = Self {
            id: "01KB3X7Q4YVJ5N9ZC2D8E6F0GH".to_owned(),
            commit: "6c227ceb9f1d3a5e7c8b0a2d4f6e8091a3b5c7d9".to_owned(),
            status: Status::Running,
            line: 1_000_000_000 + line,
            steps: ["fetch", "check", "compile", "link", "test", "bench", "package", "publish"].map(step).into(),
            padding: String::new(),
        };
        run.padding = "x".repeat(1_024_usize.saturating_sub(run.json().len()));
        run
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.status == Status::Completed
    }

    pub(crate) fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("JSON")
    }
}

/// A 200 with that run, and with the tag if it is to be kept by it.
pub(crate) fn ok(run: &Run, tag: Option<&str>) -> Vec<u8> {
    let body = run.json();
    let tag = tag.map(|tag| format!("etag: {tag}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 200 OK\r\ndate: Sun, 30 Nov 2025 12:00:00 GMT\r\ncontent-type: application/json\r\n{tag}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

/// A 304 of the tag.
pub(crate) fn not_modified() -> Vec<u8> {
    format!("HTTP/1.1 304 Not Modified\r\ndate: Sun, 30 Nov 2025 12:00:00 GMT\r\netag: {TAG}\r\n\r\n").into_bytes()
}

/// The client that does it by hand.
pub(crate) fn client() -> Client {
    // An error means that it is installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().tcp_nodelay(true).build().expect("a client")
}

/// The head of one request, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Whether it names a tag.
    pub(crate) conditional: bool,
}

/// A connection to one client.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("no delay");
        Self { stream, buffer: vec![0; 8 << 10] }
    }

    /// The next request, which has no body; `None` once the client is gone.
    pub(crate) fn asked(&mut self) -> Option<Asked> {
        let mut filled = 0;
        loop {
            match self.stream.read(&mut self.buffer[filled..]).ok()? {
                0 => return None,
                read => filled += read,
            }
            if self.buffer[..filled].ends_with(b"\r\n\r\n") {
                let name = b"if-none-match: ";
                let conditional = self.buffer[..filled].windows(name.len()).any(|at| at.eq_ignore_ascii_case(name));
                return Some(Asked { conditional });
            }
        }
    }

    pub(crate) fn answer(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }
}

/// A service on a free port; each connection is served by `serve` on a thread of its own, until its client goes.
pub(crate) fn start(serve: impl Fn(Connection) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, serve) = (stream.expect("a connection"), serve.clone());
            thread::spawn(move || serve(Connection::new(stream)));
        }
    });
    address
}
