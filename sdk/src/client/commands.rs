//! The open commands of a client: performs what their machines ask for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::value::RawValue;
use ulid::Ulid;

use super::timers::Timers;
use crate::command::CommandState;
use crate::command::machine::{Action, Ask, Event, Machine, Settings};
use crate::env::Env;
use crate::key::CommandKey;
use crate::machine::{Machine as _, Monotonic};
use crate::observe::Publisher;
use crate::wire::{Call, CallId, ClientFrame, CommandReport, Refused};

/// Names a command within its client.
pub(super) type CommandId = u64;

/// What is sent for a command, the same in every resend (W1).
#[derive(Debug)]
pub(super) struct Body {
    pub(super) method: &'static str,
    pub(super) params: Arc<RawValue>,
    pub(super) attempt: u32,
    pub(super) id: Ulid,
    pub(super) metadata: Arc<BTreeMap<String, String>>,
}

/// A command that the router is to take over.
pub(super) struct NewCommand {
    pub(super) id: CommandId,
    pub(super) settings: Settings,
    /// `None` to attach: there is nothing to send.
    pub(super) body: Option<Body>,
    pub(super) publisher: Publisher<CommandState>,
}

struct Open {
    machine: Machine,
    key: CommandKey,
    body: Option<Body>,
    publisher: Publisher<CommandState>,
    /// The call on the present connection that answers are for.
    call: Option<CallId>,
}

/// All open commands.
pub(super) struct Commands {
    env: Env,
    open: HashMap<CommandId, Open>,
    calls: HashMap<CallId, (CommandId, Ask)>,
    timers: Timers<CommandId>,
    unobserved: FuturesUnordered<BoxFuture<'static, CommandId>>,
    last_call: CallId,
}

impl Commands {
    pub(super) fn new(env: Env) -> Self {
        Self {
            env,
            open: HashMap::new(),
            calls: HashMap::new(),
            timers: Timers::new(),
            unobserved: FuturesUnordered::new(),
            last_call: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Monotonic> {
        self.timers.next()
    }

    /// Takes a command over; `link` says how the connection stands.
    pub(super) fn add(&mut self, new: NewCommand, link: Option<Event>, send: &mut impl FnMut(&ClientFrame<'_>)) {
        let machine = Machine::new(new.settings);
        let key = machine.key().clone();
        let (id, unobserved) = (new.id, new.publisher.unobserved());
        self.unobserved.push(Box::pin(async move {
            unobserved.await;
            id
        }));
        let open = Open { machine, key, body: new.body, publisher: new.publisher, call: None };
        self.open.insert(new.id, open);
        self.tell(new.id, Event::Called, send);
        if let Some(event) = link {
            self.tell(new.id, event, send);
        }
    }

    /// Completes when nobody looks at a command any more: neither a handle nor a wait nor an observer of its state.
    /// Its id is to be told [`Event::HandleDropped`].
    ///
    /// Cancel safe.
    pub(super) async fn next_unobserved(&mut self) -> CommandId {
        match self.unobserved.next().await {
            Some(id) => id,
            None => std::future::pending().await,
        }
    }

    /// Tells one command.
    pub(super) fn tell(&mut self, id: CommandId, event: Event, send: &mut impl FnMut(&ClientFrame<'_>)) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let Some(open) = self.open.get_mut(&id) else { return };
            for action in open.machine.on_event(self.env.now(), event) {
                if let Action::Persist(record) = action {
                    // Without an outbox there is nothing to make durable beyond this process.
                    events.insert(0, Event::Persisted(record));
                } else {
                    self.perform(id, action, send);
                }
            }
        }
        let deadline = self.open.get(&id).and_then(|open| open.machine.deadline());
        self.timers.set(id, deadline);
    }

    /// Tells all of them.
    pub(super) fn tell_all(&mut self, event: &Event, send: &mut impl FnMut(&ClientFrame<'_>)) {
        if matches!(event, Event::Unlinked) {
            // Answers that come on another connection have other ids.
            self.calls.clear();
            self.open.values_mut().for_each(|open| open.call = None);
        }
        let mut ids: Vec<CommandId> = self.open.keys().copied().collect();
        ids.sort_unstable(); // in the order of the calls, and the same in every run
        for id in ids {
            self.tell(id, event.clone(), send);
        }
    }

    pub(super) fn on_report(&mut self, call: CallId, report: CommandReport, send: &mut impl FnMut(&ClientFrame<'_>)) {
        if let Some((id, _)) = self.calls.get(&call) {
            self.tell(*id, Event::Report(report), send);
        }
    }

    pub(super) fn on_refused(&mut self, call: CallId, refused: Refused, send: &mut impl FnMut(&ClientFrame<'_>)) {
        if let Some((id, ask)) = self.calls.get(&call) {
            self.tell(*id, Event::Refused { ask: *ask, refused }, send);
        }
    }

    pub(super) fn on_deadline(&mut self, send: &mut impl FnMut(&ClientFrame<'_>)) {
        while let Some(id) = self.timers.pop_due(self.env.instant()) {
            self.tell(id, Event::Tick, send);
        }
    }

    /// Ends every handle, for the caller's close or the end of the runtime.
    pub(super) fn close(&mut self) {
        self.tell_all(&Event::ClientClosed, &mut |_: &ClientFrame<'_>| {});
        self.open.clear();
    }

    fn perform(&mut self, id: CommandId, action: Action, send: &mut impl FnMut(&ClientFrame<'_>)) {
        match action {
            Action::Persist(_) => {}
            Action::SendCall { ask, minted } => {
                let call = self.ask(id, ask, send);
                let Some(Open { key, body: Some(body), .. }) = self.open.get(&id) else { return };
                send(&ClientFrame::Call(Call {
                    call,
                    method: body.method.into(),
                    params: std::borrow::Cow::Borrowed(&body.params),
                    key: key.as_str().into(),
                    level: key.level(),
                    minted: minted.millis(),
                    attempt: body.attempt,
                    id: body.id,
                    metadata: std::borrow::Cow::Borrowed(&body.metadata),
                }));
            }
            Action::SendAttach { ask } => {
                let call = self.ask(id, ask, send);
                let Some(open) = self.open.get(&id) else { return };
                send(&ClientFrame::Attach { call, key: open.key.as_str().into() });
            }
            Action::SendCancel { ask, minted } => {
                let call = self.ask(id, ask, send);
                let Some(open) = self.open.get(&id) else { return };
                send(&ClientFrame::Cancel { call, key: open.key.as_str().into(), minted: minted.millis() });
            }
            Action::Publish(state) => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.publisher.fresh(state);
                }
            }
            Action::Trace(oddity) => tracing::warn!(command = id, %oddity, "odd answer"),
            Action::Release => {
                self.forget(id, send);
                if let Some(open) = self.open.remove(&id)
                    && open.machine.state().status().is_terminal()
                {
                    // What is settled stays true; anything else ends as closed, since nobody will look again.
                    open.publisher.leave();
                }
                self.timers.set(id, None);
            }
        }
    }

    /// A fresh call id for `ask`; the answers to an earlier one are not wanted any more.
    fn ask(&mut self, id: CommandId, ask: Ask, send: &mut impl FnMut(&ClientFrame<'_>)) -> CallId {
        self.forget(id, send);
        self.last_call += 1;
        let call = self.last_call;
        self.calls.insert(call, (id, ask));
        if let Some(open) = self.open.get_mut(&id) {
            open.call = Some(call);
        }
        call
    }

    fn forget(&mut self, id: CommandId, send: &mut impl FnMut(&ClientFrame<'_>)) {
        if let Some(call) = self.open.get_mut(&id).and_then(|open| open.call.take()) {
            self.calls.remove(&call);
            send(&ClientFrame::Forget { call });
        }
    }
}
