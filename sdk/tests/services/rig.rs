//! A scripted service, an agent that reads it, and what was seen of it.
#![expect(clippy::disallowed_methods, reason = "tests wait in virtual time, and note what comes in tasks")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use outlast::http::feed::{Feed, FeedEnd, FeedItem};
use outlast::http::{Agent, Get};
use outlast::profile::{Profile, Work, WorkState};
use outlast::testing::{Net, Script, SimulatedExchange, env};
use outlast::{Cause, Known, Observable, Reading};
use tokio::time::Instant;

/// Longer than anything may take: what has not come by then does not come.
const FOREVER: Duration = Duration::from_secs(86_400);

pub(crate) struct Rig {
    pub(crate) net: Net,
    pub(crate) ci: Script,
    pub(crate) agent: Agent,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let net = Net::new();
        let ci = Script::serve(&net, "ci.example");
        let agent = Agent::builder()
            .exchange(SimulatedExchange::new(net.clone()))
            .network(net.clone())
            .env(env(7))
            .build()
            .unwrap();
        Self { net, ci, agent }
    }

    /// A read of a path of the service.
    pub(crate) fn get(&self, path: &str) -> Get {
        self.agent.get(&format!("http://ci.example{path}"))
    }

    /// Watches the work that a path of the service leads to.
    pub(crate) fn watch(&self, profile: &str, path: &str) -> Watched {
        Watched::new(profile, self.get(path))
    }
}

/// A watched piece of work, and everything that was shown of it.
pub(crate) struct Watched {
    pub(crate) work: Observable<Work>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Watched {
    pub(crate) fn new(profile: &str, get: Get) -> Self {
        Self::of(&Profile::named(profile).unwrap(), get)
    }

    pub(crate) fn of(profile: &Profile, get: Get) -> Self {
        let work = profile.watch(get).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut readings, note) = (work.readings(), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Some(reading) = readings.next().await {
                let shown = shown(&reading);
                let mut seen = note.lock().unwrap();
                if seen.last() != Some(&shown) {
                    seen.push(shown);
                }
            }
        });
        Self { work, seen }
    }

    /// The first end of the work from now on.
    pub(crate) async fn over(&self) -> Known<Work> {
        self.state(|work| work.state.is_terminal()).await
    }

    /// The first value from now on that is such a one.
    pub(crate) async fn state(&self, accept: impl FnMut(&Work) -> bool + Send + 'static) -> Known<Work> {
        match self.work.until(accept).within(FOREVER).await {
            Ok(known) => known,
            Err(e) => panic!("{e}; shown: {:#?}", self.seen()),
        }
    }

    /// Waits for what the read shows to be such a one.
    pub(crate) async fn shows(&self, accept: impl Fn(&Reading<Work>) -> bool) -> Reading<Work> {
        let mut readings = self.work.readings();
        let wanted = async {
            loop {
                let reading = readings.next().await.expect("the read has not ended");
                if accept(&reading) {
                    return reading;
                }
            }
        };
        tokio::time::timeout(FOREVER, wanted).await.unwrap_or_else(|_| panic!("shown: {:#?}", self.seen()))
    }

    /// Waits for the read to be without a fresh value for such a cause.
    pub(crate) async fn doubts(&self, accept: impl Fn(&Cause) -> bool) -> Cause {
        self.shows(|reading| reading.cause().is_some_and(&accept)).await.cause().cloned().unwrap()
    }

    /// What was shown so far, without what repeats: a status, `stale (..)`, `loading (..)` or `ended (..)`.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// The statuses that were shown, without what was shown between two of the same.
    pub(crate) fn statuses(&self) -> Vec<String> {
        let mut statuses: Vec<String> = self.seen();
        statuses.retain(|shown| !shown.contains('('));
        statuses.dedup();
        statuses
    }

    /// Whether it ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.work.latest().is_ended()
    }

    /// R10: whatever went on beside it, the work ended so, and was not shown to end before.
    pub(crate) async fn ends_once(&self, state: WorkState) -> Known<Work> {
        let over = self.over().await;
        assert_eq!(over.state, state, "{:#?}", self.seen());
        assert!(!self.has_ended());
        over
    }
}

fn shown(reading: &Reading<Work>) -> String {
    match reading {
        Reading::Loading { cause: None, .. } => "loading ()".into(),
        Reading::Loading { cause: Some(cause), .. } => format!("loading ({cause})"),
        Reading::Fresh(work) => work.status.to_string(),
        Reading::Stale { cause, .. } => format!("stale ({cause})"),
        Reading::Ended { end, .. } => format!("ended ({end:?})"),
    }
}

pub(crate) const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Everything that a feed delivers: the bytes, the number of gaps, and the end.
pub(crate) async fn all(feed: &mut Feed<Bytes>) -> (String, usize, FeedEnd) {
    let (mut bytes, mut gaps) = (Vec::new(), 0);
    let all = async {
        loop {
            match feed.next().await.expect("an end comes first") {
                FeedItem::Item(item) => bytes.extend_from_slice(&item),
                FeedItem::Gap { .. } => gaps += 1,
                FeedItem::Ended(end) => return end,
            }
        }
    };
    let end = tokio::time::timeout(FOREVER, all).await.expect("the feed ends");
    (String::from_utf8(bytes).unwrap(), gaps, end)
}

/// The next item, which comes before a gap or the end.
pub(crate) async fn item<T: Send + 'static>(feed: &mut Feed<T>) -> T {
    let next = tokio::time::timeout(FOREVER, feed.next()).await;
    match next.unwrap_or_else(|_| panic!("nothing comes: {:?}", feed.state().latest())) {
        Some(FeedItem::Item(item)) => item,
        Some(FeedItem::Gap { from, to }) => panic!("a gap from {from:?} to {to:?}"),
        Some(FeedItem::Ended(end)) => panic!("ended: {end}"),
        None => panic!("over"),
    }
}
