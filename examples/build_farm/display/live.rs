//! The live view on a terminal: notes scroll by above a few lines that are drawn anew.

use std::fmt::Write;

use tokio::time::Instant;

use super::scene::{Freshness, Scene, harmless, seconds, sentence};
use super::{Change, Note, Show};

/// How wide a terminal is that does not say.
const WIDTH: usize = 80;

/// The view.
#[derive(Debug)]
pub(super) struct Live {
    color: bool,
    /// How many lines are drawn at present, above the cursor.
    drawn: usize,
    over: bool,
}

/// ANSI colors (ECMA-48, SGR).
#[derive(Clone, Copy)]
enum Color {
    Green = 32,
    Yellow = 33,
    Red = 31,
    Dim = 2,
}

impl Live {
    pub(super) fn new(color: bool) -> Self {
        Self { color, drawn: 0, over: false }
    }

    /// Takes the view away, so that something can be written in its place.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }

    fn draw(&mut self, scene: &Scene, now: Instant) -> String {
        let mut text = self.erase();
        if self.over {
            return text;
        }
        let width = width();
        let rows = rows(scene, now);
        for (name, color, content) in &rows {
            let content = fitting(content, width.saturating_sub(12));
            let (on, off) = self.paint(*color);
            let _ = writeln!(text, "{name:>10}  {on}{content}{off}");
        }
        self.drawn = rows.len();
        text
    }

    fn paint(&self, color: Option<Color>) -> (String, &'static str) {
        match color {
            Some(color) if self.color => (format!("\x1b[{}m", color as u8), "\x1b[0m"),
            Some(_) | None => (String::new(), ""),
        }
    }
}

impl Show for Live {
    fn change(&mut self, scene: &Scene, change: &Change, now: Instant) -> String {
        let above = match change {
            Change::Note(note) => {
                self.over |= *note == Note::Interrupted;
                Some(format!("* {note}"))
            }
            Change::Summary(summary) => {
                self.over = true;
                Some(sentence(summary))
            }
            Change::Link(_) | Change::Build(_) | Change::Command(_) => None,
        };
        let mut text = String::new();
        if let Some(line) = above {
            text += &self.erase();
            let _ = writeln!(text, "{}", harmless(&line));
        }
        text + &self.draw(scene, now)
    }

    fn tick(&mut self, scene: &Scene, now: Instant) -> String {
        self.draw(scene, now)
    }
}

fn rows(scene: &Scene, now: Instant) -> Vec<(&'static str, Option<Color>, String)> {
    let (up, link) = scene.link();
    let age = seconds(scene.age(now));
    let freshness = match (scene.freshness(), scene.cause()) {
        (freshness, None) => format!("{} for {age}", freshness.name()),
        (freshness, Some(cause)) => format!("{} for {age}: {cause}", freshness.name()),
    };
    let color = match scene.freshness() {
        Freshness::Loading => Color::Dim,
        Freshness::Fresh => Color::Green,
        Freshness::Stale => Color::Yellow,
        Freshness::Ended => Color::Red,
    };
    let command = scene.command().map_or_else(String::new, |(status, delivery)| format!("{status}, {delivery}"));
    let (status, line) = match scene.build() {
        Some(build) => (build.status.to_string(), build.last_line.clone()),
        None => ("not known yet".to_owned(), String::new()),
    };
    vec![
        ("connection", Some(if up { Color::Green } else { Color::Yellow }), link),
        ("reading", Some(color), freshness),
        ("command", None, command),
        ("build", None, status),
        ("last line", Some(Color::Dim), line),
    ]
}

/// As much of `text` as surely fits: whatever is not ASCII may be two columns wide.
fn fitting(text: &str, width: usize) -> String {
    let mut used = 0;
    harmless(text)
        .chars()
        .take_while(|c| {
            used += if c.is_ascii() { 1 } else { 2 };
            used <= width
        })
        .collect()
}

fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_is_drawn_in_place_and_taken_away_at_the_end() {
        let now = Instant::now();
        let scene = Scene::new(now);
        let mut live = Live::new(false);
        let first = live.tick(&scene, now);
        assert_eq!(first.lines().count(), 5);
        assert!(!first.contains('\x1b'), "nothing to take away, and no color: {first:?}");
        let second = live.tick(&scene, now);
        assert_eq!(second, format!("\x1b[5A\r\x1b[J{first}"));
        let noted = live.change(&scene, &Change::Note(Note::AnswerSwallowed), now);
        assert_eq!(noted, format!("\x1b[5A\r\x1b[J* {}\n{first}", Note::AnswerSwallowed));
        let ended = live.change(&scene, &Change::Note(Note::Interrupted), now);
        assert_eq!(ended, format!("\x1b[5A\r\x1b[J* {}\n", Note::Interrupted));
        assert_eq!(live.tick(&scene, now), "");
    }

    #[test]
    fn no_line_wraps() {
        assert_eq!(fitting("abcdef", 4), "abcd");
        assert_eq!(fitting("aüü", 4), "aü");
        assert_eq!(fitting("a", 0), "");
    }

    #[test]
    fn color_is_optional() {
        let now = Instant::now();
        assert!(Live::new(true).tick(&Scene::new(now), now).contains("\x1b[33m"));
    }
}
