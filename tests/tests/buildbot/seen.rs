//! Everything that a read shows, with its time.

use std::time::Instant;

use futures::StreamExt as _;
use outlast::profile::{Work, WorkState};
use outlast::{Cause, Known, Observable, Reading};
use tokio::task::JoinHandle;

/// Records a read.
pub struct Seen {
    work: Observable<Work>,
    task: JoinHandle<Recorded>,
}

/// What was recorded.
pub struct Recorded(Vec<(Instant, Reading<Work>)>);

/// How a read went through an outage.
pub struct Outage {
    /// When it went stale.
    pub stale: Instant,
    /// Why.
    pub cause: Cause,
    /// When it was fresh again.
    pub fresh: Instant,
    /// What it showed then.
    pub state: WorkState,
}

impl Seen {
    /// Records until the work is over.
    pub fn watch(work: Observable<Work>) -> Self {
        let mut readings = work.readings();
        let task = tokio::spawn(async move {
            let mut recorded = Vec::new();
            while let Some(reading) = readings.next().await {
                let over = reading.last().is_some_and(|work| reading.is_fresh() && work.state.is_terminal());
                recorded.push((Instant::now(), reading));
                if over {
                    break;
                }
            }
            Recorded(recorded)
        });
        Self { work, task }
    }

    /// Waits for a reading.
    pub async fn until(&self, wanted: impl Fn(&Reading<Work>) -> bool) {
        let mut readings = self.work.readings();
        while let Some(reading) = readings.next().await {
            if wanted(&reading) {
                return;
            }
        }
        panic!("the read ended");
    }

    /// Completes when the work is over.
    pub fn over(&self) -> impl Future<Output = ()> + Send + use<> {
        let over = self.work.until(|work| work.state.is_terminal());
        async move { drop(over.await) }
    }

    /// What was shown until the work was over. It never ended (R1).
    pub async fn recorded(self) -> Recorded {
        let recorded = self.task.await.unwrap();
        for (_, reading) in &recorded.0 {
            assert!(!reading.is_ended(), "{reading:?}");
        }
        recorded
    }
}

impl Recorded {
    /// The verdict.
    pub fn last(&self) -> &Known<Work> {
        self.0.last().and_then(|(_, reading)| reading.last()).unwrap()
    }

    /// When the verdict was known.
    pub fn over(&self) -> Instant {
        self.0.last().unwrap().0
    }

    /// The outage that began at `killed`, and the only one. Nothing before its end was a verdict.
    pub fn outage(&self, killed: Instant) -> Outage {
        let stale = self.0.iter().position(|(_, reading)| matches!(reading, Reading::Stale { .. })).unwrap();
        let fresh = stale + self.0[stale..].iter().position(|(_, reading)| reading.is_fresh()).unwrap();
        assert!(self.0[stale].0 >= killed, "stale before the master was killed: {:?}", self.0[stale].1);
        for (_, reading) in &self.0[stale..fresh] {
            assert!(reading.last().is_some_and(|work| work.state == WorkState::Running), "the last value stays");
        }
        for (_, reading) in &self.0[fresh..] {
            assert!(reading.is_fresh(), "stale again: {reading:?}");
        }
        Outage {
            stale: self.0[stale].0,
            cause: self.0[stale].1.cause().unwrap().clone(),
            fresh: self.0[fresh].0,
            state: self.0[fresh].1.last().unwrap().state,
        }
    }
}
