//! Logs by a service's own offsets.

mod guesses;

use ::http::header::CONTENT_LENGTH;
use ::http::{HeaderName, StatusCode};
use bytes::Bytes;
use url::Url;

use self::guesses::{ENOUGH, Guess, Guesses, Mark};
use super::delivered::{Counted, Delivered, Known};
use super::item::Position;
use super::kind::OffsetParameter;
use super::reader::{Ask, Growth, Head, Out, Reached, Reader, Then, Trouble};
use crate::error::{Cause, Error};

/// How many bytes of the end of an answer are looked through for a place to ask from.
const LOOKED_THROUGH: usize = 4096;

/// Reads a log by a service's own offsets, from wherever it was cut.
///
/// What was delivered last is asked for again and compared, so that a log that started anew is noticed however long it is
/// by then. At its end the log is compared as a whole.
///
/// Where to ask is not simply where the service says to go on. Jenkins counts what it does not send: hidden notes, and
/// since 2025 a line without an end and whatever is beyond 10,000 lines (jenkinsci/jenkins#26739), and sends CR that it
/// does not count. So an offset is a guess until the text that follows it is the one that was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Progressive {
    url: Url,
    parameter: OffsetParameter,
    /// The longest log that is compared as a whole.
    most: u64,
    /// Everything that was delivered since the log last started.
    whole: Delivered,
    /// From here on it can be asked for.
    base: Mark,
    guesses: Guesses,
    /// All of `whole` was found in one answer, or one after the other.
    proved: bool,
    /// How far the comparison of the whole has come.
    proof: Option<(u64, Known)>,
    /// Bytes delivered since the log last started.
    delivered: u64,
    growth: Growth,
    seen: bool,
    answer: Answer,
}

/// The answer being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    from: From,
    offset: u64,
    known: Known,
    /// What it begins with is not what was guessed.
    astray: bool,
    /// How many bytes of the body came, how many CR LF are among them, and the last ones.
    came: u64,
    pairs: u64,
    tail: Vec<u8>,
    /// How many bytes there must be, where that is stated.
    length: Option<u64>,
    /// Where the service says to go on, and how far that is.
    next: u64,
    reached: Reached,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum From {
    Base,
    Guess(Guess),
    /// The whole, to compare it.
    Proof,
}

impl Progressive {
    /// A log that is compared as a whole at its end if it has at most `most` bytes.
    ///
    /// # Errors
    /// When a setting is not what it is to be.
    pub(super) fn new(url: Url, parameter: OffsetParameter, most: u64) -> Result<Self, Error> {
        for (field, name) in [("log.next", Some(&parameter.next)), ("log.more", parameter.more.as_ref())] {
            if name.is_some_and(|name| HeaderName::try_from(name).is_err()) {
                return Err(Error::invalid(field, "the name of a header"));
            }
        }
        Ok(Self::unread(url, parameter, most))
    }

    fn unread(url: Url, parameter: OffsetParameter, most: u64) -> Self {
        let counted = counted(&parameter);
        let whole = Delivered::new(counted);
        let base = Mark { offset: 0, since: whole.clone() };
        let answer = Answer::new(From::Base, 0, Known::of(&whole));
        Self {
            url,
            most,
            whole,
            base,
            guesses: Guesses::new(counted),
            parameter,
            proved: true,
            proof: None,
            delivered: 0,
            growth: Growth::Open,
            seen: false,
            answer,
        }
    }

    fn counted(&self) -> Counted {
        counted(&self.parameter)
    }

    /// What came is not what was asked for. What was no more than a guess is asked for elsewhere at once.
    fn strays(&mut self) -> Result<Then, Trouble> {
        match &self.answer.from {
            From::Guess(guess) => {
                self.guesses.was_wrong(guess);
                Ok(Then::Reached(Reached::More))
            }
            From::Base | From::Proof => {
                self.guesses.forget();
                if self.proof.is_some() {
                    self.proof = Some((0, Known::of(&self.whole)));
                }
                Err(Trouble::Contradiction)
            }
        }
    }

    fn headed(&mut self, head: &Head<'_>) -> Result<Then, Trouble> {
        let Some(next) = head.number(&self.parameter.next) else {
            return Err(Trouble::undecodable(format_args!("{}: expected the next offset", self.parameter.next)));
        };
        // A start past the end silently begins at 0 again: then the next offset is below what was asked for.
        let Some(length) = next.checked_sub(self.answer.offset) else { return self.strays() };
        let stated = head.number(CONTENT_LENGTH.as_str());
        if self.parameter.exact && stated.is_some_and(|stated| stated != length) {
            return self.strays();
        }
        self.answer.length = if self.parameter.exact { Some(length) } else { stated };
        self.answer.next = next;
        self.answer.reached = match &self.parameter.more {
            Some(more) if head.text(more).is_some_and(|more| more.eq_ignore_ascii_case("true")) => Reached::Later,
            Some(_) => Reached::Complete,
            None => Reached::End,
        };
        Ok(Then::Read)
    }

    fn deliver(&mut self, bytes: Bytes, out: &mut Out<Bytes>) {
        if bytes.is_empty() {
            return;
        }
        self.whole.push(&bytes);
        self.base.since.push(&bytes);
        self.guesses.push(&bytes);
        if let From::Guess(guess) = &mut self.answer.from {
            guess.mark.since.push(&bytes);
        }
        self.delivered += bytes.len() as u64;
        out.item(bytes);
    }

    /// All of the answer was taken.
    fn took(&mut self) -> Reached {
        let Answer { from, offset, came, pairs, next, reached, .. } = &self.answer;
        self.guesses.is_right();
        let end = self.guesses.end(*offset, *came, *pairs, *next);
        // What is before it may have changed.
        self.proved = match from {
            From::Proof => true,
            From::Base | From::Guess(_) => *offset == 0,
        };
        match from {
            From::Proof => self.proof = None,
            From::Guess(guess) => self.base = guess.mark.clone(),
            From::Base => {}
        }
        self.guesses.renew(&self.base, *next, end, self.answer.last(self.counted()));
        let ends = *reached == Reached::Complete || (*reached == Reached::End && self.growth == Growth::Over);
        if ends && !self.proved && self.delivered <= self.most {
            self.proof = Some((0, Known::of(&self.whole)));
            return Reached::More;
        }
        *reached
    }
}

impl Answer {
    fn new(from: From, offset: u64, known: Known) -> Self {
        Self {
            from,
            offset,
            known,
            astray: false,
            came: 0,
            pairs: 0,
            tail: Vec::new(),
            length: None,
            next: offset,
            reached: Reached::End,
        }
    }

    fn push(&mut self, piece: &[u8]) {
        let after_cr = self.tail.last() == Some(&b'\r') && piece.first() == Some(&b'\n');
        self.pairs += pairs(piece) + u64::from(after_cr);
        self.came += piece.len() as u64;
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(LOOKED_THROUGH)..]);
        self.tail.drain(..self.tail.len().saturating_sub(LOOKED_THROUGH));
    }

    /// Its last bytes that are enough to be recognised: of what is not exactly the log, whole lines.
    fn last(&self, counted: Counted) -> Option<&[u8]> {
        let last = counted.last(ENOUGH, &self.tail)?;
        let at = match counted {
            Counted::All => last,
            Counted::ButCr => self.tail[..last].iter().rposition(|byte| *byte == b'\n')? + 1,
        };
        Some(&self.tail[at..])
    }
}

fn counted(parameter: &OffsetParameter) -> Counted {
    if parameter.exact { Counted::All } else { Counted::ButCr }
}

/// How many CR LF there are.
fn pairs(bytes: &[u8]) -> u64 {
    bytes.windows(2).filter(|pair| pair == b"\r\n").count() as u64
}

impl Reader for Progressive {
    type Item = Bytes;

    fn ask(&mut self, growth: Growth) -> Ask {
        self.growth = growth;
        let (from, offset, known) = match (&self.proof, self.guesses.best(&self.base)) {
            (Some((offset, known)), _) => (From::Proof, *offset, known.clone()),
            (None, Some(guess)) => {
                let (offset, known) = (guess.mark.offset, Known::of(&guess.mark.since));
                (From::Guess(guess), offset, known)
            }
            (None, None) => (From::Base, self.base.offset, Known::of(&self.base.since)),
        };
        self.answer = Answer::new(from, offset, known);
        Ask::log(self.url.clone()).parameter(&self.parameter.start, &offset.to_string())
    }

    fn head(&mut self, head: &Head<'_>, _: &mut Out<Bytes>) -> Result<Then, Trouble> {
        if head.status != StatusCode::OK {
            return Err(head.unserved(self.seen));
        }
        let then = self.headed(head)?;
        self.seen = true;
        Ok(then)
    }

    fn piece(&mut self, mut piece: Bytes, out: &mut Out<Bytes>) -> Result<(), Trouble> {
        if self.answer.astray {
            return Ok(());
        }
        self.answer.push(&piece);
        let too_long = self.answer.length.is_some_and(|length| self.answer.came > length);
        if too_long || self.answer.known.take(&mut piece).is_err() {
            self.answer.astray = true;
            return self.strays().map(drop);
        }
        self.deliver(piece, out);
        Ok(())
    }

    fn end(&mut self, _: &mut Out<Bytes>) -> Result<Reached, Trouble> {
        if self.answer.astray {
            return Ok(Reached::More);
        }
        if self.answer.length.is_some_and(|length| self.answer.came < length) {
            return Err(Trouble::Unserved(Cause::Dropped { code: None }));
        }
        if !self.answer.known.is_whole() {
            if self.answer.from == From::Proof && self.answer.next > self.answer.offset {
                // It gives less than the whole at once.
                self.proof = Some((self.answer.next, self.answer.known.clone()));
                return Ok(Reached::More);
            }
            return self.strays().map(|_| Reached::More);
        }
        Ok(self.took())
    }

    fn restart(&mut self, out: &mut Out<Bytes>) {
        out.gap(Position::Byte(self.delivered), Position::Byte(0));
        let fresh = Self::unread(self.url.clone(), self.parameter.clone(), self.most);
        *self = Self { seen: self.seen, growth: self.growth, ..fresh };
    }

    fn size(item: &Bytes) -> usize {
        item.len()
    }
}
