//! The streams beside a read, of which one is open.

use std::collections::VecDeque;

use url::Url;

use super::choice::{Action, Choice, Config, Event};
use super::source::Source;
use super::{Happening, Push, Report, backoff};
use crate::env::{Alarm, Env};
use crate::error::Cause;
use crate::http::requester::Requester;
use crate::machine::Machine as _;

/// What a [`Push`] says, from whichever of its streams can be had.
pub(in crate::http) struct Stream {
    sources: Vec<Source>,
    choice: Choice,
    env: Env,
    alarm: Alarm,
    attached: bool,
    ready: VecDeque<Happening>,
}

impl Stream {
    pub(super) fn new(push: Push, requester: &Requester, read: &Url) -> Self {
        // They were checked before.
        let sources: Vec<Source> =
            push.kinds.into_iter().filter_map(|kind| Source::new(kind, requester, read).ok()).collect();
        let env = requester.env().clone();
        let choice = Choice::new(Config { backoff: backoff(), ..Config::default() }, sources.len());
        Self { sources, choice, alarm: Alarm::new(env.clone()), env, attached: false, ready: VecDeque::new() }
    }

    /// What happens next. Cancel safe.
    pub(in crate::http) async fn next(&mut self) -> Happening {
        loop {
            if let Some(happening) = self.ready.pop_front() {
                return happening;
            }
            let source = self.choice.open().and_then(|open| self.sources.get_mut(open));
            let report = async {
                match source {
                    Some(source) => source.next().await,
                    None => std::future::pending().await,
                }
            };
            let deadline = self.choice.deadline();
            tokio::select! {
                report = report => self.on_report(report),
                () = self.alarm.wait(deadline) => self.tell(Event::Tick),
            }
        }
    }

    /// Whether one is up, as far as it was told.
    pub(in crate::http) fn is_attached(&self) -> bool {
        self.attached
    }

    fn on_report(&mut self, report: Report) {
        match report {
            Report::Happened(happening) => {
                match happening {
                    Happening::Attached => self.attached = true,
                    Happening::Detached(_) => self.attached = false,
                    Happening::Hint | Happening::Value(_) => {}
                }
                self.ready.push_back(happening);
            }
            Report::Missed { absent, retry_after } => self.tell(Event::Missed { absent, retry_after }),
            Report::Proven => self.tell(Event::Proven),
        }
    }

    fn tell(&mut self, event: Event) {
        for action in self.choice.on_event(self.env.now(), event) {
            match action {
                Action::Leave(left) => {
                    if let Some(source) = self.sources.get_mut(left) {
                        source.stop();
                    }
                    if std::mem::take(&mut self.attached) {
                        self.ready.push_back(Happening::Detached(Cause::Connecting));
                    }
                }
                Action::Open(open) => tracing::debug!(open, "another stream of events is tried"),
            }
        }
    }
}
