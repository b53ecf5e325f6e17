//! What every task of a server shares. It owns no task.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::admission::Admission;
use super::authenticate::Authenticate;
use super::builder::Settings;
use super::execution::Bounds;
use super::executions::Executions;
use super::keywatch::KeyWatch;
use super::progress::Progress;
use super::routes::Route;
use super::tasks::Tasks;
use crate::env::Env;
use crate::log::{AnyLog, LogId, Seq};
use crate::wire::{Cursor, Epoch};

/// How long the log has for an answer.
pub(crate) const LOG_BOUND: Duration = Duration::from_secs(10);

pub(crate) struct Core {
    pub(crate) log: AnyLog,
    /// The log's id when the server started; it speaks for no other.
    pub(crate) log_id: LogId,
    pub(crate) epoch: Epoch,
    pub(crate) env: Env,
    pub(crate) settings: Settings,
    pub(crate) routes: BTreeMap<&'static str, Route>,
    pub(crate) authenticate: Box<dyn Authenticate>,
    pub(crate) executions: Executions,
    pub(crate) keys: Arc<KeyWatch>,
    pub(crate) progress: Progress,
    /// The log's head when the server started: no read is answered from less.
    pub(crate) floor: Seq,
    pub(crate) stage: watch::Sender<Stage>,
    pub(crate) connections: watch::Sender<usize>,
    pub(crate) tasks: Weak<Tasks>,
    head: AtomicU64,
    count: AtomicU64,
}

/// How far a server's end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// No new connections; open ones have been told.
    Draining,
    /// Connections are being closed.
    Closing,
}

/// What a [`Core`] is made of.
pub(crate) struct Parts {
    pub(crate) log: AnyLog,
    pub(crate) log_id: LogId,
    pub(crate) head: Seq,
    pub(crate) env: Env,
    pub(crate) settings: Settings,
    pub(crate) routes: BTreeMap<&'static str, Route>,
    pub(crate) authenticate: Box<dyn Authenticate>,
    pub(crate) followers: usize,
    pub(crate) tasks: Weak<Tasks>,
}

impl Core {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            epoch: Epoch::new(parts.env.ulid()),
            log: parts.log,
            log_id: parts.log_id,
            env: parts.env,
            settings: parts.settings,
            routes: parts.routes,
            authenticate: parts.authenticate,
            executions: Executions::default(),
            keys: Arc::default(),
            progress: Progress::new(parts.followers),
            floor: parts.head,
            stage: watch::Sender::new(Stage::Serving),
            connections: watch::Sender::new(0),
            tasks: parts.tasks,
            head: AtomicU64::new(parts.head),
            count: AtomicU64::new(0),
        }
    }

    /// The newest sequence that anybody here has seen.
    pub(crate) fn head(&self) -> Seq {
        self.head.load(Ordering::Acquire)
    }

    /// Somebody has seen `seq`. A client must never be told of a head below what it was shown (R4).
    pub(crate) fn saw(&self, seq: Seq) {
        self.head.fetch_max(seq, Ordering::AcqRel);
    }

    /// The next version of a value without a log. Drawn before the value is looked at, so of two looks
    /// one after the other the later has the higher one.
    pub(crate) fn count(&self) -> Cursor {
        Cursor::Epoch { epoch: self.epoch, count: self.count.fetch_add(1, Ordering::AcqRel) + 1 }
    }

    /// How far clients are to spread their first dial after a drop.
    pub(crate) fn spread(&self) -> Duration {
        match u64::try_from(*self.connections.borrow()).unwrap_or(u64::MAX) {
            0 | 1 => Duration::ZERO,
            many => Duration::from_millis(many.saturating_mul(1_000) / u64::from(self.settings.connects_per_second)),
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        let Settings { attempt, retention, sigma, .. } = self.settings;
        Bounds { attempt, log: LOG_BOUND, admission: Admission { retention, sigma } }
    }

    /// `future`'s output, or `None` after `bound`.
    pub(crate) async fn within<F: Future>(&self, bound: Duration, future: F) -> Option<F::Output> {
        let until = self.env.instant() + bound;
        tokio::select! {
            biased; // what is done in time is done, whatever else happens at that instant
            output = future => Some(output),
            () = self.env.sleep_until(Some(until)) => None,
        }
    }
}
