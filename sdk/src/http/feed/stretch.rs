//! Logs that are bytes: by range, by a service's own offset, whole, and at the end.

use ::http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE};
use ::http::{HeaderName, StatusCode};
use bytes::Bytes;
use url::Url;

use super::fetch::Form;
use super::item::{FeedItem, Position};
use super::kind::{OffsetParameter, Offsets};
use super::reader::{Ask, Digest, Head, Out, Reached, Reader, Stage, Then, Trouble, undecodable};
use crate::error::Cause;

/// How many bytes that were delivered are asked for again by range, to see that it is still the same log. One would tell
/// a log of the same length from one that is shorter; so many tell one that started anew and has grown past it.
const OVERLAP: usize = 64;

/// Reads a log of bytes on, from wherever it was cut.
///
/// Every answer that repeats what was delivered is compared with it: what is another log is never taken for the rest of
/// this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stretch {
    url: Url,
    means: Means,
    /// The service's offset of what follows next is `anchor`, plus `past` bytes. Zero but for a service's own offsets.
    anchor: u64,
    /// How many bytes after the anchor were delivered, and their digest.
    past: u64,
    digest: Digest,
    /// The last bytes that were delivered.
    tail: Vec<u8>,
    /// Bytes delivered since the log last started, and in all.
    delivered: u64,
    total: u64,
    /// The log was there once.
    seen: bool,
    /// Of the last answer that was read to its end.
    etag: Option<String>,
    /// The strong tag of the log that what was delivered is part of.
    tag: Option<String>,
    /// The service cannot say what it has by range, or has another log there, or the same with another tag: ask
    /// for the whole, until what was delivered is found at its beginning.
    whole_once: bool,
    answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Means {
    Range,
    Parameter(OffsetParameter),
    Whole,
    AtEnd,
}

/// The answer being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    /// By which byte the request began, by range.
    asked: Option<u64>,
    /// What it begins with was delivered.
    known: Known,
    /// How many bytes of the body came.
    came: u64,
    /// How many there must be, where that is stated.
    length: Option<u64>,
    /// Where its complete end leads.
    then: Leads,
    /// It brought something new.
    news: bool,
    etag: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Known {
    /// So many bytes more, whose digest must come out as that of what was delivered.
    Digested { left: u64, digest: Digest },
    /// So many bytes more, which are the last of the tail.
    Tail { left: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Leads {
    To(Reached),
    /// To the service's own offset, and there to that.
    Offset(u64, Reached),
}

impl Stretch {
    /// A log from a byte on.
    pub fn bytes(url: Url, offsets: Offsets) -> Self {
        Self::new(
            url,
            match offsets {
                Offsets::Range => Means::Range,
                Offsets::Parameter(parameter) => Means::Parameter(parameter),
            },
        )
    }

    /// A log that is given whole each time.
    pub fn whole(url: Url) -> Self {
        Self::new(url, Means::Whole)
    }

    /// A log that is given once, when the work is over.
    pub fn at_end(url: Url) -> Self {
        Self::new(url, Means::AtEnd)
    }

    fn new(url: Url, means: Means) -> Self {
        Self {
            url,
            means,
            anchor: 0,
            past: 0,
            digest: Digest::default(),
            tail: Vec::new(),
            delivered: 0,
            total: 0,
            seen: false,
            etag: None,
            tag: None,
            whole_once: false,
            answer: Answer::new(None),
        }
    }

    /// The whole of what follows the anchor comes.
    fn repeats(&self) -> Known {
        Known::Digested { left: self.past, digest: Digest::default() }
    }

    fn begins(&mut self, head: &Head<'_>, then: Leads) -> Result<Then, Trouble> {
        head.check(Form::Log)?;
        self.answer.known = self.repeats();
        self.answer.length = head.number(CONTENT_LENGTH.as_str());
        self.answer.etag = head.text(ETAG.as_str()).map(Into::into);
        self.answer.then = then;
        if self.answer.length.is_some_and(|length| length < self.past) {
            return Err(Trouble::Contradiction);
        }
        Ok(Then::Read)
    }

    /// Whether an answer is of another log, or of one that has changed otherwise than by growing at its end: its tag does
    /// not tell which.
    fn is_other(&self, head: &Head<'_>) -> bool {
        match (&self.tag, head.text(ETAG.as_str())) {
            (Some(tag), Some(other)) => tag != other,
            (None, _) | (_, None) => false,
        }
    }

    /// What was delivered has been found in the answer.
    fn recognised(&mut self) {
        self.whole_once = false;
        if let Some(etag) = &self.answer.etag {
            self.tag = Some(etag.clone()).filter(|etag| is_strong(etag));
        }
    }

    /// Asks for the whole at once, to compare it.
    fn whole_instead(&mut self) -> Then {
        self.whole_once = true;
        Then::Reached(Reached::More)
    }

    /// 206 (RFC 9110, 15.3.7).
    fn part(&mut self, head: &Head<'_>) -> Result<Then, Trouble> {
        head.check(Form::Log)?;
        if self.answer.asked.is_some() && self.is_other(head) {
            // It does not know `If-Range`. The bytes that are asked for again may look the same in both.
            return Ok(self.whole_instead());
        }
        let range = head.text(CONTENT_RANGE.as_str()).and_then(ContentRange::parse);
        let (Some(asked), Some(ContentRange { bytes: Some((first, last)), total })) = (self.answer.asked, range) else {
            return Err(undecodable("content-range: expected bytes first-last/length"));
        };
        if first != asked {
            return Err(undecodable("content-range: expected the first byte that was asked for"));
        }
        if total.is_some_and(|total| total < self.past) {
            return Err(Trouble::Contradiction);
        }
        let known = usize::try_from(self.past - asked).unwrap_or(usize::MAX);
        self.answer.known = Known::Tail { left: known };
        self.answer.length = Some(last - first + 1);
        self.answer.etag = head.text(ETAG.as_str()).map(Into::into);
        self.answer.then = match total {
            Some(total) if last + 1 < total => Leads::To(Reached::More),
            Some(_) | None => Leads::To(Reached::End),
        };
        Ok(Then::Read)
    }

    /// 416 (RFC 9110, 15.5.17): nothing new, or the log is shorter than what was delivered.
    fn beyond(&mut self, head: &Head<'_>) -> Result<Then, Trouble> {
        match head.text(CONTENT_RANGE.as_str()).and_then(ContentRange::parse) {
            Some(_) if self.is_other(head) => Ok(self.whole_instead()),
            Some(ContentRange { total: Some(total), .. }) if total == self.past => Ok(Then::Reached(Reached::End)),
            Some(ContentRange { total: Some(total), .. }) if total < self.past => Err(Trouble::Contradiction),
            // It does not say how long the log is, or refuses what it has.
            Some(_) | None => Ok(self.whole_instead()),
        }
    }

    fn offset(&mut self, head: &Head<'_>, parameter: &OffsetParameter) -> Result<Then, Trouble> {
        let Some(next) = head.number(&parameter.next) else {
            return Err(undecodable(&format!("{}: expected the next offset", parameter.next)));
        };
        // A start past the end silently begins at 0 again: then the next offset is below what was asked for.
        let Some(length) = next.checked_sub(self.anchor) else { return Err(Trouble::Contradiction) };
        if head.number(CONTENT_LENGTH.as_str()).is_some_and(|is| is > length || (parameter.exact && is != length)) {
            return Err(Trouble::Contradiction);
        }
        let reached = match &parameter.more {
            Some(more) if head.text(more).is_some_and(|more| more.eq_ignore_ascii_case("true")) => Reached::Later,
            Some(_) => Reached::Complete,
            None => Reached::End,
        };
        let then = self.begins(head, Leads::Offset(next, reached))?;
        if parameter.exact {
            self.answer.length = Some(length);
        }
        Ok(then)
    }

    fn deliver(&mut self, bytes: Bytes, out: &mut Out<Bytes>) {
        if bytes.is_empty() {
            return;
        }
        self.recognised();
        self.digest.update(&bytes);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(OVERLAP)..]);
        self.tail.drain(..self.tail.len().saturating_sub(OVERLAP));
        self.answer.news = true;
        let length = bytes.len() as u64;
        self.past += length;
        self.delivered += length;
        self.total += length;
        out.push(FeedItem::Item(bytes));
    }

    /// Takes off what was delivered before.
    fn skip(&mut self, piece: &mut Bytes) -> Result<(), Trouble> {
        match &mut self.answer.known {
            Known::Digested { left: 0, .. } => Ok(()),
            Known::Digested { left, digest } => {
                let known = piece.split_to(usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len()));
                digest.update(&known);
                *left -= known.len() as u64;
                if *left == 0 && *digest != self.digest { Err(Trouble::Contradiction) } else { Ok(()) }
            }
            Known::Tail { left } => {
                let known = piece.split_to((*left).min(piece.len()));
                let from = self.tail.len() - *left;
                *left -= known.len();
                if self.tail[from..].starts_with(&known) { Ok(()) } else { Err(Trouble::Contradiction) }
            }
        }
    }
}

impl Answer {
    fn new(asked: Option<u64>) -> Self {
        Self {
            asked,
            known: Known::Tail { left: 0 },
            came: 0,
            length: None,
            then: Leads::To(Reached::End),
            news: false,
            etag: None,
        }
    }
}

impl Reader for Stretch {
    type Item = Bytes;

    fn ask(&mut self, _: Stage) -> Ask {
        let mut ask = Ask::new(self.url.clone(), Form::Log);
        let mut asked = None;
        match &self.means {
            Means::Parameter(parameter) => ask = ask.parameter(&parameter.start, &self.anchor.to_string()),
            Means::Range if !self.tail.is_empty() && !self.whole_once => {
                let first = self.past - self.tail.len() as u64;
                asked = Some(first);
                ask = ask.header(RANGE, &format!("bytes={first}-"));
                if let Some(tag) = &self.tag {
                    // 13.1.5: of a log that is another one now the whole comes, and is compared.
                    ask = ask.header(IF_RANGE, tag);
                }
            }
            Means::Range | Means::Whole | Means::AtEnd => {}
        }
        if let Some(etag) = &self.etag {
            ask = ask.header(IF_NONE_MATCH, etag);
        }
        self.answer = Answer::new(asked);
        ask
    }

    fn head(&mut self, head: &Head<'_>, _: &mut Out<Bytes>) -> Result<Then, Trouble> {
        let end = Leads::To(Reached::End);
        let then = match (&self.means, head.status) {
            (Means::Range | Means::Whole, StatusCode::NOT_MODIFIED) if self.etag.is_some() => {
                Then::Reached(Reached::End)
            }
            (Means::Range, StatusCode::PARTIAL_CONTENT) => self.part(head)?,
            (Means::Range, StatusCode::RANGE_NOT_SATISFIABLE) if self.answer.asked.is_some() => self.beyond(head)?,
            (Means::Range | Means::Whole, StatusCode::OK | StatusCode::NO_CONTENT) => self.begins(head, end)?,
            (Means::AtEnd, StatusCode::OK) => self.begins(head, Leads::To(Reached::Complete))?,
            (Means::Parameter(parameter), StatusCode::OK) => {
                let parameter = parameter.clone();
                self.offset(head, &parameter)?
            }
            (Means::Range | Means::Parameter(_) | Means::Whole | Means::AtEnd, _) => {
                return Err(head.unserved(self.seen));
            }
        };
        self.seen = true;
        Ok(then)
    }

    fn piece(&mut self, mut piece: Bytes, out: &mut Out<Bytes>) -> Result<(), Trouble> {
        self.answer.came += piece.len() as u64;
        if self.answer.length.is_some_and(|length| self.answer.came > length) {
            return Err(match self.means {
                Means::Parameter(_) => Trouble::Contradiction,
                Means::Range | Means::Whole | Means::AtEnd => {
                    undecodable("body: expected as many bytes as were stated")
                }
            });
        }
        self.skip(&mut piece)?;
        self.deliver(piece, out);
        Ok(())
    }

    fn end(&mut self, _: &mut Out<Bytes>) -> Result<Reached, Trouble> {
        let short = self.answer.length.is_some_and(|length| self.answer.came < length);
        match self.answer.known {
            _ if short => return Err(Trouble::Unserved(Cause::Dropped { code: None })),
            Known::Digested { left: 1.., .. } => return Err(Trouble::Contradiction),
            Known::Digested { left: 0, .. } | Known::Tail { .. } => {}
        }
        self.recognised();
        self.etag = self.answer.etag.take();
        match self.answer.then {
            Leads::To(reached) => {
                if reached == Reached::More {
                    self.etag = None;
                    if !self.answer.news {
                        // It gives less at once than was asked for again: ask for less of it again.
                        if self.tail.len() <= 1 {
                            return Err(undecodable("content-range: expected more than one byte"));
                        }
                        self.tail.drain(..self.tail.len() - 1);
                    }
                }
                Ok(reached)
            }
            Leads::Offset(next, reached) => {
                self.etag = None;
                if self.anchor != next {
                    (self.anchor, self.past, self.digest) = (next, 0, Digest::default());
                }
                Ok(reached)
            }
        }
    }

    fn failed(&mut self) {
        // FC-21: what serves it next may be another life of the service, which counts its tags from 1 again.
        self.etag = None;
    }

    fn restart(&mut self, out: &mut Out<Bytes>) {
        out.push(FeedItem::Gap { from: Some(Position::Byte(self.delivered)), to: Some(Position::Byte(0)) });
        (self.anchor, self.past, self.delivered, self.digest) = (0, 0, 0, Digest::default());
        self.tail.clear();
        (self.etag, self.tag) = (None, None);
        self.whole_once = false;
    }

    fn bytes(&self) -> u64 {
        self.total
    }
}

/// Whether a tag is a strong one: only that says that bytes are the same (RFC 9110, 8.8.3 and 13.1.5).
fn is_strong(etag: &str) -> bool {
    etag.len() >= 2 && etag.starts_with('"') && etag.ends_with('"')
}

/// The value of `Content-Range` (RFC 9110, 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ContentRange {
    bytes: Option<(u64, u64)>,
    total: Option<u64>,
}

impl ContentRange {
    fn parse(text: &str) -> Option<Self> {
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

/// A header whose name is a setting.
pub(super) fn is_header_name(name: &str) -> bool {
    HeaderName::try_from(name).is_ok()
}
