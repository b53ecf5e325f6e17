//! Connections that can be ended from outside the task that serves them.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::Io;

/// The open connections, by their number.
#[derive(Default)]
pub(super) struct Lines {
    accepted: u64,
    open: HashMap<u64, End>,
}

impl Lines {
    /// Numbers a connection, from 1, and gives the server's end of it.
    pub(super) fn accept(&mut self, io: Box<dyn Io>) -> (u64, End) {
        let end = End(Arc::new(Mutex::new(Some(io))));
        self.accepted += 1;
        self.open.insert(self.accepted, end.clone());
        (self.accepted, end)
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.open.remove(&number);
    }

    pub(super) fn take(&mut self) -> Vec<End> {
        self.open.drain().map(|(_, end)| end).collect()
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }
}

/// The server's end of a connection.
#[derive(Clone)]
pub(super) struct End(Arc<Mutex<Option<Box<dyn Io>>>>);

impl End {
    /// Ends the connection; whoever serves it reads its end.
    pub(super) fn cut(self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Io>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for End {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self.lock() {
            Some(io) => Pin::new(io).poll_read(cx, buf),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for End {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self.lock() {
            Some(io) => Pin::new(io).poll_write(cx, buf),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.lock() {
            Some(io) => Pin::new(io).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.lock() {
            Some(io) => Pin::new(io).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}
