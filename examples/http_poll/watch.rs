//! What a user of the SDK writes to watch a service.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _, pending};
use outlast::http::poll::Pace;
use outlast::observe::{self, Publisher};
use outlast::profile::Profile;
use outlast::{Cause, End, Error, Known, Observable, Reading, WaitError};
use serde_json::value::RawValue;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::cli::{Options, UsageError, What};
use super::ending::Ending;
use super::judge::Judge;
use super::predicate::Verdict;
use super::report::Report;
use super::request;
use super::seen::{Seen, State};
use super::token;

/// Watches until the work is over, the time is, or a signal comes.
///
/// # Errors
/// Where nothing could be begun.
pub(crate) async fn watch(options: Options) -> Result<Ending, UsageError> {
    let Options { url, what, timeout, give_up, interval, heartbeat, exit_when_parked, token, way, json } = options;
    let mut get = request::get(&url, way.ca_file.as_deref(), way.proxy)?;
    for text in &way.headers {
        let (name, value) = request::header(text)?;
        get = get.header(name, value);
    }
    if let Some(token) = token {
        get = get.credential(token::source(token)?);
    }
    if let Some(outage) = give_up {
        get = get.give_up_after(outage);
    }
    if let Some(interval) = interval {
        get = get.pace(Pace::every(interval));
    }
    let watched = match what {
        What::Expressions { done, ok } => {
            let judge = Judge::new(done, ok).await?;
            let answers = get.observe().map_err(|e| request::refused(&e))?;
            let (publisher, seen) = observe::channel();
            Watched { seen, over: judge_each(answers, judge, publisher, timeout).map(Some).boxed() }
        }
        What::Profile(name) => {
            let seen = profile(&name)?.watch(get).map_err(|e| request::refused(&e))?.map(Seen::of_work);
            Watched { over: time_over(&seen, timeout).map(|_| None).boxed(), seen }
        }
    };
    let ended = move |seen: &Seen| seen.state.is_end() || (exit_when_parked && seen.state == State::Parked);
    follow(watched, ended, Report::new(json), heartbeat).await
}

/// A read whose answers are judged, and how long it is watched.
struct Watched {
    seen: Observable<Seen>,
    /// To be polled all the while. Completes when the time is over, with what keeps the read as it was then.
    over: BoxFuture<'static, Option<Publisher<Seen>>>,
}

/// Publishes each answer as what the expressions say of it, and all else as it is, until the time is over.
async fn judge_each(
    answers: Observable<Box<RawValue>>,
    judge: Judge,
    publisher: Publisher<Seen>,
    timeout: Option<Duration>,
) -> Publisher<Seen> {
    let mut readings = answers.readings();
    let (mut over, mut late) = (time_over(&answers, timeout), pin!(after(timeout)));
    let (mut judged, mut again) = (None::<String>, false);
    loop {
        let reading = tokio::select! {
            biased; // an answer that came before the service forbade more is judged all the same
            Some(reading) = readings.next() => reading,
            cause = &mut over => {
                cause.into_iter().for_each(|cause| publisher.stale(cause));
                return publisher;
            }
        };
        let asked = |answer: &RawValue| judged.as_deref() == Some(answer.get());
        let unasked = reading.last().filter(|answer| !asked(answer) || (again && reading.is_fresh()));
        if let Some(answer) = unasked {
            let verdict = tokio::select! {
                verdict = judge.judge(answer) => verdict,
                () = &mut late => return publisher,
            };
            // What came of the machine's state may be otherwise at the next look, though the answer is the same.
            again = verdict.is_err();
            publisher.fresh(Seen::of_verdict(verdict.unwrap_or_else(Verdict::Unreadable), answer));
            judged = Some(answer.get().to_owned());
        }
        match reading {
            Reading::Fresh(_) => publisher.confirm(),
            Reading::Loading { cause: None, .. } => {}
            Reading::Loading { cause: Some(cause), .. } | Reading::Stale { cause, .. } => publisher.stale(cause),
            Reading::Ended { end, .. } => publisher.end(end),
        }
    }
}

/// Completes once `timeout` has passed, or the service permits no further look before that (R9), with what is in the way.
fn time_over<T: Send + Sync + 'static>(
    read: &Observable<T>,
    timeout: Option<Duration>,
) -> BoxFuture<'static, Option<Cause>> {
    let Some(timeout) = timeout else { return pending().boxed() };
    let wait = read.until(|_| false).within(timeout);
    async move {
        match wait.await {
            Err(e) if e.is_still_pending() => e.cause().cloned(),
            // What else ends a wait, the read says too.
            Ok(_) | Err(_) => pending().await,
        }
    }
    .boxed()
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => pending().await,
    }
}

/// A shipped profile, or the one in a file.
fn profile(name: &str) -> Result<Profile, UsageError> {
    let text = match Profile::text(name) {
        Some(_) => return Profile::named(name).map_err(|e| about("--profile", &e)),
        None => std::fs::read_to_string(name),
    };
    let text = text.map_err(|e| {
        let shipped = Profile::names().collect::<Vec<_>>().join(", ");
        UsageError::new("--profile", format_args!("expected one of {shipped}, or a file, got `{name}`: {e}"))
    })?;
    Profile::parse(&text).map_err(|e| UsageError::new("--profile", format_args!("{name}: {e}")))
}

/// The SDK's own name of what is wrong gives way to that of the flag.
pub(crate) fn about(flag: &str, e: &Error) -> UsageError {
    let said = e.to_string();
    match said.split_once(": ") {
        Some((_, expected)) if e.is_invalid() => UsageError::new(flag, expected),
        Some(_) | None => UsageError::new(flag, said),
    }
}

/// Prints what changes until there is an end.
async fn follow(
    watched: Watched,
    ended: impl FnMut(&Seen) -> bool + Send + 'static,
    mut report: Report,
    heartbeat: Duration,
) -> Result<Ending, UsageError> {
    let unavailable = |e| UsageError::new("signals", format_args!("expected to hear of them: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(unavailable)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(unavailable)?;
    let mut hangup = hears_of_hangups().then(|| signal(SignalKind::hangup())).transpose().map_err(unavailable)?;
    let mut heartbeat = interval_at(Instant::now() + heartbeat, heartbeat);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let Watched { seen, mut over } = watched;
    let mut readings = seen.readings();
    let mut wait = pin!(seen.until(ended));
    let end = loop {
        tokio::select! {
            biased; // what changed is printed before what follows from it
            Some(reading) = readings.next() => report.reading(&reading),
            result = &mut wait => break Over::Read(result),
            kept = &mut over => break Over::Time(kept),
            _ = interrupt.recv() => break Over::Signal(2),
            _ = terminate.recv() => break Over::Signal(15),
            () = heard(&mut hangup) => break Over::Signal(1),
            _ = heartbeat.tick() => report.heartbeat(&seen.latest()),
        }
    };
    // What came in the same moment.
    report.reading(&seen.latest());
    let (ending, kept) = match end {
        Over::Read(result) => (ending_of(result, &report), None),
        Over::Time(kept) => (out_of_time(&report), kept),
        Over::Signal(number) => (Ending::Signaled(number), None),
    };
    report.end(ending, &seen.latest());
    drop(kept);
    Ok(ending)
}

/// Whether the end of its terminal is to end it: one that `nohup` has started goes on. Where that is not known, the system's
/// own way remains.
fn hears_of_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 0)
}

async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => pending().await,
    }
}

/// What the watch ended with.
enum Over {
    /// A verdict, or the end of the read.
    Read(Result<Known<Seen>, WaitError<Seen>>),
    /// The end of its time; the read stays as it is while this is kept.
    Time(Option<Publisher<Seen>>),
    /// A signal.
    Signal(u8),
}

fn ending_of(result: Result<Known<Seen>, WaitError<Seen>>, report: &Report) -> Ending {
    match result {
        Ok(seen) => match seen.state {
            State::Succeeded => Ending::Succeeded,
            State::Failed => Ending::Failed,
            State::Canceled => Ending::Canceled,
            State::Parked => Ending::Parked,
            State::Running | State::Unreadable(_) => Ending::StillPending,
        },
        Err(e) => match e.end() {
            Some(End::Gone) => Ending::Gone,
            Some(End::Denied) => Ending::Denied,
            // The give-up limit counts as the caller's close: the work goes on.
            Some(End::Closed) | None => out_of_time(report),
        },
    }
}

fn out_of_time(report: &Report) -> Ending {
    if report.never_read() { Ending::Unreadable } else { Ending::StillPending }
}
