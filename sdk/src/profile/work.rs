//! What an answer says of the work.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::stage::{Order, Question, Stage, Taken};
use super::template::is_segment;
use super::word::kind_of;
use super::{Bindings, Listed, Location, LogSource, Place, Profile, Template, Word, time};
use crate::error::Cause;
use crate::http::poll::{Answer, Marks};

/// A piece of work, as its service shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Work {
    /// The stage that told.
    pub stage: Arc<str>,
    /// What it comes down to.
    pub state: WorkState,
    /// The service's own word, or the profile's name for it.
    pub status: Arc<str>,
    /// Which attempt it tells of, where the service counts them.
    pub attempt: Option<u64>,
    /// A version that never goes back within an attempt, where the service has one.
    pub version: Option<u64>,
    /// What is not as expected: a word that the profile does not know.
    pub warning: Option<Arc<str>>,
    /// The stage that follows, once it has begun: then this one decides nothing any more.
    pub next: Option<Follow>,
    /// What it gives for the paths of later stages.
    pub bound: Bindings,
    /// The whole answer, or the element of a list that is meant.
    pub body: Arc<Value>,
    /// Where it was read, with what is known by then; `None` where only a body was [read](Profile::read).
    pub location: Option<Location>,
}

/// A stage that follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Follow {
    /// Which.
    pub stage: Arc<str>,
    /// What its path needs beside what is known already.
    pub bound: Bindings,
    /// Whether it is another attempt at the same work.
    pub attempt: bool,
}

/// What the status of a piece of work comes down to. Exhaustive on purpose: a waiter decides on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a waiter decides on each of the six")]
pub enum WorkState {
    /// It waits for a worker.
    Queued,
    /// It runs, or its status is not known (R10).
    Running,
    /// It waits for a person. It is not over (R10).
    Parked,
    /// It is over, and went well.
    Succeeded,
    /// It is over, and failed.
    Failed,
    /// It is over, was canceled, or never ran.
    Canceled,
}

impl WorkState {
    /// Whether the work is over, in that attempt.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Parked => false,
            Self::Succeeded | Self::Failed | Self::Canceled => true,
        }
    }
}

impl fmt::Display for WorkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Parked => "parked",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        })
    }
}

impl Work {
    /// What it says about its place among others. What another stage has taken over is never terminal.
    pub fn marks(&self) -> Marks {
        let terminal = self.state.is_terminal() && self.next.is_none();
        Marks { attempt: self.attempt, version: self.version, terminal }
    }
}

/// Why an answer says nothing of the work. It is never an end (R3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a driver decides on each")]
pub enum Unread {
    /// A list does not have the element that is meant.
    Absent,
    /// It is not what the profile expects.
    Undecodable(Arc<str>),
}

impl Unread {
    /// What such an answer comes down to for the machine of a read.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Absent => Answer::Absent,
            Self::Undecodable(detail) => Answer::Unserved(Cause::Undecodable { detail: Arc::clone(detail) }),
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not in the list"),
            Self::Undecodable(detail) => f.write_str(detail),
        }
    }
}

impl std::error::Error for Unread {}

fn undecodable(detail: impl fmt::Display) -> Unread {
    Unread::Undecodable(detail.to_string().into())
}

impl Profile {
    /// What the body of an answer says, read as `stage`.
    ///
    /// # Errors
    /// When it says nothing: the status is missing, null, or of another type than expected (R3, R10), or a list does not
    /// have the element that is meant.
    pub fn read(&self, stage: &str, body: &Value) -> Result<Work, Unread> {
        self.read_at(stage, &Bindings::default(), body)
    }

    /// The same where `known` says what placeholders stand for: an element of a list is found by one.
    pub(super) fn read_at(&self, stage: &str, known: &Bindings, body: &Value) -> Result<Work, Unread> {
        let stage = self.stage(stage).ok_or_else(|| undecodable(format_args!("the profile has no stage {stage}")))?;
        let body = match &stage.find {
            Some(find) => {
                let list = find.each.of(body).and_then(Value::as_array);
                let list = list.ok_or_else(|| undecodable(format_args!("expected an array at {}", find.each)))?;
                let wanted = known.get(&find.equals).ok_or(Unread::Absent)?;
                let is_meant =
                    |each: &&Value| find.key.of(each).and_then(Word::of).is_some_and(|w| w.to_string() == wanted);
                list.iter().find(is_meant).ok_or(Unread::Absent)?
            }
            None => body,
        };
        let Status { state, status, warning } = stage.status_of(body)?;
        let mut next = None;
        for each in &stage.next {
            if let Some(bound) = take_all(&each.bind, body)? {
                next = Some(Follow { stage: Arc::clone(&each.stage), bound, attempt: each.attempt });
                break;
            }
        }
        let mut bound = Bindings::default();
        for (name, taken) in &stage.bind {
            if let Some(segments) = take(name, taken, body)? {
                bound.bind(Arc::clone(name), segments);
            }
        }
        Ok(Work {
            stage: Arc::clone(&stage.name),
            state,
            status,
            attempt: attempt_of(stage.attempt.as_ref(), body)?,
            version: stage.order.version_of(body),
            warning,
            next,
            bound,
            body: Arc::new(body.clone()),
            location: None,
        })
    }
}

/// What a question answers.
struct Status {
    state: WorkState,
    status: Arc<str>,
    warning: Option<Arc<str>>,
}

impl Stage {
    fn status_of(&self, body: &Value) -> Result<Status, Unread> {
        if self.status.is_empty() {
            return Ok(Status { state: WorkState::Running, status: Arc::clone(&self.name), warning: None });
        }
        for question in &self.status {
            if question.when.as_ref().is_none_or(|when| when.holds(body)) {
                return question.answer(body);
            }
        }
        // Such as `complete: null`: neither over nor not.
        let places: Vec<String> = self.status.iter().filter_map(|q| Some(q.when.as_ref()?.at.to_string())).collect();
        Err(undecodable(format_args!("expected a known value at {}", places.join(", "))))
    }
}

impl Question {
    fn answer(&self, body: &Value) -> Result<Status, Unread> {
        let at = &self.at;
        let expected = self.lists().into_iter().find_map(|(_, list)| list.first()).map_or("a word", Word::kind);
        let value =
            self.at.of(body).ok_or_else(|| undecodable(format_args!("expected {expected} at {at}, found none")))?;
        let wrong = || undecodable(format_args!("expected {expected} at {at}, found {}", kind_of(value)));
        let word = Word::of(value).ok_or_else(wrong)?;
        let is_of_type = self.lists().into_iter().find_map(|(_, list)| list.first()).is_some_and(|w| w.is_like(&word));
        if !is_of_type {
            return Err(wrong());
        }
        let status = self.names.get(&word).cloned().unwrap_or_else(|| word.to_string().into());
        let state = self.lists().into_iter().zip(STATES).find(|((_, list), _)| list.contains(&word)).map(|(_, s)| s);
        match state {
            Some(state) => Ok(Status { state, status, warning: None }),
            // R10: still running, never terminal, never success.
            None => {
                let short: String = word.to_string().chars().take(80).collect();
                let warning = format!("unknown status \"{short}\" at {at}, taken for running");
                Ok(Status { state: WorkState::Running, status, warning: Some(warning.into()) })
            }
        }
    }
}

/// In the order of [`Question::lists`].
const STATES: [WorkState; 6] = [
    WorkState::Queued,
    WorkState::Running,
    WorkState::Parked,
    WorkState::Succeeded,
    WorkState::Failed,
    WorkState::Canceled,
];

fn attempt_of(place: Option<&Place>, body: &Value) -> Result<Option<u64>, Unread> {
    let Some((place, value)) = place.and_then(|place| Some((place, place.of(body)?))) else {
        return Ok(None);
    };
    // A terminal belongs to an attempt (R10): a wrong one is not guessed.
    match value.as_u64() {
        Some(attempt) => Ok(Some(attempt)),
        None => Err(undecodable(format_args!("expected a whole number at {place}, found {}", kind_of(value)))),
    }
}

impl Order {
    fn version_of(&self, body: &Value) -> Option<u64> {
        match self {
            Self::Monotone(place) => place.of(body)?.as_u64(),
            Self::Coarse(place) => {
                let value = place.of(body)?;
                value.as_str().map_or_else(|| value.as_u64(), time::millis)
            }
            Self::Opaque => None,
        }
    }
}

impl LogSource {
    /// The elements of the list in `body`.
    ///
    /// # Errors
    /// When there is no list, or an element does not say what the next step needs.
    pub fn list(&self, body: &Value) -> Result<Vec<Listed>, Unread> {
        let list = self.each.of(body).and_then(Value::as_array);
        let list = list.ok_or_else(|| undecodable(format_args!("expected an array at {}", self.each)))?;
        let element = |each: &Value| {
            let bound = take_all(&self.bind, each)?;
            let bound = bound.ok_or_else(|| undecodable(format_args!("expected ids in the list at {}", self.each)))?;
            let name = self.name.as_ref().and_then(|name| Some(name.of(each)?.as_str()?.into()));
            Ok(Listed { bound, name, body: each.clone() })
        };
        list.iter().map(element).collect()
    }
}

/// All that these say; `None` if one of them is not there.
fn take_all<'a>(
    taken: impl IntoIterator<Item = (&'a Arc<str>, &'a Taken)>,
    body: &Value,
) -> Result<Option<Bindings>, Unread> {
    let mut bound = Bindings::default();
    for (name, taken) in taken {
        match take(name, taken, body)? {
            Some(segments) => bound.bind(Arc::clone(name), segments),
            None => return Ok(None),
        }
    }
    Ok(Some(bound))
}

/// What `name` stands for by `body`; `None` where it is missing or null.
fn take(name: &str, taken: &Taken, body: &Value) -> Result<Option<Vec<Arc<str>>>, Unread> {
    let (place, like) = match taken {
        Taken::At(place) => (place, None),
        Taken::Like(place, like) => (place, Some(like)),
        Taken::Header(..) => return Ok(None),
    };
    let Some(value) = place.of(body) else { return Ok(None) };
    let wrong = |expected: &str| undecodable(format_args!("expected {expected} at {place}, found {}", kind_of(value)));
    match (like, Word::of(value)) {
        (None, Some(word @ (Word::Text(_) | Word::Integer(_)))) => {
            // It goes into a path, so it must stay one segment there.
            let text = word.to_string();
            if is_segment(&text) { Ok(Some(vec![text.into()])) } else { Err(wrong("an id")) }
        }
        (Some(like), Some(Word::Text(text))) => match address(like, &text).as_ref().and_then(|b| b.segments(name)) {
            Some(segments) => Ok(Some(segments.to_vec())),
            None => Err(wrong(&format!("an address like {like}"))),
        },
        _ => Err(wrong("a string")),
    }
}

/// What the placeholders stand for in an address that a service gave: only its path counts, never its origin.
fn address(like: &Template, text: &str) -> Option<Bindings> {
    match Url::parse(text) {
        Ok(url) => like.matches(url.host_str().unwrap_or_default(), url.path(), None),
        Err(_) => like.matches("", text.split(['?', '#']).next()?, None),
    }
}
