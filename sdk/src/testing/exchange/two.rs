//! HTTP/2 with prior knowledge: all requests share one connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::{Shared, Target, alive, failure, outgoing};
use crate::error::Phase;
use crate::http::exchange::{Answer, Connection, Failure, Progress, Request};
use crate::transport::Network;

const PING_EACH: Duration = Duration::from_secs(10);
const PONG_WITHIN: Duration = Duration::from_secs(5);

type Sender = http2::SendRequest<Full<Bytes>>;
/// Locked while somebody connects, so that only one does.
type Slot = Arc<tokio::sync::Mutex<Option<Sender>>>;

/// The connection of each host and port.
#[derive(Default)]
pub(super) struct Pool(Mutex<HashMap<Arc<str>, Slot>>);

impl Pool {
    fn slot(&self, authority: &Arc<str>) -> Slot {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(pool.entry(Arc::clone(authority)).or_default())
    }
}

pub(super) async fn send(home: Weak<Shared>, network: Arc<dyn Network>, request: Request) -> Result<Answer, Failure> {
    let target = Target::of(&request.url)?;
    let mut unsent = outgoing(&request, &target, true)?;
    loop {
        let (mut sender, reused) = sender(&home, &*network, &target, &request).await?;
        request.progress.begins(Phase::FirstByte);
        let mut failed = match sender.try_send_request(unsent).await {
            Ok(answer) => return Ok(received(answer, target.authority)),
            Err(failed) => failed,
        };
        unsent = match failed.take_message() {
            Some(message) if reused => message, // not a byte of it was sent
            Some(_) | None => return Err(failure::before_the_head(&target, failed.error())),
        };
    }
}

/// The connection of `target`, and whether it was there before.
async fn sender(
    home: &Weak<Shared>,
    network: &dyn Network,
    target: &Target,
    request: &Request,
) -> Result<(Sender, bool), Failure> {
    let slot = alive(home)?.two.slot(&target.authority);
    if let Ok(held) = slot.try_lock()
        && request.connection == Connection::Any
        && let Some(sender) = held.as_ref().filter(|sender| !sender.is_closed())
    {
        return Ok((sender.clone(), true));
    }
    request.progress.begins(Phase::Connect);
    let mut held = slot.lock().await;
    if request.connection == Connection::Any
        && let Some(sender) = held.as_ref().filter(|sender| !sender.is_closed())
    {
        return Ok((sender.clone(), true));
    }
    let sender = open(home, network, target, &request.progress).await?;
    *held = Some(sender.clone());
    Ok((sender, false))
}

async fn open(
    home: &Weak<Shared>,
    network: &dyn Network,
    target: &Target,
    progress: &Progress,
) -> Result<Sender, Failure> {
    let io = target.connect(network, progress).await?;
    let handshake = http2::Builder::new(Tasks(Weak::clone(home)))
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EACH)
        .keep_alive_timeout(PONG_WITHIN)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(io))
        .await;
    let (sender, connection) = handshake.map_err(|e| failure::before_the_head(target, &e))?;
    alive(home)?.spawn(async move {
        if let Err(e) = connection.await {
            tracing::debug!(error = %e, "connection ended");
        }
    });
    Ok(sender)
}

/// Runs what hyper spawns among the exchange's own tasks.
#[derive(Clone)]
struct Tasks(Weak<Shared>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        if let Some(home) = self.0.upgrade() {
            home.spawn(task);
        }
    }
}

fn received(answer: ::http::Response<Incoming>, authority: Arc<str>) -> Answer {
    let (head, body) = answer.into_parts();
    Answer::new(head.status, head.version, head.headers, pieces(body, authority))
}

fn pieces(body: Incoming, authority: Arc<str>) -> impl Stream<Item = Result<Bytes, Failure>> + Send + 'static {
    futures::stream::unfold(Some((body, authority)), async |left| {
        let (mut body, authority) = left?;
        loop {
            match body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some((Ok(data), Some((body, authority))));
                    }
                }
                Err(e) => return Some((Err(failure::in_the_body(&authority, &e)), None)),
            }
        }
    })
}
