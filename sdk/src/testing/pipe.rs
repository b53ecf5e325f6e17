//! One end of a connection in memory, which the network can silence.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// What the network can do to a connection.
#[derive(Debug, Default)]
pub(super) struct Wire {
    silent: AtomicBool,
}

impl Wire {
    /// From now on every byte of the connection is lost, without an end.
    pub(super) fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }
}

/// One end of a connection in memory.
#[derive(Debug)]
pub(super) struct Pipe {
    stream: DuplexStream,
    wire: Arc<Wire>,
}

impl Pipe {
    /// The two ends of a connection that holds `capacity` bytes each way.
    pub(super) fn pair(capacity: usize) -> (Self, Self, Arc<Wire>) {
        let (a, b) = tokio::io::duplex(capacity);
        let wire = Arc::new(Wire::default());
        (Self { stream: a, wire: Arc::clone(&wire) }, Self { stream: b, wire: Arc::clone(&wire) }, wire)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.wire.is_silent() {
            return Poll::Pending; // never woken: the reader's own timer has to notice
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if self.wire.is_silent() {
            buf.set_filled(before);
            return Poll::Pending;
        }
        polled
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.wire.is_silent() {
            return Poll::Ready(Ok(buf.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.wire.is_silent() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
