//! One connection's subscriptions: what is sent, and in which order.
//!
//! The watermark is loaded before the changed subscriptions are taken, and told after they are sent.
//! So all values up to a watermark are out before it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::value::RawValue;

use crate::call::Args;
use crate::log::Seq;
use crate::server::core::Core;
use crate::server::live::{Dirty, Feed, Sample, Version, Wake};
use crate::server::refused;
use crate::server::routes::Route;
use crate::server::scope::RpcScopeBuilder;
use crate::wire::{Cursor, EndReason, MAX_FRAME, Refused, ServerFrame, SubId, Subscribe};

pub(super) struct Reads {
    core: Arc<Core>,
    subs: BTreeMap<SubId, Sub>,
    dirty: Arc<Dirty>,
    /// What marks subscriptions whose source does not do it itself.
    pumps: FuturesUnordered<Abortable<BoxFuture<'static, ()>>>,
    /// What is being sent, and the watermark that it leads to.
    batch: Option<(Seq, VecDeque<SubId>)>,
    told: Seq,
}

struct Sub {
    feed: Box<dyn Feed>,
    /// What the client holds, until the first answer.
    after: Option<Seq>,
    /// The watermark that the first answer waits for.
    gate: Seq,
    shown: Option<Shown>,
    pump: Option<AbortHandle>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Value(Seq),
    Unlogged,
    Absent,
}

impl Drop for Sub {
    fn drop(&mut self) {
        if let Some(pump) = &self.pump {
            pump.abort();
        }
    }
}

impl Reads {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            subs: BTreeMap::new(),
            dirty: Arc::default(),
            pumps: FuturesUnordered::new(),
            batch: None,
            told: 0,
        }
    }

    /// Starts a read. Its first answer follows with the next batch, unless it is answered here.
    pub(super) fn subscribe(
        &mut self,
        scope: RpcScopeBuilder,
        subscribe: Subscribe<'_>,
    ) -> Option<ServerFrame<'static>> {
        let sub = subscribe.sub;
        let limit = self.core.settings.subscriptions;
        if self.subs.contains_key(&sub) {
            return Some(ServerFrame::Fault { detail: format!("sub: expected an unused id, got {sub}").into() });
        }
        if self.subs.len() >= limit {
            return Some(ServerFrame::Unserved { sub, refused: refused::over_limit("subscriptions", limit) });
        }
        // A cursor of another log, or of none, is not trusted: the answer is a full snapshot (R4).
        let after = subscribe.after.and_then(Cursor::timestamp).filter(|after| after.log == self.core.log_id);
        let Some(Route::Read(handler)) = self.core.routes.get(&*subscribe.method) else {
            let refused = refused::unknown_method("read", &subscribe.method);
            return Some(ServerFrame::Unserved { sub, refused });
        };
        let scope = scope.minimum_timestamp(after).build();
        let opened = catch_unwind(AssertUnwindSafe(|| handler(&scope, Args::parse(&subscribe.params)?)));
        let mut feed = match opened {
            Ok(Ok(feed)) => feed,
            Ok(Err(e)) if e.is_denied() => return Some(ServerFrame::End { sub, reason: EndReason::Denied }),
            Ok(Err(e)) if e.is_invalid() => {
                return Some(ServerFrame::Unserved { sub, refused: refused::invalid(e.to_string()) });
            }
            Ok(Err(e)) => return Some(ServerFrame::Unserved { sub, refused: refused::unavailable(e.to_string()) }),
            Err(_) => {
                tracing::error!(method = %subscribe.method, "a read's handler panicked");
                return Some(ServerFrame::Unserved { sub, refused: refused::unavailable("the handler panicked") });
            }
        };
        let wake = Wake::new(&self.dirty, sub);
        let pump = feed.open(wake.clone()).map(|pump| {
            let (handle, registration) = AbortHandle::new_pair();
            self.pumps.push(Abortable::new(pump, registration));
            handle
        });
        wake.mark(); // look after the watch is set, never before
        let after = after.map(|after| after.seq);
        let gate = after.unwrap_or(0).max(self.core.floor);
        self.subs.insert(sub, Sub { feed, after, gate, shown: None, pump });
        None
    }

    pub(super) fn unsubscribe(&mut self, sub: SubId) {
        self.subs.remove(&sub);
    }

    /// How far this connection has been told everything.
    pub(super) fn through(&self) -> Seq {
        if self.subs.is_empty() { self.core.progress.through().max(self.told) } else { self.told }
    }

    /// Whether a batch waits to be sent: then [`next`](Self::next) has the next frame of it.
    pub(super) fn is_sending(&self) -> bool {
        self.batch.is_some()
    }

    /// Completes when something has changed that is to be looked at with [`begin`](Self::begin).
    ///
    /// # Cancel safety
    /// Safe: a change is looked at, or it stays.
    pub(super) async fn changed(&mut self) {
        let Self { dirty, pumps, .. } = self;
        let pumping = async {
            while pumps.next().await.is_some() {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            // The pumps first, as it is they who mark: so what has changed by now is one batch.
            biased;
            () = pumping => {}
            () = dirty.marked() => {}
        }
    }

    /// Takes what has changed. The watermark first: what changes after it belongs to the next batch.
    pub(super) fn begin(&mut self) {
        let through = self.core.progress.through();
        let mut subs = self.dirty.take();
        subs.extend(self.subs.iter().filter(|(_, s)| s.shown.is_none() && s.gate <= through).map(|(sub, _)| *sub));
        if !subs.is_empty() || (through > self.told && !self.subs.is_empty()) {
            self.batch = Some((through, subs.into_iter().collect()));
        }
    }

    /// The next frame of the batch; the watermark is the last one.
    pub(super) fn next(&mut self) -> Option<String> {
        while let Some((through, subs)) = &mut self.batch {
            let through = *through;
            match subs.pop_front() {
                Some(sub) => {
                    if let Some(text) = self.show(sub, through) {
                        return Some(text);
                    }
                }
                None => {
                    self.batch = None;
                    if through > self.told && !self.subs.is_empty() {
                        self.told = through;
                        return Some(ServerFrame::Watermark { through }.to_text());
                    }
                }
            }
        }
        None
    }

    /// What a subscription has to say, as of the watermark `through`.
    fn show(&mut self, sub: SubId, through: Seq) -> Option<String> {
        let core = &self.core;
        let entry = self.subs.get_mut(&sub)?;
        let unlogged = core.count(); // before the look, see `Core::count`
        let sample = entry.feed.sample();
        let waits = entry.shown.is_none() && through < entry.gate;
        let frame = match sample {
            Sample::Value { json, version: Version::Unlogged } => {
                entry.shown = Some(Shown::Unlogged);
                value(sub, unlogged, &json)
            }
            // The projections are below what the client has seen, or below the log's head at the start.
            Sample::Value { .. } | Sample::Absent | Sample::Gone if waits => return None,
            Sample::Value { json, version: Version::Log(changed) } => {
                if entry.shown == Some(Shown::Value(changed)) {
                    return None;
                }
                entry.shown = Some(Shown::Value(changed));
                let at = Cursor::log(core.log_id, changed.max(through));
                match entry.after.take() {
                    Some(after) if changed <= after => Ok(ServerFrame::Unchanged { sub, at }.to_text()),
                    Some(_) | None => value(sub, at, &json),
                }
            }
            Sample::Absent => {
                if entry.shown == Some(Shown::Absent) {
                    return None;
                }
                entry.shown = Some(Shown::Absent);
                Ok(ServerFrame::Absent { sub, at: Cursor::log(core.log_id, through) }.to_text())
            }
            Sample::Gone => {
                self.subs.remove(&sub);
                return Some(ServerFrame::End { sub, reason: EndReason::Gone }.to_text());
            }
            Sample::Broken(why) => Err(refused::unavailable(why)),
        };
        Some(frame.unwrap_or_else(|refused| {
            self.subs.remove(&sub);
            ServerFrame::Unserved { sub, refused }.to_text()
        }))
    }
}

fn value(sub: SubId, at: Cursor, json: &RawValue) -> Result<String, Refused> {
    let text = ServerFrame::Value { sub, at, value: Cow::Borrowed(json) }.to_text();
    if text.len() > MAX_FRAME {
        return Err(refused::invalid(format!(
            "value: expected a frame of at most {MAX_FRAME} bytes, got {}",
            text.len()
        )));
    }
    Ok(text)
}
