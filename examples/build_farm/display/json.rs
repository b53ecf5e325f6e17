//! One JSON object a line, for programs. The last one is the summary.

use serde::Serialize;
use tokio::time::Instant;

use super::note::Note;
use super::scene::Scene;
use super::{Change, Show};
use crate::domain::{Build, BuildStatus};

/// Objects, one a line.
#[derive(Debug)]
pub(super) struct Json;

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
        Self
    }
}

impl Show for Json {
    fn change(&mut self, scene: &Scene, change: &Change, now: Instant) -> String {
        let at_ms = u64::try_from(scene.elapsed(now).as_millis()).unwrap_or(u64::MAX);
        match change {
            Change::Link(_) => {
                let (up, state) = scene.link();
                line(&Timed { at_ms, event: &Seen::Connection { up, state } })
            }
            Change::Build(_) => {
                let (build, freshness) = (scene.build(), scene.freshness().name());
                let event = &Seen::Reading {
                    freshness,
                    cause: scene.cause(),
                    status: build.map(|build| build.status),
                    lines: build.map(|build| build.lines),
                    last_line: build.map(|build: &Build| &*build.last_line),
                };
                line(&Timed { at_ms, event })
            }
            Change::Command(_) => match scene.command() {
                Some((status, delivery)) => line(&Timed { at_ms, event: &Seen::Command { status, delivery } }),
                None => String::new(),
            },
            Change::Note(note) => line::<Timed<'_, Note>>(&Timed { at_ms, event: note }),
            Change::Summary(summary) => line(summary),
        }
    }

    fn tick(&mut self, _: &Scene, _: Instant) -> String {
        String::new()
    }
}

fn line<T: Serialize>(value: &T) -> String {
    // Text and numbers only: it cannot fail.
    serde_json::to_string(value).map(|json| json + "\n").unwrap_or_default()
}
