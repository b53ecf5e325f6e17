//! Logs that are bytes: by range, whole, and at the end.

mod range;

use ::http::StatusCode;
use ::http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE};
use bytes::Bytes;
use url::Url;

use self::range::ContentRange;
use super::delivered::{Counted, Delivered, Known};
use super::item::Position;
use super::reader::{Ask, Growth, Head, Out, Reached, Reader, Then, Trouble};
use crate::error::Cause;

/// How many bytes that were delivered are asked for again by range, to see that it is still the same log. One would tell
/// a log of the same length from one that is shorter; so many tell one that started anew and has grown past it.
const OVERLAP: usize = 64;

/// Reads a log of bytes on, from wherever it was cut.
///
/// Every answer that repeats what was delivered is compared with it: what is another log is never taken for the rest of
/// this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stretch {
    url: Url,
    means: Means,
    /// Everything that was delivered since the log last started.
    whole: Delivered,
    /// The last bytes of it.
    tail: Vec<u8>,
    /// The log was there once.
    seen: bool,
    /// Of the last answer that was read to its end.
    etag: Option<String>,
    /// The strong tag of the log that what was delivered is part of.
    tag: Option<String>,
    /// All of `whole` was found in one log: in one answer, or in several of the same strong tag.
    proved: bool,
    /// The service cannot say what it has by range, or has another log there, or the same with another tag; or the log
    /// is at its end and not proved: ask for the whole, until what was delivered is found at its beginning.
    whole_once: bool,
    growth: Growth,
    answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Means {
    /// A log of at most so many bytes is proved.
    Range(u64),
    Whole,
    AtEnd,
}

/// The answer being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    /// By which byte the request began, by range.
    asked: Option<u64>,
    /// What it begins with was delivered.
    begins: Begins,
    /// How many bytes of the body came.
    came: u64,
    /// How many there must be, where that is stated.
    length: Option<u64>,
    /// Where its complete end leads.
    reached: Reached,
    /// It brought something new.
    news: bool,
    etag: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Begins {
    WithAll(Box<Known>),
    /// So many bytes more, which are the last of the tail.
    WithTail(usize),
}

impl Stretch {
    /// A log by `Range` (RFC 9110, 14), which is compared as a whole at its end if it has at most `most` bytes.
    pub(super) fn range(url: Url, most: u64) -> Self {
        Self::new(url, Means::Range(most))
    }

    /// A log that is given whole each time.
    pub(super) fn whole(url: Url) -> Self {
        Self::new(url, Means::Whole)
    }

    /// A log that is given once, when the work is over.
    pub(super) fn at_end(url: Url) -> Self {
        Self::new(url, Means::AtEnd)
    }

    fn new(url: Url, means: Means) -> Self {
        Self {
            url,
            means,
            whole: Delivered::new(Counted::All),
            tail: Vec::new(),
            seen: false,
            etag: None,
            tag: None,
            proved: true,
            whole_once: false,
            growth: Growth::Open,
            answer: Answer::new(None),
        }
    }

    /// The whole comes.
    fn all(&mut self, head: &Head<'_>, reached: Reached) -> Result<Then, Trouble> {
        if matches!(self.means, Means::Range(_)) && head.is_encoded() {
            // Its ranges are those of what it sends, which say nothing of the log (RFC 9110, 14.1.2).
            self.means = Means::Whole;
        }
        self.answer.begins = Begins::WithAll(Box::new(Known::of(&self.whole)));
        self.answer.length = head.number(CONTENT_LENGTH.as_str());
        self.answer.etag = head.text(ETAG.as_str()).map(Into::into);
        self.answer.reached = reached;
        if self.answer.length.is_some_and(|length| length < self.whole.bytes()) {
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

    /// Whether an answer is certainly of the log that what was delivered is part of.
    fn is_same(&self, head: &Head<'_>) -> bool {
        self.tag.is_some() && self.tag.as_deref() == head.text(ETAG.as_str())
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
        if self.answer.asked.is_some() && (self.is_other(head) || head.is_encoded()) {
            // It does not know `If-Range`, and the bytes that are asked for again may look the same in both; or its bytes
            // are not those of the log.
            return Ok(self.whole_instead());
        }
        let range = head.text(CONTENT_RANGE.as_str()).and_then(ContentRange::parse);
        let (Some(asked), Some(ContentRange { bytes: Some((first, last)), total })) = (self.answer.asked, range) else {
            return Err(Trouble::undecodable("content-range: expected bytes first-last/length"));
        };
        if first != asked {
            return Err(Trouble::undecodable("content-range: expected the first byte that was asked for"));
        }
        if total.is_some_and(|total| total < self.whole.bytes()) {
            return Ok(self.whole_instead());
        }
        self.proved &= self.is_same(head);
        self.answer.begins = Begins::WithTail(usize::try_from(self.whole.bytes() - asked).unwrap_or(usize::MAX));
        self.answer.length = Some(last - first + 1);
        self.answer.etag = head.text(ETAG.as_str()).map(Into::into);
        self.answer.reached = match total {
            Some(total) if last + 1 < total => Reached::More,
            Some(_) | None => Reached::End,
        };
        Ok(Then::Read)
    }

    /// 416 (RFC 9110, 15.5.17): nothing new; or the log is shorter than what was delivered, or encoded there.
    fn beyond(&mut self, head: &Head<'_>) -> Then {
        match head.text(CONTENT_RANGE.as_str()).and_then(ContentRange::parse) {
            Some(ContentRange { total: Some(total), .. }) if total == self.whole.bytes() && !self.is_other(head) => {
                self.proved &= self.is_same(head);
                Then::Reached(self.proving(Reached::End))
            }
            // It has another log there, does not say how long it is, or refuses what it has.
            Some(_) | None => self.whole_instead(),
        }
    }

    /// Whether this is the last look at a log that is short enough to be compared as a whole.
    fn may_prove(&self) -> bool {
        match self.means {
            Means::Range(most) => self.growth == Growth::Over && (1..=most).contains(&self.whole.bytes()),
            Means::Whole | Means::AtEnd => false,
        }
    }

    /// A log that was read in parts is compared before its end is taken for one.
    fn proving(&mut self, reached: Reached) -> Reached {
        if reached == Reached::End && !self.proved && self.may_prove() {
            self.whole_once = true;
            return Reached::More;
        }
        reached
    }

    fn deliver(&mut self, bytes: Bytes, out: &mut Out<Bytes>) {
        if bytes.is_empty() {
            return;
        }
        self.recognised();
        self.whole.push(&bytes);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(OVERLAP)..]);
        self.tail.drain(..self.tail.len().saturating_sub(OVERLAP));
        self.answer.news = true;
        out.item(bytes);
    }

    /// Takes off what was delivered before.
    fn skip(&mut self, piece: &mut Bytes) -> Result<(), Trouble> {
        match &mut self.answer.begins {
            Begins::WithAll(known) => known.take(piece).map_err(|_| Trouble::Contradiction),
            Begins::WithTail(left) => {
                let known = piece.split_to((*left).min(piece.len()));
                let from = self.tail.len() - *left;
                *left -= known.len();
                if self.tail[from..].starts_with(&known) {
                    return Ok(());
                }
                // A part need not say that it is one of what is encoded (15.3.7): the whole decides.
                self.whole_once = true;
                Err(Trouble::Contradiction)
            }
        }
    }
}

impl Answer {
    fn new(asked: Option<u64>) -> Self {
        Self {
            asked,
            begins: Begins::WithTail(0),
            came: 0,
            length: None,
            reached: Reached::End,
            news: false,
            etag: None,
        }
    }
}

impl Reader for Stretch {
    type Item = Bytes;

    fn ask(&mut self, growth: Growth) -> Ask {
        self.growth = growth;
        // A part without a strong tag would prove nothing.
        self.whole_once |= self.may_prove() && !(self.proved && self.tag.is_some());
        let mut ask = Ask::log(self.url.clone());
        let mut asked = None;
        match self.means {
            Means::Range(_) if !self.tail.is_empty() && !self.whole_once => {
                let first = self.whole.bytes() - self.tail.len() as u64;
                asked = Some(first);
                ask = ask.header(RANGE, &format!("bytes={first}-"));
                if let Some(tag) = &self.tag {
                    // 13.1.5: of a log that is another one now the whole comes, and is compared.
                    ask = ask.header(IF_RANGE, tag);
                }
            }
            Means::Range(_) | Means::Whole | Means::AtEnd => {}
        }
        if let Some(etag) = self.etag.as_ref().filter(|_| !self.whole_once) {
            ask = ask.header(IF_NONE_MATCH, etag);
        }
        self.answer = Answer::new(asked);
        ask
    }

    fn head(&mut self, head: &Head<'_>, _: &mut Out<Bytes>) -> Result<Then, Trouble> {
        let then = match (self.means, head.status) {
            (Means::Range(_) | Means::Whole, StatusCode::NOT_MODIFIED) if self.etag.is_some() && !self.whole_once => {
                Then::Reached(self.proving(Reached::End))
            }
            (Means::Range(_), StatusCode::PARTIAL_CONTENT) => self.part(head)?,
            (Means::Range(_), StatusCode::RANGE_NOT_SATISFIABLE) if self.answer.asked.is_some() => self.beyond(head),
            (Means::Range(_) | Means::Whole, StatusCode::OK | StatusCode::NO_CONTENT) => {
                self.all(head, Reached::End)?
            }
            (Means::AtEnd, StatusCode::OK) => self.all(head, Reached::Complete)?,
            (Means::Range(_) | Means::Whole | Means::AtEnd, _) => return Err(head.unserved(self.seen)),
        };
        self.seen = true;
        Ok(then)
    }

    fn piece(&mut self, mut piece: Bytes, out: &mut Out<Bytes>) -> Result<(), Trouble> {
        self.answer.came += piece.len() as u64;
        if self.answer.length.is_some_and(|length| self.answer.came > length) {
            return Err(Trouble::undecodable("body: expected as many bytes as were stated"));
        }
        self.skip(&mut piece)?;
        self.deliver(piece, out);
        Ok(())
    }

    fn end(&mut self, _: &mut Out<Bytes>) -> Result<Reached, Trouble> {
        if self.answer.length.is_some_and(|length| self.answer.came < length) {
            return Err(Trouble::Unserved(Cause::Dropped { code: None }));
        }
        match &self.answer.begins {
            Begins::WithAll(known) if !known.is_whole() => return Err(Trouble::Contradiction),
            Begins::WithAll(_) => self.proved = true,
            Begins::WithTail(_) => {}
        }
        self.recognised();
        self.etag = self.answer.etag.take();
        if self.answer.reached == Reached::More {
            self.etag = None;
            if !self.answer.news {
                // It gives less at once than was asked for again: ask for less of it again.
                if self.tail.len() <= 1 {
                    return Err(Trouble::undecodable("content-range: expected more than one byte"));
                }
                self.tail.drain(..self.tail.len() - 1);
            }
        }
        Ok(self.proving(self.answer.reached))
    }

    fn failed(&mut self) {
        // FC-21: what serves it next may be another life of the service, which counts its tags from 1 again.
        self.etag = None;
        self.proved = false;
    }

    fn restart(&mut self, out: &mut Out<Bytes>) {
        out.gap(Position::Byte(self.whole.bytes()), Position::Byte(0));
        let fresh = Self::new(self.url.clone(), self.means);
        *self = Self { seen: self.seen, growth: self.growth, ..fresh };
    }

    fn size(item: &Bytes) -> usize {
        item.len()
    }
}

/// Whether a tag is a strong one: only that says that bytes are the same (RFC 9110, 8.8.3 and 13.1.5).
fn is_strong(etag: &str) -> bool {
    etag.len() >= 2 && etag.starts_with('"') && etag.ends_with('"')
}
