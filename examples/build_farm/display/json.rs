//! One JSON object a line, for programs. The last one is the summary.

use serde::Serialize;
use tokio::time::Instant;

use super::note::Note;
use super::scene::Scene;
use super::{Change, Show};
use crate::build_farm::domain::{Build, BuildStatus};

/// Objects, one a line. One that says the same as the last of its kind is left out.
#[derive(Debug, Default)]
pub(super) struct Json {
    connection: String,
    reading: String,
    command: String,
}

#[derive(Serialize)]
struct Timed<'a, T: Serialize> {
    at_ms: u64,
    #[serde(flatten)]
    event: &'a T,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Seen<'a> {
    Connection {
        up: bool,
        state: String,
    },
    Reading {
        freshness: &'static str,
        cause: Option<String>,
        status: Option<BuildStatus>,
        lines: Option<u64>,
        last_line: Option<&'a str>,
    },
    Command {
        status: String,
        delivery: &'static str,
    },
}

impl Json {
    pub(super) fn new() -> Self {
        Self::default()
    }
}

impl Show for Json {
    fn change(&mut self, scene: &Scene, change: &Change, now: Instant) -> String {
        let at_ms = u64::try_from(scene.elapsed(now).as_millis()).unwrap_or(u64::MAX);
        match change {
            Change::Link(_) => {
                let (up, state) = scene.link();
                changed(&mut self.connection, at_ms, &Seen::Connection { up, state })
            }
            Change::Build(_) => {
                let build = scene.build();
                let event = Seen::Reading {
                    freshness: scene.freshness().name(),
                    cause: scene.cause(),
                    status: build.map(|build| build.status),
                    lines: build.map(|build| build.lines),
                    last_line: build.map(|build: &Build| &*build.last_line),
                };
                changed(&mut self.reading, at_ms, &event)
            }
            Change::Command(_) => scene.command().map_or_else(String::new, |(status, delivery)| {
                changed(&mut self.command, at_ms, &Seen::Command { status, delivery })
            }),
            Change::Note(note) => line::<Timed<'_, Note>>(&Timed { at_ms, event: note }),
            Change::Summary(summary) => line(summary),
        }
    }

    fn tick(&mut self, _: &Scene, _: Instant) -> String {
        String::new()
    }
}

fn changed(before: &mut String, at_ms: u64, event: &Seen<'_>) -> String {
    let now = line(event);
    if *before == now {
        return String::new();
    }
    *before = now;
    line(&Timed { at_ms, event })
}

fn line<T: Serialize>(value: &T) -> String {
    // Text and numbers only: it cannot fail.
    serde_json::to_string(value).map(|json| json + "\n").unwrap_or_default()
}
