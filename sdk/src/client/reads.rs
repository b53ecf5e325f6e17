//! The open reads of a client: one machine and one subscription each, whatever the number of observers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::registry::{ReadId, ReadKey, Registry};
use super::timers::Timers;
use crate::env::Env;
use crate::machine::{Machine as _, Monotonic};
use crate::observe::Publisher;
use crate::observe::machine::{Action, Event, Machine, Settings, Shown};
use crate::wire::{ClientFrame, Cursor, EndReason, RefusalCode, Refused, SubId, Subscribe};

/// A read that the router is to take over.
pub(super) struct NewRead {
    pub(super) id: ReadId,
    pub(super) key: ReadKey,
    pub(super) method: &'static str,
    pub(super) params: Arc<RawValue>,
    pub(super) slot: Box<dyn Slot>,
}

/// A read's typed half: decodes values and shows them.
pub(super) trait Slot: Send {
    /// Decodes a value and keeps it until the next [`show`](Self::show). The error says what was expected.
    fn decode(&mut self, value: &RawValue) -> Result<(), Arc<str>>;

    /// Shows what the machine decided.
    fn show(&mut self, shown: Shown, env: &Env);

    /// Completes once nobody observes it.
    fn unobserved(&self) -> BoxFuture<'static, ()>;

    /// If nobody observes it, nobody can from now on; whether that is so.
    fn retire(&self) -> bool;
}

/// The typed half of a read of `T`.
pub(super) struct TypedSlot<T> {
    publisher: Publisher<T>,
    decoded: Option<Arc<T>>,
}

impl<T> TypedSlot<T> {
    pub(super) fn new(publisher: Publisher<T>) -> Self {
        Self { publisher, decoded: None }
    }
}

impl<T: DeserializeOwned + Send + Sync + 'static> Slot for TypedSlot<T> {
    fn decode(&mut self, value: &RawValue) -> Result<(), Arc<str>> {
        self.decoded = None;
        let value = serde_json::from_str(value.get()).map_err(|e| Arc::from(e.to_string()))?;
        self.decoded = Some(Arc::new(value));
        Ok(())
    }

    fn show(&mut self, shown: Shown, env: &Env) {
        self.publisher.show(shown, self.decoded.take(), env);
    }

    fn unobserved(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.publisher.unobserved())
    }

    fn retire(&self) -> bool {
        self.publisher.retire()
    }
}

struct Open {
    machine: Machine,
    key: ReadKey,
    method: &'static str,
    params: Arc<RawValue>,
    slot: Box<dyn Slot>,
    /// The present subscription on the present connection.
    sub: Option<SubId>,
}

/// All open reads.
pub(super) struct Reads {
    env: Env,
    registry: Arc<Registry>,
    settings: Settings,
    idle: Duration,
    open: HashMap<ReadId, Open>,
    subs: HashMap<SubId, ReadId>,
    timers: Timers<ReadId>,
    idle_timers: Timers<ReadId>,
    unobserved: FuturesUnordered<BoxFuture<'static, ReadId>>,
    last_sub: SubId,
}

impl Reads {
    pub(super) fn new(env: Env, registry: Arc<Registry>, settings: Settings, idle: Duration) -> Self {
        Self {
            env,
            registry,
            settings,
            idle,
            open: HashMap::new(),
            subs: HashMap::new(),
            timers: Timers::new(),
            idle_timers: Timers::new(),
            unobserved: FuturesUnordered::new(),
            last_sub: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Monotonic> {
        [self.timers.next(), self.idle_timers.next()].into_iter().flatten().min()
    }

    /// Completes when a read has lost its last observer: its idle time starts.
    ///
    /// Cancel safe.
    pub(super) async fn next_unobserved(&mut self) {
        match self.unobserved.next().await {
            Some(id) => self.idle_timers.set(id, Some(self.env.instant() + self.idle)),
            None => std::future::pending().await,
        }
    }

    /// Takes a read over; `link` says how the connection stands.
    pub(super) fn add(&mut self, new: NewRead, link: Option<Event>, send: &mut impl FnMut(&ClientFrame<'_>)) {
        let NewRead { id, key, method, params, slot } = new;
        let machine = Machine::new(self.settings, self.env.now());
        self.open.insert(id, Open { machine, key, method, params, slot, sub: None });
        self.watch(id);
        if let Some(event) = link {
            self.tell(id, event, send);
        }
    }

    /// Tells all of them.
    pub(super) fn tell_all(&mut self, event: &Event, send: &mut impl FnMut(&ClientFrame<'_>)) {
        if matches!(event, Event::Unlinked { .. } | Event::Denied | Event::Close) {
            self.subs.clear();
            self.open.values_mut().for_each(|open| open.sub = None);
        }
        let mut ids: Vec<ReadId> = self.open.keys().copied().collect();
        ids.sort_unstable(); // in the order of the reads, and the same in every run
        for id in ids {
            self.tell(id, event.clone(), send);
        }
    }

    pub(super) fn on_value(
        &mut self,
        sub: SubId,
        at: Cursor,
        value: &RawValue,
        send: &mut impl FnMut(&ClientFrame<'_>),
    ) {
        let Some(id) = self.subs.get(&sub).copied() else { return };
        let Some(open) = self.open.get_mut(&id) else { return };
        let decoded = open.slot.decode(value);
        self.tell(id, Event::Value { at, decoded }, send);
    }

    pub(super) fn on_answer(&mut self, sub: SubId, event: Event, send: &mut impl FnMut(&ClientFrame<'_>)) {
        if let Some(id) = self.subs.get(&sub).copied() {
            self.tell(id, event, send);
        }
    }

    pub(super) fn on_end(&mut self, sub: SubId, reason: EndReason, send: &mut impl FnMut(&ClientFrame<'_>)) {
        if let Some(id) = self.over(sub) {
            self.tell(id, Event::End { reason }, send);
        }
    }

    pub(super) fn on_unserved(&mut self, sub: SubId, refused: &Refused, send: &mut impl FnMut(&ClientFrame<'_>)) {
        if let Some(id) = self.over(sub) {
            if refused.code == RefusalCode::RateLimited {
                // It may be that this connection has too many: those that nobody observes make room.
                self.retire_idle(|_| true, send);
            }
            self.tell(id, Event::refused(refused), send);
        }
    }

    pub(super) fn on_deadline(&mut self, send: &mut impl FnMut(&ClientFrame<'_>)) {
        let now = self.env.instant();
        while let Some(id) = self.timers.pop_due(now) {
            self.tell(id, Event::Tick, send);
        }
        self.retire_idle(|at| at <= now, send);
    }

    /// Gives up the reads whose idle time ends at an instant that `is_over`, unless somebody came back.
    fn retire_idle(&mut self, is_over: impl Fn(Monotonic) -> bool, send: &mut impl FnMut(&ClientFrame<'_>)) {
        while let Some(id) =
            self.idle_timers.next().filter(|at| is_over(*at)).and_then(|at| self.idle_timers.pop_due(at))
        {
            match self.open.get(&id) {
                Some(open) if open.slot.retire() => self.tell(id, Event::Close, send),
                Some(_) => self.watch(id),
                None => {}
            }
        }
    }

    fn watch(&mut self, id: ReadId) {
        if let Some(open) = self.open.get(&id) {
            let unobserved = open.slot.unobserved();
            self.unobserved.push(Box::pin(async move {
                unobserved.await;
                id
            }));
        }
    }

    /// The service has ended a subscription: its id is not ours to end any more.
    fn over(&mut self, sub: SubId) -> Option<ReadId> {
        let id = self.subs.remove(&sub)?;
        if let Some(open) = self.open.get_mut(&id) {
            open.sub = None;
        }
        Some(id)
    }

    fn tell(&mut self, id: ReadId, event: Event, send: &mut impl FnMut(&ClientFrame<'_>)) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let mut ended = false;
        for action in open.machine.on_event(self.env.now(), event) {
            match action {
                Action::Subscribe { after } => {
                    end_subscription(open, &mut self.subs, send);
                    self.last_sub += 1;
                    let sub = self.last_sub;
                    open.sub = Some(sub);
                    self.subs.insert(sub, id);
                    send(&ClientFrame::Subscribe(Subscribe {
                        sub,
                        method: open.method.into(),
                        params: std::borrow::Cow::Borrowed(&open.params),
                        after,
                    }));
                }
                Action::Unsubscribe => end_subscription(open, &mut self.subs, send),
                Action::Publish(shown) => {
                    ended |= matches!(shown, Shown::Ended(_));
                    open.slot.show(shown, &self.env);
                }
            }
        }
        if ended {
            end_subscription(open, &mut self.subs, send);
            self.registry.remove(&open.key, id);
            self.open.remove(&id);
            self.timers.set(id, None);
            self.idle_timers.set(id, None);
        } else {
            self.timers.set(id, open.machine.deadline());
        }
    }
}

fn end_subscription(open: &mut Open, subs: &mut HashMap<SubId, ReadId>, send: &mut impl FnMut(&ClientFrame<'_>)) {
    if let Some(sub) = open.sub.take() {
        subs.remove(&sub);
        send(&ClientFrame::Unsubscribe { sub });
    }
}
