//! A line for each change: for files, pipes and simple terminals.

use tokio::time::Instant;

use super::scene::{Freshness, Scene, harmless, seconds, sentence};
use super::{Change, Show};

/// What was written last of each kind: only changes are written.
#[derive(Debug, Default)]
pub(super) struct Plain {
    link: String,
    reading: String,
    build: String,
    command: String,
}

impl Plain {
    pub(super) fn new() -> Self {
        Self::default()
    }
}

impl Show for Plain {
    fn change(&mut self, scene: &Scene, change: &Change, now: Instant) -> String {
        let lines = match change {
            Change::Link(_) => vec![changed(&mut self.link, format!("connection {}", scene.link().1))],
            Change::Build(_) => {
                let reading = match (scene.freshness(), scene.cause()) {
                    (Freshness::Loading, None) => String::new(),
                    (freshness, None) => format!("reading    {}", freshness.name()),
                    (freshness, Some(cause)) => format!("reading    {} ({cause})", freshness.name()),
                };
                vec![changed(&mut self.reading, reading), changed(&mut self.build, build(scene))]
            }
            Change::Command(_) => {
                let command = scene.command().map(|(status, delivery)| format!("command    {status}, {delivery}"));
                vec![changed(&mut self.command, command.unwrap_or_default())]
            }
            Change::Note(note) => vec![Some(format!("* {note}"))],
            Change::Summary(summary) => vec![Some(sentence(summary))],
        };
        let elapsed = seconds(scene.elapsed(now));
        lines.into_iter().flatten().map(|line| format!("[{elapsed:>7}] {}\n", harmless(&line))).collect()
    }

    fn tick(&mut self, _: &Scene, _: Instant) -> String {
        String::new()
    }
}

fn build(scene: &Scene) -> String {
    match scene.build() {
        Some(build) if build.lines > 0 => format!("build      {}: {}", build.status, build.last_line),
        Some(build) => format!("build      {}", build.status),
        None => String::new(),
    }
}

fn changed(before: &mut String, line: String) -> Option<String> {
    (*before != line && !line.is_empty()).then(|| {
        before.clone_from(&line);
        line
    })
}
