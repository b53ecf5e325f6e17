//! One life of a scripted service: its connections, byte by byte.
#![expect(clippy::disallowed_methods, reason = "a script's delays are time")]

use std::fmt::Write as _;
use std::sync::Arc;

use ::http::{Method, StatusCode, header};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::line::End;
use super::parse::{self, Parsed};
use super::reply::{Act, Body, Head, Limit, Piece, Reply};
use super::{Asked, Shared};
use crate::testing::Listener;
use crate::transport::Io;

pub(super) async fn run(mut listener: Listener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Some(io) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let line = Line::new(io, Arc::clone(&shared));
        connections.spawn(line.run());
    }
}

/// The connection is over.
struct Over;

/// One connection.
struct Line {
    io: End,
    read: BytesMut,
    number: u64,
    shared: Arc<Shared>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.lock().lines.remove(self.number);
    }
}

impl Line {
    fn new(io: Box<dyn Io>, shared: Arc<Shared>) -> Self {
        let (number, io) = shared.lock().lines.accept(io);
        Self { io, read: BytesMut::new(), number, shared }
    }

    async fn run(mut self) {
        let Over = self.serve().await;
    }

    async fn serve(&mut self) -> Over {
        // What the script's count was when this connection had its last request.
        let mut distrusted = None;
        loop {
            let request = match self.request(distrusted).await {
                Ok(request) => request,
                Err(over) => return over,
            };
            distrusted = Some(self.shared.lock().distrusted);
            if let Err(over) = self.answer(request).await {
                return over;
            }
        }
    }

    /// The next request. A connection that has become distrusted since it had its last one ends on the first byte.
    async fn request(&mut self, distrusted: Option<u64>) -> Result<Parsed, Over> {
        loop {
            if !self.read.is_empty()
                && let Some(before) = distrusted
            {
                let mut state = self.shared.lock();
                if state.distrusted > before {
                    state.hung_up += 1;
                    return Err(Over);
                }
            }
            match parse::take(&mut self.read) {
                Ok(Some(parsed)) => return Ok(parsed),
                Ok(None) => self.more().await?,
                Err(status) => {
                    let head = format!("HTTP/1.1 {status} \r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                    self.write(head.as_bytes()).await?;
                    return Err(Over);
                }
            }
        }
    }

    async fn answer(&mut self, request: Parsed) -> Result<(), Over> {
        let Parsed { method, target, headers, body } = request;
        let closes = headers.get(header::CONNECTION).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"close"));
        let head_only = method == Method::HEAD;
        let asked = Asked { at: Instant::now(), method, target, headers, connection: self.number, body };
        let Reply { after, act, limit } = self.shared.ask(asked);
        if !after.is_zero() {
            let delay = tokio::time::sleep(after);
            self.unless_gone(delay).await?;
        }
        match act {
            Act::Close => Err(Over),
            Act::Hang => self.silence().await,
            Act::Raw(bytes) => {
                self.write_limited(&bytes, &mut Budget::new(limit)).await?;
                Err(Over)
            }
            Act::Answer(head, body) => {
                let sends = !head_only && has_body(head.status);
                let closes = closes || head.closes;
                self.write(lines(&head, &body, closes).as_bytes()).await?;
                if sends {
                    self.body(&head, body, Budget::new(limit)).await?;
                }
                if closes { Err(Over) } else { Ok(()) }
            }
        }
    }

    async fn body(&mut self, head: &Head, body: Body, mut budget: Budget) -> Result<(), Over> {
        match body {
            Body::Sized(bytes) => {
                self.write_limited(&bytes, &mut budget).await?;
                // Whoever announced more has nothing else to say.
                if head.length.is_some_and(|announced| announced > bytes.len()) { Err(Over) } else { Ok(()) }
            }
            Body::Chunked { pieces, ends } => {
                for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                    self.chunk(piece, &mut budget).await?;
                }
                if !ends {
                    return self.silence().await;
                }
                self.write(b"0\r\n\r\n").await
            }
            Body::Stream(stream) => {
                let mut reader = stream.read();
                loop {
                    match self.unless_gone(reader.next()).await? {
                        Piece::Data(piece) => self.chunk(&piece, &mut budget).await?,
                        Piece::End => return self.write(b"0\r\n\r\n").await,
                        Piece::Cut => return Err(Over),
                    }
                }
            }
        }
    }

    async fn chunk(&mut self, piece: &Bytes, budget: &mut Budget) -> Result<(), Over> {
        self.write(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        self.write_limited(piece, budget).await?;
        self.write(b"\r\n").await
    }

    async fn write_limited(&mut self, bytes: &[u8], budget: &mut Budget) -> Result<(), Over> {
        let Some((left, limit)) = &mut budget.0 else { return self.write(bytes).await };
        let (limit, sent) = (*limit, (*left).min(bytes.len()));
        *left -= sent;
        let spent = *left == 0;
        self.write(&bytes[..sent]).await?;
        match limit {
            _ if !spent => Ok(()),
            Limit::Cut => Err(Over),
            Limit::Stall => self.silence().await,
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Over> {
        self.io.write_all(bytes).await.map_err(|_| Over)
    }

    async fn more(&mut self) -> Result<(), Over> {
        match self.io.read_buf(&mut self.read).await {
            Ok(0) | Err(_) => Err(Over),
            Ok(_) => Ok(()),
        }
    }

    /// Says nothing until the client goes.
    async fn silence(&mut self) -> Result<(), Over> {
        self.unless_gone(std::future::pending()).await
    }

    /// Waits for `event`, unless the client goes before it.
    async fn unless_gone<T>(&mut self, event: impl Future<Output = T>) -> Result<T, Over> {
        tokio::pin!(event);
        loop {
            tokio::select! {
                biased;
                happened = &mut event => return Ok(happened),
                more = self.more() => more?,
            }
        }
    }
}

/// How many bytes of the body may still be sent, and what happens then.
struct Budget(Option<(usize, Limit)>);

impl Budget {
    fn new(limit: Option<(usize, Limit)>) -> Self {
        Self(limit)
    }
}

/// RFC 9110, 6.4.1.
fn has_body(status: u16) -> bool {
    !matches!(status, 100..200 | 204 | 304)
}

fn lines(head: &Head, body: &Body, closes: bool) -> String {
    let reason = StatusCode::from_u16(head.status).ok().and_then(|status| status.canonical_reason()).unwrap_or("");
    let mut lines = format!("HTTP/1.1 {} {reason}\r\n", head.status);
    // Writing to a string cannot fail.
    for (name, value) in &head.headers {
        let _ = write!(lines, "{name}: {value}\r\n");
    }
    if has_body(head.status) || head.length.is_some() {
        let _ = match (body, head.length) {
            (_, Some(announced)) => write!(lines, "content-length: {announced}\r\n"),
            (Body::Sized(bytes), None) => write!(lines, "content-length: {}\r\n", bytes.len()),
            (Body::Chunked { .. } | Body::Stream(_), None) => write!(lines, "transfer-encoding: chunked\r\n"),
        };
    }
    if closes {
        lines.push_str("connection: close\r\n");
    }
    lines.push_str("\r\n");
    lines
}
