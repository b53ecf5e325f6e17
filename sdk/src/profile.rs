//! What is peculiar to a service, as a value: its states, its stages, its logs, its pace.
//!
//! A [`Profile`] is data. It is read from a [file](Profile::parse), or is one of those that are [shipped](Profile::named).
//! [`Profile::locate`] turns the address that a person has at hand into the first read, [`Profile::read`] says what an
//! answer means, and [`Stages`] says which address to read next.
//!
//! ```
//! use outlast::profile::{Profile, WorkState};
//!
//! let github = Profile::named("github-actions")?;
//! let run = github.locate(&"https://github.com/o/r/actions/runs/1".parse()?)?;
//! assert_eq!(run.url.as_str(), "https://api.github.com/repos/o/r/actions/runs/1");
//! let body = serde_json::json!({"id": 1, "run_attempt": 2, "status": "completed", "conclusion": "success"});
//! let work = github.read(&run.stage, &body)?;
//! assert_eq!((work.state, work.attempt), (WorkState::Succeeded, Some(2)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Profile::watch`] reads the work so, and [`Profile::logs`] its logs. What is said of [submitting](Submit),
//! [canceling](Cancel) and [webhooks](Webhook) is checked and described, and nothing acts upon it yet. The
//! [manual](crate::manual::polling#a-profile-as-a-file) has each key of a file, and what acts upon it.

mod cancel;
mod check;
mod duration;
mod file;
mod location;
mod log;
mod logs;
mod pages;
mod pointer;
mod stage;
mod stages;
mod submit;
mod template;
#[cfg(test)]
mod tests;
mod time;
mod watch;
mod webhook;
mod word;
mod work;

pub use cancel::{Acknowledged, Cancel};
pub use duration::duration;
pub use location::{Address, Location};
pub use log::{Listed, Log, LogAbout, LogKind, LogSource};
pub use pointer::{Place, Pointer};
pub use stage::{Find, Next, Order, Question, Stage, Taken, When};
pub use stages::{Action, Event, Stages};
pub use submit::{Call, Correlate, Dedupe, Submit};
pub use template::{Bindings, Template};
pub use webhook::{Replies, Scheme, Webhook};
pub use word::Word;
pub use work::{Follow, Unread, Work, WorkState};

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};

use crate::error::Error;
use crate::http::poll::{Pace, Settings};

/// What is peculiar to a service.
///
/// Its fields are public: what a file can say, code can. [`check`](Self::check) says whether they fit together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Profile {
    /// Its name, in lower-case letters, digits and dashes.
    pub name: Arc<str>,
    /// What one piece of work is read as, one after the other: a queue item, then a build.
    pub stages: Vec<Stage>,
    /// Which addresses lead to which stage, beside the paths of the stages themselves.
    pub addresses: Vec<Address>,
    /// How its resources are read.
    pub read: Reads,
    /// How often to look. Default: as [`Pace`] says.
    pub pace: Pace,
    /// How long a resource that was never seen may be answered 404 (R3). Default 10 s.
    pub grace: Duration,
    /// Whether it reopens what was terminal without another attempt number. Default no.
    pub reopens: bool,
    /// How its logs are read.
    pub log: Option<Log>,
    /// How work is submitted. A description: nothing acts upon it yet.
    pub submit: Option<Submit>,
    /// How work is canceled, for each stage in which it can be. A description: nothing acts upon it yet.
    pub cancel: Vec<Cancel>,
    /// What it pushes by itself. A description: nothing acts upon it yet.
    pub webhook: Option<Webhook>,
}

/// How the resources of a service are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Reads {
    /// Headers to ask with, such as `Accept`. Never a credential.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Streams that say when something may have changed; none is ever trusted to be the only one. Of those of one stage the
    /// first is open, or another where it [cannot be had](crate::http::push::Push::or).
    pub streams: Vec<Stream>,
}

/// A stream of events that says when something may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stream {
    /// The stage that it tells of.
    pub stage: Arc<str>,
    /// What it speaks.
    pub kind: StreamKind,
    /// Where.
    pub path: Template,
    /// What to say first on a WebSocket; each `{name}` in it stands for what the placeholder stands for.
    pub first: Option<Arc<str>>,
}

impl Stream {
    /// What to say first, with what the placeholders stand for.
    pub fn greeting(&self, bound: &Bindings) -> Option<String> {
        let fill = |text: String, name: &str| match bound.get(name) {
            Some(value) => text.replace(&format!("{{{name}}}"), &value),
            None => text,
        };
        Some(bound.names().fold(self.first.as_ref()?.to_string(), fill))
    }
}

/// What a stream of events speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamKind {
    /// Server-sent events.
    Sse,
    /// A WebSocket with text frames.
    WebSocket,
}

const SHIPPED: [(&str, &str); 4] = [
    ("buildbot", include_str!("profile/shipped/buildbot.toml")),
    ("github-actions", include_str!("profile/shipped/github-actions.toml")),
    ("gitlab", include_str!("profile/shipped/gitlab.toml")),
    ("jenkins", include_str!("profile/shipped/jenkins.toml")),
];

impl Profile {
    /// A profile of a service whose work is read as `stages`; all else as by default.
    pub fn new(name: impl Into<Arc<str>>, stages: Vec<Stage>) -> Self {
        Self {
            name: name.into(),
            stages,
            addresses: Vec::new(),
            read: Reads::default(),
            pace: Pace::default(),
            grace: Settings::default().grace,
            reopens: false,
            log: None,
            submit: None,
            cancel: Vec::new(),
            webhook: None,
        }
    }

    /// The profile that a file in TOML writes.
    ///
    /// A file may come with a repository, so it cannot say where a credential comes from, nor send one to another origin
    /// than that of the address that the user gave.
    ///
    /// # Errors
    /// When it is malformed, has a field that is not known, or contradicts itself. The error names the field, as in
    /// `stage[0].status[1].ok`, and what was expected there.
    pub fn parse(text: &str) -> Result<Self, Error> {
        file::parse(text, file::Trust::File)
    }

    /// A shipped profile: one of [`names`](Self::names).
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn named(name: &str) -> Result<Self, Error> {
        match SHIPPED.iter().find(|(each, _)| *each == name) {
            Some((_, text)) => file::parse(text, file::Trust::Shipped),
            None => {
                Err(Error::invalid("profile", format_args!("one of {}", Self::names().collect::<Vec<_>>().join(", "))))
            }
        }
    }

    /// The names of the shipped profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The text of a shipped profile, to start one's own from.
    pub fn text(name: &str) -> Option<&'static str> {
        SHIPPED.iter().find(|(each, _)| *each == name).map(|(_, text)| *text)
    }

    /// The stage of that name.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| &*stage.name == name)
    }

    /// Whether its parts fit together. Whatever was read from a file does.
    ///
    /// # Errors
    /// When they do not. The error names the field and what was expected.
    pub fn check(&self) -> Result<(), Error> {
        check::check(self)
    }

    /// The bounds of a read of this service: its pace, its grace, whether it reopens. What it
    /// [forgets](Stage::vanishes_after) is looked at at least twice before.
    pub fn settings(&self) -> Settings {
        let by_default = Settings::default();
        let (mut pace, mut reread) = (self.pace, by_default.reread);
        if let Some(soonest) = self.stages.iter().filter_map(|stage| stage.vanishes_after).min() {
            pace.most = pace.most.min(soonest / 2).max(pace.least);
            reread = reread.min(soonest / 2);
        }
        Settings { pace, reread, grace: self.grace, reopens: self.reopens, ..by_default }
    }
}
