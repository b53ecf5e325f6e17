//! The log, and what it says of the command.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::command::{build, key};
use crate::log::{Append, Appended, Store, Subject};
use crate::server::record::KeyRecord;

/// The log, and what it says of the command.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) store: Store,
    /// The key's record after each of its entries.
    pub(super) records: Rc<Vec<KeyRecord>>,
    pub(super) effects: usize,
}

/// Everything that anybody reads of the log here; the ids of its appends are not.
impl Hash for Disk {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.store.head_of_log(), &self.records, self.effects).hash(hasher);
    }
}

impl Disk {
    pub(super) fn of(store: Store) -> Self {
        let entries = |subject: Subject| {
            let appends = store.read(&subject.prefix(), 0, usize::MAX);
            appends.into_iter().flat_map(|append| append.entries).collect::<Vec<_>>()
        };
        let mut records: Vec<KeyRecord> = Vec::new();
        for entry in entries(key()) {
            let record = KeyRecord::fold(records.last().cloned(), &entry).expect("a key's record that folds");
            records.extend(record);
        }
        let effects = entries(build()).len();
        Self { store, records: Rc::new(records), effects }
    }

    pub(super) fn append(&mut self, append: &Append) -> Appended {
        let appended = self.store.append(append);
        *self = Self::of(self.store.clone());
        appended
    }
}
