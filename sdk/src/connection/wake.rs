//! Notices that the machine slept, or that someone set its clock.

use std::time::Duration;

use crate::machine::{Monotonic, Now, Wall};

/// How often the two clocks are compared, so that a jump is noticed within this time (R7).
pub(super) const CHECK_EVERY: Duration = Duration::from_secs(1);

/// How far the clocks may come apart between two looks. More is a jump: forward is a sleep (the monotonic clock stood
/// still) or a clock set ahead, backward a clock set back. The two cannot be told apart, and a probe is cheap.
const TOLERANCE: Duration = Duration::from_secs(2);

/// Compares the wall clock with the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wake {
    instant: Monotonic,
    wall: Wall,
}

impl Wake {
    pub(crate) fn new(now: &Now) -> Self {
        Self { instant: now.instant, wall: now.wall }
    }

    /// Whether the clocks came apart since the last look.
    pub(crate) fn jumped(&mut self, now: &Now) -> bool {
        let elapsed = now.instant.since(self.instant);
        let expected = self.wall + elapsed;
        let apart = now.wall.since(expected).max(expected.since(now.wall));
        *self = Self::new(now);
        apart > TOLERANCE
    }

    /// When to look again.
    pub(crate) fn due(&self) -> Monotonic {
        self.instant + CHECK_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(instant_ms: u64, wall_ms: u64) -> Now {
        Now {
            instant: Monotonic::new(Duration::from_millis(instant_ms)),
            wall: Wall::from_millis(1_000_000 + wall_ms),
            draw: 0,
        }
    }

    /// R7: more than two seconds apart, either way, is a jump; the same distance is not reported twice.
    #[test]
    fn r7_a_jump_is_seen_once_either_way() {
        let mut wake = Wake::new(&at(0, 0));
        assert!(!wake.jumped(&at(1_000, 3_000)));
        assert!(!wake.jumped(&at(2_000, 4_000)));
        assert!(wake.jumped(&at(3_000, 7_001)));
        assert!(!wake.jumped(&at(4_000, 8_001)));
        assert!(wake.jumped(&at(5_000, 5_000)));
        assert!(!wake.jumped(&at(6_000, 6_000)));
        assert_eq!(wake.due(), Monotonic::new(Duration::from_secs(7)));
    }
}
