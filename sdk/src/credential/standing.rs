//! Where a credential that many share stands: whether it may be used, and when its source is asked (R3). Pure.
//!
//! - A source is asked at the start, after a refusal, and before its credential expires: 60 s before, or half of what is left
//!   if that is less. Two asks begin at least [`STEP`] apart.
//! - Two refusals of one credential deny it; it is not used again. The second counts only for a request that began after the
//!   first was known, and after a refusal nobody uses the credential for [`STEP`]: so they are a backoff step apart, and
//!   thirty requests that were on their way together count once.
//! - A credential that expires is used until then while another one is asked for. The source has the last word: what it gives
//!   is used even if it looks expired, since the clock that says so is ours; it is asked again every [`RECHECK`] then.
//! - While it is denied, the source is asked whether it has another every [`RECHECK`].

use std::time::Duration;

use super::fingerprint::Fingerprint;
use crate::generation::Generation;
use crate::machine::{Monotonic, Now, Wall};

/// A credential refused this often, a backoff step apart, is denied.
pub(super) const REFUSALS: u8 = 2;

/// The least time between two refusals that count, and between the beginnings of two asks.
pub(super) const STEP: Duration = Duration::from_millis(500);

/// How long before it expires another credential is asked for.
const AHEAD: Duration = Duration::from_secs(60);

/// How often the source is asked for another credential while the present one is denied.
pub(super) const RECHECK: Duration = Duration::from_secs(30);

/// Of how many credentials it is remembered how often they were refused: a source that goes back to one that was denied
/// does not get it sent again.
const REMEMBERED: usize = 16;

/// Whom a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// All who use the credential: 401 says that it is not valid (RFC 9110, 15.5.2).
    Credential,
    /// One resource: 403 says that the credential is not enough for it (RFC 9110, 15.5.4). The source is asked, since
    /// another one may be enough; the read counts for itself with [`Refusals`](super::Refusals).
    Resource,
}

/// What is to be done by whoever needs a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Next {
    /// Use the present one. If it expires soon, ask the source meanwhile.
    Use { generation: Generation, ask: bool },
    /// Ask the source and wait for its answer.
    Ask,
    /// Wait for the answer that is under way.
    Await,
    /// Look again at that time, or when something has happened.
    Until(Monotonic),
    /// The present one was refused twice, and it is not yet time to ask for another.
    Denied,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Standing {
    /// The present one is the last.
    known: Vec<Known>,
    /// The last that has appeared.
    minted: Generation,
    life: Option<Life>,
    /// When a refusal made the source worth asking, until it has answered.
    doubted: Option<Monotonic>,
    /// Whether what is forbidden of one resource did so.
    forbidden: bool,
    /// When the source last answered that with another credential.
    replaced: Option<Monotonic>,
    asking: bool,
    /// When the last ask began.
    asked: Option<Monotonic>,
    /// When the source gave the present one, or confirmed it.
    answered: Option<Monotonic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Known {
    print: Fingerprint,
    generation: Generation,
    refusals: u8,
    /// When the last refusal was counted. What began before that cannot refuse again.
    counted: Option<Monotonic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Life {
    /// When to ask for another one.
    due: Monotonic,
    /// When it may not be used any more without asking, on either clock: the wall clock can be set, the other one stands
    /// still while the machine sleeps. `None`: by our clock it was over when the source gave it, so that our clock says
    /// nothing.
    ends: Option<(Monotonic, Wall)>,
}

impl Standing {
    /// What whoever needs a credential is to do.
    pub(super) fn next(&self, now: &Now) -> Next {
        let Some(present) = self.known.last() else { return self.ask(now) };
        if present.is_denied() {
            let last = self.asked.max(present.counted).unwrap_or_default();
            return match (self.asking, now.instant.since(last) >= RECHECK) {
                (true, _) => Next::Await,
                (false, true) => Next::Ask,
                (false, false) => Next::Denied,
            };
        }
        if self.doubted.is_some() || self.has_expired(now) {
            return self.ask(now);
        }
        match present.counted {
            Some(counted) if present.refusals > 0 && now.instant < counted + STEP => Next::Until(counted + STEP),
            Some(_) | None => Next::Use {
                generation: present.generation,
                ask: !self.asking && self.may_ask(now) && self.life.as_ref().is_some_and(|l| l.due <= now.instant),
            },
        }
    }

    fn ask(&self, now: &Now) -> Next {
        match self.asked {
            _ if self.asking => Next::Await,
            Some(asked) if !self.may_ask(now) => Next::Until(asked + STEP),
            Some(_) | None => Next::Ask,
        }
    }

    fn may_ask(&self, now: &Now) -> bool {
        self.asked.is_none_or(|asked| asked + STEP <= now.instant)
    }

    fn has_expired(&self, now: &Now) -> bool {
        let old = self.answered.is_none_or(|answered| answered + STEP <= now.instant);
        let ends = self.life.as_ref().and_then(|life| life.ends);
        old && ends.is_some_and(|(ends, expires)| ends <= now.instant || expires <= now.wall)
    }

    /// Whether the present one was refused twice.
    pub(super) fn is_denied(&self) -> bool {
        self.known.last().is_some_and(Known::is_denied)
    }

    /// The source is asked.
    pub(super) fn asked(&mut self, now: &Now) {
        self.asking = true;
        self.asked = Some(now.instant);
    }

    /// The source has answered with the credential of `print`. Returns its generation.
    pub(super) fn answered(&mut self, now: &Now, print: Fingerprint, expires: Option<Wall>) -> Generation {
        let before = self.known.last().map(|known| known.generation);
        let known = match self.known.iter().position(|known| known.print == print) {
            Some(at) => self.known.remove(at),
            None => {
                self.minted = self.minted.next();
                Known { print, generation: self.minted, refusals: 0, counted: None }
            }
        };
        let generation = known.generation;
        if std::mem::take(&mut self.forbidden) && before != Some(generation) {
            self.replaced = Some(now.instant);
        }
        if self.known.len() == REMEMBERED {
            self.known.remove(0);
        }
        self.known.push(known);
        self.life = expires.map(|expires| Life::new(now, expires));
        // An answer to an ask that began before the refusal does not yet answer the refusal.
        if before != Some(generation) || self.asked >= self.doubted {
            self.doubted = None;
        }
        self.asking = false;
        self.answered = Some(now.instant);
        generation
    }

    /// The ask has come to nothing: an error, a stall, or it was abandoned.
    pub(super) fn failed(&mut self, now: &Now) {
        self.asking = false;
        if let Some(life) = &mut self.life {
            life.due = Life::due(now, life.ends.map(|(_, expires)| expires));
        }
    }

    /// Somebody who counts for himself was refused with the credential of `generation`. Said again before the source has
    /// answered, it is the same doubt still.
    pub(super) fn doubt(&mut self, now: &Now, generation: Generation) {
        if self.known.last().is_some_and(|known| known.generation == generation) {
            self.doubted.get_or_insert(now.instant);
        }
    }

    /// The service refused a request that began at `used` with the credential of `generation`. Returns whether that is the
    /// last it is used.
    pub(super) fn refused(&mut self, now: &Now, generation: Generation, used: Monotonic, scope: Scope) -> bool {
        let answered = self.answered;
        // Of one that is no longer in use it says nothing new.
        let Some(present) = self.known.last_mut().filter(|known| known.generation == generation) else { return false };
        match scope {
            Scope::Credential => {
                if present.is_denied() || present.counted.is_some_and(|counted| used <= counted) {
                    return false;
                }
                present.counted = Some(now.instant);
                present.refusals += 1;
                self.doubted = Some(now.instant);
                present.is_denied()
            }
            Scope::Resource => {
                // Since a request that began earlier, the source has said that it has no other. And one that makes another
                // at each ask would take from all others what they hold, as often as a single read is forbidden.
                let replaced = self.replaced.is_some_and(|replaced| now.instant < replaced + RECHECK);
                if answered.is_some_and(|answered| answered <= used) && !replaced {
                    self.doubted = Some(now.instant);
                    self.forbidden = true;
                }
                false
            }
        }
    }

    /// The service served a request that began at `used` with the credential of `generation`: a refusal of before says
    /// nothing any more.
    pub(super) fn accepted(&mut self, generation: Generation, used: Monotonic) {
        if let Some(present) = self.known.last_mut()
            && present.generation == generation
            && !present.is_denied()
            && present.counted.is_some_and(|counted| counted < used)
        {
            present.refusals = 0;
        }
    }
}

impl Known {
    fn is_denied(&self) -> bool {
        self.refusals >= REFUSALS
    }
}

impl Life {
    fn new(now: &Now, expires: Wall) -> Self {
        let expires = Some(expires).filter(|expires| *expires > now.wall);
        let ends = expires.map(|expires| (now.instant + expires.since(now.wall), expires));
        Self { due: Self::due(now, expires), ends }
    }

    fn due(now: &Now, expires: Option<Wall>) -> Monotonic {
        let Some(expires) = expires else { return now.instant + RECHECK };
        let left = expires.since(now.wall);
        // Half of what is left, where that is later: so a source that gives the same one until the end is not asked all
        // the time.
        now.instant + left.saturating_sub(AHEAD).max(left / 2)
    }
}

#[cfg(test)]
mod tests;
