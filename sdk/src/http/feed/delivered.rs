//! What was delivered, to recognise it when it comes again.

use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// A digest of what was delivered.
#[derive(Clone, Default)]
pub(super) struct Digest(Sha256);

impl Digest {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn value(&self) -> [u8; 32] {
        self.0.clone().finalize().into()
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for Digest {}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

/// Which bytes of a log tell it from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Counted {
    All,
    /// All but CR: the service writes CR LF where the log has LF, unless the CR before it is of another answer.
    ButCr,
}

/// A stretch of what was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Delivered {
    counted: Counted,
    bytes: u64,
    digest: Digest,
    /// How many bytes it ends with that are not counted.
    ends: u64,
}

impl Delivered {
    /// Nothing yet.
    pub(super) fn new(counted: Counted) -> Self {
        Self { counted, bytes: 0, digest: Digest::default(), ends: 0 }
    }

    /// How many bytes of it are counted.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.counted.each_run(bytes, |run| {
            self.bytes += run.len() as u64;
            self.digest.update(run);
        });
        let rest = self.counted.end(bytes);
        self.ends = if rest == bytes.len() { self.ends + rest as u64 } else { rest as u64 };
    }
}

impl Counted {
    /// The bytes that are counted.
    fn each_run(self, bytes: &[u8], take: impl FnMut(&[u8])) {
        match self {
            Self::All => [bytes].into_iter().for_each(take),
            Self::ButCr => bytes.split(|byte| *byte == b'\r').for_each(take),
        }
    }

    /// Where the shortest end of `bytes` begins that has `enough` bytes that are counted.
    pub(super) fn last(self, enough: usize, bytes: &[u8]) -> Option<usize> {
        (0..bytes.len()).rev().filter(|&at| self.counts(bytes[at])).nth(enough.checked_sub(1)?)
    }

    /// How many bytes at the end are not counted.
    fn end(self, bytes: &[u8]) -> usize {
        bytes.iter().rev().take_while(|byte| !self.counts(**byte)).count()
    }

    fn counts(self, byte: u8) -> bool {
        match self {
            Self::All => true,
            Self::ButCr => byte != b'\r',
        }
    }
}

/// Compares what comes with what was delivered, and takes it off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Known {
    counted: Counted,
    digest: Digest,
    /// How many bytes that are counted are to come yet, and the digest of those that came.
    left: u64,
    came: Digest,
    /// How many bytes that are not counted may follow them.
    ends: u64,
}

/// What came is something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differs;

impl Known {
    pub(super) fn of(delivered: &Delivered) -> Self {
        let Delivered { counted, bytes: left, digest, ends } = delivered.clone();
        Self { counted, digest, left, came: Digest::default(), ends }
    }

    /// Whether all of it came.
    pub(super) fn is_whole(&self) -> bool {
        self.left == 0
    }

    /// Leaves of the next piece what is new.
    pub(super) fn take(&mut self, piece: &mut Bytes) -> Result<(), Differs> {
        let counted = self.counted;
        if self.left > 0 {
            let known = piece.split_to(self.within(piece));
            counted.each_run(&known, |run| {
                self.left -= run.len() as u64;
                self.came.update(run);
            });
            if self.left == 0 && self.came != self.digest {
                return Err(Differs);
            }
        }
        if self.left == 0 && self.ends > 0 {
            let others = piece.iter().take_while(|byte| !counted.counts(**byte)).count();
            let ends = others.min(usize::try_from(self.ends).unwrap_or(usize::MAX));
            drop(piece.split_to(ends));
            // What follows is new, whatever it is.
            self.ends = if piece.is_empty() { self.ends - ends as u64 } else { 0 };
        }
        Ok(())
    }

    /// How long the beginning of `piece` is that was delivered.
    fn within(&self, piece: &[u8]) -> usize {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        match self.counted {
            Counted::All => left.min(piece.len()),
            Counted::ButCr => {
                let mut counted = (0..piece.len()).filter(|&at| Counted::ButCr.counts(piece[at]));
                counted.nth(left - 1).map_or(piece.len(), |last| last + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of `again`, in pieces of `size`, after `before` was delivered.
    fn rest(counted: Counted, before: &str, again: &str, size: usize) -> Result<String, Differs> {
        let mut delivered = Delivered::new(counted);
        before.as_bytes().chunks(size).for_each(|piece| delivered.push(piece));
        let (mut known, mut rest) = (Known::of(&delivered), Vec::new());
        for piece in again.as_bytes().chunks(size) {
            let mut piece = Bytes::copy_from_slice(piece);
            known.take(&mut piece)?;
            rest.extend_from_slice(&piece);
        }
        let mut all = Delivered::new(counted);
        all.push(again.as_bytes());
        assert_eq!(known.is_whole(), delivered.bytes() <= all.bytes());
        Ok(String::from_utf8(rest).unwrap())
    }

    #[test]
    fn what_was_delivered_is_taken_off_however_it_is_cut() {
        for size in 1..8 {
            for counted in [Counted::All, Counted::ButCr] {
                let rest = |before, again| rest(counted, before, again, size);
                assert_eq!(rest("", "\rnew"), Ok("\rnew".into()));
                assert_eq!(rest("a\r\nb", "a\r\nbc"), Ok("c".into()));
                assert_eq!(rest("10%\r", "10%\r20%\r"), Ok("20%\r".into()));
                assert_eq!(rest("abc", "ab"), Ok(String::new()));
                assert_eq!(rest("abc", "abd"), Err(Differs));
            }
            // The CR before the LF was delivered, or was not, as the answers were cut.
            let rest = |before, again| rest(Counted::ButCr, before, again, size);
            assert_eq!(rest("10%\r", "10%\r\r\nend"), Ok("\r\nend".into()));
            assert_eq!(rest("10%\r", "10%\r\nend"), Ok("\nend".into()));
            assert_eq!(rest("10%\r\r\n", "10%\r\nend"), Ok("end".into()));
            assert_eq!(rest("10%", "10%\r\nend"), Ok("\r\nend".into()));
            assert_eq!(rest("\r\r", "\r\r\rend"), Ok("\rend".into()));
        }
    }
}
