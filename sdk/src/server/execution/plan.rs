//! What a handler decided, in the terms of the log.

use std::collections::BTreeMap;

use crate::log::{Expect, Subject, Write};
use crate::server::outcome::{Events, Link, Outcome, Running};
use crate::server::record::{KeyEntry, KeyRecord, OnCancel, Settled, all_keys, subject_of};
use crate::server::refused;
use crate::wire::{CommandStatus, Refused, Retry};

/// The records of the commands that a plan starts or settles; `None` for one without a record.
pub(crate) type Linked = BTreeMap<Subject, Option<KeyRecord>>;

/// The writes beside the key's own entry, and how the command stands after them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plan {
    writes: Vec<Write>,
    links: Vec<(Subject, Link)>,
    /// `None`: it goes on.
    pub(crate) settled: Option<Settled>,
    pub(crate) on_cancel: Vec<OnCancel>,
}

impl Plan {
    /// A handler's outcome; what is answered without a record is an `Err` (W7).
    pub(crate) fn of(outcome: Outcome) -> Result<Self, Refused> {
        match outcome {
            Outcome::Events(events) => Self::events(events, Some(Settled::SUCCEEDED), Vec::new()),
            Outcome::Running(Running { error: Some(e), .. }) => Err(refused::unavailable(e.to_string())),
            Outcome::Running(Running { events, on_cancel, error: None }) => {
                if on_cancel.iter().any(|(subject, _)| all_keys().selects(subject)) {
                    return Err(refused::unavailable(RESERVED));
                }
                let on_cancel = on_cancel.into_iter();
                let on_cancel = on_cancel
                    .map(|(subject, body)| OnCancel { subject: subject.as_str().into(), body: body.into() })
                    .collect();
                Self::events(events, None, on_cancel)
            }
            Outcome::Failed(failure) => match failure.retry {
                Retry::SameKey => Err(refused::unavailable(&*failure.message)),
                Retry::NewKey | Retry::Never => {
                    let settled = Settled { status: CommandStatus::Failed, failure: Some(failure) };
                    Self::events(Events::none(), Some(settled), Vec::new())
                }
            },
        }
    }

    fn events(events: Events, settled: Option<Settled>, on_cancel: Vec<OnCancel>) -> Result<Self, Refused> {
        let (writes, commands) = events.into_parts().map_err(|e| refused::unavailable(e.to_string()))?;
        if writes.iter().any(|write| all_keys().selects(&write.subject)) {
            return Err(refused::unavailable(RESERVED));
        }
        let mut links = Vec::with_capacity(commands.len());
        for (command, link) in commands {
            links.push((subject_of(&command).map_err(|e| refused::invalid(e.to_string()))?, link));
        }
        Ok(Self { writes, links, settled, on_cancel })
    }

    /// The other commands that it starts or settles, each once.
    pub(super) fn linked(&self, own: &Subject) -> Vec<Subject> {
        let mut subjects: Vec<_> = self.links.iter().map(|(subject, _)| subject.clone()).filter(|s| s != own).collect();
        subjects.sort();
        subjects.dedup();
        subjects
    }

    /// All writes but the key's own entry, and which links were left out because their command is past them.
    pub(super) fn writes(&self, own: &Subject, linked: &Linked) -> (Vec<Write>, Vec<Subject>) {
        let mut writes = self.writes.clone();
        let mut left_out = Vec::new();
        let mut records = linked.clone();
        for (subject, link) in &self.links {
            // A command cannot start or settle itself here: its own entry says how it stands.
            let record = records.get_mut(subject).filter(|_| subject != own).and_then(Option::as_mut);
            let entry = record.as_ref().and_then(|record| permitted(record, link));
            let (Some(record), Some(entry)) = (record, entry) else {
                left_out.push(subject.clone());
                continue;
            };
            let first = !writes.iter().any(|write| write.subject == *subject);
            let expect = if first { Expect::At(record.head) } else { Expect::Any };
            writes.push(Write { subject: subject.clone(), expect, body: entry.encode() });
            // Where the record stands after it; the sequence does not matter, only the first write names one.
            if let Ok(after) = KeyRecord::apply(Some(record.clone()), record.head, &entry) {
                *record = after;
            }
        }
        (writes, left_out)
    }
}

/// The entry of `link`, unless the command is past it.
fn permitted(record: &KeyRecord, link: &Link) -> Option<KeyEntry> {
    match link {
        Link::Start => (record.status == CommandStatus::Pending).then_some(KeyEntry::Started),
        Link::Settle(how) => (!record.status.is_terminal()).then(|| KeyEntry::Settled(Settled::from(how.clone()))),
    }
}

const RESERVED: &str = "the handler writes to a subject that is kept for keys";
