//! The client's side of a WebSocket handshake (RFC 6455, 4.1), in bytes of our own: tungstenite's writes the whole request
//! to its log at the level of traces, and the request has the credential and the query of the address in it.

use std::io;

use ::http::{HeaderMap, Response, StatusCode, header};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::{Request, Response as Head};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::handshake::machine::TryParse as _;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::limits::config;

/// The longest head of an answer.
const MAX_HEAD: usize = 64 << 10;

/// Why there was none.
#[derive(Debug)]
pub(super) enum Unshaken {
    /// The peer answered with something else. What came of the body with the head is there, too.
    Answered(Box<Response<Option<Vec<u8>>>>),
    /// The peer ended the connection.
    Dropped,
    /// What it said, or was to be told, is no handshake; or it was not to be reached.
    Broken(io::Error),
}

impl From<io::Error> for Unshaken {
    fn from(e: io::Error) -> Self {
        Self::Broken(e)
    }
}

/// Sends `request` and reads the answer. Unbounded in time: the caller aborts it.
pub(super) async fn shake<S: AsyncRead + AsyncWrite + Unpin>(
    request: &Request,
    mut io: S,
) -> Result<(WebSocketStream<S>, HeaderMap), Unshaken> {
    io.write_all(&head(request)?).await?;
    io.flush().await?;
    let (answer, rest) = answer(&mut io).await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(Unshaken::Answered(Box::new(answer.map(|_| Some(rest)))));
    }
    check(request.headers(), answer.headers())?;
    let stream = WebSocketStream::from_partially_read(io, rest, Role::Client, Some(config())).await;
    Ok((stream, answer.into_parts().0.headers))
}

fn bad(detail: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, detail)
}

/// The request as it is sent. Names are written as most services expect them, though case says nothing (RFC 9110, 5.1).
fn head(request: &Request) -> io::Result<Vec<u8>> {
    let path = request.uri().path_and_query().ok_or_else(|| bad("expected an address with a path"))?;
    let mut head = format!("GET {path} HTTP/1.1\r\n").into_bytes();
    let first = ["Host", "Connection", "Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Key"];
    let mut line = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    for name in first {
        let value = request.headers().get(name).ok_or_else(|| bad("expected the headers of an upgrade"))?;
        line(name, value.as_bytes());
    }
    for (name, value) in request.headers() {
        if first.iter().any(|first| first.eq_ignore_ascii_case(name.as_str())) {
            continue;
        }
        let name = match name.as_str() {
            "sec-websocket-protocol" => "Sec-WebSocket-Protocol",
            "origin" => "Origin",
            other => other,
        };
        line(name, value.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    Ok(head)
}

/// The head of the answer, and what came after it.
async fn answer<S: AsyncRead + Unpin>(io: &mut S) -> Result<(Head, Vec<u8>), Unshaken> {
    let mut read = Vec::new();
    let mut piece = [0; 4 << 10];
    loop {
        let n = io.read(&mut piece).await?;
        let piece = piece.get(..n).unwrap_or_default();
        if piece.is_empty() {
            return Err(Unshaken::Dropped);
        }
        read.extend_from_slice(piece);
        // No head ends within a line.
        if piece.contains(&b'\n') {
            let parsed = Head::try_parse(&read).map_err(|_| bad("expected an answer of HTTP/1.1"))?;
            if let Some((length, head)) = parsed {
                return Ok((head, read.split_off(length)));
            }
        }
        if read.len() > MAX_HEAD {
            return Err(bad("expected a head of at most 64 KiB").into());
        }
    }
}

/// Whether the peer has agreed to what was asked (RFC 6455, 4.1).
fn check(asked: &HeaderMap, agreed: &HeaderMap) -> io::Result<()> {
    let says = |name, token: &str| {
        agreed.get_all(name).iter().any(|value| {
            let mut tokens = value.to_str().unwrap_or_default().split(',');
            tokens.any(|said| said.trim().eq_ignore_ascii_case(token))
        })
    };
    if !says(header::UPGRADE, "websocket") {
        return Err(bad("expected `Upgrade: websocket`"));
    }
    if !says(header::CONNECTION, "upgrade") {
        return Err(bad("expected `Connection: Upgrade`"));
    }
    let key = asked.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let accept = agreed.get(header::SEC_WEBSOCKET_ACCEPT);
    if key.is_none_or(|key| accept.is_none_or(|accept| accept.as_bytes() != key.as_bytes())) {
        return Err(bad("expected the `Sec-WebSocket-Accept` of this request"));
    }
    if agreed.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
        return Err(bad("expected no extension, none was asked for"));
    }
    let text = |headers: &HeaderMap| {
        let value = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?;
        Some(value.to_str().unwrap_or_default().to_owned())
    };
    match (text(asked), text(agreed)) {
        (None, None) => Ok(()),
        (Some(asked), Some(agreed)) if asked.split(',').any(|name| name.trim() == agreed) => Ok(()),
        (Some(_) | None, Some(_)) => Err(bad("expected a subprotocol that was asked for")),
        (Some(_), None) => Err(bad("expected the subprotocol that was asked for")),
    }
}

#[cfg(test)]
mod tests;
