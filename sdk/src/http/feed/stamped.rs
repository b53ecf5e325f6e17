//! Logs whose lines start with their time.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use ::http::StatusCode;
use bytes::{Bytes, BytesMut};
use url::Url;

use super::delivered::Digest;
use super::item::Position;
use super::kind::Stamps;
use super::reader::{Ask, Growth, Head, Out, Reached, Reader, Then, Trouble};

/// How many late lines in a row are recognised when they come again.
const MOST_LATE: usize = 1024;

/// Reads a log from a time on.
///
/// It asks for the second of the newest line again, and takes off exactly the lines of that second, and after, that were
/// delivered: by their number and content, in order. A line that is older than that second is not asked for again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamped {
    url: Url,
    stamps: Stamps,
    /// The newest second that was delivered.
    anchor: Option<Stamp>,
    /// How many lines of that second were delivered, and their digest.
    past: u64,
    digest: Digest,
    /// Hashes of the lines after those that are older than that second. A service that goes by the time does not give
    /// them again, one that ignores it does.
    late: VecDeque<u64>,
    /// Of those, the ones that may come again in the answer.
    late_left: VecDeque<u64>,
    /// The lines of the answer that were delivered before: how many are to come, and their digest so far.
    left: u64,
    known: Digest,
    line: BytesMut,
    bound: usize,
    growth: Growth,
    seen: bool,
}

/// A whole second, as the log writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stamp {
    second: i64,
    text: Arc<str>,
}

impl Stamped {
    /// A log from a time on, of lines of at most `bound` bytes.
    pub(super) fn new(url: Url, stamps: Stamps, bound: usize) -> Self {
        Self {
            url,
            stamps,
            anchor: None,
            past: 0,
            digest: Digest::default(),
            late: VecDeque::new(),
            late_left: VecDeque::new(),
            left: 0,
            known: Digest::default(),
            line: BytesMut::new(),
            bound,
            growth: Growth::Open,
            seen: false,
        }
    }

    /// Takes one line, with its end. True if it is to be delivered.
    fn take(&mut self, line: &[u8]) -> Result<bool, Trouble> {
        let Some(stamp) = Stamp::of(line) else {
            // Such as an error in words, with status 200.
            return Err(Trouble::undecodable("line: expected a time (RFC 3339) and a space before it"));
        };
        let order = self.anchor.as_ref().map(|anchor| stamp.second.cmp(&anchor.second));
        if self.left > 0 {
            if order != Some(std::cmp::Ordering::Less) {
                self.known.update(line);
                self.left -= 1;
                if self.left == 0 && self.known != self.digest {
                    return Err(Trouble::Contradiction);
                }
            }
            return Ok(false);
        }
        match order {
            None | Some(std::cmp::Ordering::Greater) => {
                self.anchor = Some(stamp);
                (self.past, self.digest) = (1, Digest::default());
                self.digest.update(line);
                self.late.clear();
            }
            Some(std::cmp::Ordering::Equal) => {
                self.past += 1;
                self.digest.update(line);
                self.late.clear();
            }
            // Written late by another channel.
            Some(std::cmp::Ordering::Less) => {
                let hash = hash(line);
                if self.late_left.front() == Some(&hash) {
                    self.late_left.pop_front();
                    return Ok(false);
                }
                self.late.push_back(hash);
                if self.late.len() > MOST_LATE {
                    self.late.pop_front();
                }
            }
        }
        Ok(true)
    }
}

fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

impl Reader for Stamped {
    type Item = Bytes;

    fn ask(&mut self, growth: Growth) -> Ask {
        self.growth = growth;
        self.line.clear();
        (self.left, self.known) = (self.past, Digest::default());
        self.late_left.clone_from(&self.late);
        let mut ask = Ask::log(self.url.clone());
        if let Some(anchor) = &self.anchor {
            ask = ask.parameter(&self.stamps.since, &anchor.text);
        }
        if let (Some(follow), Growth::Open) = (&self.stamps.follow, growth) {
            ask = ask.parameter(follow, "true").going_on();
        }
        ask
    }

    fn head(&mut self, head: &Head<'_>, _: &mut Out<Bytes>) -> Result<Then, Trouble> {
        if head.status != StatusCode::OK {
            return Err(head.unserved(self.seen));
        }
        self.seen = true;
        Ok(Then::Read)
    }

    fn piece(&mut self, piece: Bytes, out: &mut Out<Bytes>) -> Result<(), Trouble> {
        let mut rest = &piece[..];
        let mut fresh = BytesMut::new();
        let mut result = Ok(());
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (head, tail) = rest.split_at(end + 1);
            rest = tail;
            self.line.extend_from_slice(head);
            let line = self.line.split();
            match self.take(&line) {
                Ok(true) => fresh.extend_from_slice(&line),
                Ok(false) => {}
                Err(trouble) => {
                    result = Err(trouble);
                    break;
                }
            }
        }
        if !fresh.is_empty() {
            out.item(fresh.freeze());
        }
        result?;
        self.line.extend_from_slice(rest);
        if self.line.len() > self.bound {
            return Err(Trouble::undecodable(format_args!("line: expected at most {} bytes", self.bound)));
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out<Bytes>) -> Result<Reached, Trouble> {
        if self.growth == Growth::Over && !self.line.is_empty() {
            let line = self.line.split();
            if self.take(&line)? {
                out.item(line.freeze());
            }
        }
        // A line without its end may still grow: it comes again with the next answer.
        if self.left > 0 { Err(Trouble::Contradiction) } else { Ok(Reached::End) }
    }

    fn restart(&mut self, out: &mut Out<Bytes>) {
        let at = self.anchor.as_ref().map(|anchor| Position::Time(Arc::clone(&anchor.text)));
        out.gap(at.clone(), at);
        (self.past, self.digest) = (0, Digest::default());
        self.late.clear();
    }

    fn size(item: &Bytes) -> usize {
        item.len()
    }
}

impl Stamp {
    /// The second of a line that starts with a time of RFC 3339 and a space.
    fn of(line: &[u8]) -> Option<Self> {
        let end = line.iter().position(|&b| b == b' ' || b == b'\n').filter(|&end| end <= 64)?;
        let text = std::str::from_utf8(&line[..end]).ok()?;
        let (second, zone) = text.split_at_checked(19)?;
        let zone = match zone.strip_prefix('.') {
            Some(fraction) => {
                let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
                if digits == 0 {
                    return None;
                }
                &fraction[digits..]
            }
            None => zone,
        };
        let field = |from: usize, to: usize| -> Option<i64> {
            second.get(from..to).filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
        };
        let marks = second.as_bytes();
        if (marks[4], marks[7], marks[13], marks[16]) != (b'-', b'-', b':', b':') || !matches!(marks[10], b'T' | b't') {
            return None;
        }
        let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
        let (hour, minute, sec) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || sec > 60 {
            return None;
        }
        let offset = match zone.as_bytes() {
            [b'Z' | b'z'] => 0,
            [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] if [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()) => {
                let digit = |b: &u8| i64::from(b - b'0');
                let minutes = (digit(h1) * 10 + digit(h2)) * 60 + digit(m1) * 10 + digit(m2);
                if *sign == b'+' { minutes * 60 } else { -minutes * 60 }
            }
            _ => return None,
        };
        // Days since 1970 of the proleptic Gregorian calendar, in years that begin in March.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
        let utc = days * 86_400 + hour * 3600 + minute * 60 + sec - offset;
        Some(Self { second: utc, text: format!("{second}{zone}").into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_a_second_whatever_its_fraction_and_zone() {
        let second = |line: &str| Stamp::of(line.as_bytes()).map(|stamp| stamp.second);
        assert_eq!(second("1970-01-01T00:00:00Z x"), Some(0));
        assert_eq!(second("2025-11-30T12:34:56.123456789Z x\n"), Some(1_764_506_096));
        assert_eq!(second("2025-11-30T14:34:56.9+02:00 x"), Some(1_764_506_096));
        assert_eq!(second("2024-02-29T23:59:59-01:30 x"), Some(1_709_256_599));
        assert_eq!(second("2000-03-01T00:00:00Z\n"), Some(951_868_800));
        let stamp = Stamp::of(b"2025-11-30T14:34:56.9+02:00 x").unwrap();
        assert_eq!(&*stamp.text, "2025-11-30T14:34:56+02:00");
        for not in [
            "",
            "x",
            "2025-11-30 12:34:56Z x",
            "2025-11-30T12:34:56 x",
            "2025-13-30T12:34:56Z x",
            "2025-11-30T12:34:56.Z x",
        ] {
            assert_eq!(second(not), None, "{not}");
        }
    }
}
