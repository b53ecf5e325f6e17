//! Views folded from the log: cells that reads follow.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::value::RawValue;

use super::live::{Feed, Live, Sample, Version, Wake, to_json};
use crate::log::{Committed, Entry, Prefix, Seq};

/// A fold of the log into [`Cells`], which reads follow.
///
/// One task per projection folds from the log's beginning at each start, whole append by whole
/// append: cells never show a part of one. It must be a function of the entries alone, so that two
/// servers of one log, or two lives of one server, show the same at the same sequence (R4).
///
/// One that panics ends the serving ([`Server::stopped`](super::Server::stopped)): connections close and new ones are
/// answered with 503, so that its reads turn stale instead of being called fresh.
pub trait Projection: Send + 'static {
    /// Which entries it folds.
    fn prefix(&self) -> Prefix;

    /// Takes one entry and stages the cells that it changes. They become visible with the append's
    /// last entry; until then the cells show what was before the append, so what the next entry of the
    /// same append builds on belongs into the projection's own fields.
    fn apply(&mut self, entry: &Entry, changes: &mut Changes<'_>);

    /// Folds one whole append and makes its changes visible. For tests without a server.
    fn fold(&mut self, append: &Committed)
    where
        Self: Sized,
    {
        fold(self, append);
    }
}

pub(crate) fn fold(projection: &mut (impl Projection + ?Sized), append: &Committed) {
    let mut changes = Changes { staged: &mut Vec::new() };
    for entry in &append.entries {
        projection.apply(entry, &mut changes);
    }
    for publish in changes.staged.drain(..) {
        publish(append.through);
    }
}

/// The cells that one append changes, until all of it has been folded.
pub struct Changes<'a> {
    staged: &'a mut Vec<Box<dyn FnOnce(Seq) + Send>>,
}

impl Changes<'_> {
    /// `key` has this value.
    pub fn set<K, V>(&mut self, cells: &Cells<K, V>, key: K, value: V)
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.stage(cells, key, Content::Here(Arc::new(Shown::new(value))));
    }

    /// `key` is no more: its readers end with `Gone` (R3).
    ///
    /// A removed key is remembered for the life of the server, so that it reads as gone and not as never seen. Keys that
    /// come and go for ever take memory for ever.
    pub fn remove<K, V>(&mut self, cells: &Cells<K, V>, key: &K)
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.stage(cells, key.clone(), Content::Removed);
    }

    /// The single cell has this value.
    pub fn put<V: Send + Sync + 'static>(&mut self, cell: &Cell<V>, value: V) {
        self.set(&cell.cells, (), value);
    }

    fn stage<K, V>(&mut self, cells: &Cells<K, V>, key: K, content: Content<V>)
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let cells = cells.clone();
        self.staged.push(Box::new(move |changed| cells.publish(key, content, changed)));
    }
}

impl fmt::Debug for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("staged", &self.staged.len()).finish()
    }
}

/// Values by key, written by one [`Projection`] and followed by reads. Cloning shares them.
pub struct Cells<K, V> {
    slots: Arc<Mutex<HashMap<K, Slot<V>>>>,
}

/// A single value, written by one [`Projection`] and followed by reads. Cloning shares it.
pub struct Cell<V> {
    cells: Cells<(), V>,
}

struct Slot<V> {
    content: Content<V>,
    changed: Seq,
    watchers: Vec<(u64, Wake)>,
    next_watcher: u64,
}

enum Content<V> {
    Never,
    Here(Arc<Shown<V>>),
    Removed,
}

/// A value, and its JSON once anybody has asked for it: a thousand readers cost one encoding.
struct Shown<V> {
    value: Arc<V>,
    json: OnceLock<Option<Arc<RawValue>>>,
}

impl<V> Shown<V> {
    fn new(value: V) -> Self {
        Self { value: Arc::new(value), json: OnceLock::new() }
    }
}

impl<K, V> Cells<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// No cells.
    pub fn new() -> Self {
        Self { slots: Arc::default() }
    }

    /// The value of `key` now, as far as the projection has come.
    ///
    /// For a decision load the subject instead: this may lag behind the log.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        match &self.lock().get(key)?.content {
            Content::Here(shown) => Some(Arc::clone(&shown.value)),
            Content::Never | Content::Removed => None,
        }
    }

    /// The live value of `key`, whether or not it is there yet.
    pub fn live(&self, key: &K) -> Live<V>
    where
        V: Serialize,
    {
        Live::new(CellFeed { cells: self.clone(), key: key.clone(), watcher: None })
    }

    fn publish(&self, key: K, content: Content<V>, changed: Seq) {
        let mut slots = self.lock();
        let slot = slots.entry(key).or_insert_with(Slot::never);
        let before = std::mem::replace(&mut slot.content, content);
        slot.changed = changed;
        for (_, wake) in &slot.watchers {
            wake.mark();
        }
        drop(slots);
        drop(before); // a large value is freed without holding up readers
    }

    /// How many subscriptions follow some cell.
    #[cfg(test)]
    pub(crate) fn watchers(&self) -> usize {
        self.lock().values().map(|slot| slot.watchers.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Slot<V>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Slot<V> {
    fn never() -> Self {
        Self { content: Content::Never, changed: 0, watchers: Vec::new(), next_watcher: 0 }
    }
}

impl<V: Send + Sync + 'static> Cell<V> {
    /// A cell that shows `initial` until the projection sets it.
    pub fn new(initial: V) -> Self {
        let cells = Cells::new();
        cells.publish((), Content::Here(Arc::new(Shown::new(initial))), 0);
        Self { cells }
    }

    /// The value now, as far as the projection has come.
    pub fn get(&self) -> Option<Arc<V>> {
        self.cells.get(&())
    }

    /// The live value.
    pub fn live(&self) -> Live<V>
    where
        V: Serialize,
    {
        self.cells.live(&())
    }
}

impl<K, V> Clone for Cells<K, V> {
    fn clone(&self) -> Self {
        Self { slots: Arc::clone(&self.slots) }
    }
}

impl<K, V> Default for Cells<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Clone for Cell<V> {
    fn clone(&self) -> Self {
        Self { cells: self.cells.clone() }
    }
}

impl<K, V> fmt::Debug for Cells<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cells").finish_non_exhaustive()
    }
}

impl<V> fmt::Debug for Cell<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").finish_non_exhaustive()
    }
}

/// One subscription to one cell.
struct CellFeed<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    cells: Cells<K, V>,
    key: K,
    watcher: Option<u64>,
}

impl<K, V> Feed for CellFeed<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Serialize + Send + Sync + 'static,
{
    fn open(&mut self, wake: Wake) -> Option<BoxFuture<'static, ()>> {
        let mut slots = self.cells.lock();
        let slot = slots.entry(self.key.clone()).or_insert_with(Slot::never);
        slot.next_watcher += 1;
        slot.watchers.push((slot.next_watcher, wake));
        self.watcher = Some(slot.next_watcher);
        None
    }

    fn sample(&mut self) -> Sample {
        let (shown, changed) = match self.cells.lock().get(&self.key) {
            Some(Slot { content: Content::Here(shown), changed, .. }) => (Arc::clone(shown), *changed),
            Some(Slot { content: Content::Removed, .. }) => return Sample::Gone,
            Some(Slot { content: Content::Never, .. }) | None => return Sample::Absent,
        };
        match shown.json.get_or_init(|| to_json(&*shown.value).ok()) {
            Some(json) => Sample::Value { json: Arc::clone(json), version: Version::Log(changed) },
            None => Sample::Broken("the value cannot be written as JSON"),
        }
    }
}

impl<K, V> Drop for CellFeed<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn drop(&mut self) {
        let Some(watcher) = self.watcher else { return };
        let mut slots = self.cells.lock();
        if let Some(slot) = slots.get_mut(&self.key) {
            slot.watchers.retain(|(id, _)| *id != watcher);
            // Asking for what was never there leaves nothing behind. A removed one is remembered: it is `Gone`.
            if slot.watchers.is_empty() && matches!(slot.content, Content::Never) {
                slots.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{AppendId, Subject};
    use crate::machine::Wall;
    use crate::server::live::Dirty;

    struct Sums {
        cells: Cells<String, u64>,
        total: Cell<u64>,
        /// The total as it was visible at each entry.
        visible: Vec<u64>,
    }

    impl Projection for Sums {
        fn prefix(&self) -> Prefix {
            Prefix::of(["n"])
        }

        fn apply(&mut self, entry: &Entry, changes: &mut Changes<'_>) {
            self.visible.push(*self.total.get().unwrap());
            let name = entry.subject.tokens().last().unwrap();
            match serde_json::from_slice::<Option<u64>>(&entry.body).unwrap() {
                Some(n) => changes.set(&self.cells, name, n),
                None => changes.remove(&self.cells, &name),
            }
            changes.put(&self.total, entry.seq);
        }
    }

    fn append(first: Seq, writes: &[(&str, &str)]) -> Committed {
        let entry = |(i, (name, body)): (usize, &(&str, &str))| {
            let subject = Subject::of(["n", name]);
            Entry::new(
                first + i as Seq,
                subject,
                AppendId::new(Default::default()),
                Wall::default(),
                body.to_string().into(),
            )
        };
        Committed::new(first + writes.len() as Seq - 1, writes.iter().enumerate().map(entry).collect())
    }

    fn show(feed: &mut dyn Feed) -> String {
        match feed.sample() {
            Sample::Value { json, version: Version::Log(changed) } => format!("{}@{changed}", json.get()),
            other @ (Sample::Value { .. } | Sample::Absent | Sample::Gone | Sample::Broken(_)) => format!("{other:?}"),
        }
    }

    /// R4: cells change with whole appends, and their version is the append's last sequence.
    #[test]
    fn r4_an_append_is_shown_whole() {
        let mut sums = Sums { cells: Cells::new(), total: Cell::new(0), visible: Vec::new() };
        let mut a = sums.cells.live(&"a".to_owned()).into_feed();
        let mut total = sums.total.live().into_feed();
        let dirty = Arc::new(Dirty::default());
        assert!(a.open(Wake::new(&dirty, 1)).is_none() && total.open(Wake::new(&dirty, 2)).is_none());
        assert_eq!((show(&mut *a), show(&mut *total)), ("Absent".into(), "0@0".into()));

        let whole = append(1, &[("a", "5"), ("a", "6"), ("b", "7")]);
        let mut staged = Vec::new();
        sums.apply(&whole.entries[0], &mut Changes { staged: &mut staged });
        assert_eq!(show(&mut *a), "Absent", "a part of an append shows nothing");
        assert!(dirty.take().is_empty());

        sums.visible.clear();
        sums.fold(&whole);
        assert_eq!(sums.visible, [0, 0, 0], "nor do its earlier entries while the later ones are folded");
        assert_eq!((show(&mut *a), show(&mut *total)), ("6@3".into(), "3@3".into()));
        assert_eq!(dirty.take(), [1, 2].into());
        assert_eq!(sums.cells.get(&"b".to_owned()).as_deref(), Some(&7));
    }

    /// R3: only what was there can be gone; what was never there leaves no trace.
    #[test]
    fn r3_gone_is_not_absent() {
        let mut sums = Sums { cells: Cells::new(), total: Cell::new(0), visible: Vec::new() };
        let mut a = sums.cells.live(&"a".to_owned()).into_feed();
        a.open(Wake::new(&Arc::default(), 1));
        drop(a);
        assert!(sums.cells.lock().is_empty());
        sums.fold(&append(1, &[("a", "5")]));
        sums.fold(&append(2, &[("a", "null")]));
        assert_eq!(show(&mut *sums.cells.live(&"a".to_owned()).into_feed()), "Gone");
        sums.fold(&append(3, &[("a", "8")]));
        assert_eq!(show(&mut *sums.cells.live(&"a".to_owned()).into_feed()), "8@3");
    }
}
