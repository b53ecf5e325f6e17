//! Numbers the credentials that a source gives.

/// Says which credential was sent without telling it: the same one has the same number, another one has another.
///
/// The machines count refusals by it (R3), and never see a credential. A source's own are numbered 1, 2, .. in the order in
/// which they appear; the default, zero, is of what is sent without a credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// The generation numbered `n`, for whoever drives a machine by hand.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The one that appears after this one.
    #[cfg(feature = "client")]
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
