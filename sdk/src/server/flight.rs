//! The driver of [`Execution`]: one task per key while anybody waits for it, owned by the server.
//!
//! Not by the connection: when that closes, what is in flight goes on and is resolved (S6).

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::core::Core;
use super::execution::{Action, Caller, Event, Execution, Linked, Plan};
use super::executions::{Invocation, Request};
use super::keywatch::{Answer, Reply};
use super::outcome::Outcome;
use super::record::KeyRecord;
use super::refused;
use crate::call::Args;
use crate::error::Error;
use crate::log::{AnyLog, Log, LogExt, Subject};
use crate::machine::Machine;
use crate::wire::Refused;

/// Takes a request to the flight of its key, which is started if there is none.
pub(crate) fn submit(core: &Arc<Core>, key: Subject, request: Request) {
    let start = |key, inbox| {
        let flight = Flight::new(Arc::clone(core), key, inbox);
        core.tasks.upgrade().is_some_and(|tasks| tasks.spawn(flight.run()))
    };
    if let Err(reply) = core.executions.submit(key, request, start) {
        reply.tell(Answer::Refused(refused::unavailable("the server is stopping")));
    }
}

/// The task of one key.
struct Flight {
    core: Arc<Core>,
    key: Subject,
    inbox: mpsc::UnboundedReceiver<Request>,
    machine: Execution,
    callers: BTreeMap<Caller, (Reply, Option<Invocation>)>,
    next: Caller,
    operation: Option<BoxFuture<'static, Event>>,
    /// Told to a handler whose attempt is abandoned.
    canceled: watch::Sender<bool>,
}

impl Flight {
    fn new(core: Arc<Core>, key: Subject, inbox: mpsc::UnboundedReceiver<Request>) -> Self {
        let machine = Execution::new(key.clone(), core.bounds());
        let (callers, canceled) = (BTreeMap::new(), watch::Sender::new(false));
        Self { core, key, inbox, machine, callers, next: 0, operation: None, canceled }
    }

    async fn run(mut self) {
        loop {
            let event = tokio::select! {
                // A result before a new request, so that the request is answered from it.
                biased;
                event = result(&mut self.operation) => event,
                Some(request) = self.inbox.recv() => self.take(request),
                () = self.core.env.sleep_until(self.machine.deadline()) => Event::Tick,
            };
            self.handle(event);
            while self.machine.is_idle() {
                match self.core.executions.land(&self.key, &mut self.inbox) {
                    Some(request) => {
                        let event = self.take(request);
                        self.handle(event);
                    }
                    None => return,
                }
            }
        }
    }

    fn take(&mut self, request: Request) -> Event {
        let caller = self.next;
        self.next += 1;
        self.callers.insert(caller, (request.reply, request.invocation));
        Event::Requested { caller, want: request.want }
    }

    fn handle(&mut self, event: Event) {
        for action in self.machine.on_event(self.core.env.now(), event) {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        let log = self.core.log.clone();
        match action {
            Action::Load => {
                let key = self.key.clone();
                self.operation = Some(Box::pin(async move { Event::Loaded(load(&log, &key).await) }));
            }
            Action::Link { subjects } => self.operation = Some(Box::pin(link(log, subjects))),
            Action::Append(append) => {
                self.operation = Some(Box::pin(async move { Event::Appended(log.append(append).await) }));
            }
            Action::Run { caller } => self.operation = Some(self.invoke(caller)),
            Action::Abandon => {
                self.canceled.send_replace(true);
                self.operation = None;
            }
            Action::Report { caller, record } => {
                self.core.saw(record.head);
                self.tell(caller, Answer::Report(record.report()));
                self.core.keys.seed(&self.key, &record);
            }
            Action::Refuse { caller, refused } => self.tell(caller, Answer::Refused(refused)),
            Action::LeaveOut { subject } => {
                tracing::info!(key = %subject, by = %self.key, "a command is past what was to be done to it");
            }
        }
    }

    fn tell(&mut self, caller: Caller, answer: Answer) {
        if let Some((reply, _)) = self.callers.remove(&caller) {
            reply.tell(answer);
        }
    }

    fn invoke(&mut self, caller: Caller) -> BoxFuture<'static, Event> {
        let Some((_, Some(Invocation { handler, params, scope }))) = self.callers.get(&caller) else {
            // A call comes with its invocation.
            return Box::pin(async { Event::Decided(Err(refused::unavailable("the call has no handler"))) });
        };
        self.canceled = watch::Sender::new(false);
        let mut scope = scope.clone().canceled_by(self.canceled.subscribe());
        if let Some(deadline) = self.machine.deadline() {
            scope = scope.deadline(self.core.env.tokio_instant(deadline));
        }
        let (handler, args, scope) = (Arc::clone(handler), Args::parse(params), scope.build());
        Box::pin(async move {
            let decision = async { handler(scope, args?).await };
            Event::Decided(match AssertUnwindSafe(decision).catch_unwind().await {
                Ok(decision) => decided(decision),
                Err(_) => {
                    tracing::error!("a handler panicked");
                    Err(refused::unavailable("the handler panicked"))
                }
            })
        })
    }
}

fn decided(decision: Result<Outcome, Error>) -> Result<Plan, Refused> {
    match decision {
        Ok(outcome) => Plan::of(outcome),
        Err(e) if e.is_invalid() => Err(refused::invalid(e.to_string())),
        Err(e) if e.is_denied() => Err(refused::denied(e.to_string())),
        Err(e) => {
            tracing::warn!(error = %e, "a handler could not decide");
            Err(refused::unavailable(e.to_string()))
        }
    }
}

async fn load(log: &AnyLog, key: &Subject) -> Option<Option<KeyRecord>> {
    match log.try_load(key, None, KeyRecord::fold).await {
        Ok((record, _)) => Some(record),
        Err(e) => {
            tracing::warn!(error = %e, "a key's record cannot be read");
            None
        }
    }
}

async fn link(log: AnyLog, subjects: Vec<Subject>) -> Event {
    let mut linked = Linked::new();
    for subject in subjects {
        match load(&log, &subject).await {
            Some(record) => linked.insert(subject, record),
            None => return Event::Linked(None),
        };
    }
    Event::Linked(Some(linked))
}

/// The operation's result, once; never, where none is under way.
///
/// # Cancel safety
/// The operation stays where it is.
async fn result(operation: &mut Option<BoxFuture<'static, Event>>) -> Event {
    let event = match operation {
        Some(running) => running.await,
        None => std::future::pending().await,
    };
    *operation = None;
    event
}
