//! What every log can do, made from what every backend gives.

#[cfg(all(test, feature = "testing"))]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};

use super::{Append, AppendId, Appended, Committed, Entry, Expect, Log, Prefix, Seq, Subject, Timestamp};
use crate::env::Env;
use crate::error::{Error, ErrorKind};

/// How many entries are asked for at a time.
const PAGE: usize = 512;

/// The first bound on the wait before an ambiguous append is repeated; it doubles up to [`LAST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(10);

/// The last bound on that wait.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// What became of an append after every doubt was removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "that there is no third answer is the point")]
pub enum Certain {
    /// Written, now or by an earlier copy of the same append.
    Done(Timestamp),
    /// Not written, nor will it be: the present heads of the subjects written to.
    Conflict(Vec<(Subject, Option<Seq>)>),
}

/// Who wrote a subject's first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a caller must decide on each of them")]
pub enum Recorded {
    /// This append; at the timestamp that every replay will name (S2).
    First(Timestamp),
    /// An earlier one with an equal body; its timestamp.
    Replay(Timestamp),
    /// An earlier one with another body (K1).
    KeyConflict,
}

/// Sugar over [`Log`], for every log.
pub trait LogExt: Log {
    /// Appends and does not answer before it knows.
    ///
    /// An ambiguous append is repeated, the identical one, with full jitter between 0 and a bound that
    /// doubles from 10 ms to 1 s, until it is done or refused; then its id is looked for in the whole
    /// subject, since others may have written after it. There is no limit: drop the future to stop, which
    /// leaves it ambiguous. Calling it again later with the same `append` is harmless and finds the first copy.
    ///
    /// # Errors
    /// - invalid, when the append breaks a rule of [`Append::validate`], or when every write says
    ///   [`Expect::Any`]: a repetition of that would be a second one;
    /// - retryable, when the log is unavailable and nothing was written;
    /// - one that [may have taken effect](Error::may_have_taken_effect), when the log cannot be read.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it ambiguous whether the append happened.
    fn append_certain(&self, env: &Env, append: Append) -> impl Future<Output = Result<Certain, Error>> + Send {
        async move {
            if !append.is_repeatable() {
                return Err(Error::invalid("append", "a write with an expectation, so that it can be repeated"));
            }
            let mut wait = Wait::new(env);
            let mut ambiguous = false;
            loop {
                match self.append(append.clone()).await {
                    Appended::Done(timestamp) => return Ok(Certain::Done(timestamp)),
                    Appended::Conflict(heads) => {
                        return Ok(match found(self, &mut wait, &append).await? {
                            Some(timestamp) => Certain::Done(timestamp),
                            None => Certain::Conflict(heads),
                        });
                    }
                    Appended::Busy if !ambiguous => return Err(Error::unavailable("the log is busy or unavailable")),
                    Appended::Busy => {}
                    Appended::Unknown => ambiguous = true,
                    Appended::Invalid(invalid) => return Err(invalid.into()),
                }
                wait.wait().await;
            }
        }
    }

    /// Writes `body` as the first entry of `subject`, unless it has one.
    ///
    /// This is [`append_certain`](Self::append_certain) with one write, read back: an equal first body is
    /// a replay, another one a conflict of keys.
    ///
    /// # Errors
    /// Those of [`append_certain`](Self::append_certain) and [`Log::read`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves it ambiguous whether the entry was written; the same call again tells.
    fn append_if_absent(
        &self,
        env: &Env,
        id: AppendId,
        subject: &Subject,
        body: Bytes,
    ) -> impl Future<Output = Result<Recorded, Error>> + Send {
        async move {
            loop {
                let append = Append::new(id, env.wall()).write(subject.clone(), Expect::Absent, body.clone());
                if let Certain::Done(timestamp) = self.append_certain(env, append).await? {
                    return Ok(Recorded::First(timestamp));
                }
                let first = self.read(&subject.itself(), 0, 1).await?;
                let Some((through, entry)) = first.iter().find_map(|c| Some((c.through, c.entries.first()?))) else {
                    // It has expired between the conflict and the look.
                    continue;
                };
                return Ok(if entry.body == body {
                    Recorded::Replay(Timestamp { log: self.id(), seq: through })
                } else {
                    Recorded::KeyConflict
                });
            }
        }
    }

    /// The timestamp of the append `id`, if it wrote to `subject` after `after`.
    ///
    /// # Errors
    /// Those of [`Log::read`].
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    fn find(
        &self,
        subject: &Subject,
        after: Seq,
        id: AppendId,
    ) -> impl Future<Output = Result<Option<Timestamp>, Error>> + Send {
        async move {
            let mut history = self.history(subject.itself(), after);
            while let Some(committed) = history.next().await.transpose()? {
                if committed.entries.iter().any(|entry| entry.append == id) {
                    return Ok(Some(Timestamp { log: self.id(), seq: committed.through }));
                }
            }
            Ok(None)
        }
    }

    /// Folds the entries of `subject`, without those below it, and says at which sequence it stands.
    ///
    /// The sequence is what the deciding append expects: [`Expect::At`] of it, or [`Expect::Absent`] for `None`.
    ///
    /// # Errors
    /// Those of [`Log::read`].
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    fn load<S, F>(
        &self,
        subject: &Subject,
        initial: S,
        mut fold: F,
    ) -> impl Future<Output = Result<(S, Option<Seq>), Error>> + Send
    where
        S: Send,
        F: FnMut(S, &Entry) -> S + Send,
    {
        self.try_load(subject, initial, move |state, entry| Ok(fold(state, entry)))
    }

    /// [`load`](Self::load) with a fold that can fail, for example because an entry does not decode.
    ///
    /// # Errors
    /// Those of [`Log::read`], and the fold's.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    fn try_load<S, F>(
        &self,
        subject: &Subject,
        initial: S,
        mut fold: F,
    ) -> impl Future<Output = Result<(S, Option<Seq>), Error>> + Send
    where
        S: Send,
        F: FnMut(S, &Entry) -> Result<S, Error> + Send,
    {
        async move {
            let (mut state, mut head) = (initial, None);
            let mut history = self.history(subject.itself(), 0);
            while let Some(committed) = history.next().await.transpose()? {
                for entry in &committed.entries {
                    state = fold(state, entry)?;
                    head = Some(entry.seq);
                }
            }
            Ok((state, head))
        }
    }

    /// The appends after `after` that touch `prefix`, read page by page up to the present end, where it ends.
    ///
    /// An item is an error when the log could not be read; the next one tries the same page again.
    ///
    /// # Cancel safety
    /// Dropping a pending `next()` loses nothing.
    fn history(&self, prefix: Prefix, after: Seq) -> impl Stream<Item = Result<Committed, Error>> + Send + Unpin {
        let history = History { prefix, after, ready: VecDeque::new(), ended: false };
        stream::unfold(history, move |mut history| async move {
            while history.ready.is_empty() && !history.ended {
                match self.read(&history.prefix, history.after, PAGE).await {
                    Ok(page) => history.take(page),
                    Err(e) => return Some((Err(e), history)),
                }
            }
            history.ready.pop_front().map(|committed| (Ok(committed), history))
        })
        .boxed()
    }
}

impl<L: Log + ?Sized> LogExt for L {}

struct History {
    prefix: Prefix,
    after: Seq,
    ready: VecDeque<Committed>,
    ended: bool,
}

impl History {
    fn take(&mut self, page: Vec<Committed>) {
        let entries: usize = page.iter().map(|committed| committed.entries.len()).sum();
        self.ended = entries < PAGE;
        if let Some(last) = page.last() {
            self.after = last.through;
        }
        self.ready = page.into();
    }
}

/// Full jitter in [0, bound], the bound doubling.
pub(super) struct Wait<'a> {
    env: &'a Env,
    bound: Duration,
}

impl<'a> Wait<'a> {
    pub(super) const fn new(env: &'a Env) -> Self {
        Self { env, bound: FIRST_WAIT }
    }

    pub(super) async fn wait(&mut self) {
        let now = self.env.now();
        self.env.sleep_until(Some(now.instant + now.jitter(self.bound))).await;
        self.bound = (self.bound * 2).min(LAST_WAIT);
    }
}

/// Looks for `append` where it must be if it was written: behind its first expectation.
async fn found<L: Log + ?Sized>(log: &L, wait: &mut Wait<'_>, append: &Append) -> Result<Option<Timestamp>, Error> {
    let Some((subject, after)) = append.writes.iter().find_map(|write| match write.expect {
        Expect::Absent => Some((&write.subject, 0)),
        Expect::At(seq) => Some((&write.subject, seq)),
        Expect::Any => None,
    }) else {
        return Ok(None);
    };
    loop {
        match log.find(subject, after, append.id).await {
            Ok(found) => return Ok(found),
            Err(e) if e.is_retryable() => wait.wait().await,
            Err(e) => {
                return Err(
                    Error::new(ErrorKind::Indeterminate, "an append whose outcome cannot be read").with_source(e)
                );
            }
        }
    }
}
