//! What a user of the SDK writes to watch a service.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use outlast::credential;
use outlast::http::poll::Pace;
use outlast::http::{self, Get};
use outlast::profile::Profile;
use outlast::{End, Error, Observable, WaitError};
use serde_json::value::RawValue;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, interval_at};

use super::cli::{Form, Options, Source, Token, What};
use super::ending::Ending;
use super::report::Report;
use super::seen::{Seen, State};

/// How often it says that it is still there.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// Watches until the work is over, the time is, or a signal comes.
pub(crate) async fn watch(options: Options) -> Result<Ending, Error> {
    let Options { url, what, timeout, give_up, interval, exit_when_parked, token, json } = options;
    let mut get = http::get(&url);
    if let Some(token) = token {
        get = with_token(get, token)?;
    }
    if let Some(outage) = give_up {
        get = get.give_up_after(outage);
    }
    if let Some(interval) = interval {
        get = get.pace(Pace::every(interval));
    }
    let seen = observe(get, what)?;
    let ended = move |seen: &Seen| seen.state.is_end() || (exit_when_parked && seen.state == State::Parked);
    let mut wait = seen.until(ended);
    if let Some(timeout) = timeout {
        wait = wait.within(timeout);
    }
    follow(&seen, wait, Report::new(json)).await
}

/// The read, judged.
fn observe(get: Get, what: What) -> Result<Observable<Seen>, Error> {
    match what {
        What::Conditions(conditions) => Ok(get.observe::<Box<RawValue>>()?.map(move |body| conditions.judge(body))),
        What::Profile(name) => Ok(profile(&name)?.watch(get)?.map(Seen::of_work)),
    }
}

/// A shipped profile, or the one in a file.
fn profile(name: &str) -> Result<Profile, Error> {
    if Profile::names().any(|shipped| shipped == name) {
        return Profile::named(name);
    }
    let shipped = Profile::names().collect::<Vec<_>>().join(", ");
    let expected = format!("one of {shipped}, or a file");
    let text = std::fs::read_to_string(name).map_err(|e| Error::invalid("--profile", expected).with_source(e))?;
    Profile::parse(&text)
}

fn with_token(get: Get, token: Token) -> Result<Get, Error> {
    let source = match token.source {
        Source::Variable(name) => credential::variable(name),
        Source::File(path) => credential::file(path),
        Source::Command(line) => credential::command("sh", ["-c", &line]),
    };
    Ok(get.credential(match token.form {
        Form::Bearer => source.as_bearer(),
        Form::Header(name) => source.as_header(&name)?,
        Form::Basic(user) => source.as_basic(&user)?,
    }))
}

/// Prints what changes until the wait is over.
async fn follow(
    seen: &Observable<Seen>,
    wait: impl Future<Output = Result<outlast::Known<Seen>, WaitError<Seen>>>,
    mut report: Report,
) -> Result<Ending, Error> {
    let unavailable = |e| Error::unavailable("signals cannot be had").with_source(e);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(unavailable)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(unavailable)?;
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    let mut readings = seen.readings();
    let mut wait = pin!(wait);
    let ending = loop {
        tokio::select! {
            biased; // what changed is printed before what follows from it
            Some(reading) = readings.next() => report.reading(&reading),
            result = &mut wait => break ending_of(result, &report),
            _ = interrupt.recv() => break Ending::Signaled(2),
            _ = terminate.recv() => break Ending::Signaled(15),
            _ = heartbeat.tick() => report.heartbeat(&seen.latest()),
        }
    };
    report.end(ending, &seen.latest());
    Ok(ending)
}

fn ending_of(result: Result<outlast::Known<Seen>, WaitError<Seen>>, report: &Report) -> Ending {
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
            Some(End::Closed) | None if report.never_read() => Ending::Unreadable,
            // The give-up limit counts as the caller's close: the work goes on.
            Some(End::Closed) | None => Ending::StillPending,
        },
    }
}
