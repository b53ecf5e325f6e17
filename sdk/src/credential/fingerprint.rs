//! Names a credential without telling it.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// SHA-256 over the header of a credential. It is not printed: a weak secret could be guessed from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of the header `name` with `value`.
    pub(crate) fn of(name: &str, value: &str) -> Self {
        // The name of a header has no NUL, so the two cannot run into each other.
        Self(Sha256::new().chain_update(name).chain_update([0]).chain_update(value).finalize().into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(..)")
    }
}
