//! The laws of [`Log`] as tests: [`log_conformance!`](crate::log_conformance) expands to one test for each.
//!
//! The laws hold for a log that fails now and then too: a retryable answer is asked again, an ambiguous
//! append is cleared up as [`LogExt::append_certain`] does it. So a backend can be tested inside a
//! [`Faulty`](super::Faulty) wrapper.
#![expect(clippy::missing_panics_doc, reason = "a law that is broken panics: that is its whole interface")]

mod appends;
mod identity;
mod reads;
mod removal;
mod tails;

pub use appends::*;
pub use identity::*;
pub use reads::*;
pub use removal::*;
pub use tails::*;

use std::time::Duration;

use futures::future::{Either, select};

use super::{Append, AppendId, Appended, Certain, Committed, Expect, Log, LogExt, Prefix, Seq, Subject, Timestamp};
use crate::env::Env;
use crate::error::Error;
use crate::machine::Wall;

/// Expands to one `#[tokio::test]` for each law of [`Log`](crate::log::Log).
///
/// The argument is an expression for a closure that opens the history under test: without arguments, giving a future
/// of a log. Each test evaluates the expression once, which must make a history that is empty, and calls the closure
/// once or twice: both calls must give handles to the same history, as two processes would have it. The crate that
/// uses the macro needs tokio with the features `macros` and `rt`; with `paused:` before the expression, for a log
/// without sockets, time is simulated, which also needs `test-util`.
///
/// ```
/// mod memory {
///     use outlast::log::MemoryLog;
///
///     outlast::log_conformance!(paused: {
///         let log = MemoryLog::default();
///         move || std::future::ready(log.clone())
///     });
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! log_conformance {
    (paused: $open:expr) => {
        $crate::__log_conformance!([tokio::test(start_paused = true)] $open);
    };
    ($open:expr) => {
        $crate::__log_conformance!([tokio::test] $open);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_conformance {
    ($test:tt $open:expr) => {
        $crate::__log_conformance!(@each $test ($open)
            an_append_is_all_or_nothing
            sequences_are_consecutive_and_the_last_is_the_timestamp
            expectations_are_kept
            a_conflict_names_the_heads
            a_later_write_to_a_subject_follows_its_first
            a_repeated_append_is_found_and_not_written_again
            one_of_concurrent_appenders_wins
            concurrent_appends_take_turns
            an_invalid_append_is_refused
            bodies_are_any_bytes
            an_entry_keeps_what_was_appended
            readers_see_whole_appends
            pages_give_everything_once
            a_prefix_matches_whole_tokens
            a_subject_is_read_without_those_below
            odd_tokens_are_kept_apart
            a_tail_gives_history_and_then_what_is_new
            a_tail_tells_how_far_it_has_come
            a_tail_sees_the_appends_of_another_handle
            a_dropped_wait_for_a_tail_loses_nothing
            expiry_removes_whole_subjects_only
            expiry_stays_under_its_prefix
            an_expired_subject_is_absent
            sequences_are_never_reused
            readers_see_the_rest_of_an_append_after_expiry
            the_id_names_one_history
            a_renewed_id_keeps_the_history
        );
    };
    (@each [$test:meta] $open:tt $($law:ident)*) => {
        $(
            #[$test]
            async fn $law() {
                $crate::log::conformance::within($crate::log::conformance::$law($open)).await;
            }
        )*
    };
}

/// How long a law may take, on tokio's clock.
const BOUND: Duration = Duration::from_secs(60);

/// Waits for `law`, a minute at most.
pub async fn within<T>(law: impl Future<Output = T>) -> T {
    let env = Env::system();
    let bound = std::pin::pin!(env.sleep_until(Some(env.instant() + BOUND)));
    match select(std::pin::pin!(law), bound).await {
        Either::Left((kept, _)) => kept,
        Either::Right(_) => panic!("the law was not kept within {BOUND:?}"),
    }
}

/// A handle to the log under test, with what the laws do over and over.
struct Tested<L> {
    log: L,
    env: Env,
}

impl<L: Log> Tested<L> {
    async fn open<F, Fut>(open: &F) -> Self
    where
        F: Fn() -> Fut,
        Fut: Future<Output = L>,
    {
        Self { log: open().await, env: Env::system() }
    }

    fn make(&self, writes: &[(&Subject, Expect, &str)]) -> Append {
        let append = Append::new(AppendId::new(self.env.ulid()), Wall::from_millis(1_000));
        writes.iter().fold(append, |append, (subject, expect, body)| {
            append.write((*subject).clone(), *expect, body.as_bytes().to_vec())
        })
    }

    /// Appends until there is no doubt.
    async fn append(&self, append: &Append) -> Certain {
        loop {
            if append.is_repeatable() {
                match self.log.append_certain(&self.env, append.clone()).await {
                    Ok(certain) => return certain,
                    Err(e) if e.is_retryable() => {}
                    Err(e) => panic!("append: {e}"),
                }
            } else {
                match self.log.append(append.clone()).await {
                    Appended::Done(timestamp) => return Certain::Done(timestamp),
                    Appended::Conflict(heads) => return Certain::Conflict(heads),
                    Appended::Busy => {}
                    Appended::Invalid(invalid) => panic!("append: {invalid}"),
                    // Nothing is in flight any more, so looking decides.
                    Appended::Unknown => {
                        let subject = &append.writes[0].subject;
                        if let Some(timestamp) = retry(async || self.log.find(subject, 0, append.id).await).await {
                            return Certain::Done(timestamp);
                        }
                    }
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Appends what must be written.
    async fn done(&self, writes: &[(&Subject, Expect, &str)]) -> Timestamp {
        match self.append(&self.make(writes)).await {
            Certain::Done(timestamp) => timestamp,
            Certain::Conflict(heads) => panic!("expected Done, got Conflict({heads:?})"),
        }
    }

    /// Appends what must be refused.
    async fn conflict(&self, writes: &[(&Subject, Expect, &str)]) -> Vec<(Subject, Option<Seq>)> {
        match self.append(&self.make(writes)).await {
            Certain::Conflict(heads) => heads,
            Certain::Done(timestamp) => panic!("expected Conflict, got Done({timestamp})"),
        }
    }

    async fn head(&self, subject: &Subject) -> Option<Seq> {
        retry(async || self.log.head(subject).await).await
    }

    async fn head_of_log(&self) -> Seq {
        retry(async || self.log.head_of_log().await).await
    }

    async fn read(&self, prefix: &Prefix, after: Seq, limit: usize) -> Vec<Committed> {
        retry(async || self.log.read(prefix, after, limit).await).await
    }

    async fn expire(&self, prefix: &Prefix, before: Wall) -> u64 {
        retry(async || self.log.expire(prefix, before).await).await
    }

    /// The bodies of everything under `prefix`, in order.
    async fn bodies(&self, prefix: &Prefix) -> Vec<String> {
        bodies(&self.read(prefix, 0, usize::MAX).await)
    }
}

async fn retry<T>(ask: impl AsyncFn() -> Result<T, Error>) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(e) if e.is_retryable() => tokio::task::yield_now().await,
            Err(e) => panic!("{e}"),
        }
    }
}

fn bodies(page: &[Committed]) -> Vec<String> {
    page.iter().flat_map(|c| &c.entries).map(|entry| String::from_utf8_lossy(&entry.body).into_owned()).collect()
}

fn subject(text: &str) -> Subject {
    Subject::of(text.split('/'))
}

fn prefix(text: &str) -> Prefix {
    subject(text).prefix()
}
