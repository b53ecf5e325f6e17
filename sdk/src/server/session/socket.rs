//! A connection's frames, with a bound on every write.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};

use crate::env::Env;
use crate::transport::{self, Metered};

/// How long the peer may take none of what is written, each time anew.
const WRITE_STALL: Duration = Duration::from_secs(10);

/// The connection has ended, or has to.
#[derive(Debug)]
pub(super) struct Closed;

/// What came in.
#[derive(Debug)]
pub(super) enum Inbound {
    Text(Utf8Bytes),
    /// A frame that this protocol has no use for.
    Binary,
    /// A WebSocket ping or pong, answered already.
    Control,
}

pub(super) struct Socket<S> {
    stream: WebSocketStream<Metered<S>>,
    /// A frame that the stream has not taken yet.
    queued: Option<Message>,
    env: Env,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// The server's side of an upgraded connection.
    pub(super) async fn new(io: S, env: Env) -> Self {
        Self {
            stream: WebSocketStream::from_raw_socket(Metered::new(io), Role::Server, Some(transport::config())).await,
            queued: None,
            env,
        }
    }

    /// The next frame.
    ///
    /// # Cancel safety
    /// Safe: a frame is taken or it is not.
    pub(super) async fn next(&mut self) -> Result<Inbound, Closed> {
        match self.stream.next().await {
            Some(Ok(Message::Text(text))) => Ok(Inbound::Text(text)),
            Some(Ok(Message::Binary(_))) => Ok(Inbound::Binary),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_))) => {
                Ok(Inbound::Control)
            }
            Some(Err(WsError::Capacity(e))) => {
                tracing::debug!(error = %e, "a frame is too large");
                self.close(CloseCode::Size).await;
                Err(Closed)
            }
            Some(Err(_)) | None => Err(Closed),
        }
    }

    /// Hands a text frame over; it may stay in a small buffer until [`flush`](Self::flush).
    pub(super) async fn feed(&mut self, text: String) -> Result<(), Closed> {
        self.queued = Some(Message::text(text));
        self.write(|stream, queued, cx| {
            ready!(stream.poll_ready_unpin(cx))?;
            Poll::Ready(queued.take().map_or(Ok(()), |message| stream.start_send_unpin(message)))
        })
        .await
    }

    /// Writes what was handed over.
    pub(super) async fn flush(&mut self) -> Result<(), Closed> {
        self.write(|stream, _, cx| stream.poll_flush_unpin(cx)).await
    }

    /// How many bytes have come in.
    pub(super) fn bytes_read(&self) -> u64 {
        self.stream.get_ref().moved().read
    }

    /// Writes for as long as the peer takes any of it within each [`WRITE_STALL`]: a thin line is slow, not stalled (R7).
    async fn write(
        &mut self,
        mut step: impl FnMut(
            &mut WebSocketStream<Metered<S>>,
            &mut Option<Message>,
            &mut Context<'_>,
        ) -> Poll<Result<(), WsError>>,
    ) -> Result<(), Closed> {
        let (stream, queued, env) = (&mut self.stream, &mut self.queued, &self.env);
        let mut progressed = env.instant();
        loop {
            let until = progressed + WRITE_STALL;
            tokio::select! {
                biased; // a write that is possible is no stall
                written = poll_fn(|cx| {
                    let before = stream.get_ref().moved().written;
                    let polled = step(stream, queued, cx);
                    if stream.get_ref().moved().written > before {
                        progressed = env.instant();
                    }
                    polled
                }) => return written.map_err(|_| Closed),
                () = env.sleep_until(Some(until)) => {}
            }
            if progressed + WRITE_STALL <= env.instant() {
                return Err(stalled());
            }
        }
    }

    /// Says goodbye and waits a moment for the peer's.
    pub(super) async fn close(&mut self, code: CloseCode) {
        let until = self.env.instant() + Duration::from_secs(1);
        let goodbye = async {
            let frame = CloseFrame { code, reason: Utf8Bytes::default() };
            if self.stream.close(Some(frame)).await.is_ok() {
                while self.stream.next().await.is_some_and(|frame| frame.is_ok()) {}
            }
        };
        tokio::select! {
            biased; // the same schedule has the same end
            () = goodbye => {}
            () = self.env.sleep_until(Some(until)) => {}
        }
    }
}

fn stalled() -> Closed {
    tracing::debug!(bound = ?WRITE_STALL, "a client takes nothing: its connection is dropped");
    Closed
}
