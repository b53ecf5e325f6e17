//! A log that fails on purpose.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use tokio::sync::watch;

use super::{Append, Appended, Committed, Log, LogId, Prefix, Seq, Subject};
use crate::env::Env;
use crate::error::Error;
use crate::machine::Wall;

/// What goes wrong with one append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing does: for scripts in which a later append fails.
    Nothing,
    /// It is answered [`Appended::Busy`] and not written.
    Before,
    /// It is written and answered [`Appended::Unknown`].
    After,
    /// It is not written and answered [`Appended::Unknown`].
    Lost,
    /// It is answered [`Appended::Unknown`] and written only when so many more appends have been asked for,
    /// before the last of them; 0 is taken for 1.
    Late(usize),
    /// It is done after that time, on tokio's clock.
    Delayed(Duration),
}

/// How often what goes wrong, as probabilities between 0 and 1; nothing by default.
///
/// The faults of an append exclude one another, so `before`, `after` and `lost` together are at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "tests write it as a literal")]
pub struct Odds {
    /// Of [`Fault::Before`].
    pub before: f64,
    /// Of [`Fault::After`].
    pub after: f64,
    /// Of [`Fault::Lost`].
    pub lost: f64,
    /// Of a read, of `head` or of an expiry that is answered with a retryable error.
    pub read: f64,
    /// The longest delay of each request, on tokio's clock; uniform between 0 and it.
    pub delay: Duration,
}

/// A log around another that fails as scripted, else as the dice fall, else not at all.
///
/// Each clone is a handle to the same log with the same faults.
pub struct Faulty<L> {
    shared: Arc<Shared<L>>,
}

struct Shared<L> {
    log: L,
    env: Env,
    down: watch::Sender<bool>,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    script: VecDeque<Fault>,
    odds: Odds,
    /// Appends still to be written, each with how many more are to be asked for before.
    late: Vec<(usize, Append)>,
}

impl<L: Log> Faulty<L> {
    /// `log`, without a fault yet; `env` draws and waits.
    pub fn new(log: L, env: &Env) -> Self {
        let (down, plan) = (watch::Sender::new(false), Mutex::default());
        Self { shared: Arc::new(Shared { log, env: env.clone(), down, plan }) }
    }

    /// Sets how often what goes wrong.
    #[must_use]
    pub fn with_odds(self, odds: Odds) -> Self {
        self.shared.plan().odds = odds;
        self
    }

    /// Says what goes wrong with the next appends, one after the other, after those scripted before.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.plan().script.extend(faults);
    }

    /// How many scripted faults have not happened yet.
    pub fn scripted(&self) -> usize {
        self.shared.plan().script.len()
    }

    /// Makes the log unavailable, or available again (S4).
    ///
    /// While it is unavailable appends are [`Appended::Busy`], reads fail retryably and tails wait.
    pub fn set_unavailable(&self, unavailable: bool) {
        self.shared.down.send_replace(unavailable);
    }

    /// The log inside, which does not fail.
    pub fn inner(&self) -> &L {
        &self.shared.log
    }
}

impl<L: Log> Shared<L> {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A draw in [0, 1).
    fn dice(&self) -> f64 {
        (self.env.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next_fault(&self) -> Fault {
        let mut plan = self.plan();
        if let Some(fault) = plan.script.pop_front() {
            return fault;
        }
        let Odds { before, after, lost, .. } = plan.odds;
        match self.dice() {
            dice if dice < before => Fault::Before,
            dice if dice < before + after => Fault::After,
            dice if dice < before + after + lost => Fault::Lost,
            _ => Fault::Nothing,
        }
    }

    async fn delay(&self) {
        let bound = self.plan().odds.delay;
        if !bound.is_zero() {
            let now = self.env.now();
            self.env.sleep_until(Some(now.instant + now.jitter(bound))).await;
        }
    }

    /// Those late appends whose time has come.
    fn due(&self) -> Vec<Append> {
        let mut plan = self.plan();
        let mut due = Vec::new();
        for (left, append) in std::mem::take(&mut plan.late) {
            if left <= 1 {
                due.push(append);
            } else {
                plan.late.push((left - 1, append));
            }
        }
        due
    }

    async fn look(&self) -> Result<(), Error> {
        self.delay().await;
        if *self.down.borrow() {
            return Err(Error::unavailable("the log is made unavailable"));
        }
        let odds = self.plan().odds.read;
        if self.dice() < odds {
            return Err(Error::unavailable("a read fails on purpose"));
        }
        Ok(())
    }
}

impl<L: Log> Log for Faulty<L> {
    fn durable(&self) -> bool {
        self.shared.log.durable()
    }

    fn id(&self) -> LogId {
        self.shared.log.id()
    }

    async fn renew_id(&self) -> Result<LogId, Error> {
        self.shared.log.renew_id().await
    }

    async fn append(&self, append: Append) -> Appended {
        let shared = &self.shared;
        shared.delay().await;
        if *shared.down.borrow() {
            return Appended::Busy;
        }
        for late in shared.due() {
            shared.log.append(late).await;
        }
        match shared.next_fault() {
            Fault::Nothing => shared.log.append(append).await,
            Fault::Before => Appended::Busy,
            Fault::Lost => Appended::Unknown,
            Fault::After => {
                shared.log.append(append).await;
                Appended::Unknown
            }
            Fault::Late(left) => {
                shared.plan().late.push((left, append));
                Appended::Unknown
            }
            Fault::Delayed(delay) => {
                shared.env.sleep_until(Some(shared.env.instant() + delay)).await;
                shared.log.append(append).await
            }
        }
    }

    async fn head(&self, subject: &Subject) -> Result<Option<Seq>, Error> {
        self.shared.look().await?;
        self.shared.log.head(subject).await
    }

    async fn head_of_log(&self) -> Result<Seq, Error> {
        self.shared.look().await?;
        self.shared.log.head_of_log().await
    }

    async fn read(&self, prefix: &Prefix, after: Seq, limit: usize) -> Result<Vec<Committed>, Error> {
        self.shared.look().await?;
        self.shared.log.read(prefix, after, limit).await
    }

    fn tail(&self, prefix: &Prefix, after: Seq) -> impl Stream<Item = Committed> + Send + Unpin + 'static {
        let (tail, down) = (self.shared.log.tail(prefix, after), self.shared.down.subscribe());
        // The owner goes along: without it the switch could no longer be thrown.
        let tail = (tail, down, Arc::clone(&self.shared));
        stream::unfold(tail, |(mut tail, mut down, shared)| async move {
            loop {
                tokio::select! {
                    // An outage that has begun stops what has not been given yet.
                    biased;
                    open = async { down.wait_for(|down| *down).await.is_ok() } => if !open { return None },
                    committed = tail.next() => return committed.map(|committed| (committed, (tail, down, shared))),
                }
                down.wait_for(|down| !down).await.ok()?;
            }
        })
        .boxed()
    }

    async fn expire(&self, prefix: &Prefix, before: Wall) -> Result<u64, Error> {
        self.shared.look().await?;
        self.shared.log.expire(prefix, before).await
    }
}

impl<L> Clone for Faulty<L> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<L: fmt::Debug> fmt::Debug for Faulty<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("log", &self.shared.log).finish_non_exhaustive()
    }
}
