//! Which keys are taken, by the time at which they were minted (S3).

use std::time::Duration;

use crate::machine::Wall;

/// How long keys are remembered, and how wrong clocks may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Admission {
    /// R.
    pub(crate) retention: Duration,
    /// sigma, the bound on the error of any one clock.
    pub(crate) sigma: Duration,
}

impl Admission {
    /// Whether a key without a record may get one: -2 sigma <= now - minted <= R.
    ///
    /// Beyond R its record may have been forgotten, so it could run twice. A client stops resending
    /// 2 sigma earlier (W2), and records stay 2 sigma longer, so no clock error opens a gap.
    pub(crate) fn admits(&self, now: Wall, minted: Wall) -> bool {
        minted.since(now) <= 2 * self.sigma && now.since(minted) <= self.retention
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3: a key is admitted iff -2 sigma <= now - minted_at <= R.
    #[test]
    fn s3_admission_is_a_closed_interval() {
        let admission = Admission { retention: Duration::from_millis(1_000), sigma: Duration::from_millis(10) };
        let now = Wall::from_millis(5_000);
        let admits = |minted| admission.admits(now, Wall::from_millis(minted));
        assert!(admits(5_000) && admits(4_000) && admits(5_020));
        assert!(!admits(3_999) && !admits(5_021) && !admits(0) && !admits(u64::MAX));
    }
}
