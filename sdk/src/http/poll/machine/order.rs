//! Which of two values is the later one, by what they say of themselves (R4, R10).

use crate::http::poll::Marks;

/// Where a value stands to what is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Not before it.
    Next {
        /// Whether it may say something else.
        changed: bool,
    },
    /// Before it.
    Before,
    /// Not before it, but it says that what was over goes on.
    Reopens {
        /// Whether both are known to be of one attempt.
        same_attempt: bool,
    },
}

/// The place of `new` after `floor`.
pub(super) fn place(floor: Marks, new: Marks) -> Place {
    let known = floor.attempt.is_some() && new.attempt.is_some();
    if known && new.attempt != floor.attempt {
        return if new.attempt > floor.attempt { Place::Next { changed: true } } else { Place::Before };
    }
    // Attempts that are not known are taken for the same.
    let versions = floor.version.zip(new.version);
    if versions.is_some_and(|(floor, new)| new < floor) {
        return Place::Before;
    }
    if floor.terminal && !new.terminal {
        return Place::Reopens { same_attempt: known };
    }
    let same = floor.terminal == new.terminal && versions.is_some_and(|(floor, new)| new == floor);
    Place::Next { changed: !same }
}

/// Whether nothing but the lower version says that `new` is before `floor`.
pub(super) fn is_lower_version(floor: Marks, new: Marks) -> bool {
    let same = floor.attempt.zip(new.attempt).is_none_or(|(floor, new)| floor == new);
    let lower = floor.version.zip(new.version).is_some_and(|(floor, new)| new < floor);
    same && lower && (new.terminal || !floor.terminal)
}

/// Whether the marks alone prove that `new` is later than `floor`, whenever each was asked for.
pub(super) fn is_provably_later(floor: Marks, new: Marks) -> bool {
    match (floor.attempt, new.attempt) {
        (Some(floor), Some(new)) if floor != new => new > floor,
        (Some(_), Some(_)) | (None, None) => floor.version.zip(new.version).is_some_and(|(floor, new)| new > floor),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Whether a value that nobody asked for comes next: nothing but its marks tells its place (FC-88).
pub(super) fn is_pushed_next(floor: Marks, new: Marks) -> bool {
    is_provably_later(floor, new) && matches!(place(floor, new), Place::Next { .. })
}

/// What is known once `new` is shown after `floor`: what a value leaves unsaid was said before.
pub(super) fn raise(floor: Option<Marks>, new: Marks) -> Marks {
    let Some(floor) = floor else { return new };
    let higher = floor.attempt.zip(new.attempt).is_some_and(|(floor, new)| new > floor);
    Marks {
        attempt: new.attempt.or(floor.attempt),
        version: if higher { new.version } else { new.version.or(floor.version) },
        terminal: new.terminal,
    }
}
