//! A log that fails on command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use futures::Stream;
use outlast::Error;
use outlast::log::{Append, Appended, Committed, Log, LogId, MemoryLog, Prefix, Seq, Subject};
use outlast::machine::Wall;

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    None,
    /// Reads fail, appends are busy.
    Down,
    /// The next append happens and its answer is lost.
    Ambiguous,
    /// Nothing is ever answered.
    Hang,
}

#[derive(Clone)]
pub(crate) struct Flaky {
    log: Arc<MemoryLog>,
    fault: Arc<AtomicU8>,
}

impl Flaky {
    pub(crate) fn new(log: MemoryLog) -> Self {
        Self { log: Arc::new(log), fault: Arc::default() }
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.fault.store(fault as u8, Ordering::SeqCst);
    }

    async fn read_fault(&self) -> Result<(), Error> {
        match self.fault.load(Ordering::SeqCst) {
            f if f == Fault::Down as u8 => Err(Error::unavailable("the log is down")),
            f if f == Fault::Hang as u8 => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

impl Log for Flaky {
    fn durable(&self) -> bool {
        self.log.durable()
    }

    fn id(&self) -> LogId {
        self.log.id()
    }

    async fn renew_id(&self) -> Result<LogId, Error> {
        self.log.renew_id().await
    }

    async fn append(&self, append: Append) -> Appended {
        match self.fault.load(Ordering::SeqCst) {
            f if f == Fault::Down as u8 => Appended::Busy,
            f if f == Fault::Hang as u8 => std::future::pending().await,
            f if f == Fault::Ambiguous as u8 => {
                self.set(Fault::None);
                self.log.append(append).await;
                Appended::Unknown
            }
            _ => self.log.append(append).await,
        }
    }

    async fn head(&self, subject: &Subject) -> Result<Option<Seq>, Error> {
        self.read_fault().await?;
        self.log.head(subject).await
    }

    async fn head_of_log(&self) -> Result<Seq, Error> {
        self.read_fault().await?;
        self.log.head_of_log().await
    }

    async fn read(&self, prefix: &Prefix, after: Seq, limit: usize) -> Result<Vec<Committed>, Error> {
        self.read_fault().await?;
        self.log.read(prefix, after, limit).await
    }

    fn tail(&self, prefix: &Prefix, after: Seq) -> impl Stream<Item = Committed> + Send + Unpin + 'static {
        self.log.tail(prefix, after)
    }

    async fn expire(&self, prefix: &Prefix, before: Wall) -> Result<u64, Error> {
        self.log.expire(prefix, before).await
    }
}
