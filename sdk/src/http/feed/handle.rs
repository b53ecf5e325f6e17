//! A feed, as its consumer holds it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use url::Url;

use super::driver::{self, Driver};
use super::events::EventReader;
use super::fetch::Fetch;
use super::follower::Follower;
use super::item::{FeedEnd, FeedItem, FeedState};
use super::kind::{LogKind, Offsets};
use super::lines;
use super::pages::{Lines, Tokens};
use super::progressive::Progressive;
use super::reader::Reader;
use super::settings::Settings;
use super::stamped::Stamped;
use super::stretch::Stretch;
use crate::env::Env;
use crate::error::Error;
use crate::http::sse;
use crate::observe::{self, Observable};

/// A log or an event stream that outlasts the connection: each item once and in order, or one explicit gap (R6).
///
/// It is read by a task of its own, which recovers by itself and does not give up by default (R8). A slow consumer slows
/// the reading; nothing is dropped. Dropping the feed stops it. What fails here is seen in [`state`](Self::state) and
/// never touches the verdict of the work (R10): a feed only knows that the work is over if it is [told](Self::finish).
pub struct Feed<T> {
    items: BoxStream<'static, FeedItem<T>>,
    state: Observable<FeedState>,
    finisher: Finisher,
    ended: bool,
    task: Arc<Task>,
}

/// Ends with the last handle.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Feed<Bytes> {
    /// Follows a log. Nothing of it need exist yet.
    ///
    /// # Errors
    /// When a setting of `kind` is not what it is to be.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn log(fetch: impl Fetch, url: Url, kind: LogKind, settings: Settings, env: Env) -> Result<Self, Error> {
        let sizes = settings.sizes;
        Ok(match kind {
            LogKind::Bytes(Offsets::Range) => Self::start(fetch, Stretch::range(url, sizes.proof), settings, env),
            LogKind::Bytes(Offsets::Parameter(parameter)) => {
                Self::start(fetch, Progressive::new(url, parameter, sizes.proof)?, settings, env)
            }
            LogKind::Lines(pages) => Self::start(fetch, Lines::new(url, pages, sizes.page)?, settings, env),
            LogKind::Token(pages) => Self::start(fetch, Tokens::new(url, pages, sizes.page)?, settings, env),
            LogKind::Time(stamps) => Self::start(fetch, Stamped::new(url, stamps, sizes.line), settings, env),
            LogKind::Whole => Self::start(fetch, Stretch::whole(url), settings, env),
            LogKind::AtEnd => Self::start(fetch, Stretch::at_end(url), settings, env),
        })
    }

    /// The same as lines of text, without their ends (LF or CRLF). What is not valid UTF-8 is replaced, and only that.
    ///
    /// A last line without an end is delivered before a gap and at the end of the feed. A line of more than 1 MiB comes in parts.
    pub fn lines(self) -> Feed<String> {
        let Self { items, state, finisher, ended, task } = self;
        Feed { items: lines::of(items).boxed(), state, finisher, ended, task }
    }
}

impl Feed<sse::Event> {
    /// Follows an event stream.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn events(fetch: impl Fetch, url: Url, settings: Settings, env: Env) -> Self {
        let reader = EventReader::new(url, settings.replay, settings.sizes.event);
        Self::start(fetch, reader, settings, env)
    }
}

impl<T: Send + 'static> Feed<T> {
    /// Follows what `reader` knows how to read. [`Get::follow`](crate::http::Get::follow) has a `fetch` of its own.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start<R: Reader<Item = T>>(fetch: impl Fetch, reader: R, settings: Settings, env: Env) -> Self {
        let (sender, mut receiver) = mpsc::channel::<Vec<FeedItem<T>>>(settings.buffer.max(1));
        let (finish, finished) = watch::channel(false);
        let (publisher, state) = observe::channel();
        let machine = Follower::new(reader, settings);
        let driver = Driver { fetch, machine, env, items: sender, state: publisher, finish: finished };
        let task = Arc::new(Task(driver::spawn(driver)));
        let batches = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
        let items = batches.flat_map(futures::stream::iter).boxed();
        Self { items, state, finisher: Finisher { finish }, ended: false, task }
    }

    /// The next item, gap or end. `None` after the end.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<FeedItem<T>> {
        StreamExt::next(self).await
    }
}

impl<T> Feed<T> {
    /// How the feed is doing.
    pub fn state(&self) -> Observable<FeedState> {
        self.state.clone()
    }

    /// The work is over, as its status channel says: reads until the log is complete, then ends.
    ///
    /// A feed whose rest cannot be had within the bound of its settings ends as [`FeedEnd::Incomplete`].
    pub fn finish(&self) {
        self.finisher.finish();
    }

    /// Calls [`finish`](Self::finish) when `over` completes.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn finish_when(&self, over: impl Future<Output = ()> + Send + 'static) {
        let finisher = self.finisher.clone();
        driver::spawn_beside(async move {
            tokio::select! {
                () = over => finisher.finish(),
                () = finisher.finish.closed() => {}
            }
        });
    }

    /// Calls [`finish`](Self::finish) when `work`, its status channel, shows a value that is `over`, or ends: then nothing else will say that
    /// it is.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn finish_with<W: Send + Sync + 'static>(
        &self,
        work: &Observable<W>,
        over: impl FnMut(&W) -> bool + Send + 'static,
    ) {
        let over = work.until(over);
        self.finish_when(async move { drop(over.await) });
    }

    /// A handle that tells the feed that the work is over, wherever the feed has gone. It keeps nothing alive.
    pub fn finisher(&self) -> Finisher {
        self.finisher.clone()
    }
}

impl<T> Stream for Feed<T> {
    type Item = FeedItem<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<FeedItem<T>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let item = match std::task::ready!(self.items.poll_next_unpin(cx)) {
            Some(item) => item,
            // Its task was ended with the runtime.
            None => FeedItem::Ended(FeedEnd::Closed),
        };
        self.ended = matches!(item, FeedItem::Ended(_));
        Poll::Ready(Some(item))
    }
}

impl<T> fmt::Debug for Feed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("state", &self.state.latest())
            .field("task", &self.task.0.id())
            .finish_non_exhaustive()
    }
}

/// Tells a feed that the work is over. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Finisher {
    finish: watch::Sender<bool>,
}

impl Finisher {
    /// The work is over: the feed reads until the log is complete, then ends.
    pub fn finish(&self) {
        self.finish.send_replace(true);
    }
}
