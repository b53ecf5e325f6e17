//! How often one read was refused with one credential (R3). Pure.

use super::standing::{REFUSALS, STEP};
use crate::generation::Generation;
use crate::machine::Monotonic;

/// Counts the refusals of one read. Another generation starts its own count.
///
/// The credential's own count is in [`Standing`](super::standing::Standing): a service that forbids one resource (403) says
/// nothing about the others, and a read that is refused while others are served has to end all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Refusals {
    last: Option<Refused>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Refused {
    generation: Generation,
    counted: Monotonic,
    times: u8,
}

/// What a refusal amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// One more request may be made, after the source was asked.
    Again,
    /// The read was refused twice with one credential, a backoff step apart: access is denied.
    Denied,
}

impl Refusals {
    /// The service refused the read's request with the credential of `generation`: 401, or 403 that is no rate limit.
    pub(crate) fn refused(&mut self, at: Monotonic, generation: Generation) -> Verdict {
        let times = match &self.last {
            Some(last) if last.generation == generation => {
                if at.since(last.counted) < STEP {
                    // Not a backoff step apart: the same refusal once more.
                    return last.verdict();
                }
                last.times.saturating_add(1)
            }
            Some(_) | None => 1,
        };
        self.last.insert(Refused { generation, counted: at, times }).verdict()
    }

    /// The service served the read: an old refusal says nothing any more.
    pub(crate) fn accepted(&mut self) {
        self.last = None;
    }

    /// Whether a request with the credential of `generation` would be in vain.
    pub(crate) fn denied(&self, generation: Generation) -> bool {
        self.last.as_ref().is_some_and(|last| last.generation == generation && last.verdict() == Verdict::Denied)
    }
}

impl Refused {
    fn verdict(&self) -> Verdict {
        if self.times < REFUSALS { Verdict::Again } else { Verdict::Denied }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ONE: Generation = Generation::new(1);

    fn at(ms: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(ms))
    }

    /// R3: twice with one credential, a backoff step apart.
    #[test]
    fn r3_a_read_is_denied_at_the_second_refusal_of_one_credential() {
        let mut read = Refusals::default();
        assert_eq!(read.refused(at(0), ONE), Verdict::Again);
        assert_eq!(read.refused(at(499), ONE), Verdict::Again, "the same refusal");
        assert!(!read.denied(ONE));
        assert_eq!(read.refused(at(500), ONE), Verdict::Denied);
        assert!(read.denied(ONE));
        assert!(!read.denied(ONE.next()), "another credential may be let in");
        assert_eq!(read.refused(at(501), ONE), Verdict::Denied, "stays so");
    }

    /// R3: each credential has its own count.
    #[test]
    fn r3_another_credential_starts_anew() {
        let mut read = Refusals::default();
        for n in 1..20 {
            assert_eq!(read.refused(at(n * 1_000), Generation::new(n)), Verdict::Again);
        }
    }

    /// R3: what was refused and then served was no denial.
    #[test]
    fn r3_an_answer_in_between_ends_the_count() {
        let mut read = Refusals::default();
        for n in 0..20 {
            assert_eq!(read.refused(at(n * 1_000), ONE), Verdict::Again);
            read.accepted();
        }
    }
}
