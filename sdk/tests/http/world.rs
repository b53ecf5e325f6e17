//! A network with one scripted service, an agent that reads it, and what an observer saw.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use outlast::env::Env;
use outlast::error::Phase;
use outlast::http::pacing::Limits;
use outlast::http::poll::Pace;
use outlast::http::{Agent, Exchange, Get};
use outlast::testing::{Net, Reply, Script, SimulatedClock, SimulatedExchange};
use outlast::{Cause, End, Known, Observable, Reading};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// The state of a run as the service tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) status: String,
}

impl Run {
    pub(crate) fn is_over(&self) -> bool {
        !matches!(&*self.status, "queued" | "running")
    }
}

/// An answer that says so.
pub(crate) fn run(status: &str) -> Reply {
    Reply::json(Run { status: status.into() })
}

pub(crate) struct World {
    pub(crate) net: Net,
    pub(crate) ci: Script,
    pub(crate) clock: SimulatedClock,
    pub(crate) env: Env,
    pub(crate) agent: Agent,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::spaced(Limits::default().spacing)
    }

    /// One whose budgets permit a request each `spacing`.
    pub(crate) fn spaced(spacing: Duration) -> Self {
        let net = Net::new();
        let exchange = SimulatedExchange::new(net.clone());
        Self::over(net, exchange, spacing)
    }

    /// One whose requests go through `exchange`.
    pub(crate) fn over(net: Net, exchange: impl Exchange, spacing: Duration) -> Self {
        let ci = Script::serve(&net, "ci.example");
        let clock = SimulatedClock::new();
        let env = Env::new(clock.clone(), 7);
        let limits = Limits::default().with_spacing(spacing);
        let agent = Agent::builder().exchange(exchange).network(net.clone()).env(env.clone()).limits(limits);
        let agent = agent.build().unwrap();
        Self { net, ci, clock, env, agent }
    }

    /// A read of `path` at the service, each second.
    pub(crate) fn get(&self, path: &str) -> Get {
        self.agent.get(&format!("http://ci.example{path}")).pace(Pace::every(SECOND))
    }

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        self.env.sleep_until(Some(self.env.instant() + time)).await;
    }

    /// How many requests come in that time.
    pub(crate) async fn asked_in(&self, time: Duration) -> usize {
        let before = self.ci.total();
        self.pass(time).await;
        self.ci.total() - before
    }

    /// What `future` comes to within that time.
    pub(crate) async fn within<T>(&self, bound: Duration, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased; // what is there in time counts
            output = future => Some(output),
            () = self.pass(bound) => None,
        }
    }

    /// How long `future` takes.
    pub(crate) async fn time<T>(&self, future: impl Future<Output = T>) -> (T, Duration) {
        let start = self.env.instant();
        let output = future.await;
        (output, self.env.instant().since(start))
    }

    /// Waits until it shows `status` as fresh, at most `bound`.
    pub(crate) async fn shows(&self, read: &Observable<Run>, status: &str, bound: Duration) -> Known<Run> {
        let wanted = status.to_owned();
        match read.until(move |run| run.status == wanted).within(bound).await {
            Ok(known) => known,
            Err(e) => panic!("expected {status} within {bound:?}, {e}: {:?}", e.last()),
        }
    }
}

/// Everything that an observer saw, in order.
pub(crate) struct Record<T> {
    seen: Arc<Mutex<Vec<Reading<T>>>>,
    _task: JoinSet<()>,
}

impl<T: Send + Sync + 'static> Record<T> {
    pub(crate) fn of(read: &Observable<T>) -> Self {
        let (seen, mut readings) = (Arc::new(Mutex::new(Vec::new())), read.readings());
        let mut task = JoinSet::new();
        let log = Arc::clone(&seen);
        task.spawn(async move {
            while let Some(reading) = readings.next().await {
                log.lock().unwrap().push(reading);
            }
        });
        Self { seen, _task: task }
    }

    pub(crate) fn all(&self) -> Vec<Reading<T>> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn causes(&self) -> Vec<Cause> {
        self.all().iter().filter_map(|reading| reading.cause().cloned()).collect()
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.all().iter().find_map(|reading| match reading {
            Reading::Ended { end, .. } => Some(*end),
            Reading::Loading { .. } | Reading::Fresh(_) | Reading::Stale { .. } => None,
        })
    }

    /// The values shown, fresh or not, without repetitions.
    pub(crate) fn values(&self) -> Vec<T>
    where
        T: Clone + PartialEq,
    {
        let mut values: Vec<T> =
            self.all().iter().filter_map(|reading| reading.last().map(|it| (**it).clone())).collect();
        values.dedup();
        values
    }
}

impl Record<Run> {
    pub(crate) fn statuses(&self) -> Vec<String> {
        self.values().into_iter().map(|run| run.status).collect()
    }
}

/// Waits for a reading without a fresh value, at most `bound`, whose cause is the one that `is` accepts.
pub(crate) async fn doubted<T: Send + Sync + 'static>(
    env: &Env,
    read: &Observable<T>,
    bound: Duration,
    is: impl Fn(&Cause) -> bool,
) -> Duration {
    let (start, mut readings) = (env.instant(), read.readings());
    let found = async {
        while let Some(reading) = readings.next().await {
            if reading.cause().is_some_and(&is) {
                return true;
            }
        }
        false
    };
    tokio::select! {
        biased; // what is there in time counts
        found = found => assert!(found, "the read ended"),
        () = env.sleep_until(Some(start + bound)) => panic!("no such cause within {bound:?}, {:?}", read.latest().cause()),
    }
    env.instant().since(start)
}

/// Whether it is a stall in that phase.
pub(crate) fn stalled(phase: Phase, bound: Duration) -> impl Fn(&Cause) -> bool {
    move |cause| *cause == Cause::Stalled { phase, bound }
}

/// What `code` comes to, which takes no time worth mentioning, wherever it runs: at most 20 s.
#[expect(clippy::disallowed_methods, reason = "code that takes hours is to fail, and not to hang")]
pub(crate) fn in_time<T: Send + 'static>(code: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(code()));
    receive.recv_timeout(20 * SECOND).expect("an answer within 20 s")
}
