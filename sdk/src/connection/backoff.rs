//! How long to wait before the next round of dials.

use std::time::Duration;

use crate::machine::Now;

/// Who says how long to wait between rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// [`Backoff`], which looks at how long the outage is.
    #[default]
    Default,
    /// The caller's policy: the driver answers `AskDelay` from any iterator or closure of delays.
    Asked,
}

/// The default schedule: full jitter under a ceiling that grows with the outage (R8).
///
/// The ceiling is the outage so far between `floor` and a cap; the cap is a `fraction` of the outage between `least_cap`
/// and `most_cap`. So a restart of a second is noticed in a fraction of a second, and an hour's outage costs a dial every
/// few seconds. Simulated median lags: 23/147/148/820 ms after outages of about 0.1/1/5/60 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Backoff {
    /// The least ceiling; 20 ms.
    pub floor: Duration,
    /// The least cap; 500 ms.
    pub least_cap: Duration,
    /// The greatest cap; 5 s.
    pub most_cap: Duration,
    /// The cap is the outage divided by this; 20. Zero is taken for one.
    pub fraction: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            floor: Duration::from_millis(20),
            least_cap: Duration::from_millis(500),
            most_cap: Duration::from_secs(5),
            fraction: 20,
        }
    }
}

impl Backoff {
    /// With so much as the least ceiling. Default 20 ms.
    #[must_use]
    pub const fn with_floor(self, floor: Duration) -> Self {
        Self { floor, ..self }
    }

    /// With so much as the least cap. Default 500 ms.
    #[must_use]
    pub const fn with_least_cap(self, least_cap: Duration) -> Self {
        Self { least_cap, ..self }
    }

    /// With so much as the greatest cap. Default 5 s.
    #[must_use]
    pub const fn with_most_cap(self, most_cap: Duration) -> Self {
        Self { most_cap, ..self }
    }

    /// With the outage divided by this as the cap. Default 20. Zero is taken for one.
    #[must_use]
    pub const fn with_fraction(self, fraction: u32) -> Self {
        Self { fraction, ..self }
    }

    /// The cap of the ceiling for an outage of that length.
    pub fn cap(&self, outage: Duration) -> Duration {
        (outage / self.fraction.max(1)).min(self.most_cap).max(self.least_cap)
    }

    /// The greatest delay for an outage of that length. Never under `spread`, so that many clients do not stampede.
    pub fn ceiling(&self, outage: Duration, spread: Duration) -> Duration {
        outage.max(self.floor).min(self.cap(outage)).max(spread)
    }

    /// A delay: uniform in `[0, ceiling]`.
    pub fn delay(&self, now: &Now, outage: Duration, spread: Duration) -> Duration {
        now.jitter(self.ceiling(outage, spread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_set_by_its_name() {
        let n = Duration::from_secs;
        let backoff = Backoff::default().with_floor(n(1)).with_least_cap(n(2)).with_most_cap(n(3)).with_fraction(4);
        assert_eq!(backoff, Backoff { floor: n(1), least_cap: n(2), most_cap: n(3), fraction: 4 });
    }
}
