//! What is printed: a line per change, a heartbeat, and at the end the last reading with its age and cause.

use std::io::Write as _;
use std::time::Duration;

use outlast::{Cause, End, Reading};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ending::Ending;
use super::seen::{Seen, State};
use super::text::{harmless, harmless_json};

/// How many characters of a body people see.
const BODY: usize = 2_000;

/// How many bytes of a body a program sees whole.
const WHOLE_BODY: usize = 64 * 1024;

/// How many characters of whatever else somebody else has written are printed.
const WORDS: usize = 300;

/// Prints.
pub(crate) struct Report {
    json: bool,
    start: Instant,
    said: Option<String>,
    confirmed: Option<Instant>,
    /// Why the last reading was not fresh; an end does not say.
    cause: Option<String>,
    readable: bool,
    unreadable: bool,
}

impl Report {
    /// For people, or one JSON object per line.
    pub(crate) fn new(json: bool) -> Self {
        let start = Instant::now();
        Self { json, start, said: None, confirmed: None, cause: None, readable: false, unreadable: false }
    }

    /// Whether there were answers, and none that could be read.
    pub(crate) fn never_read(&self) -> bool {
        self.unreadable && !self.readable
    }

    /// A reading. It is printed if it says something else than the last.
    pub(crate) fn reading(&mut self, reading: &Reading<Seen>) {
        if reading.is_fresh() {
            self.confirmed = Some(Instant::now());
        }
        match reading.last().map(|seen| &seen.state) {
            Some(State::Unreadable(_)) => self.unreadable = true,
            Some(_) => self.readable = true,
            None => self.unreadable |= matches!(reading.cause(), Some(Cause::Undecodable { .. })),
        }
        if !reading.is_ended() {
            self.cause = cause(reading);
        }
        let words = words(reading);
        if self.said.as_ref() != Some(&words) {
            self.print("reading", &words, reading, None);
            self.said = Some(words);
        }
    }

    /// It still waits.
    pub(crate) fn heartbeat(&self, reading: &Reading<Seen>) {
        self.print("heartbeat", &format!("still waiting: {}", words(reading)), reading, None);
    }

    /// The end: how it ended, the last reading, its age, its cause.
    pub(crate) fn end(&self, ending: Ending, reading: &Reading<Seen>) {
        if self.json {
            return self.print("end", "", reading, Some(ending));
        }
        self.line(&format!("ended: {}", ending.words()));
        match reading.last() {
            Some(seen) => {
                let age = seconds(self.age().unwrap_or_default());
                self.line(&format!("last reading, confirmed {age} ago: {}", harmless(&seen.body, BODY)));
            }
            None => self.line("last reading: none"),
        }
        if let Some(cause) = cause(reading).as_ref().or(self.cause.as_ref()) {
            self.line(&format!("cause: {cause}"));
        }
    }

    /// How long ago the service has said what the last reading shows.
    fn age(&self) -> Option<Duration> {
        self.confirmed.map(|at| at.elapsed())
    }

    fn print(&self, event: &str, words: &str, reading: &Reading<Seen>, ending: Option<Ending>) {
        if !self.json {
            return self.line(words);
        }
        let seen = reading.last();
        let mut line = json!({
            "event": event,
            "after_ms": millis(self.start.elapsed()),
            "reading": kind(reading),
            "state": seen.map(|seen| seen.state.word()),
            "status": seen.and_then(|seen| seen.word.as_deref()).map(|word| harmless(word, WORDS)),
            "cause": cause(reading).or_else(|| self.cause.clone().filter(|_| reading.is_ended())),
        });
        if let (Some(ending), Some(fields)) = (ending, line.as_object_mut()) {
            fields.insert("ending".into(), ending.words().into());
            fields.insert("exit_code".into(), ending.exit_code().into());
            fields.insert("age_ms".into(), seen.and(self.age()).map(millis).into());
            fields.insert("body_bytes".into(), seen.map(|seen| seen.body.len()).into());
            fields.insert("body".into(), seen.map_or(Value::Null, |seen| body(seen)));
        }
        put(&harmless_json(&line.to_string()));
    }

    fn line(&self, words: &str) {
        put(&format!("{:>8}  {words}", seconds(self.start.elapsed())));
    }
}

/// A closed pipe is no reason to end: the exit code is what counts.
fn put(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The body for a program: null where it is too long, or nested too deep.
fn body(seen: &Seen) -> Value {
    let whole = Some(&seen.body).filter(|body| body.len() <= WHOLE_BODY);
    whole.and_then(|body| serde_json::from_str(body).ok()).unwrap_or(Value::Null)
}

fn kind(reading: &Reading<Seen>) -> &'static str {
    match reading {
        Reading::Loading { .. } => "loading",
        Reading::Fresh(_) => "fresh",
        Reading::Stale { .. } => "stale",
        Reading::Ended { .. } => "ended",
    }
}

/// Why there is no fresh reading, or none that says yes or no.
fn cause(reading: &Reading<Seen>) -> Option<String> {
    let cause = reading.cause().map(|cause| harmless(&cause.to_string(), WORDS));
    cause.or_else(|| match &reading.last()?.state {
        State::Unreadable(why) => Some(harmless(why, WORDS)),
        State::Running | State::Parked | State::Succeeded | State::Failed | State::Canceled => None,
    })
}

fn words(reading: &Reading<Seen>) -> String {
    let cause = || cause(reading).unwrap_or_default();
    match reading {
        Reading::Loading { cause: None, .. } => "looking".into(),
        Reading::Loading { cause: Some(_), .. } => format!("looking: {}", cause()),
        Reading::Fresh(seen) => state(seen),
        Reading::Stale { last, .. } => format!("stale, was {}: {}", state(last), cause()),
        Reading::Ended { end: End::Gone, .. } => "gone: the service says that there is no such build".into(),
        Reading::Ended { end: End::Denied, .. } => "denied: the service refused the credential".into(),
        Reading::Ended { end: End::Closed, .. } => "given up".into(),
    }
}

fn state(seen: &Seen) -> String {
    let word = seen.word.as_deref().map(|word| format!(" ({})", harmless(word, WORDS))).unwrap_or_default();
    match &seen.state {
        State::Unreadable(why) => format!("unreadable ({})", harmless(why, WORDS)),
        State::Parked => format!("parked{word}: waits for a person"),
        State::Running | State::Succeeded | State::Failed | State::Canceled => format!("{}{word}", seen.state.word()),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
