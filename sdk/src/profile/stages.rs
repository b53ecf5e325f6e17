//! Which address tells of a piece of work now: a pure machine for each.

use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::location::place;
use super::template::Bindings;
use super::{Follow, Location, Profile, Stage, Unread, Work};
use crate::error::Cause;
use crate::http::poll::{Answer, Marks};
use crate::machine::{Actions, Machine, Monotonic, Now};

/// How often a service may lead on to another stage at once, without a value in between.
const HASTE: u8 = 4;

/// Nothing confirms what is shown, and nothing ends (R3, R5).
const NOT_YET_VISIBLE: Action = Action::Take(Answer::Unserved(Cause::NotYetVisible));

/// Follows a piece of work through the stages of its service, and through its attempts.
///
/// The driver reads [`url`](Self::url). It hands each body to [`read`](Self::read), and what that gives, a 404 or 410, or
/// that there was no answer of use, to the machine; the machine says what the answer comes down to for the machine of the polled read
/// ([`poll::Answer`](Answer)), and whether another address is read from now on. What that read then shows, it is told as well.
/// Whatever a body says, the origin stays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stages {
    profile: Arc<Profile>,
    here: Location,
    /// Whether this stage was seen.
    seen: bool,
    /// Whether what is shown of it says that it is over, in the latest attempt.
    over: bool,
    /// Whether any stage before this one was.
    moved: bool,
    /// Since when the work is in none of the places where it should be.
    absent_since: Option<Monotonic>,
    /// The stage that was missing, while another one is asked for it.
    missed: Option<Box<Location>>,
    /// How many attempts were chained, where each has an id of its own.
    chained: u64,
    /// The latest attempt told of.
    attempt: Option<u64>,
    /// How often another stage came at once since a value that decided something.
    haste: u8,
}

/// What [`Stages`] are told: what an answer of the service says of the work. Unlike `Event` of other machines, such as
/// [`poll::Event`](crate::http::poll::Event), it knows neither time nor connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// An answer says this of the work.
    Read(Arc<Work>),
    /// The read shows this of the work, an answer or what was pushed. Only what is shown can be confirmed (R4): a read does
    /// not show all that it is told, such as what is older than what it shows.
    Shown(Arc<Work>),
    /// There is no such resource: 404, or a list without it.
    Absent,
    /// The resource is no more: 410.
    Gone,
    /// The service could not be asked, or its answer says nothing of the work: what is absent must be missed anew.
    Unanswered,
}

/// What [`Stages`] say: what an answer comes down to, and which address is read next. When it is read,
/// [`poll::Action`](crate::http::poll::Action) says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// The machine of the read is to be told this of the answer.
    Take(Answer),
    /// From now on this address is read.
    Turn {
        /// The stage.
        stage: Arc<str>,
        /// Its address.
        url: Url,
        /// Whether at once; otherwise when the next request is due.
        at_once: bool,
    },
    /// Another attempt has begun: logs start anew.
    Attempt(u64),
}

impl Stages {
    /// Begins at `location`.
    pub fn new(profile: Arc<Profile>, location: Location) -> Self {
        Self {
            profile,
            here: location,
            seen: false,
            over: false,
            moved: false,
            absent_since: None,
            missed: None,
            chained: 0,
            attempt: None,
            haste: 0,
        }
    }

    /// The address to read.
    pub fn url(&self) -> &Url {
        &self.here.url
    }

    /// The profile that it follows.
    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The stage that is read there, and what is known by now.
    pub fn location(&self) -> &Location {
        &self.here
    }

    /// What a body says, read as the present stage.
    ///
    /// # Errors
    /// As [`Profile::read`]: [`Unread::Absent`] is an [`Event::Absent`]; anything else goes to the machine of the read as
    /// [`Unread::answer`], and is [`Event::Unanswered`] here.
    pub fn read(&self, body: &Value) -> Result<Work, Unread> {
        let mut work = self.profile.read_at(&self.here.stage, &self.here.bound, body)?;
        let mut here = self.here.clone();
        here.bound.extend(&work.bound);
        work.location = Some(here);
        Ok(work)
    }

    fn stage(&self) -> Option<&Stage> {
        self.profile.stage(&self.here.stage)
    }

    fn on_read(&mut self, work: &Work) -> Actions<Action> {
        if work.stage != self.here.stage {
            // An answer to a request from before the last turn (R4).
            return vec![Action::Take(Answer::Nothing)];
        }
        self.seen = true;
        self.absent_since = None;
        self.missed = None;
        self.here.bound.extend(&work.bound);
        if let Some(follow) = &work.next {
            return self.follow(work, follow);
        }
        if self.stage().is_none_or(|stage| stage.status.is_empty()) {
            // It can only lead on, and does not.
            let detail = format!("expected stage {} to lead to another", self.here.stage);
            return vec![Action::Take(Answer::Unserved(Cause::Undecodable { detail: detail.into() }))];
        }
        self.haste = 0;
        let marks = self.marks(work);
        let mut actions = Vec::new();
        if marks.attempt > self.attempt {
            let is_first = self.attempt.is_none();
            self.attempt = marks.attempt;
            if let (false, Some(attempt)) = (is_first, marks.attempt) {
                actions.push(Action::Attempt(attempt));
            }
        }
        actions.push(Action::Take(Answer::Value(marks)));
        actions
    }

    fn on_shown(&mut self, work: &Work) {
        // What was read before a turn is shown after it.
        let is_here = work.location.as_ref().is_some_and(|location| location.url == self.here.url);
        if is_here {
            let marks = self.marks(work);
            // An end of an attempt before is none of this one (R10).
            self.over = marks.terminal && marks.attempt >= self.attempt;
        }
    }

    fn follow(&mut self, work: &Work, follow: &Follow) -> Actions<Action> {
        let take = match self.stage() {
            // What only leads on has nothing to show, and an end is the next stage's to tell.
            Some(stage) if stage.status.is_empty() || work.state.is_terminal() => Answer::Nothing,
            _ => Answer::Value(self.marks(work)),
        };
        let Some(next) = self.located(&follow.stage, &follow.bound) else {
            let detail = format!("expected what stage {} needs, in stage {}", follow.stage, self.here.stage);
            return vec![Action::Take(Answer::Unserved(Cause::Undecodable { detail: detail.into() }))];
        };
        if next.url == self.here.url {
            // It names itself. There is nothing else to read, and it decides nothing.
            return vec![Action::Take(take)];
        }
        let mut actions = vec![Action::Take(take)];
        if follow.attempt {
            self.chained += 1;
        }
        self.haste = self.haste.saturating_add(1);
        actions.push(self.turn(next, self.haste <= HASTE));
        actions
    }

    fn on_absent(&mut self, now: Now) -> Actions<Action> {
        if self.is_forgotten() {
            // Its verdict stays (R10).
            return vec![Action::Take(Answer::Same)];
        }
        let grace = self.profile.grace;
        let since = *self.absent_since.get_or_insert(now.instant);
        let over = now.instant.since(since) >= grace;
        if let Some(missed) = self.missed.take() {
            // Neither the stage nor the one that stands in for it knows the work.
            if over {
                return vec![Action::Take(Answer::Gone)];
            }
            let turn = self.turn(*missed, false);
            self.seen = true;
            return vec![NOT_YET_VISIBLE, turn];
        }
        let stand_in = self.stage().and_then(|stage| stage.missing.clone());
        if let Some(stand_in) = stand_in.and_then(|stage| self.located(&stage, &Bindings::default())) {
            let missed = Box::new(self.here.clone());
            let turn = self.turn(stand_in, true);
            self.missed = Some(missed);
            return vec![NOT_YET_VISIBLE, turn];
        }
        let answer = match (self.moved, self.seen) {
            // The stage before named it, so it is there, or will be (FC-14).
            (true, false) if !over => return vec![NOT_YET_VISIBLE],
            (true, false) => Answer::Gone,
            // The machine of the read knows whether it was seen, and since when it is not there.
            (true, true) | (false, _) => Answer::Absent,
        };
        vec![Action::Take(answer)]
    }

    fn on_gone(&mut self, now: Now) -> Actions<Action> {
        let has_stand_in = self.stage().is_some_and(|stage| stage.missing.is_some());
        if has_stand_in || self.missed.is_some() || self.is_forgotten() {
            return self.on_absent(now);
        }
        vec![Action::Take(Answer::Gone)]
    }

    /// Whether it is over, and of those that the service forgets then.
    fn is_forgotten(&self) -> bool {
        self.over && self.stage().is_some_and(|stage| stage.vanishes_after.is_some())
    }

    /// The place of a value among others, over all stages.
    fn marks(&self, work: &Work) -> Marks {
        let leads_on = self.stage().is_some_and(|stage| stage.next.iter().any(|next| !next.attempt));
        let chains = self.profile.stages.iter().flat_map(|stage| &stage.next).any(|next| next.attempt);
        let mut marks = work.marks();
        if chains {
            marks.attempt = marks.attempt.or(Some(self.chained + 1));
        }
        if leads_on {
            // Versions of two stages say nothing of each other.
            marks.version = None;
        }
        marks
    }

    fn located(&self, stage: &str, bound: &Bindings) -> Option<Location> {
        let mut all = self.here.bound.clone();
        all.extend(bound);
        place(&self.here.url, self.profile.stage(stage)?, None, all).ok()
    }

    fn turn(&mut self, to: Location, at_once: bool) -> Action {
        self.here = to;
        self.moved = true;
        self.seen = false;
        self.over = false;
        Action::Turn { stage: Arc::clone(&self.here.stage), url: self.here.url.clone(), at_once }
    }
}

impl Machine for Stages {
    type Event = Event;
    type Action = Action;

    fn on_event(&mut self, now: Now, event: Event) -> Actions<Action> {
        match event {
            Event::Read(work) => self.on_read(&work),
            Event::Shown(work) => {
                self.on_shown(&work);
                Actions::new()
            }
            Event::Absent => self.on_absent(now),
            Event::Gone => self.on_gone(now),
            Event::Unanswered => {
                // While the service cannot be asked, nobody says that the work is not there (R3).
                self.absent_since = None;
                Actions::new()
            }
        }
    }

    /// None: it only judges answers.
    fn deadline(&self) -> Option<Monotonic> {
        None
    }
}
