//! What the log keeps of a command: the entries on its key's subject, and their fold.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::outcome::Settle;
use crate::error::{Error, ErrorKind};
use crate::key::{CommandRef, Fingerprint, KeyLevel};
use crate::log::{Entry, Prefix, Seq, Subject};
use crate::wire::{CommandFailure, CommandReport, CommandStatus, Retry};

/// The first token of every key's subject; no event may be put there.
const KEY: &str = "key";

/// Selects the records of all commands.
pub(crate) fn all_keys() -> Prefix {
    Prefix::of([KEY])
}

/// Where a command's record is kept. Principals never meet (K1).
///
/// # Errors
/// When principal and key together are longer than a subject may be.
pub(crate) fn subject_of(command: &CommandRef) -> Result<Subject, Error> {
    let subject = Subject::of([KEY, command.principal().as_str(), command.key()]);
    if subject.as_str().len() > Subject::MAX {
        return Err(Error::invalid(
            "key",
            format_args!("at most {} bytes with its principal, percent-encoded", Subject::MAX),
        ));
    }
    Ok(subject)
}

/// One entry on a key's subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub(crate) enum KeyEntry {
    /// The command was taken, with its events in the same append (S2).
    Accepted {
        method: Arc<str>,
        fingerprint: Fingerprint,
        level: KeyLevel,
        /// In ms since 1970, by the client's clock.
        minted: u64,
        /// The call's ULID, for correlation.
        id: Ulid,
        /// How it ended at once; `None` for one that goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settled: Option<Settled>,
        /// What a cancel appends beside its own entry.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        on_cancel: Vec<OnCancel>,
    },
    /// Its executor has begun.
    Started,
    /// A cancel was taken.
    CancelRequested,
    /// It has ended.
    Settled(Settled),
    /// A cancel came before the command did: it never runs (W5).
    Fenced {
        /// The key's, in ms since 1970.
        minted: u64,
    },
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(crate) status: CommandStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<CommandFailure>,
}

/// An event that a cancel appends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct OnCancel {
    /// The encoded subject.
    pub(crate) subject: Arc<str>,
    /// The event's JSON.
    pub(crate) body: Arc<str>,
}

impl KeyEntry {
    /// The entry's body in the log.
    pub(crate) fn encode(&self) -> Bytes {
        // Strings, numbers and enums only: it cannot fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

impl Settled {
    /// Done.
    pub(crate) const SUCCEEDED: Self = Self { status: CommandStatus::Succeeded, failure: None };
    /// Stopped, or never begun.
    pub(crate) const CANCELED: Self = Self { status: CommandStatus::Canceled, failure: None };
}

impl From<Settle> for Settled {
    fn from(settle: Settle) -> Self {
        match settle {
            Settle::Succeeded => Self::SUCCEEDED,
            Settle::Failed(mut failure) => {
                if failure.retry == Retry::SameKey {
                    failure.retry = Retry::NewKey; // W7: it is recorded, the same key would replay it
                }
                Self { status: CommandStatus::Failed, failure: Some(failure) }
            }
            Settle::Canceled => Self::CANCELED,
        }
    }
}

/// Where a command stands, by its record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyRecord {
    /// What it asks for; `None` if it was canceled before it came.
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) status: CommandStatus,
    /// The sequence of its first entry, which is the accepting append's last: its timestamp (S2).
    pub(crate) accepted: Seq,
    /// The sequence of its newest entry.
    pub(crate) head: Seq,
    pub(crate) failure: Option<CommandFailure>,
    pub(crate) on_cancel: Vec<OnCancel>,
}

impl KeyRecord {
    /// Folds one entry of the log.
    ///
    /// # Errors
    /// Corrupt, when the entry does not decode or cannot stand there.
    pub(crate) fn fold(record: Option<Self>, entry: &Entry) -> Result<Option<Self>, Error> {
        let unreadable = |e| Error::new(ErrorKind::Corrupt, format!("key record at {}", entry.seq)).with_source(e);
        let body: KeyEntry = serde_json::from_slice(&entry.body).map_err(unreadable)?;
        Self::apply(record, entry.seq, &body).map(Some)
    }

    /// Folds one entry. Status moves forward only (W3): what would move it back changes nothing.
    ///
    /// # Errors
    /// Corrupt, when the entry cannot stand there.
    pub(crate) fn apply(record: Option<Self>, seq: Seq, entry: &KeyEntry) -> Result<Self, Error> {
        let Some(mut record) = record else { return Self::first(seq, entry) };
        let settled = match entry {
            KeyEntry::Started => Settled { status: CommandStatus::Running, failure: None },
            KeyEntry::CancelRequested => Settled { status: CommandStatus::CancelRequested, failure: None },
            KeyEntry::Settled(settled) => settled.clone(),
            KeyEntry::Accepted { .. } | KeyEntry::Fenced { .. } => return Err(misplaced(seq)),
        };
        record.head = seq;
        if settled.status.rank() > record.status.rank() {
            (record.status, record.failure) = (settled.status, settled.failure);
        }
        Ok(record)
    }

    fn first(seq: Seq, entry: &KeyEntry) -> Result<Self, Error> {
        let open = Self {
            fingerprint: None,
            status: CommandStatus::Canceled,
            accepted: seq,
            head: seq,
            failure: None,
            on_cancel: Vec::new(),
        };
        match entry {
            KeyEntry::Fenced { .. } => Ok(open),
            KeyEntry::Accepted { fingerprint, settled, on_cancel, .. } => {
                let settled = settled.clone().unwrap_or(Settled { status: CommandStatus::Pending, failure: None });
                Ok(Self {
                    fingerprint: Some(*fingerprint),
                    status: settled.status,
                    failure: settled.failure,
                    on_cancel: on_cancel.clone(),
                    ..open
                })
            }
            KeyEntry::Started | KeyEntry::CancelRequested | KeyEntry::Settled(_) => Err(misplaced(seq)),
        }
    }

    /// What observers are told.
    pub(crate) fn report(&self) -> CommandReport {
        CommandReport { status: self.status, accepted: self.accepted, at: self.head, failure: self.failure.clone() }
    }

    /// Whether a cancel would change it.
    pub(crate) fn can_cancel(&self) -> bool {
        self.status.rank() < CommandStatus::CancelRequested.rank()
    }
}

fn misplaced(seq: Seq) -> Error {
    Error::new(ErrorKind::Corrupt, format!("key record at {seq}: an entry that cannot stand there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Principal;

    pub(super) fn accepted(settled: Option<Settled>) -> KeyEntry {
        let params = serde_json::value::to_raw_value(&()).unwrap();
        KeyEntry::Accepted {
            method: "farm.v1/build".into(),
            fingerprint: Fingerprint::of("farm.v1/build", &params).unwrap(),
            level: KeyLevel::Semantic,
            minted: 1_764_500_000_000,
            id: Ulid::nil(),
            settled,
            on_cancel: vec![OnCancel { subject: "build/1".into(), body: r#"{"e":"cancel"}"#.into() }],
        }
    }

    fn fold(entries: &[KeyEntry]) -> Result<KeyRecord, Error> {
        let mut record = None;
        for (seq, entry) in (1..).zip(entries) {
            let entry: KeyEntry = serde_json::from_slice(&entry.encode()).unwrap();
            record = Some(KeyRecord::apply(record, seq, &entry)?);
        }
        Ok(record.unwrap())
    }

    /// W3: status moves forward only, and the first terminal one stays.
    #[test]
    fn w3_the_fold_moves_forward_only() {
        use CommandStatus::*;
        let failed = Settled::from(Settle::Failed(CommandFailure::verdict(Retry::NewKey, "two tests failed")));
        let steps = [accepted(None), KeyEntry::Started, KeyEntry::CancelRequested, KeyEntry::Settled(failed.clone())];
        let status = |n| fold(&steps[..n]).unwrap().status;
        assert_eq!([status(1), status(2), status(3), status(4)], [Pending, Running, CancelRequested, Failed]);
        let late = [&steps[..], &[KeyEntry::Settled(Settled::SUCCEEDED), KeyEntry::Started]].concat();
        let record = fold(&late).unwrap();
        assert_eq!((record.status, &record.failure), (Failed, &failed.failure));
        assert_eq!((record.accepted, record.head), (1, 6));
    }

    /// W7: what is recorded as failed never advises the same key, which would only replay it.
    #[test]
    fn w7_a_recorded_failure_asks_for_a_new_key() {
        let settled = Settled::from(Settle::Failed(CommandFailure::verdict(Retry::SameKey, "flaky")));
        assert_eq!(settled.failure.unwrap().retry, Retry::NewKey);
    }

    /// W5: a cancel that comes first reads as canceled, whatever follows is out of place.
    #[test]
    fn w5_a_fence_is_canceled() {
        let fence = KeyEntry::Fenced { minted: 1 };
        let record = fold(std::slice::from_ref(&fence)).unwrap();
        assert_eq!((record.status, record.fingerprint), (CommandStatus::Canceled, None));
        assert!(fold(&[fence, accepted(None)]).unwrap_err().is_corrupt());
        assert!(fold(&[KeyEntry::Started]).unwrap_err().is_corrupt());
    }

    /// K1: principals never meet, however they are spelled.
    #[test]
    fn k1_subjects_of_principals_are_apart() {
        let of = |principal: &str, key: &str| subject_of(&CommandRef::new(Principal::new(principal).unwrap(), key));
        assert_ne!(of("a/b", "c").unwrap(), of("a", "b/c").unwrap());
        assert!(all_keys().selects(&of("a", "b").unwrap()));
        assert!(of(&"ü".repeat(64), &"ü".repeat(128)).unwrap_err().is_invalid());
    }
}
