//! The client's one task: frames in, requests in, deadlines; each goes to the machine that it concerns.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::commands::Commands;
use super::reads::Reads;
use super::shared::{Ends, Request, Shared};
use crate::command::machine::{Event as CommandEvent, Lineage};
use crate::connection::{Driver, Happening, LinkState, Parts};
use crate::env::{Alarm, Env};
use crate::error::Cause;
use crate::observe::machine::{Event as ReadEvent, Settings};
use crate::observe::{End, Publisher, Watermark};
use crate::wire::{ClientFrame, Cursor, Incoming, LogId, Seq, ServerFrame, Timestamp, Welcome};

/// Owns a client's reads and commands and its connection.
pub(super) struct Router {
    reads: Reads,
    commands: Commands,
    mailbox: mpsc::UnboundedReceiver<Request>,
    connection: Publisher<LinkState>,
    watermark: Watermark,
    link: LinkState,
    /// What the link's welcome said, held against what had been seen before it.
    lineage: Option<Lineage>,
    seen: HashMap<LogId, Seen>,
    alarm: Alarm,
}

/// What was seen of one log.
#[derive(Default)]
struct Seen {
    /// The newest sequence of the present history.
    newest: Seq,
    /// How often the head went back.
    history: u32,
}

impl Router {
    pub(super) fn new(shared: &Arc<Shared>, ends: Ends, settings: Settings, idle: Duration) -> Self {
        let env: &Env = &shared.env;
        let link = LinkState::Connecting { since: env.wall(), cause: None };
        ends.connection.fresh(link.clone());
        Self {
            reads: Reads::new(env.clone(), Arc::clone(&shared.registry), settings, idle),
            commands: Commands::new(env.clone()),
            mailbox: ends.mailbox,
            connection: ends.connection,
            watermark: shared.watermark.clone(),
            link,
            lineage: None,
            seen: HashMap::new(),
            alarm: Alarm::new(env.clone()),
        }
    }

    /// Runs until the client is closed, or no handle, read or open command is left.
    pub(super) async fn run(mut self, parts: Parts) {
        let mut driver = Driver::start(parts);
        let mut handles = true;
        'run: while handles || !self.reads.is_empty() || !self.commands.is_empty() {
            let deadline = [self.reads.deadline(), self.commands.deadline()].into_iter().flatten().min();
            tokio::select! {
                happening = driver.next() => {
                    // With what came with it: a batch is bounded, and nothing else has to wait longer than for one.
                    let mut next = Some(happening);
                    while let Some(happening) = next {
                        match happening {
                            Happening::Frame(text) => self.on_frame(&mut driver, &text),
                            Happening::State(state) => {
                                self.on_state(&mut driver, state);
                                if matches!(self.link, LinkState::Closed) {
                                    break 'run;
                                }
                            }
                        }
                        next = driver.ready();
                    }
                }
                request = self.mailbox.recv(), if handles => match request {
                    Some(Request::Close) => break 'run,
                    Some(request) => self.on_request(&mut driver, request),
                    None => handles = false,
                },
                () = self.reads.next_unobserved() => {}
                id = self.commands.next_unobserved() => {
                    // What the handle asked before it went is in the mailbox already: its cancel is not lost with it (W5).
                    while let Ok(request) = self.mailbox.try_recv() {
                        if matches!(request, Request::Close) {
                            break 'run;
                        }
                        self.on_request(&mut driver, request);
                    }
                    let event = CommandEvent::HandleDropped;
                    self.commands.tell(id, event, &mut |frame: &ClientFrame<'_>| driver.send(frame));
                }
                () = self.alarm.wait(deadline) => {
                    let mut send = |frame: &ClientFrame<'_>| driver.send(frame);
                    self.reads.on_deadline(&mut send);
                    self.commands.on_deadline(&mut send);
                }
            }
        }
        self.reads.tell_all(&ReadEvent::Close, &mut |_: &ClientFrame<'_>| {});
        self.commands.close();
        driver.close();
        self.connection.fresh(LinkState::Closed);
        self.connection.end(End::Closed);
        driver.goodbye().await;
    }

    fn on_request(&mut self, driver: &mut Driver, request: Request) {
        match request {
            Request::Read(new) => {
                let link = match &self.link {
                    LinkState::Up { welcome, .. } | LinkState::Draining { welcome, .. } => Some(linked(welcome, false)),
                    LinkState::Connecting { cause, .. } => cause.clone().map(|cause| unlinked(cause, driver)),
                    LinkState::Down { cause, .. } => Some(unlinked(cause.clone(), driver)),
                    LinkState::Denied { .. } => Some(ReadEvent::Denied),
                    LinkState::Closed => Some(ReadEvent::Close),
                };
                self.reads.add(new, link, &mut |frame: &ClientFrame<'_>| driver.send(frame));
            }
            Request::Command(new) => {
                let link = match &self.link {
                    LinkState::Up { .. } => self.lineage.clone().map(CommandEvent::Linked),
                    LinkState::Denied { .. } => Some(CommandEvent::CredentialDenied),
                    // A draining link counts as none: nothing new is sent there.
                    LinkState::Draining { .. }
                    | LinkState::Connecting { .. }
                    | LinkState::Down { .. }
                    | LinkState::Closed => None,
                };
                self.commands.add(*new, link, &mut |frame: &ClientFrame<'_>| driver.send(frame));
            }
            Request::Cancel(id) => {
                self.commands.tell(id, CommandEvent::Cancel, &mut |frame: &ClientFrame<'_>| driver.send(frame));
            }
            Request::Close => {}
        }
    }

    fn on_state(&mut self, driver: &mut Driver, state: LinkState) {
        let was_up = self.link.is_up();
        let changed = self.link != state;
        self.link = state.clone();
        let lost = state.cause().map(|cause| unlinked(cause.clone(), driver));
        let mut send = |frame: &ClientFrame<'_>| driver.send(frame);
        match &state {
            LinkState::Up { .. } | LinkState::Draining { .. } if !changed => {}
            LinkState::Up { welcome, .. } => {
                let before = self.seen.get(&welcome.log).map_or(0, |seen| seen.history);
                let lineage = self.lineage_of(welcome);
                let restored = lineage.history != before;
                self.lineage = Some(lineage.clone());
                self.saw(welcome.log, welcome.head);
                self.reads.tell_all(&linked(welcome, restored), &mut send);
                self.commands.tell_all(&CommandEvent::Linked(lineage), &mut send);
            }
            LinkState::Draining { .. } => self.commands.tell_all(&CommandEvent::Draining, &mut send),
            LinkState::Connecting { cause: None, .. } => {}
            LinkState::Connecting { cause: Some(_), .. } | LinkState::Down { .. } => {
                if was_up {
                    self.commands.tell_all(&CommandEvent::Unlinked, &mut send);
                }
                lost.iter().for_each(|lost| self.reads.tell_all(lost, &mut send));
                self.watermark.reset();
            }
            LinkState::Denied { .. } => {
                if was_up {
                    self.commands.tell_all(&CommandEvent::Unlinked, &mut send);
                }
                self.commands.tell_all(&CommandEvent::CredentialDenied, &mut send);
                self.reads.tell_all(&ReadEvent::Denied, &mut send);
                self.watermark.reset();
            }
            LinkState::Closed => {}
        }
        if changed {
            self.connection.fresh(state);
        }
    }

    fn on_frame(&mut self, driver: &mut Driver, text: &str) {
        let frame = match ServerFrame::parse(text) {
            Ok(Incoming::Known(frame)) => frame,
            Ok(Incoming::Unknown(kind)) => {
                tracing::debug!(%kind, "frame of an unknown type ignored");
                return;
            }
            Err(e) => return driver.reject(e.to_string().into()),
        };
        driver.note(&frame);
        let mut send = |frame: &ClientFrame<'_>| driver.send(frame);
        match frame {
            ServerFrame::Value { sub, at, value } => {
                self.saw_cursor(at);
                self.reads.on_value(sub, at, &value, &mut send);
            }
            ServerFrame::Unchanged { sub, at } => {
                self.saw_cursor(at);
                self.reads.on_answer(sub, ReadEvent::Unchanged { at }, &mut send);
            }
            ServerFrame::Absent { sub, at } => {
                self.saw_cursor(at);
                self.reads.on_answer(sub, ReadEvent::Absent { at }, &mut send);
            }
            ServerFrame::End { sub, reason } => self.reads.on_end(sub, reason, &mut send),
            ServerFrame::Unserved { sub, refused } => self.reads.on_unserved(sub, &refused, &mut send),
            ServerFrame::Report { call, report } => {
                if let Some(log) = self.log() {
                    self.saw(log, report.at);
                }
                self.commands.on_report(call, report, &mut send);
            }
            ServerFrame::Refused { call, refused } => self.commands.on_refused(call, refused, &mut send),
            ServerFrame::Watermark { through } => self.on_watermark(through),
            ServerFrame::Pong { through, head, .. } => {
                if let Some(log) = self.log() {
                    self.saw(log, head);
                }
                self.on_watermark(through);
            }
            ServerFrame::Fault { detail } => tracing::warn!(%detail, "the service could not read a frame"),
            ServerFrame::Welcome(_) | ServerFrame::Drain => {} // the driver's
        }
    }

    fn on_watermark(&mut self, through: Seq) {
        if let Some(log) = self.log() {
            self.saw(log, through);
            self.watermark.advance(Timestamp { log, seq: through });
        }
    }

    fn log(&self) -> Option<LogId> {
        self.link.welcome().map(|welcome| welcome.log)
    }

    /// Holds the welcome's head against what was seen before: below it begins another history (R4, W2).
    fn lineage_of(&mut self, welcome: &Welcome) -> Lineage {
        let seen = self.seen.entry(welcome.log).or_default();
        if welcome.head < seen.newest {
            tracing::warn!(log = %welcome.log, head = welcome.head, seen = seen.newest, "the log's head went back");
            seen.history += 1;
            seen.newest = welcome.head;
        }
        let history = seen.history;
        Lineage {
            log: welcome.log,
            history,
            durable: welcome.durable,
            retention: welcome.retention,
            principal: welcome.principal.clone(),
        }
    }

    fn saw(&mut self, log: LogId, seq: Seq) {
        let seen = self.seen.entry(log).or_default();
        seen.newest = seen.newest.max(seq);
    }

    fn saw_cursor(&mut self, at: Cursor) {
        if let Cursor::Log(Timestamp { log, seq }) = at {
            self.saw(log, seq);
        }
    }
}

fn linked(welcome: &Welcome, restored: bool) -> ReadEvent {
    ReadEvent::Linked { log: welcome.log, epoch: welcome.epoch, head: welcome.head, durable: welcome.durable, restored }
}

fn unlinked(cause: Cause, driver: &Driver) -> ReadEvent {
    ReadEvent::Unlinked { cause, not_before: driver.not_before() }
}
