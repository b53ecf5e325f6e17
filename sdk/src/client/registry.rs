//! Which reads are open: those who ask the same share one upstream.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;

use crate::observe::{Observable, Publisher, Watermark, WeakObservable};

/// Names a read within its client.
pub(super) type ReadId = u64;

/// What a read asks for, and as which type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadKey {
    method: &'static str,
    params: Arc<str>,
    value: TypeId,
}

impl ReadKey {
    pub(super) fn of<T: 'static>(method: &'static str, params: &RawValue) -> Self {
        Self { method, params: params.get().into(), value: TypeId::of::<T>() }
    }
}

/// The open reads of a client. It keeps none of them alive.
#[derive(Default)]
pub(super) struct Registry {
    reads: Mutex<Entered>,
}

/// Who was entered, and the way to its observables: a `WeakObservable` of the key's type.
type Entered = HashMap<ReadKey, (ReadId, Box<dyn Any + Send>)>;

/// An open read to join, or a new one to be started.
pub(super) enum Found<T> {
    Open(Observable<T>),
    New(Publisher<T>, Observable<T>),
}

impl Registry {
    /// Joins the read of `key`, or enters a new one as `id`.
    pub(super) fn find_or_insert<T: Send + Sync + 'static>(
        &self,
        key: &ReadKey,
        id: ReadId,
        watermark: &Watermark,
    ) -> Found<T> {
        let mut reads = self.lock();
        let open = reads.get(key).and_then(|(_, weak)| weak.downcast_ref::<WeakObservable<T>>()?.upgrade());
        if let Some(open) = open.filter(|open| !open.latest().is_ended()) {
            return Found::Open(open);
        }
        let publisher = Publisher::of_connection(watermark);
        let observable = publisher.subscribe();
        reads.insert(key.clone(), (id, Box::new(publisher.downgrade())));
        Found::New(publisher, observable)
    }

    /// Forgets the read that was entered as `id`; a successor of the same key stays.
    pub(super) fn remove(&self, key: &ReadKey, id: ReadId) {
        let mut reads = self.lock();
        if reads.get(key).is_some_and(|(entered, _)| *entered == id) {
            reads.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entered> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("reads", &self.lock().len()).finish()
    }
}
