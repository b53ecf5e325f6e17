//! A feed, as its consumer holds it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use url::Url;

use super::driver::Driver;
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
    /// Where what is told to it is waited for.
    runtime: Handle,
}

/// Ends with the last handle.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a feed is made of, beside what it reads.
pub(in crate::http) struct Parts<F> {
    pub(in crate::http) fetch: F,
    pub(in crate::http) settings: Settings,
    pub(in crate::http) env: Env,
    pub(in crate::http) runtime: Handle,
}

impl Feed<Bytes> {
    /// Follows a log. Nothing of it need exist yet.
    ///
    /// # Errors
    /// When a setting of `kind` is not what it is to be.
    pub(in crate::http) fn log(parts: Parts<impl Fetch>, url: Url, kind: LogKind) -> Result<Self, Error> {
        let sizes = parts.settings.sizes;
        Ok(match kind {
            LogKind::Bytes(Offsets::Range) => Self::start(parts, Stretch::range(url, sizes.proof)),
            LogKind::Bytes(Offsets::Parameter(parameter)) => {
                Self::start(parts, Progressive::new(url, parameter, sizes.proof)?)
            }
            LogKind::Lines(pages) => Self::start(parts, Lines::new(url, pages, sizes.page)?),
            LogKind::Token(pages) => Self::start(parts, Tokens::new(url, pages, sizes.page)?),
            LogKind::Time(stamps) => Self::start(parts, Stamped::new(url, stamps, sizes.line)),
            LogKind::Whole => Self::start(parts, Stretch::whole(url)),
            LogKind::AtEnd => Self::start(parts, Stretch::at_end(url)),
        })
    }

    /// The same as lines of text, without their ends (LF or CRLF). What is not valid UTF-8 is replaced, and only that.
    ///
    /// A last line without an end is delivered before a gap and at the end of the feed. A line of more than 1 MiB comes in parts.
    pub fn lines(self) -> Feed<String> {
        let Self { items, state, finisher, ended, task, runtime } = self;
        Feed { items: lines::of(items).boxed(), state, finisher, ended, task, runtime }
    }
}

impl Feed<sse::Event> {
    /// Follows an event stream.
    pub(in crate::http) fn events(parts: Parts<impl Fetch>, url: Url) -> Self {
        let reader = EventReader::new(url, parts.settings.replay, parts.settings.sizes.event);
        Self::start(parts, reader)
    }
}

impl<T: Send + 'static> Feed<T> {
    /// Follows what `reader` knows how to read.
    pub(in crate::http) fn start<R: Reader<Item = T>>(parts: Parts<impl Fetch>, reader: R) -> Self {
        let Parts { fetch, settings, env, runtime } = parts;
        let (sender, mut receiver) = mpsc::channel::<Vec<FeedItem<T>>>(settings.buffer.max(1));
        let (finish, finished) = watch::channel(false);
        let (publisher, state) = observe::channel();
        let machine = Follower::new(reader, settings);
        let driver = Driver { fetch, machine, env, items: sender, state: publisher, finish: finished };
        let task = Arc::new(Task(runtime.spawn(driver.run())));
        let batches = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
        let items = batches.flat_map(futures::stream::iter).boxed();
        Self { items, state, finisher: Finisher { finish }, ended: false, task, runtime }
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

    /// Calls [`finish`](Self::finish) when `over` completes. It is waited for in the runtime of the feed.
    pub fn finish_when(&self, over: impl Future<Output = ()> + Send + 'static) {
        let finisher = self.finisher.clone();
        drop(self.runtime.spawn(async move {
            tokio::select! {
                () = over => finisher.finish(),
                () = finisher.finish.closed() => {}
            }
        }));
    }

    /// Calls [`finish`](Self::finish) when `work`, its status channel, shows a value that is `over`, or ends: then nothing else will say that
    /// it is.
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
