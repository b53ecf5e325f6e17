//! What a command's handler decides: which events, and whether that settles the command.

use bytes::Bytes;
use serde::Serialize;

use crate::error::{Error, ErrorKind};
use crate::key::CommandRef;
use crate::log::{Expect, Seq, Subject, Write};
use crate::wire::CommandFailure;

/// Events to be appended; as a command's outcome they settle it `SUCCEEDED`.
///
/// The command's key is recorded in the same append, so either everything is there or nothing is
/// (S2). Where a stated version no longer holds, nothing is written and the handler runs again, a
/// bounded number of times; so it is free of side effects.
///
/// ```
/// # use outlast::{log::Subject, server::Events};
/// let events = Events::on(Subject::of(["build", "7"])).absent().push(&"submitted").and(Subject::of(["queue"])).push(&7);
/// # let _ = events;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "events do nothing until a handler returns them"]
pub struct Events {
    streams: Vec<Stream>,
    current: usize,
    links: Links,
    error: Option<Error>,
}

#[derive(Clone, Debug)]
struct Stream {
    subject: Subject,
    expect: Expect,
    bodies: Vec<Bytes>,
}

/// What an append does to which other commands.
pub(crate) type Links = Vec<(CommandRef, Link)>;

/// What an append does to another command, one that is running.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// `PENDING` becomes `RUNNING`.
    Start,
    /// It ends.
    Settle(Settle),
}

/// How a running command ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "three ends that an executor can tell")]
pub enum Settle {
    /// The work is done.
    Succeeded,
    /// The work failed. Its advice is `NewKey` or `Never`: the same key would replay the failure (W7).
    Failed(CommandFailure),
    /// Its executor stopped because of a cancel (W5).
    Canceled,
}

impl Events {
    /// No event: as an outcome, the command is recorded and that is all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Events on `subject`, whatever its version until [`absent`](Self::absent), [`at`](Self::at) or
    /// [`version`](Self::version) says more.
    pub fn on(subject: Subject) -> Self {
        Self::none().and(subject)
    }

    /// Goes on with events on another subject, in the same append.
    pub fn and(mut self, subject: Subject) -> Self {
        self.current = match self.streams.iter().position(|stream| stream.subject == subject) {
            Some(known) => known,
            None => {
                self.streams.push(Stream { subject, expect: Expect::Any, bodies: Vec::new() });
                self.streams.len() - 1
            }
        };
        self
    }

    /// Only if the subject has no entry.
    pub fn absent(self) -> Self {
        self.expect(Expect::Absent)
    }

    /// Only if the subject's newest entry has this sequence.
    pub fn at(self, seq: Seq) -> Self {
        self.expect(Expect::At(seq))
    }

    /// Only if the subject is as it was loaded: [`at`](Self::at) its head, or [`absent`](Self::absent).
    pub fn version(self, head: Option<Seq>) -> Self {
        self.expect(head.map_or(Expect::Absent, Expect::At))
    }

    fn expect(mut self, expect: Expect) -> Self {
        if let Some(stream) = self.streams.get_mut(self.current) {
            stream.expect = expect;
        }
        self
    }

    /// Adds an event, as JSON, to the subject named last.
    ///
    /// A subject without an event is not part of the append, and its version is not checked. An event
    /// that JSON cannot hold refuses the command.
    pub fn push<E: Serialize + ?Sized>(mut self, event: &E) -> Self {
        match (encode(event), self.streams.get_mut(self.current)) {
            (Ok(body), Some(stream)) => stream.bodies.push(body),
            (Ok(_), None) => self.error = Some(Error::invalid("event", "a subject to push it on")),
            (Err(e), _) => self.error = Some(e),
        }
        self
    }

    /// Makes the running command `RUNNING` in the same append. If it is past that, this part is left out.
    pub fn starts(mut self, command: &CommandRef) -> Self {
        self.links.push((command.clone(), Link::Start));
        self
    }

    /// Settles the running command in the same append. If it is settled, this part is left out.
    pub fn settles(mut self, command: &CommandRef, how: Settle) -> Self {
        self.links.push((command.clone(), Link::Settle(how)));
        self
    }

    /// The writes, and what is done to other commands.
    pub(crate) fn into_parts(self) -> Result<(Vec<Write>, Links), Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let writes = self.streams.into_iter().flat_map(|Stream { subject, expect, bodies }| {
            bodies.into_iter().enumerate().map(move |(i, body)| Write {
                subject: subject.clone(),
                expect: if i == 0 { expect } else { Expect::Any },
                body,
            })
        });
        Ok((writes.collect(), self.links))
    }
}

/// Events that start work which goes on: the command is accepted and open until a later append
/// [settles](Events::settles) it.
#[derive(Clone, Debug)]
#[must_use = "an outcome does nothing until a handler returns it"]
pub struct Running {
    pub(crate) events: Events,
    pub(crate) on_cancel: Vec<(Subject, String)>,
    pub(crate) error: Option<Error>,
}

impl Running {
    /// Work that these events start.
    pub fn new(events: Events) -> Self {
        Self { events, on_cancel: Vec::new(), error: None }
    }

    /// What a cancel appends to `subject`, in the append that records the cancel (W5).
    ///
    /// A command that has not [started](Events::starts) is `CANCELED` by that append; one that has
    /// stays `CANCEL_REQUESTED` until its executor stopped and says so.
    pub fn on_cancel<E: Serialize + ?Sized>(mut self, subject: Subject, event: &E) -> Self {
        match serde_json::to_string(event) {
            Ok(body) => self.on_cancel.push((subject, body)),
            Err(e) => self.error = Some(unwritable(e)),
        }
        self
    }
}

impl From<Events> for Running {
    fn from(events: Events) -> Self {
        Self::new(events)
    }
}

/// What a command's handler decides.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Done with the append.
    Events(Events),
    /// Accepted with the append; goes on.
    Running(Running),
    /// Not done. By its advice (W7): `SameKey` is answered without a record, `NewKey` and `Never` are
    /// recorded as `FAILED`.
    Failed(CommandFailure),
}

/// What a handler may return.
#[diagnostic::on_unimplemented(
    message = "the handler of a command returns an outcome, `{Self}` is none",
    label = "no outcome",
    note = "return `Events`, `Running` or `Outcome`, or a `Result` of one with `CommandFailure` (recorded) or `outlast::Error`"
)]
pub trait IntoOutcome {
    /// The outcome.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for Events {
    fn into_outcome(self) -> Outcome {
        Outcome::Events(self)
    }
}

impl IntoOutcome for Running {
    fn into_outcome(self) -> Outcome {
        Outcome::Running(self)
    }
}

impl IntoOutcome for CommandFailure {
    fn into_outcome(self) -> Outcome {
        Outcome::Failed(self)
    }
}

impl<T: IntoOutcome> IntoOutcome for Result<T, CommandFailure> {
    fn into_outcome(self) -> Outcome {
        self.map_or_else(Outcome::Failed, T::into_outcome)
    }
}

fn encode<E: Serialize + ?Sized>(event: &E) -> Result<Bytes, Error> {
    serde_json::to_vec(event).map(Bytes::from).map_err(unwritable)
}

fn unwritable(e: serde_json::Error) -> Error {
    // Not `Invalid`: the caller's arguments are not at fault.
    Error::new(ErrorKind::Corrupt, "an event of the handler cannot be written as JSON").with_source(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_write_of_a_subject_states_a_version() {
        let (a, b) = (Subject::of(["a"]), Subject::of(["b"]));
        let events = Events::on(a.clone()).at(3).push(&1).and(b.clone()).absent().push(&2).and(a.clone()).push(&3);
        let (writes, _) = events.into_parts().unwrap();
        let got: Vec<_> = writes.iter().map(|w| (&w.subject, w.expect, &w.body[..])).collect();
        assert_eq!(got, [(&a, Expect::At(3), &b"1"[..]), (&a, Expect::Any, b"3"), (&b, Expect::Absent, b"2")]);
    }

    #[test]
    fn what_json_cannot_hold_is_an_error() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(Events::on(Subject::of(["a"])).push(&map).into_parts().unwrap_err().is_corrupt());
        assert!(Events::none().push(&1).into_parts().unwrap_err().is_invalid());
    }
}
