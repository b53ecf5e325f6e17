//! Which credential is in use, and how often the service refused it (R3).

use super::vocabulary::Generation;

/// A credential refused this often, a backoff step apart, is denied.
const REFUSALS: u8 = 2;

/// Of how many credentials it is remembered how often they were refused: a source that goes back to one that was denied
/// does not get it sent again.
const REMEMBERED: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Credential {
    source: bool,
    /// The present one is the last. Without a source it is that nothing is sent.
    known: Vec<Known>,
    /// The source has not answered since the start or since the last refusal.
    stale: bool,
    /// Dials of rounds up to this one cannot refuse again: they were begun before the last refusal was known, so they
    /// are not a backoff step apart from it.
    counted: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Known {
    generation: Generation,
    refusals: u8,
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
        let known = if source { Vec::new() } else { vec![Known::default()] };
        Self { source, known, stale: true, counted: None }
    }

    /// The present one, which a dial sends. `None` before the first answer of the source.
    pub(super) fn present(&self) -> Option<Generation> {
        self.known.last().map(|known| known.generation)
    }

    /// Whether a dial has to wait for an answer of the source itself.
    pub(super) fn is_stale(&self) -> bool {
        self.source && self.stale
    }

    pub(super) fn has_source(&self) -> bool {
        self.source
    }

    /// The source has answered; each credential has its own count. Returns whether it may be used: not if it was denied.
    pub(super) fn answered(&mut self, generation: Generation) -> bool {
        self.stale = false;
        let known = match self.known.iter().position(|known| known.generation == generation) {
            Some(at) => self.known.remove(at),
            None => Known { generation, refusals: 0 },
        };
        let usable = known.refusals < REFUSALS;
        if self.known.len() == REMEMBERED {
            self.known.remove(0);
        }
        self.known.push(known);
        usable
    }

    /// The service refused `used`, which a dial of round `round` sent; the present round is `present`.
    pub(super) fn refused(&mut self, used: Option<Generation>, round: u64, present: u64) -> Refusal {
        let counts = self.counted.is_none_or(|counted| counted < round);
        let Some(known) = self.known.last_mut().filter(|known| counts && used == Some(known.generation)) else {
            return Refusal::Uncounted;
        };
        self.counted = Some(present);
        self.stale = true;
        known.refusals = (known.refusals + 1).min(REFUSALS);
        if known.refusals < REFUSALS { Refusal::First } else { Refusal::Denied }
    }

    /// A link with it has proven healthy: an old refusal says nothing any more.
    pub(super) fn proven(&mut self) {
        if let Some(known) = self.known.last_mut() {
            known.refusals = 0;
        }
    }

    /// Without a source there is no token to spare: one more dial may find a service that has changed its mind.
    pub(super) fn reprieve(&mut self) {
        if let Some(known) = self.known.last_mut() {
            known.refusals = known.refusals.min(REFUSALS - 1);
        }
    }
}
