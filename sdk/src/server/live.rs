//! Where a read's value lives, seen from the connections that show it.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};

use crate::log::Seq;
use crate::wire::SubId;

/// A value that is followed as it changes: what a read's handler answers.
///
/// Made by [`Cells::live`](super::Cells::live) and [`Cell::live`](super::Cell::live), and from a
/// `tokio::sync::watch::Receiver`, which has no log: its versions count within one life of the server.
pub struct Live<T> {
    feed: Box<dyn Feed>,
    value: PhantomData<fn() -> T>,
}

impl<T> Live<T> {
    pub(crate) fn new(feed: impl Feed + 'static) -> Self {
        Self { feed: Box::new(feed), value: PhantomData }
    }

    pub(crate) fn into_feed(self) -> Box<dyn Feed> {
        self.feed
    }
}

impl<T> fmt::Debug for Live<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

/// What a read's handler may answer.
#[diagnostic::on_unimplemented(
    message = "the handler of a read returns a live source, `{Self}` is none",
    label = "no live source",
    note = "return `Live<_>` (of `Cells` or `Cell`), `tokio::sync::watch::Receiver<_>`, or a `Result` of one with `outlast::Error`"
)]
pub trait IntoLive {
    /// The value's type.
    type Value;

    /// The live value.
    fn into_live(self) -> Live<Self::Value>;
}

impl<T> IntoLive for Live<T> {
    type Value = T;

    fn into_live(self) -> Self {
        self
    }
}

impl<T: Serialize + Send + Sync + 'static> IntoLive for watch::Receiver<T> {
    type Value = T;

    fn into_live(self) -> Live<T> {
        Live::new(WatchFeed { receiver: self, ended: Arc::default(), wake: None, last_word: false })
    }
}

/// One subscription's source. Dropping it ends the subscription.
pub(crate) trait Feed: Send {
    /// Asks for a [`Wake::mark`] after each change from now on. The returned future does the marking
    /// where nobody else does; the subscriber drives it.
    fn open(&mut self, wake: Wake) -> Option<BoxFuture<'static, ()>>;

    /// What there is now.
    fn sample(&mut self) -> Sample;
}

/// What a source shows at one moment.
#[derive(Debug)]
pub(crate) enum Sample {
    Value {
        json: Arc<RawValue>,
        version: Version,
    },
    /// There is nothing yet.
    Absent,
    /// There was something and it was removed.
    Gone,
    /// It cannot be shown; says why.
    Broken(&'static str),
}

/// How old a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// It changed with this append, and is complete up to the projections' watermark.
    Log(Seq),
    /// Its source has no log.
    Unlogged,
}

/// The subscriptions of one connection whose source has changed since they were last sampled.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    subs: Mutex<BTreeSet<SubId>>,
    notify: Notify,
}

impl Dirty {
    /// Takes them all, oldest id first.
    pub(crate) fn take(&self) -> BTreeSet<SubId> {
        std::mem::take(&mut *self.subs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Completes when there are some, or may be.
    ///
    /// # Cancel safety
    /// Safe: a mark that comes while nobody waits is kept.
    pub(crate) async fn marked(&self) {
        self.notify.notified().await;
    }
}

/// Marks one subscription dirty. Many marks before the next sample are one: reads coalesce (R6).
#[derive(Clone, Debug)]
pub(crate) struct Wake {
    dirty: Arc<Dirty>,
    sub: SubId,
}

impl Wake {
    pub(crate) fn new(dirty: &Arc<Dirty>, sub: SubId) -> Self {
        Self { dirty: Arc::clone(dirty), sub }
    }

    pub(crate) fn mark(&self) {
        if self.dirty.subs.lock().unwrap_or_else(PoisonError::into_inner).insert(self.sub) {
            self.dirty.notify.notify_one();
        }
    }
}

/// Writes a value as it travels.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Arc<RawValue>, serde_json::Error> {
    serde_json::value::to_raw_value(value).map(Arc::from)
}

struct WatchFeed<T> {
    receiver: watch::Receiver<T>,
    ended: Arc<AtomicBool>,
    wake: Option<Wake>,
    /// Whether the last value was sampled after the publisher went away.
    last_word: bool,
}

impl<T: Serialize + Send + Sync + 'static> Feed for WatchFeed<T> {
    fn open(&mut self, wake: Wake) -> Option<BoxFuture<'static, ()>> {
        self.wake = Some(wake.clone());
        let (mut receiver, ended) = (self.receiver.clone(), Arc::clone(&self.ended));
        Some(Box::pin(async move {
            while receiver.changed().await.is_ok() {
                wake.mark();
            }
            ended.store(true, Ordering::Release);
            wake.mark();
        }))
    }

    fn sample(&mut self) -> Sample {
        if self.last_word {
            // A publisher that went away is no authority: the client asks again and keeps what it has (R3).
            return Sample::Broken("the value's source has ended");
        }
        if self.ended.load(Ordering::Acquire) {
            self.last_word = true;
            self.wake.iter().for_each(Wake::mark);
        }
        match to_json(&*self.receiver.borrow_and_update()) {
            Ok(json) => Sample::Value { json, version: Version::Unlogged },
            Err(_) => Sample::Broken("the value cannot be written as JSON"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R6: a slow consumer sees the newest value; R3: the source's end is no end of the resource.
    #[tokio::test]
    async fn r6_a_watch_coalesces_and_its_end_is_no_authority() {
        let (sender, receiver) = watch::channel(1);
        let mut feed = receiver.into_live().into_feed();
        let dirty = Arc::new(Dirty::default());
        let pump = feed.open(Wake::new(&dirty, 7)).unwrap();
        let show = |sample| match sample {
            Sample::Value { json, .. } => json.get().to_owned(),
            other @ (Sample::Absent | Sample::Gone | Sample::Broken(_)) => format!("{other:?}"),
        };
        assert_eq!(show(feed.sample()), "1");
        sender.send_replace(2);
        sender.send_replace(3);
        drop(sender);
        pump.await;
        dirty.marked().await;
        assert_eq!(dirty.take(), BTreeSet::from([7]));
        assert_eq!(show(feed.sample()), "3");
        assert_eq!(dirty.take(), BTreeSet::from([7]), "the last value is followed by word of the end");
        assert!(show(feed.sample()).contains("ended"));
    }
}
