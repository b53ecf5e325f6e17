//! One WebSocket, polled: frames wait in a queue, and nothing here blocks reading on writing.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{Sink, Stream};
use tokio::io::AsyncWrite as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use super::meter::{Metered, Moved};
use crate::error::Cause;

/// What came out of a socket.
#[derive(Debug)]
pub(crate) enum Received {
    /// A text frame.
    Text(Utf8Bytes),
    /// A binary message.
    Binary,
    /// The answer to the [ping](Socket::ping) of that number, or to none of ours.
    Pong(
        #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only foreign streams are pinged by it"))]
        Option<u64>,
    ),
    /// A frame that says only that the peer lives.
    Alive,
    /// Bytes went through, without a whole frame yet.
    Moved {
        /// Some came in.
        read: bool,
        /// Some went out.
        written: bool,
    },
    /// All that was queued is with the transport.
    Flushed,
    /// The end, with the peer's close code where there was one.
    Ended {
        /// Why.
        cause: Cause,
        /// The peer's close code and reason.
        close: Option<(u16, String)>,
    },
}

impl Received {
    /// Why a link of ours ends with a binary message.
    pub(crate) fn binary() -> Cause {
        Cause::Undecodable { detail: "a text frame, got binary".into() }
    }
}

/// An upgraded connection, on either side.
pub(crate) struct Socket<S> {
    stream: WebSocketStream<Metered<S>>,
    /// A frame in bytes of our own that is written before everything else, and how much of it was.
    first: (Vec<u8>, usize),
    queue: VecDeque<Message>,
    unflushed: bool,
    /// Why nothing more can be written. What the peer said before that is still read: its close code most of all.
    broken: Option<tungstenite::Error>,
    /// What was told of already.
    moved: Moved,
}

impl<S> Socket<S>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    pub(crate) fn new(stream: WebSocketStream<Metered<S>>) -> Self {
        Self {
            stream,
            first: (Vec::new(), 0),
            queue: VecDeque::new(),
            unflushed: false,
            broken: None,
            moved: Moved::default(),
        }
    }

    /// Queues a text frame; [`next`](Self::next) hands it to the transport.
    pub(crate) fn send(&mut self, text: String) {
        self.queue.push_back(Message::text(text));
    }

    /// Has a text frame written before everything else. What proves who we are may be said so: tungstenite writes what it
    /// sends to its log at the level of traces, and does not see this one.
    ///
    /// To be called before [`next`](Self::next) is.
    #[cfg(feature = "http")]
    pub(crate) fn send_first(&mut self, text: &str, mask: [u8; 4]) {
        use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
        use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
        let header = FrameHeader { opcode: OpCode::Data(Data::Text), mask: Some(mask), ..FrameHeader::default() };
        let length = text.len() as u64;
        // Writing to memory does not fail.
        let _written = header.format(length, &mut self.first.0);
        self.first.0.extend(text.bytes().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    }

    /// Queues a ping of that number (RFC 6455, 5.5.2).
    #[cfg(feature = "http")]
    pub(crate) fn ping(&mut self, n: u64) {
        self.queue.push_back(Message::Ping(n.to_be_bytes().to_vec().into()));
    }

    /// Queues a close frame.
    pub(crate) fn close(&mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: Utf8Bytes::default() };
        self.queue.push_back(Message::Close(Some(frame)));
    }

    /// Whether frames wait for the transport.
    pub(crate) fn is_writing(&self) -> bool {
        self.unflushed || !self.queue.is_empty() || self.is_beginning()
    }

    fn is_beginning(&self) -> bool {
        self.first.1 < self.first.0.len()
    }

    /// Writes what is queued and reads the next frame, whichever is possible first.
    ///
    /// Cancel safe: what is queued stays queued, what is read partly stays with the stream.
    pub(crate) async fn next(&mut self) -> Received {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let received = self.poll_frame(cx);
        let before = std::mem::replace(&mut self.moved, self.stream.get_ref().moved());
        if received.is_pending() && before != self.moved {
            let (read, written) = (before.read != self.moved.read, before.written != self.moved.written);
            return Poll::Ready(Received::Moved { read, written });
        }
        received
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        if self.broken.is_none()
            && self.is_writing()
            && let Poll::Ready(written) = self.poll_write(cx)
        {
            match written {
                Ok(()) => return Poll::Ready(Received::Flushed),
                Err(e) => self.broken = Some(e),
            }
        }
        if self.broken.is_none() && self.is_beginning() {
            // A ping that is read is answered by itself, and must not be answered in the middle of this frame.
            return Poll::Pending;
        }
        let read = Pin::new(&mut self.stream).poll_next(cx);
        if let (Some(e), Poll::Pending | Poll::Ready(None | Some(Err(_)))) = (&self.broken, &read) {
            return Poll::Ready(ended(e));
        }
        Poll::Ready(match ready!(read) {
            Some(Ok(Message::Text(text))) => Received::Text(text),
            Some(Ok(Message::Pong(payload))) => {
                Received::Pong(<[u8; 8]>::try_from(&*payload).ok().map(u64::from_be_bytes))
            }
            Some(Ok(Message::Ping(_) | Message::Frame(_))) => Received::Alive,
            Some(Ok(Message::Binary(_))) => Received::Binary,
            Some(Ok(Message::Close(frame))) => {
                // 1005: a close frame without a code (RFC 6455, 7.4.1).
                let close = frame.map_or((1005, String::new()), |f| (f.code.into(), f.reason.to_string()));
                Received::Ended { cause: Cause::Dropped { code: Some(close.0) }, close: Some(close) }
            }
            Some(Err(e)) => ended(&e),
            None => Received::Ended { cause: Cause::Dropped { code: None }, close: None },
        })
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), tungstenite::Error>> {
        while let Some(rest) = self.first.0.get(self.first.1..).filter(|rest| !rest.is_empty()) {
            let n = ready!(Pin::new(self.stream.get_mut()).poll_write(cx, rest)).map_err(tungstenite::Error::Io)?;
            if n == 0 {
                return Poll::Ready(Err(tungstenite::Error::Io(std::io::ErrorKind::WriteZero.into())));
            }
            self.first.1 += n;
            self.unflushed = true;
        }
        self.first = (Vec::new(), 0);
        while !self.queue.is_empty() {
            ready!(Pin::new(&mut self.stream).poll_ready(cx))?;
            if let Some(message) = self.queue.pop_front() {
                Pin::new(&mut self.stream).start_send(message)?;
                self.unflushed = true;
            }
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.unflushed = false;
        Poll::Ready(Ok(()))
    }
}

fn ended(e: &tungstenite::Error) -> Received {
    let cause = if let tungstenite::Error::Capacity(e) = e {
        Cause::Undecodable { detail: e.to_string().into() }
    } else {
        Cause::Dropped { code: None }
    };
    tracing::debug!(error = %e, "connection ended");
    Received::Ended { cause, close: None }
}

impl<S> fmt::Debug for Socket<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("queued", &self.queue.len()).finish_non_exhaustive()
    }
}
