//! Which part of a log an answer has.

/// The value of `Content-Range` (RFC 9110, 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentRange {
    /// The first byte and the last.
    pub(super) bytes: Option<(u64, u64)>,
    /// How many bytes there are in all.
    pub(super) total: Option<u64>,
}

impl ContentRange {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.split_once(' ')?;
        let (range, total) = rest.trim().split_once('/')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let total = match total {
            "*" => None,
            total => Some(total.parse().ok()?),
        };
        let bytes = match range {
            "*" => None,
            range => {
                let (first, last) = range.split_once('-')?;
                let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
                // The last byte of all lengths that can be counted.
                let last = Some(last).filter(|&last| first <= last && last < total.unwrap_or(u64::MAX))?;
                Some((first, last))
            }
        };
        Some(Self { bytes, total })
    }
}
