//! What the user sees: a live view on a terminal, plain lines elsewhere, objects with `--json`.
//!
//! The poller hands over what it learns and never waits for the screen.

mod json;
mod live;
mod note;
mod plain;
mod scene;

pub(crate) use note::Note;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use outlast::Reading;
use outlast::command::CommandState;
use outlast::connection::LinkState;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::build_farm::domain::Build;
use crate::build_farm::verdict::Summary;

use json::Json;
use live::Live;
use plain::Plain;
use scene::Scene;

/// How often ages are drawn anew.
const REDRAW: Duration = Duration::from_millis(250);

/// Something to show.
#[derive(Debug)]
pub(crate) enum Change {
    /// The connection.
    Link(Reading<LinkState>),
    /// The read of the build.
    Build(Reading<Build>),
    /// The command that submitted it.
    Command(Reading<CommandState>),
    /// The story.
    Note(Note),
    /// The end.
    Summary(Summary),
}

/// Where changes are shown.
#[derive(Debug)]
pub(crate) struct Display {
    changes: mpsc::UnboundedSender<Change>,
    task: JoinHandle<()>,
}

/// A way to show changes, as text to be written.
trait Show: Send {
    /// A change; `scene` has it already.
    fn change(&mut self, scene: &Scene, change: &Change, now: Instant) -> String;

    /// Time has passed.
    fn tick(&mut self, scene: &Scene, now: Instant) -> String;
}

impl Display {
    /// Shows on stdout: objects if `json`, else a live view if that is a terminal.
    pub(crate) fn open(json: bool) -> Self {
        let (changes, receiver) = mpsc::unbounded_channel();
        let task = tokio::spawn(run(receiver, way(json)));
        Self { changes, task }
    }

    /// Shows a change, soon.
    pub(crate) fn show(&self, change: Change) {
        // The task ends after this sender does.
        let _ = self.changes.send(change);
    }

    /// Shows what is left and ends.
    pub(crate) async fn close(self) {
        drop(self.changes);
        let _ = self.task.await;
    }
}

fn way(json: bool) -> Box<dyn Show> {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if json {
        Box::new(Json::new())
    } else if io::stdout().is_terminal() && !dumb {
        // https://no-color.org
        Box::new(Live::new(!set("NO_COLOR")))
    } else {
        Box::new(Plain::new())
    }
}

async fn run(mut changes: mpsc::UnboundedReceiver<Change>, mut way: Box<dyn Show>) {
    let mut scene = Scene::new(Instant::now());
    let mut ticks = interval(REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let text = tokio::select! {
            change = changes.recv() => {
                let Some(change) = change else { return };
                let now = Instant::now();
                scene.apply(&change, now);
                way.change(&scene, &change, now)
            }
            now = ticks.tick() => way.tick(&scene, now),
        };
        // Whoever reads may have gone (`| head`): the build goes on all the same.
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }
}
