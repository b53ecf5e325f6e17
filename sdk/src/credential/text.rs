//! The text that a source gives.

use secrecy::zeroize::Zeroizing;

/// The most that a source may give: 64 KiB.
pub(crate) const MOST: usize = 64 << 10;

/// What a source gave, wiped when it is dropped.
pub(crate) type Text = Zeroizing<Vec<u8>>;

/// Room for the most that is read and one byte more: what is never moved to a larger place leaves no copy behind.
pub(crate) fn room() -> Text {
    Zeroizing::new(Vec::with_capacity(MOST + 1))
}
