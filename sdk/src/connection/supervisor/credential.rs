//! Which credential is in use, and how often the service refused it (R3).

use super::vocabulary::Generation;

/// A credential refused this often, a backoff step apart, is denied.
const REFUSALS: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Credential {
    source: bool,
    known: Option<Generation>,
    refusals: u8,
    /// The source has not answered since the start or since the last refusal.
    stale: bool,
    /// Dials of rounds up to this one cannot refuse again: they were begun before the last refusal was known, so they
    /// are not a backoff step apart from it.
    counted: Option<u64>,
}

/// What a refusal amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Refusal {
    /// Of another credential than the present one, or not a backoff step after the last.
    Uncounted,
    /// The first of the present credential: the source is asked.
    First,
    /// The last: the credential is not used again.
    Denied,
}

impl Credential {
    pub(super) fn new(source: bool) -> Self {
        Self { source, known: None, refusals: 0, stale: true, counted: None }
    }

    /// The present one, which a dial sends. `None` without a source, or before its first answer.
    pub(super) fn known(&self) -> Option<Generation> {
        self.known
    }

    /// Whether a dial has to wait for an answer of the source itself.
    pub(super) fn is_stale(&self) -> bool {
        self.source && self.stale
    }

    pub(super) fn has_source(&self) -> bool {
        self.source
    }

    /// The source has answered. Returns whether the credential is another one; that starts its own count.
    pub(super) fn answered(&mut self, generation: Generation) -> bool {
        self.stale = false;
        let another = self.known != Some(generation);
        if another {
            self.known = Some(generation);
            self.refusals = 0;
        }
        another
    }

    /// The service refused `used`, which a dial of round `round` sent; the present round is `present`.
    pub(super) fn refused(&mut self, used: Option<Generation>, round: u64, present: u64) -> Refusal {
        if used != self.known || self.counted.is_some_and(|counted| round <= counted) {
            return Refusal::Uncounted;
        }
        self.counted = Some(present);
        self.stale = true;
        self.refusals = (self.refusals + 1).min(REFUSALS);
        if self.refusals < REFUSALS { Refusal::First } else { Refusal::Denied }
    }

    /// A link with it has proven healthy: an old refusal says nothing any more.
    pub(super) fn proven(&mut self) {
        self.refusals = 0;
    }

    /// Without a source there is no token to spare: one more dial may find a service that has changed its mind.
    pub(super) fn reprieve(&mut self) {
        self.refusals = self.refusals.min(REFUSALS - 1);
    }
}
