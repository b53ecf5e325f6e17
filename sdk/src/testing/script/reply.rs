//! What a scripted service answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;

/// An answer of a [`Script`](super::Script), or none.
#[derive(Clone, Debug)]
#[must_use = "a reply is given by a script"]
pub struct Reply {
    pub(super) after: Duration,
    pub(super) act: Act,
    pub(super) limit: Option<(usize, Limit)>,
}

#[derive(Clone, Debug)]
pub(super) enum Act {
    Answer(Head, Body),
    Raw(Bytes),
    Close,
    Hang,
}

#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The `Content-Length` that is announced in place of the right one.
    pub(super) length: Option<usize>,
    pub(super) closes: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Sized(Bytes),
    Chunked { pieces: Vec<Bytes>, ends: bool },
    Stream(Arc<Stream>),
}

/// What happens once so many bytes of the body have been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Cut,
    Stall,
}

impl Reply {
    /// 200 with `value` as JSON.
    ///
    /// # Panics
    /// When `value` cannot be JSON, as a map whose keys are no strings.
    #[expect(clippy::expect_used, reason = "a script that cannot be written is the test's mistake")]
    pub fn json(value: impl Serialize) -> Self {
        let body = serde_json::to_vec(&value).expect("a scripted value is JSON");
        Self::bytes(body).header("content-type", "application/json")
    }

    /// 200 with plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::bytes(text.into()).header("content-type", "text/plain; charset=utf-8")
    }

    /// 200 with `bytes`, without a `Content-Type`.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::answer(200, Body::Sized(bytes.into()))
    }

    /// `status` without a body. 1xx, 204 and 304 have no `Content-Length` either.
    pub fn status(status: u16) -> Self {
        Self::answer(status, Body::Sized(Bytes::new()))
    }

    /// 200 with a body in chunks, one for each piece (RFC 9112, 7.1). Empty pieces are left out.
    /// Without [`ends`](Self::ends) nothing follows the last piece, and the connection stays open.
    pub fn chunked(pieces: impl IntoIterator<Item = impl Into<Bytes>>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        Self::answer(200, Body::Chunked { pieces, ends: false })
    }

    /// 200 with a body in chunks, which the handle sends. Every request that is answered with it gets the whole body from its start.
    pub fn stream() -> (Self, StreamHandle) {
        let stream = Arc::new(Stream::default());
        (Self::answer(200, Body::Stream(Arc::clone(&stream))), StreamHandle { stream })
    }

    /// `bytes` as they are in place of an answer; then the connection ends.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::of(Act::Raw(bytes.into()))
    }

    /// The end of the connection, without an answer.
    pub fn close() -> Self {
        Self::of(Act::Close)
    }

    /// No answer, for as long as the client keeps the connection.
    pub fn hang() -> Self {
        Self::of(Act::Hang)
    }

    fn answer(status: u16, body: Body) -> Self {
        Self::of(Act::Answer(Head { status, headers: Vec::new(), length: None, closes: false }, body))
    }

    fn of(act: Act) -> Self {
        Self { after: Duration::ZERO, act, limit: None }
    }

    fn head(mut self, change: impl FnOnce(&mut Head)) -> Self {
        if let Act::Answer(head, _) = &mut self.act {
            change(head);
        }
        self
    }

    /// With another status.
    pub fn with_status(self, status: u16) -> Self {
        self.head(|head| head.status = status)
    }

    /// With another body, of a known length.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        if let Act::Answer(_, body) = &mut self.act {
            *body = Body::Sized(bytes.into());
        }
        self
    }

    /// With another header line; it goes out as it is, whatever it holds.
    pub fn header(self, name: impl Into<String>, value: impl ToString) -> Self {
        self.head(|head| head.headers.push((name.into(), value.to_string())))
    }

    /// Announces `bytes` as the length of the body, right or wrong. After a body that is shorter the connection ends;
    /// of one that is longer all is sent.
    pub fn length(self, bytes: usize) -> Self {
        self.head(|head| head.length = Some(bytes))
    }

    /// Says `Connection: close`, and ends the connection after the answer.
    pub fn closes(self) -> Self {
        self.head(|head| head.closes = true)
    }

    /// Ends a [`chunked`](Self::chunked) body with its last chunk.
    pub fn ends(mut self) -> Self {
        if let Act::Answer(_, Body::Chunked { ends, .. }) = &mut self.act {
            *ends = true;
        }
        self
    }

    /// Waits before the first byte, or before the end of the connection.
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    /// Ends the connection once `bytes` of the body have been sent; of a raw answer, of all of it.
    pub fn cut(mut self, bytes: usize) -> Self {
        self.limit = Some((bytes, Limit::Cut));
        self
    }

    /// Says no more once `bytes` of the body have been sent, for as long as the client keeps the connection;
    /// of a raw answer, of all of it.
    pub fn stalls(mut self, bytes: usize) -> Self {
        self.limit = Some((bytes, Limit::Stall));
        self
    }
}

/// Sends the body of a [`Reply::stream`]. Dropping it sends nothing more, without an end.
#[derive(Debug)]
pub struct StreamHandle {
    stream: Arc<Stream>,
}

impl StreamHandle {
    /// Sends a piece of the body.
    pub fn send(&self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.stream.push(Piece::Data(piece)); // an empty chunk would be the last one
        }
    }

    /// Ends the body as it should.
    pub fn end(self) {
        self.stream.push(Piece::End);
    }

    /// Ends the connection in the middle of the body.
    pub fn cut(self) {
        self.stream.push(Piece::Cut);
    }

    /// How many requests are being answered with it now.
    pub fn readers(&self) -> usize {
        self.stream.changes.receiver_count()
    }
}

/// A body that grows.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pieces: Mutex<Vec<Piece>>,
    changes: watch::Sender<()>,
}

#[derive(Clone, Debug)]
pub(super) enum Piece {
    Data(Bytes),
    End,
    Cut,
}

impl Stream {
    fn push(&self, piece: Piece) {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
        self.changes.send_replace(());
    }

    pub(super) fn read(self: &Arc<Self>) -> Reader {
        Reader { stream: Arc::clone(self), next: 0, changes: self.changes.subscribe() }
    }
}

/// A place in a body that grows.
pub(super) struct Reader {
    stream: Arc<Stream>,
    next: usize,
    changes: watch::Receiver<()>,
}

impl Reader {
    /// The next piece. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Piece {
        loop {
            let piece = self.stream.pieces.lock().unwrap_or_else(PoisonError::into_inner).get(self.next).cloned();
            if let Some(piece) = piece {
                self.next += 1;
                return piece;
            }
            if self.changes.changed().await.is_err() {
                std::future::pending::<()>().await; // it cannot be: `stream` holds the sender
            }
        }
    }
}
