//! What is shown, so that nothing is said twice.

use crate::error::Cause;
use crate::machine::Monotonic;
use crate::observe::machine::Shown;
use crate::wire::Cursor;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Face {
    /// Whether there was a value: then it never loads again (R1).
    loaded: bool,
    fresh: bool,
    /// Since when it is not.
    since: Monotonic,
    cause: Option<Cause>,
    not_before: Option<Monotonic>,
}

impl Face {
    /// Loading since `since`, without a cause.
    pub(super) fn new(since: Monotonic) -> Self {
        Self { loaded: false, fresh: false, since, cause: None, not_before: None }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    pub(super) fn confirm(&mut self, at: Cursor, take: bool) -> Shown {
        *self = Self { loaded: true, fresh: true, cause: None, not_before: None, since: self.since };
        Shown::Fresh { at, take }
    }

    /// Not confirmed, for this cause; `None` if that is shown already.
    pub(super) fn doubt(&mut self, now: Monotonic, cause: Cause, not_before: Option<Monotonic>) -> Option<Shown> {
        if self.fresh {
            self.fresh = false;
            self.since = now;
        } else if self.not_before == not_before && self.says(&cause) {
            return None;
        }
        self.cause = Some(cause.clone());
        self.not_before = not_before;
        let since = self.since;
        Some(if self.loaded {
            Shown::Stale { since, cause, not_before }
        } else {
            Shown::Loading { since, cause: Some(cause), not_before }
        })
    }

    fn says(&self, cause: &Cause) -> bool {
        match (&self.cause, cause) {
            // The time left shrinks while the time to wait for stays the same.
            (Some(Cause::RateLimited { .. }), Cause::RateLimited { .. }) if self.not_before.is_some() => true,
            (shown, cause) => shown.as_ref() == Some(cause),
        }
    }
}
