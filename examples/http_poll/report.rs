//! What is printed: a line per change, a heartbeat, and at the end the last reading with its age and cause.

use std::io::Write as _;
use std::time::Duration;

use outlast::{Cause, Reading};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ending::Ending;
use super::seen::{Seen, State};

/// How much of a body is printed.
const BODY: usize = 2_000;

/// Prints.
pub(crate) struct Report {
    json: bool,
    start: Instant,
    said: Option<String>,
    confirmed: Option<Instant>,
    readable: bool,
    unreadable: bool,
}

impl Report {
    /// For people, or one JSON object per line.
    pub(crate) fn new(json: bool) -> Self {
        let start = Instant::now();
        Self { json, start, said: None, confirmed: None, readable: false, unreadable: false }
    }

    /// Whether there were answers, and none that could be read.
    pub(crate) fn never_read(&self) -> bool {
        self.unreadable && !self.readable
    }

    /// A reading. It is printed if it says something else than the last.
    pub(crate) fn reading(&mut self, reading: &Reading<Seen>) {
        if let Reading::Fresh(seen) = reading {
            self.confirmed = Some(Instant::now());
            let unreadable = matches!(seen.state, State::Unreadable(_));
            self.unreadable |= unreadable;
            self.readable |= !unreadable;
        }
        self.unreadable |= matches!(reading.cause(), Some(Cause::Undecodable { .. }));
        let words = words(reading);
        if self.said.as_ref() != Some(&words) {
            self.print("reading", &words, reading, None);
            self.said = Some(words);
        }
    }

    /// It is still there.
    pub(crate) fn heartbeat(&self, reading: &Reading<Seen>) {
        self.print("heartbeat", &format!("still waiting: {}", words(reading)), reading, None);
    }

    /// The end: how it ended, the last reading, its age, its cause.
    pub(crate) fn end(&self, ending: Ending, reading: &Reading<Seen>) {
        if self.json {
            return self.print("end", ending.words(), reading, Some(ending));
        }
        self.line(&format!("ended: {}", ending.words()));
        match reading.last() {
            Some(seen) => {
                let age = self.confirmed.map(|at| at.elapsed()).unwrap_or_default();
                self.line(&format!("last reading, confirmed {} ago: {}", seconds(age), short(&seen.body)));
            }
            None => self.line("last reading: none"),
        }
        if let Some(cause) = reading.cause() {
            self.line(&format!("cause: {}", harmless(&cause.to_string())));
        }
    }

    fn print(&self, event: &str, words: &str, reading: &Reading<Seen>, ending: Option<Ending>) {
        if !self.json {
            return self.line(words);
        }
        let seen = reading.last();
        let mut line = json!({
            "event": event,
            "after_ms": u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
            "reading": kind(reading),
            "state": seen.map(|seen| seen.state.words()),
            "status": seen.and_then(|seen| seen.word.as_deref()),
            "cause": reading.cause().map(|cause| cause.to_string()),
        });
        if let (Some(ending), Some(line)) = (ending, line.as_object_mut()) {
            line.insert("ending".into(), ending.words().into());
            line.insert("exit_code".into(), ending.exit_code().into());
            let age = seen.and(self.confirmed).map(|at| u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX));
            line.insert("age_ms".into(), age.into());
            let body = seen.map(|seen| serde_json::from_str(&seen.body).unwrap_or(Value::Null));
            line.insert("body".into(), body.into());
        }
        put(&line.to_string());
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

fn kind(reading: &Reading<Seen>) -> &'static str {
    match reading {
        Reading::Loading { .. } => "loading",
        Reading::Fresh(_) => "fresh",
        Reading::Stale { .. } => "stale",
        Reading::Ended { .. } => "ended",
    }
}

fn words(reading: &Reading<Seen>) -> String {
    let state = |seen: &Seen| match (&seen.state, &seen.word) {
        (State::Unreadable(why), _) => format!("unreadable ({})", harmless(why)),
        (state, Some(word)) => format!("{} ({})", state.words(), harmless(word)),
        (state, None) => state.words().to_owned(),
    };
    match reading {
        Reading::Loading { cause: None, .. } => "looking".into(),
        Reading::Loading { cause: Some(cause), .. } => format!("looking: {}", harmless(&cause.to_string())),
        Reading::Fresh(seen) => state(seen),
        Reading::Stale { last, cause, .. } => format!("stale, was {}: {}", state(last), harmless(&cause.to_string())),
        Reading::Ended { end, .. } => format!("the read ended: {end:?}"),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Without anything that a terminal or a runner would take for a command.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().replace("::", ":\u{200b}:")
}

fn short(body: &str) -> String {
    let mut text = harmless(body);
    if let Some((at, _)) = text.char_indices().nth(BODY) {
        text.truncate(at);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_says_commands_neither_a_terminal_nor_a_runner() {
        let said = harmless("a\u{1b}[2Jb\n::error::c");
        assert!(!said.contains('\u{1b}') && !said.contains('\n') && !said.contains("::"), "{said:?}");
        assert_eq!(short(&"é".repeat(3_000)).chars().count(), BODY + 1);
    }
}
