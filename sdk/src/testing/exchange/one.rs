//! HTTP/1.1: one request on a connection at a time, idle connections are kept.
#![expect(clippy::disallowed_methods, reason = "an idle connection is kept for a time")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{Shared, Target, alive, failure, outgoing};
use crate::error::Phase;
use crate::http::exchange::{Answer, Connection, Failure, Progress, Request};
use crate::transport::Network;

/// As long as reqwest keeps one.
const IDLE: Duration = Duration::from_secs(90);

/// The idle connections of each host and port.
#[derive(Default)]
pub(super) struct Pool(Mutex<HashMap<Arc<str>, Vec<Idle>>>);

struct Idle {
    since: Instant,
    line: Line,
}

impl Pool {
    /// The newest that has not ended.
    fn take(&self, authority: &str) -> Option<Line> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = pool.get_mut(authority)?;
        idle.retain(|idle| idle.since.elapsed() < IDLE && !idle.line.sender.is_closed());
        idle.pop().map(|idle| idle.line)
    }

    fn put(&self, authority: Arc<str>, line: Line) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pool.entry(authority).or_default().push(Idle { since: Instant::now(), line });
    }
}

/// A connection; dropping it ends it at once, in the middle of an answer too.
struct Line {
    sender: http1::SendRequest<Full<Bytes>>,
    task: AbortHandle,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) async fn send(home: Weak<Shared>, network: Arc<dyn Network>, request: Request) -> Result<Answer, Failure> {
    let target = Target::of(&request.url)?;
    let mut unsent = outgoing(&request, &target, false)?;
    loop {
        let pooled = match request.connection {
            Connection::Any => alive(&home)?.one.take(&target.authority),
            Connection::Fresh => None,
        };
        let reused = pooled.is_some();
        let mut line = match pooled {
            Some(line) => line,
            None => open(&home, &*network, &target, &request.progress).await?,
        };
        request.progress.begins(Phase::FirstByte);
        if line.sender.ready().await.is_err() && reused {
            continue; // it ended meanwhile, and nothing has been sent
        }
        let mut failed = match line.sender.try_send_request(unsent).await {
            Ok(answer) => return Ok(received(answer, Held { line, home, authority: target.authority })),
            Err(failed) => failed,
        };
        unsent = match failed.take_message() {
            Some(message) if reused => message, // not a byte of it was sent
            Some(_) | None => return Err(failure::before_the_head(&target, failed.error())),
        };
    }
}

async fn open(
    home: &Weak<Shared>,
    network: &dyn Network,
    target: &Target,
    progress: &Progress,
) -> Result<Line, Failure> {
    let io = target.connect(network, progress).await?;
    let handshake = http1::Builder::new().handshake(TokioIo::new(io)).await;
    let (sender, connection) = handshake.map_err(|e| failure::before_the_head(target, &e))?;
    let task = alive(home)?.spawn(async move {
        if let Err(e) = connection.await {
            tracing::debug!(error = %e, "connection ended");
        }
    });
    Ok(Line { sender, task })
}

/// The connection of an answer that has not been read to its end.
struct Held {
    line: Line,
    home: Weak<Shared>,
    authority: Arc<str>,
}

impl Held {
    fn give_back(self) {
        if let Some(home) = self.home.upgrade() {
            home.one.put(self.authority, self.line);
        }
    }
}

fn received(answer: ::http::Response<Incoming>, held: Held) -> Answer {
    let (head, body) = answer.into_parts();
    Answer::new(head.status, head.version, head.headers, pieces(body, held))
}

fn pieces(body: Incoming, held: Held) -> impl Stream<Item = Result<Bytes, Failure>> + Send + 'static {
    // A caller need not ask for the end of an answer that has no body, or no more of it.
    let left = if body.is_end_stream() {
        held.give_back();
        None
    } else {
        Some((body, held))
    };
    futures::stream::unfold(left, async |left| {
        let (mut body, held) = left?;
        loop {
            match body.frame().await {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if body.is_end_stream() {
                        held.give_back();
                        return Some((Ok(data), None));
                    }
                    return Some((Ok(data), Some((body, held))));
                }
                Some(Err(e)) => return Some((Err(failure::in_the_body(&held.authority, &e)), None)),
                None => {
                    held.give_back();
                    return None;
                }
            }
        }
    })
}
