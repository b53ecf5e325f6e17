//! Performs what a feed's machine says.

use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::fetch::{FeedAsk, Fetch, FetchError, Fetched};
use super::follower::{Action, Event, Follower};
use super::item::{FeedItem, FeedState};
use super::reader::{Ask, Reader};
use crate::env::Env;
use crate::http::exchange::{Answer, Phases, Progress};
use crate::machine::Machine as _;
use crate::observe::Publisher;

/// Performs for one feed.
pub(super) struct Driver<F, R: Reader> {
    pub(super) fetch: F,
    pub(super) machine: Follower<R>,
    pub(super) env: Env,
    pub(super) items: mpsc::Sender<Vec<FeedItem<R::Item>>>,
    pub(super) state: Publisher<FeedState>,
    pub(super) finish: watch::Receiver<bool>,
}

/// The request under way.
enum Io {
    None,
    Asking { answer: BoxFuture<'static, Result<Fetched, FetchError>>, phases: Phases },
    Reading(Answer),
}

impl<F: Fetch, R: Reader> Driver<F, R> {
    /// Ends with the feed, or when nobody takes its items any more.
    pub(super) async fn run(mut self) {
        let mut io = Io::None;
        let mut told = false;
        self.state.fresh(FeedState::Opening);
        let mut event = Event::Start;
        loop {
            let actions = self.machine.on_event(self.env.now(), event);
            let mut delivered = false;
            for action in actions {
                match action {
                    Action::Ask(ask) => io = self.ask(ask),
                    Action::Abort => io = Io::None,
                    Action::Deliver(items) => {
                        // The consumer's pace is the pace of reading: nothing is dropped (R6).
                        if self.items.send(items).await.is_err() {
                            return;
                        }
                        delivered = true;
                    }
                    Action::Show(state) => self.state.fresh(state),
                }
            }
            if self.machine.is_ended() {
                return self.state.leave();
            }
            let deadline = self.machine.deadline();
            event = if delivered {
                Event::Drained
            } else if deadline.is_some_and(|at| at <= self.env.instant()) {
                // A stream that always has something to say does not keep its deadlines from passing.
                Event::Tick
            } else {
                tokio::select! {
                    biased;
                    () = self.items.closed() => return,
                    // A feed whose handles are gone is told nothing more.
                    Ok(_) = self.finish.wait_for(|finished| *finished), if !told => {
                        told = true;
                        Event::Finish
                    }
                    event = io.next() => event,
                    () = self.env.sleep_until(deadline) => Event::Tick,
                }
            };
        }
    }

    fn ask(&self, ask: Ask) -> Io {
        let (progress, phases) = Progress::observed();
        let answer = self.fetch.fetch(FeedAsk { ask, progress });
        Io::Asking { answer, phases }
    }
}

impl Io {
    /// What happens next with the request. Cancel safe.
    async fn next(&mut self) -> Event {
        match self {
            Self::None => std::future::pending().await,
            Self::Asking { answer, phases } => {
                let fetched = tokio::select! {
                    biased;
                    fetched = answer => fetched,
                    phase = phases.next() => return Event::Began(phase),
                };
                match fetched {
                    Ok(Fetched { answer, told }) => {
                        let (status, headers) = (answer.status, answer.headers.clone());
                        *self = Self::Reading(answer);
                        Event::Head { status, headers, told }
                    }
                    Err(FetchError { cause, retry_after, denied }) => {
                        *self = Self::None;
                        Event::Broken { cause, retry_after, denied }
                    }
                }
            }
            Self::Reading(answer) => match answer.chunk().await {
                Ok(Some(piece)) => Event::Piece(piece),
                Ok(None) => {
                    *self = Self::None;
                    Event::End
                }
                Err(failure) => {
                    *self = Self::None;
                    Event::Broken { cause: failure.cause(), retry_after: None, denied: false }
                }
            },
        }
    }
}
