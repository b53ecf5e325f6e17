//! Feeds over a scripted service, in virtual time.

mod bounds;
mod events;
mod fake;
mod logs;
mod pages;
mod progressive;

use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use url::Url;

use fake::{Fake, Reply};

use super::events::EventReader;
use super::follower::*;
use super::*;
use crate::env::Env;
use crate::error::{Cause, Phase};
use crate::observe::Reading;
use crate::testing::env;

fn url() -> Url {
    Url::parse("http://ci.example/log").unwrap()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Time passes.
async fn pass(env: &Env, time: Duration) {
    env.sleep_until(Some(env.instant() + time)).await;
}

fn parts(fake: &Fake, settings: Settings) -> Parts<Fake> {
    Parts { fetch: fake.clone(), settings, env: env(7), runtime: Handle::current() }
}

fn log(fake: &Fake, kind: LogKind) -> Feed<Bytes> {
    Feed::log(parts(fake, Settings::default()), url(), kind).unwrap()
}

fn range() -> LogKind {
    LogKind::Bytes(Offsets::Range)
}

fn jenkins() -> LogKind {
    LogKind::Bytes(Offsets::Parameter(OffsetParameter::jenkins()))
}

fn gap(from: Position, to: Position) -> FeedItem<Bytes> {
    FeedItem::Gap { from: Some(from), to: Some(to) }
}

/// Everything up to the end: the bytes, the gaps with the number of bytes before each, and the end.
async fn all(feed: &mut Feed<Bytes>) -> (Vec<u8>, Vec<(usize, FeedItem<Bytes>)>, FeedEnd) {
    let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
    loop {
        match soon(feed).await.expect("an end comes first") {
            FeedItem::Item(item) => bytes.extend_from_slice(&item),
            gap @ FeedItem::Gap { .. } => gaps.push((bytes.len(), gap)),
            FeedItem::Ended(end) => {
                assert_eq!(feed.next().await, None);
                return (bytes, gaps, end);
            }
        }
    }
}

/// What comes next. A day without anything is for ever.
async fn soon<T: Send + 'static>(feed: &mut Feed<T>) -> Option<FeedItem<T>> {
    let env = env(1);
    tokio::select! {
        biased;
        item = feed.next() => item,
        () = pass(&env, seconds(86_400)) => panic!("nothing comes: {:?}", feed.state().latest()),
    }
}

/// The next bytes, which come before anything else.
async fn some<T: Send + 'static>(feed: &mut Feed<T>) -> T {
    match soon(feed).await {
        Some(FeedItem::Item(item)) => item,
        Some(FeedItem::Gap { from, to }) => panic!("a gap from {from:?} to {to:?}"),
        Some(FeedItem::Ended(end)) => panic!("ended: {end}"),
        None => panic!("over"),
    }
}

/// What the feed delivers within `time`, if anything.
async fn within<T: Send + 'static>(feed: &mut Feed<T>, env: &Env, time: Duration) -> Option<FeedItem<T>> {
    tokio::select! {
        biased;
        item = feed.next() => item,
        () = pass(env, time) => None,
    }
}

fn state<T>(feed: &Feed<T>) -> FeedState {
    match feed.state().latest() {
        Reading::Fresh(state) => (*state).clone(),
        other @ (Reading::Loading { .. } | Reading::Stale { .. } | Reading::Ended { .. }) => panic!("{other:?}"),
    }
}

fn stale(cause: Cause) -> FeedState {
    FeedState::Stale { cause }
}
