//! One connection: frames in, answers and values out.

mod calls;
mod reads;
mod socket;
#[cfg(test)]
mod tests;

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use self::calls::{Answers, Calls};
use self::reads::Reads;
use self::socket::{Closed, Inbound, Socket};
use super::core::{Core, Stage};
use super::keywatch::Answer;
use super::scope::{RpcScope, RpcScopeBuilder};
use crate::connection::{Liveness, liveness};
use crate::key::Principal;
use crate::log::{Log, Seq};
use crate::machine::Machine;
use crate::server::refused;
use crate::wire::{Asker, CallId, ClientFrame, Incoming, ServerFrame, Welcome};

/// Counts a connection while it lives.
pub(crate) struct Connected(Arc<Core>);

impl Connected {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        core.connections.send_modify(|connections| *connections += 1);
        Self(Arc::clone(core))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.send_modify(|connections| *connections -= 1);
    }
}

/// Who is at the other end, and the log's head as it was told.
pub(crate) struct Peer {
    pub(crate) principal: Principal,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) head: Seq,
}

/// Serves an upgraded connection until it ends. What it has in flight goes on without it (S6).
pub(crate) async fn serve<S>(core: Arc<Core>, io: S, peer: Peer, connected: Connected)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut session = Session::new(core, io, peer).await;
    // However it ends, there is nobody to tell.
    let _ = session.run().await;
    drop(connected);
}

struct Session<S> {
    core: Arc<Core>,
    socket: Socket<S>,
    scope: RpcScopeBuilder,
    welcome: Welcome,
    reads: Reads,
    calls: Calls,
    answers: Answers,
    stage: watch::Receiver<Stage>,
    watermark: watch::Receiver<Seq>,
    liveness: Liveness,
    heard_bytes: u64,
}

/// What there is to do.
enum Step {
    Stage,
    Answer((CallId, u64, Answer)),
    Frame(Inbound),
    /// The next frame of a batch of values.
    Send,
    /// Something has changed: begin a batch.
    Look,
    /// The liveness machine's deadline has come.
    Due,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    async fn new(core: Arc<Core>, io: S, peer: Peer) -> Self {
        let (calls, answers) = Calls::new(Arc::clone(&core), peer.principal.clone());
        Self {
            socket: Socket::new(io, core.env.clone()).await,
            scope: RpcScope::builder(peer.principal.clone()).peer(peer.address),
            welcome: Welcome {
                epoch: core.epoch,
                log: core.log_id,
                head: peer.head,
                durable: core.log.durable(),
                principal: peer.principal,
                now: core.env.wall().millis(),
                heartbeat: core.settings.heartbeat,
                retention: core.settings.retention,
                spread: core.spread(),
            },
            reads: Reads::new(Arc::clone(&core)),
            calls,
            answers,
            stage: core.stage.subscribe(),
            watermark: core.progress.watch(),
            liveness: Liveness::server(&core.env.now(), core.settings.heartbeat, liveness::Config::default()),
            heard_bytes: 0,
            core,
        }
    }

    async fn run(&mut self) -> Result<(), Closed> {
        self.say(&ServerFrame::Welcome(self.welcome.clone())).await?;
        if *self.stage.borrow() != Stage::Serving {
            self.stage.mark_changed();
        }
        loop {
            match self.step().await? {
                Step::Stage => {
                    let stage = *self.stage.borrow_and_update();
                    match stage {
                        Stage::Serving => {}
                        Stage::Draining => self.say(&ServerFrame::Drain).await?,
                        Stage::Closing => {
                            self.socket.close(CloseCode::Restart).await;
                            return Err(Closed);
                        }
                    }
                }
                Step::Answer(answer) => {
                    if let Some(frame) = self.calls.answered(answer) {
                        self.say(&frame).await?;
                    }
                }
                Step::Frame(frame) => {
                    self.heard(liveness::Event::Received)?;
                    if let Some(answer) = self.take(&frame) {
                        self.say(&answer).await?;
                    }
                }
                Step::Look => self.reads.begin(),
                Step::Send => {
                    if let Some(text) = self.reads.next() {
                        self.socket.feed(text).await?;
                    }
                    // A batch may end with a frame, its watermark, or without one.
                    if !self.reads.is_sending() {
                        self.socket.flush().await?;
                    }
                }
                // A large frame on a thin line: no whole one has come, but bytes have.
                Step::Due if self.socket.bytes_read() > self.heard_bytes => self.heard(liveness::Event::Received)?,
                Step::Due => self.heard(liveness::Event::Tick)?,
            }
        }
    }

    async fn step(&mut self) -> Result<Step, Closed> {
        let due = self.liveness.deadline();
        let sending = self.reads.is_sending();
        Ok(tokio::select! {
            // In order: the server's end; answers, of which there are few; the client's frames, between any two
            // values, so that its pings are answered while it loads a lot; values.
            biased;
            Ok(()) = self.stage.changed() => Step::Stage,
            Some(answer) = self.answers.recv() => Step::Answer(answer),
            frame = self.socket.next() => Step::Frame(frame?),
            () = ready(()), if sending => Step::Send,
            () = self.reads.changed(), if !sending => Step::Look,
            Ok(()) = self.watermark.changed(), if !sending => Step::Look,
            () = self.core.env.sleep_until(due) => Step::Due,
        })
    }

    /// Asks the liveness machine, which ends the connection of a peer that is silent for two heartbeats (R7).
    fn heard(&mut self, event: liveness::Event) -> Result<(), Closed> {
        self.heard_bytes = self.socket.bytes_read();
        for action in self.liveness.on_event(self.core.env.now(), event) {
            match action {
                liveness::Action::Dead(cause) => {
                    tracing::debug!(%cause, "a client's connection is dropped");
                    return Err(Closed);
                }
                liveness::Action::Ping { .. } => {} // the client's
            }
        }
        Ok(())
    }

    async fn say(&mut self, frame: &ServerFrame<'_>) -> Result<(), Closed> {
        self.socket.feed(frame.to_text()).await?;
        self.socket.flush().await
    }

    /// Takes one frame of the client, and answers it where that needs no waiting.
    fn take(&mut self, frame: &Inbound) -> Option<ServerFrame<'static>> {
        let text = match frame {
            Inbound::Text(text) => text.as_str(),
            Inbound::Binary => return Some(ServerFrame::Fault { detail: "frame: expected text, got binary".into() }),
            Inbound::Control => return None,
        };
        let frame = match ClientFrame::parse(text) {
            Ok(Incoming::Known(frame)) => frame,
            Ok(Incoming::Unknown(kind)) => {
                tracing::debug!(%kind, "a frame of an unknown type is ignored");
                return None;
            }
            // Somebody may wait for the answer: a fault alone, which is for the client's log, would leave it waiting.
            Err(malformed) => {
                let refused = refused::invalid(malformed.to_string());
                return Some(match ClientFrame::asker(text) {
                    Some(Asker::Call(call)) => ServerFrame::Refused { call, refused },
                    Some(Asker::Read(sub)) => ServerFrame::Unserved { sub, refused },
                    None => ServerFrame::Fault { detail: refused.detail.into() },
                });
            }
        };
        match frame {
            ClientFrame::Subscribe(subscribe) => self.reads.subscribe(self.scope.clone(), subscribe),
            ClientFrame::Unsubscribe { sub } => {
                self.reads.unsubscribe(sub);
                None
            }
            ClientFrame::Call(call) => self.calls.call(self.scope.clone(), call),
            ClientFrame::Attach { call, key } => self.calls.attach(call, &key),
            ClientFrame::Cancel { call, key, minted } => self.calls.cancel(call, &key, minted),
            ClientFrame::Forget { call } => {
                self.calls.forget(call);
                None
            }
            ClientFrame::Ping { n } => Some(ServerFrame::Pong {
                n,
                through: self.reads.through(),
                head: self.core.head(),
                spread: self.core.spread(),
            }),
        }
    }
}
