//! A log whose backend is not in its type.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};

use super::{Append, Appended, Committed, Log, LogId, Prefix, Seq, Subject};
use crate::error::Error;
use crate::machine::Wall;

/// Any [`Log`], behind one type; each clone is a handle to the same log.
#[derive(Clone)]
pub struct AnyLog {
    log: Arc<dyn DynLog>,
}

impl AnyLog {
    /// A handle to `log`.
    pub fn new(log: impl Log) -> Self {
        Self { log: Arc::new(log) }
    }
}

/// [`Log`] with boxed futures; private, so that `Log` can grow.
trait DynLog: Send + Sync {
    fn dyn_durable(&self) -> bool;
    fn dyn_id(&self) -> LogId;
    fn dyn_renew_id(&self) -> BoxFuture<'_, Result<LogId, Error>>;
    fn dyn_append(&self, append: Append) -> BoxFuture<'_, Appended>;
    fn dyn_head<'a>(&'a self, subject: &'a Subject) -> BoxFuture<'a, Result<Option<Seq>, Error>>;
    fn dyn_head_of_log(&self) -> BoxFuture<'_, Result<Seq, Error>>;
    fn dyn_read<'a>(
        &'a self,
        prefix: &'a Prefix,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Committed>, Error>>;
    fn dyn_tail(&self, prefix: &Prefix, after: Seq) -> BoxStream<'static, Committed>;
    fn dyn_expire<'a>(&'a self, prefix: &'a Prefix, before: Wall) -> BoxFuture<'a, Result<u64, Error>>;
}

impl<L: Log> DynLog for L {
    fn dyn_durable(&self) -> bool {
        Log::durable(self)
    }

    fn dyn_id(&self) -> LogId {
        Log::id(self)
    }

    fn dyn_renew_id(&self) -> BoxFuture<'_, Result<LogId, Error>> {
        Log::renew_id(self).boxed()
    }

    fn dyn_append(&self, append: Append) -> BoxFuture<'_, Appended> {
        Log::append(self, append).boxed()
    }

    fn dyn_head<'a>(&'a self, subject: &'a Subject) -> BoxFuture<'a, Result<Option<Seq>, Error>> {
        Log::head(self, subject).boxed()
    }

    fn dyn_head_of_log(&self) -> BoxFuture<'_, Result<Seq, Error>> {
        Log::head_of_log(self).boxed()
    }

    fn dyn_read<'a>(
        &'a self,
        prefix: &'a Prefix,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Committed>, Error>> {
        Log::read(self, prefix, after, limit).boxed()
    }

    fn dyn_tail(&self, prefix: &Prefix, after: Seq) -> BoxStream<'static, Committed> {
        Log::tail(self, prefix, after).boxed()
    }

    fn dyn_expire<'a>(&'a self, prefix: &'a Prefix, before: Wall) -> BoxFuture<'a, Result<u64, Error>> {
        Log::expire(self, prefix, before).boxed()
    }
}

impl Log for AnyLog {
    fn durable(&self) -> bool {
        self.log.dyn_durable()
    }

    fn id(&self) -> LogId {
        self.log.dyn_id()
    }

    async fn renew_id(&self) -> Result<LogId, Error> {
        self.log.dyn_renew_id().await
    }

    async fn append(&self, append: Append) -> Appended {
        self.log.dyn_append(append).await
    }

    async fn head(&self, subject: &Subject) -> Result<Option<Seq>, Error> {
        self.log.dyn_head(subject).await
    }

    async fn head_of_log(&self) -> Result<Seq, Error> {
        self.log.dyn_head_of_log().await
    }

    async fn read(&self, prefix: &Prefix, after: Seq, limit: usize) -> Result<Vec<Committed>, Error> {
        self.log.dyn_read(prefix, after, limit).await
    }

    fn tail(&self, prefix: &Prefix, after: Seq) -> impl Stream<Item = Committed> + Send + Unpin + 'static {
        self.log.dyn_tail(prefix, after)
    }

    async fn expire(&self, prefix: &Prefix, before: Wall) -> Result<u64, Error> {
        self.log.dyn_expire(prefix, before).await
    }
}

impl fmt::Debug for AnyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyLog").field("id", &self.id()).field("durable", &self.durable()).finish_non_exhaustive()
    }
}
