//! Where a log may be asked for.

use crate::http::feed::delivered::{Counted, Delivered};

/// How many bytes that were delivered have to come again to say that it is the same log.
pub(super) const ENOUGH: usize = 64;
/// How much may come again with each answer before an offset is taken that was not compared.
const TOO_MUCH: u64 = 16 << 10;

/// An offset of the service, and what was delivered since.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    pub(super) offset: u64,
    pub(super) since: Delivered,
}

/// An offset that may be the one of what was delivered since.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Guess {
    pub(super) mark: Mark,
    pub(super) source: Source,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// The service: there an answer ended.
    Named,
    /// The bytes of an answer, counted from where it began.
    Reckoned,
}

/// Offsets after the one that is known, and how far they are to be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Guesses {
    counted: Counted,
    /// At most two that were named, the oldest and the newest; then at most one that was reckoned.
    all: Vec<Guess>,
    /// Whether a CR before LF is in the answer only.
    inserts: bool,
    /// Whether what the service named was right each time, and what was reckoned was when it was tried last.
    named: bool,
    reckoned: bool,
    /// Which was wrong, unless the log is another one.
    suspected: Option<Source>,
}

impl Guesses {
    pub(super) fn new(counted: Counted) -> Self {
        let inserts = counted == Counted::ButCr;
        Self { counted, all: Vec::new(), inserts, named: true, reckoned: true, suspected: None }
    }

    /// More was delivered.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.all.iter_mut().for_each(|guess| guess.mark.since.push(bytes));
    }

    /// Where to ask, if not at `base`: the least that comes again, and is enough.
    pub(super) fn best(&mut self, base: &Mark) -> Option<Guess> {
        let too_much = base.since.bytes() > TOO_MUCH;
        self.reckoned |= too_much;
        let enough = |guess: &&Guess| guess.mark.since.bytes() >= ENOUGH as u64;
        let newest = self.all.iter().rfind(|guess| guess.source == Source::Named);
        self.all.iter().rfind(enough).or(newest.filter(|_| too_much && self.named)).cloned()
    }

    /// It was asked for, and something else came.
    pub(super) fn was_wrong(&mut self, guess: &Guess) {
        self.all.retain(|other| (other.source, other.mark.offset) != (guess.source, guess.mark.offset));
        self.suspected = Some(guess.source);
    }

    /// What was asked for came: it is the same log, so what was wrong before was the guess.
    pub(super) fn is_right(&mut self) {
        match self.suspected.take() {
            Some(Source::Named) => self.named = false,
            Some(Source::Reckoned) => self.reckoned = false,
            None => {}
        }
    }

    /// What is known came otherwise: whatever is guessed after it says nothing.
    pub(super) fn forget(&mut self) {
        self.all.clear();
        self.suspected = None;
    }

    /// Where an answer ended that began at `offset` and has `came` bytes, `pairs` CR LF among them, if the service goes on
    /// at `next`.
    pub(super) fn end(&mut self, offset: u64, came: u64, pairs: u64, next: u64) -> u64 {
        let length = next - offset;
        if (came - pairs..=came).contains(&length) {
            // It has sent what it counts.
            if self.counted == Counted::ButCr && pairs > 0 {
                self.inserts = length != came;
            }
            return next;
        }
        // The service chose the offset. What is reckoned is only a guess, so beyond all offsets the last will do.
        offset.saturating_add(self.sent(came, pairs))
    }

    /// How many bytes of the log are so many of an answer.
    fn sent(&self, came: u64, pairs: u64) -> u64 {
        if self.inserts { came - pairs } else { came }
    }

    /// After an answer that the service goes on after at `next`, and that ended at `end` with these bytes.
    pub(super) fn renew(&mut self, base: &Mark, next: u64, end: u64, last: Option<&[u8]>) {
        self.all.retain(|guess| guess.source == Source::Named && guess.mark.offset > base.offset);
        if self.all.last().map_or(base.offset, |last| last.mark.offset) < next {
            self.all.truncate(1);
            let mark = Mark { offset: next, since: Delivered::new(self.counted) };
            self.all.push(Guess { mark, source: Source::Named });
        }
        if let Some(bytes) = last.filter(|_| self.reckoned) {
            let mut since = Delivered::new(self.counted);
            since.push(bytes);
            let offset = end.saturating_sub(self.sent(bytes.len() as u64, super::pairs(bytes)));
            if offset > base.offset {
                self.all.push(Guess { mark: Mark { offset, since }, source: Source::Reckoned });
            }
        }
    }
}
