//! A piece of work, read by its profile.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use url::Url;

use super::{Action, Bindings, Event, Location, Profile, Stages, Stream, StreamKind, Work};
use crate::error::{Cause, Error};
use crate::http::poll::Answer;
use crate::http::push::Push;
use crate::http::{Decode, Get, Guide, Guided, Look, Turn};
use crate::machine::{Machine as _, Now};
use crate::observe::Observable;

impl Profile {
    /// Watches the work that the address of `get` leads to: the page of a run as people paste it, or an address of the
    /// interface. Its stages and attempts are followed, and its verdict is the service's own.
    ///
    /// A stream that the profile states for a stage says when to look while that stage is read, unless `get` has
    /// a [stream](Get::push) of its own. Of several the first is open, or another where it
    /// [cannot be had](Push::or).
    ///
    /// What `get` sets up beside is kept; headers, pace and grace are the profile's unless they were set there. The work is over once
    /// [`Work::state`] is [`Succeeded`](super::WorkState::Succeeded), [`Failed`](super::WorkState::Failed) or
    /// [`Canceled`](super::WorkState::Canceled). Parked is visible and no end (R10).
    ///
    /// ```no_run
    /// # async fn wait(token: outlast::Credential) -> Result<(), Box<dyn std::error::Error>> {
    /// use outlast::profile::Profile;
    ///
    /// let run = outlast::http::get("https://github.com/o/r/actions/runs/1").credential(token);
    /// let work = Profile::named("github-actions")?.watch(run)?;
    /// let work = work.until(|work| work.state.is_terminal()).await?;
    /// println!("{}", work.status);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the address is none of this service, when the profile does not fit together, outside a tokio runtime, or when
    /// no TLS can be had.
    pub fn watch(&self, get: Get) -> Result<Observable<Work>, Error> {
        Ok(self.watch_with_looks(get)?.0)
    }

    /// The same, with each look at the service as it went.
    ///
    /// # Errors
    /// What [`watch`](Self::watch) says.
    pub fn watch_with_looks(&self, get: Get) -> Result<(Observable<Work>, Observable<Look>), Error> {
        self.check()?;
        let url = Url::parse(get.url())
            .map_err(|e| Error::invalid("url", "an absolute http:// or https:// URL").with_source(e))?;
        let location = self.locate(&url)?;
        let stages = Stages::new(Arc::new(self.clone()), location);
        self.dressed(get).guided(Followed { stages }, Work::marks)
    }

    /// With what the profile says of each read, where the caller says nothing else.
    pub(super) fn dressed(&self, get: Get) -> Get {
        let headers = self.read.headers.iter();
        headers.fold(get.usually(self.settings()), |get, (name, value)| get.header_by_default(name, value))
    }
}

/// Follows the stages of a piece of work.
struct Followed {
    stages: Stages,
}

impl Guide<Work> for Followed {
    fn url(&self) -> &Url {
        self.stages.url()
    }

    fn decode(&self) -> Arc<Decode<Work>> {
        let stages = self.stages.clone();
        Arc::new(move |body: &Bytes| {
            let value: Value = crate::http::json(body).map_err(Answer::Unserved)?;
            stages.read(&value).map_err(|unread| unread.answer())
        })
    }

    fn push(&self) -> Option<Push> {
        let here = self.stages.location();
        let streams = self.stages.profile().read.streams.iter().filter(|stream| stream.stage == here.stage);
        // Several tell of the same in other ways: one is open, and the others are there where it cannot be had.
        streams.filter_map(|stream| push(stream, here)).reduce(Push::or)
    }

    fn judge(&mut self, now: Now, answer: Answer, value: Option<&Work>) -> Guided {
        let event = match (&answer, value) {
            (Answer::Value(_), Some(work)) => Event::Read(Arc::new(work.clone())),
            (Answer::Absent, _) => Event::Absent,
            (Answer::Gone, _) => Event::Gone,
            (Answer::Refused(_) | Answer::Unserved(_), _) => {
                self.unanswered(now);
                return Guided { answer, turn: None };
            }
            (Answer::Value(_) | Answer::Same | Answer::Unchanged | Answer::Nothing, _) => {
                return Guided { answer, turn: None };
            }
        };
        let mut guided =
            Guided { answer: Answer::Unserved(Cause::Undecodable { detail: "expected a stage".into() }), turn: None };
        for action in self.stages.on_event(now, event) {
            match action {
                Action::Take(answer) => guided.answer = answer,
                Action::Turn { at_once: true, .. } => guided.turn = Some(Turn::AtOnce),
                Action::Turn { at_once: false, .. } => guided.turn = Some(Turn::InTime),
                Action::Attempt(attempt) => tracing::debug!(attempt, "another attempt has begun"),
            }
        }
        guided
    }

    fn shown(&mut self, now: Now, value: &Work) {
        self.stages.on_event(now, Event::Shown(Arc::new(value.clone())));
    }

    fn unanswered(&mut self, now: Now) {
        self.stages.on_event(now, Event::Unanswered);
    }
}

/// The stream of a profile, for the work that is read at `here`.
fn push(stream: &Stream, here: &Location) -> Option<Push> {
    let url = here.at(&stream.path, &Bindings::default()).ok()?;
    Some(match stream.kind {
        StreamKind::Sse => Push::events(url.as_str()).into(),
        StreamKind::WebSocket => {
            let websocket = Push::websocket(url.as_str());
            match stream.greeting(&here.bound) {
                Some(greeting) => websocket.hello(greeting).into(),
                None => websocket.into(),
            }
        }
    })
}
