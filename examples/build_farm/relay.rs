//! The relay: a hop between the poller and the server that knows nothing of either.
//!
//! It accepts whether or not the server is there; if not, the connection ends without a byte, which is
//! what made the original incident look like a clean end. It misbehaves once on purpose: it forwards the
//! first submit, waits until the server has answered, and cuts the connection instead of passing the
//! answer on. To the poller the submit may or may not have been recorded.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::build_farm::address;
use crate::build_farm::frames::Frames;
use crate::build_farm::lifeline::{self, Notice};
use crate::build_farm::service::BuildFarm;

/// How long a client that is turned away has to close its side.
const LINGER: Duration = Duration::from_secs(1);

/// Relays until it is dropped.
pub(crate) async fn run(directory: &Path) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    lifeline::tell(&Notice::Listening(listener.local_addr()?));
    let trick = Arc::new(AtomicBool::new(true));
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await?;
        let server = address::current(directory);
        let trick = Arc::clone(&trick);
        connections.spawn(async move {
            let Ok(server) = connect(server).await else { return end(client).await };
            // Small frames are not to wait for each other (Nagle) in a hop that should not be felt.
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            join(client, server, &trick).await
        });
        // Reaps what has ended; how a connection ended is of no interest to a relay.
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(server: io::Result<SocketAddr>) -> io::Result<TcpStream> {
    TcpStream::connect(server?).await
}

/// Nothing is behind the relay: the client was accepted, and now its connection ends, cleanly and without a
/// byte. What it sends is read, since the system would answer unread bytes with a reset.
async fn end(mut client: TcpStream) -> io::Result<()> {
    client.shutdown().await?;
    let _ = timeout(LINGER, tokio::io::copy(&mut client, &mut tokio::io::sink())).await;
    Ok(())
}

/// Joins the two until either ends; the other is then cut as well.
async fn join(
    client: impl AsyncRead + AsyncWrite,
    server: impl AsyncRead + AsyncWrite,
    trick: &AtomicBool,
) -> io::Result<()> {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, to_server) = tokio::io::split(server);
    // Set before the submit is forwarded, so that its answer cannot slip through.
    let submitted = AtomicBool::new(false);
    let (up, down) =
        (pin!(upward(from_client, to_server, trick, &submitted)), pin!(downward(from_server, to_client, &submitted)));
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}

async fn upward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    trick: &AtomicBool,
    submitted: &AtomicBool,
) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let n = from.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        let read = &buffer[..n];
        if frames.read(read).iter().any(|text| is_submit(text)) && trick.swap(false, Ordering::SeqCst) {
            submitted.store(true, Ordering::SeqCst);
        }
        to.write_all(read).await?;
    }
}

async fn downward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    submitted: &AtomicBool,
) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let n = from.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        let read = &buffer[..n];
        let messages = frames.read(read);
        if !submitted.load(Ordering::SeqCst) {
            to.write_all(read).await?;
        } else if messages.iter().any(|text| is_answer(text)) {
            lifeline::tell(&Notice::AnswerSwallowed);
            return Ok(());
        }
        // Else what came before the answer: the cut takes it too.
    }
}

/// Of all that travels, the relay looks at these two fields only.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    method: Option<&'a str>,
}

fn is_submit(text: &str) -> bool {
    serde_json::from_str::<Envelope<'_>>(text)
        .is_ok_and(|frame| frame.kind == "call" && frame.method == Some(<dyn BuildFarm>::SUBMIT_BUILD.name()))
}

fn is_answer(text: &str) -> bool {
    serde_json::from_str::<Envelope<'_>>(text).is_ok_and(|frame| matches!(frame.kind, "report" | "refused"))
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    const UPGRADE: &[u8] = b"an HTTP head\r\n\r\n";

    /// A text frame; unmasked, which the parser does not mind.
    fn frame(text: &str) -> Vec<u8> {
        [&[0x81, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
    }

    fn submit() -> Vec<u8> {
        frame(&format!(r#"{{"type":"call","call":1,"method":"{}"}}"#, <dyn BuildFarm>::SUBMIT_BUILD.name()))
    }

    fn answer() -> Vec<u8> {
        frame(r#"{"type":"report","call":1,"status":"PENDING"}"#)
    }

    /// Sends `up`, then, once the server has it, `down`; returns what the client got, until the end of the
    /// connection or of all that was sent.
    async fn pass(trick: &AtomicBool, up: &[u8], down: &[u8]) -> Vec<u8> {
        let (mut client, client_side) = duplex(4096);
        let (mut server, server_side) = duplex(4096);
        let relay = join(client_side, server_side, trick);
        let ends = async {
            client.write_all(up).await.unwrap();
            let mut got = vec![0; up.len()];
            server.read_exact(&mut got).await.unwrap();
            assert_eq!(got, up, "the server gets everything, the submit too");
            server.write_all(down).await.unwrap();
            server.shutdown().await.unwrap();
            let mut got = Vec::new();
            client.read_to_end(&mut got).await.unwrap();
            got
        };
        let (ended, got) = tokio::join!(relay, ends);
        ended.unwrap();
        got
    }

    #[tokio::test]
    async fn the_first_answer_to_a_submit_is_swallowed_and_no_other() {
        let trick = AtomicBool::new(true);
        let up = [UPGRADE, &frame(r#"{"type":"ping","n":1}"#)].concat();
        let down = [UPGRADE, &frame(r#"{"type":"pong","n":1}"#), &answer()].concat();
        assert_eq!(pass(&trick, &up, &down).await, down, "without a submit everything passes");

        let up = [UPGRADE, &submit()].concat();
        let got = pass(&trick, &up, &down).await;
        assert!(got.is_empty(), "the server answered, the client got nothing: {got:?}");

        assert_eq!(pass(&trick, &up, &down).await, down, "a resend is answered");
    }

    #[test]
    fn only_a_call_of_submit_is_one() {
        let text = |frame: Vec<u8>| String::from_utf8(frame[2..].to_vec()).unwrap();
        assert!(is_submit(&text(submit())) && !is_answer(&text(submit())));
        assert!(is_answer(&text(answer())));
        for other in [r#"{"type":"subscribe","method":"build_farm.v1/submit_build"}"#, r#"{"type":"call"}"#, "", "{"] {
            assert!(!is_submit(other), "{other}");
        }
    }
}
