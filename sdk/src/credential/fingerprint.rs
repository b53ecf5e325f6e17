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

/// What a source of credentials is known by. Opaque: it tells nothing of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(pub(super) Fingerprint);

impl Identity {
    /// The identity of what `name` names, such as a path. Names of one kind are told from those of another.
    pub fn of(kind: &str, name: &str) -> Self {
        Self(Fingerprint::of(kind, name))
    }
}
