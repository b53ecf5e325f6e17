//! Which keys are taken, by the time at which they were minted (S3).

use std::time::Duration;

use super::refused;
use crate::machine::Wall;
use crate::wire::Refused;

/// How long keys are remembered, and how wrong clocks may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Admission {
    /// R.
    pub(crate) retention: Duration,
    /// sigma, the bound on the error of any one clock.
    pub(crate) sigma: Duration,
}

impl Admission {
    /// Why a key without a record may not get one, unless -2 sigma <= now - minted <= R.
    ///
    /// Beyond R its record may have been forgotten, so it could run twice. A client stops resending
    /// 2 sigma earlier (W2), and records are kept at least that much longer, so no clock error opens a gap. A key from the
    /// future is a client's clock that is wrong by more than is allowed for, and is told so.
    pub(crate) fn refusal(&self, now: Wall, minted: Wall) -> Option<Refused> {
        let ahead = minted.since(now);
        if ahead > 2 * self.sigma {
            return Some(refused::from_the_future(ahead, 2 * self.sigma));
        }
        (now.since(minted) > self.retention).then(refused::expired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RefusalCode;

    /// S3: a key is admitted iff -2 sigma <= now - minted_at <= R.
    #[test]
    fn s3_admission_is_a_closed_interval() {
        let admission = Admission { retention: Duration::from_millis(1_000), sigma: Duration::from_millis(10) };
        let now = Wall::from_millis(5_000);
        let refused = |minted| admission.refusal(now, Wall::from_millis(minted)).map(|refused| refused.code);
        assert_eq!([refused(5_000), refused(4_000), refused(5_020)], [None; 3]);
        assert_eq!([refused(3_999), refused(0)], [Some(RefusalCode::Expired); 2]);
        assert_eq!([refused(5_021), refused(u64::MAX)], [Some(RefusalCode::Invalid); 2]);
    }
}
