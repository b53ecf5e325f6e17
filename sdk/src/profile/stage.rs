//! What one piece of work is read as: a queue item, a build, a run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderName;
use serde_json::Value;

use super::{Place, Pointer, Template, Word};

/// One resource of a service that tells of the work for a while: a queue item, a build.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stage {
    /// Its name, unique within the profile.
    pub name: Arc<str>,
    /// Where it is read, from the service's root. Its placeholders are what one must know to read it.
    pub path: Template,
    /// How its status is read: the first question that applies is asked. None for a stage that only leads to another.
    pub status: Vec<Question>,
    /// Which attempt it tells of, where the service counts them.
    pub attempt: Option<Place>,
    /// How its values order within an attempt. Default [`Order::Opaque`].
    pub order: Order,
    /// What is remembered of its body, for the paths of later stages.
    pub bind: BTreeMap<Arc<str>, Taken>,
    /// For a list: which of its elements is meant.
    pub find: Option<Find>,
    /// Which stage follows: the first whose placeholders the body gives.
    pub next: Vec<Next>,
    /// The stage that says more when this one is not there any more.
    pub missing: Option<Arc<str>>,
    /// After how long without a change the service forgets it. Default: it does not.
    ///
    /// A read looks at least twice in that time, so that it sees the end. Once it shows that, that the resource is not there
    /// any more is as expected: what is shown stays. What is not over when it is forgotten is looked for in the stage that is
    /// [`missing`](Self::missing), or gone (R3).
    pub vanishes_after: Option<Duration>,
}

impl Stage {
    /// A stage that is read at `path`, and has no status yet.
    pub fn new(name: impl Into<Arc<str>>, path: Template) -> Self {
        Self {
            name: name.into(),
            path,
            status: Vec::new(),
            attempt: None,
            order: Order::Opaque,
            bind: BTreeMap::new(),
            find: None,
            next: Vec::new(),
            missing: None,
            vanishes_after: None,
        }
    }
}

/// A place in a body, and what the words that stand there mean.
///
/// A word that is in none of the lists means that the work is running, with a warning (R10). Null, nothing, or a value
/// of another type than the words of the lists is unreadable (R3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Question {
    /// When it applies. Default: always.
    pub when: Option<When>,
    /// Where the word stands.
    pub at: Place,
    /// Words that mean: it waits for a worker.
    pub queued: Vec<Word>,
    /// Words that mean: it runs.
    pub running: Vec<Word>,
    /// Words that mean: it waits for a person. It is not over.
    pub parked: Vec<Word>,
    /// Words that mean: it is over, and went well.
    pub ok: Vec<Word>,
    /// Words that mean: it is over, and failed.
    pub failed: Vec<Word>,
    /// Words that mean: it is over, was canceled, or never ran.
    pub canceled: Vec<Word>,
    /// How to show a word that says nothing by itself, such as a number.
    pub names: BTreeMap<Word, Arc<str>>,
}

impl Question {
    /// A question whose words are still to be listed.
    pub fn new(at: impl Into<Place>) -> Self {
        Self {
            when: None,
            at: at.into(),
            queued: Vec::new(),
            running: Vec::new(),
            parked: Vec::new(),
            ok: Vec::new(),
            failed: Vec::new(),
            canceled: Vec::new(),
            names: BTreeMap::new(),
        }
    }

    /// The lists, by the names of their fields.
    pub(super) fn lists(&self) -> [(&'static str, &Vec<Word>); 6] {
        [
            ("queued", &self.queued),
            ("running", &self.running),
            ("parked", &self.parked),
            ("ok", &self.ok),
            ("failed", &self.failed),
            ("canceled", &self.canceled),
        ]
    }
}

/// What must hold of a body for a question to apply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct When {
    /// What stands here ..
    pub at: Place,
    /// .. is one of these.
    pub is: Vec<Word>,
}

impl When {
    /// What stands at `at` is one of `is`.
    pub fn new(at: impl Into<Place>, is: Vec<Word>) -> Self {
        Self { at: at.into(), is }
    }

    /// Whether it holds of `body`. A value of another type is none of the words.
    pub fn holds(&self, body: &Value) -> bool {
        self.at.of(body).and_then(Word::of).is_some_and(|word| self.is.contains(&word))
    }
}

/// How the values of a stage order within an attempt (R4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// By a number that grows with each change.
    Monotone(Place),
    /// By a time, which several changes may share: a date in RFC 3339, or a number.
    Coarse(Place),
    /// Not at all: by the order of the requests.
    #[default]
    Opaque,
}

/// Something to remember of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Taken {
    /// A string or an integer of the body.
    At(Place),
    /// What a placeholder stands for in an address that the body holds. Its origin is never followed.
    Like(Place, Template),
    /// What a placeholder stands for in an address that a header holds.
    Header(HeaderName, Template),
}

/// Which element of a list is meant. One answer is searched: pages that follow it are not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Find {
    /// The list.
    pub each: Pointer,
    /// What stands here in the element ..
    pub key: Pointer,
    /// .. is what this placeholder stands for.
    pub equals: Arc<str>,
}

/// A stage that follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Next {
    /// Which.
    pub stage: Arc<str>,
    /// What the body must give for it: without one of these it has not begun.
    pub bind: BTreeMap<Arc<str>, Taken>,
    /// Whether it is another attempt at the same work. Default no.
    pub attempt: bool,
}
