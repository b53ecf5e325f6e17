//! What every pure machine has in common: time and a random draw are handed in, actions come out.
//!
//! A machine holds no clock, channel, socket, task or generator. Its driver builds an event, calls
//! [`Machine::on_event`], performs the returned actions and wakes the machine again at
//! [`Machine::deadline`] with the machine's own `Tick` event. That is what lets one file be read as
//! one promise, and what lets whole fault schedules be explored without waiting.

use std::time::Duration;

/// Time since the driver's start on a clock that never goes backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// The driver's start.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The instant `since_start` after the driver's start.
    pub const fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// Time since the driver's start.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Monotonic {
    type Output = Self;

    /// Saturates at the largest duration.
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

/// Time since 1970 on a clock that people set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(Duration);

impl Wall {
    /// The instant `since_epoch` after 1970-01-01T00:00:00Z.
    pub const fn new(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// The instant `millis` milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Time since 1970-01-01T00:00:00Z.
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// Whole milliseconds since 1970-01-01T00:00:00Z, saturating.
    pub const fn millis(self) -> u64 {
        let ms = self.0.as_millis();
        if ms > u64::MAX as u128 { u64::MAX } else { ms as u64 }
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Wall {
    type Output = Self;

    /// Saturates at the largest duration.
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

/// The time and one random draw, handed to a machine with each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "test and model code builds it by hand; it has no more to say")]
pub struct Now {
    /// Monotonic time. Every deadline is measured on it.
    pub instant: Monotonic,
    /// Wall time. Only for what crosses machines: minted-at, retention, sleep detection (R7).
    pub wall: Wall,
    /// A fresh uniform draw over all `u64`, for jitter.
    pub draw: u64,
}

impl Now {
    /// A duration uniform in `[0, cap]`, made from this event's draw ("full jitter").
    pub fn jitter(&self, cap: Duration) -> Duration {
        let cap = u64::try_from(cap.as_nanos()).unwrap_or(u64::MAX);
        // The high half of draw * (cap + 1): uniform in [0, cap] without a division.
        let scaled = (u128::from(self.draw) * (u128::from(cap) + 1)) >> 64;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(cap))
    }
}

/// The longest time that a hint of a service is kept to, such as `Retry-After`: a mistyped one must not silence a client, a read
/// or a stream for good. A service that is asked once a day is not asked too often (R8).
pub(crate) const LONGEST_HINT: Duration = Duration::from_secs(24 * 3600);

/// The actions of one event, in the order in which they are to be performed.
pub type Actions<A> = Vec<A>;

/// A synchronous decision maker: events in, actions out.
pub trait Machine {
    /// What happened.
    type Event;
    /// What is to be done.
    type Action;

    /// Takes one event at `now` and returns what is to be done, in order.
    fn on_event(&mut self, now: Now, event: Self::Event) -> Actions<Self::Action>;

    /// When the machine wants its `Tick` event, if nothing else happens before.
    fn deadline(&self) -> Option<Monotonic>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_covers_the_whole_closed_range() {
        let at = |draw| Now { instant: Monotonic::ZERO, wall: Wall::default(), draw };
        let cap = Duration::from_millis(500);
        assert_eq!(at(0).jitter(cap), Duration::ZERO);
        assert_eq!(at(u64::MAX).jitter(cap), cap);
        assert_eq!(at(u64::MAX).jitter(Duration::ZERO), Duration::ZERO);
        let half = at(u64::MAX / 2).jitter(cap);
        assert!(half.abs_diff(cap / 2) <= Duration::from_nanos(1), "{half:?}");
    }
}
