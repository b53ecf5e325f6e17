//! The coding `deflate`: a zlib stream (RFC 1950), or the bare deflate data (RFC 1951) that some send under that name.

use flate2::{Decompress, FlushDecompress, Status};

use super::{Step, undecodable};
use crate::error::Cause;

#[derive(Debug)]
pub(super) struct Deflate {
    state: State,
}

#[derive(Debug)]
enum State {
    /// The first bytes, until there are two, which tell one form from the other.
    Start(Vec<u8>),
    /// The data.
    Data(Inflate),
    /// After its end.
    Ended,
}

impl Deflate {
    pub(super) fn new() -> Self {
        Self { state: State::Start(Vec::new()) }
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    pub(super) fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, Cause> {
        match &mut self.state {
            State::Start(held) => {
                let consumed = input.len().min(2 - held.len().min(2));
                held.extend_from_slice(&input[..consumed]);
                let [first, second] = **held else { return Ok(Step { consumed, produced: 0 }) };
                let mut inflate = Inflate::new(is_zlib(first, second));
                let (step, ended) = inflate.step(&[first, second], out)?;
                if step.consumed < 2 {
                    return Err(beyond());
                }
                self.state = if ended { State::Ended } else { State::Data(inflate) };
                Ok(Step { consumed, ..step })
            }
            State::Data(inflate) => {
                let (step, ended) = inflate.step(input, out)?;
                if ended {
                    self.state = State::Ended;
                }
                Ok(step)
            }
            State::Ended if input.is_empty() => Ok(Step::default()),
            State::Ended => Err(beyond()),
        }
    }
}

fn beyond() -> Cause {
    undecodable("expected the end of deflate data, got more bytes")
}

/// Whether these begin a zlib stream (RFC 1950, 2.2): method 8, a window of at most 32 KiB, and the check.
///
/// Bare data cannot begin like that: with those bits its first block would be a stored one, not the last, whose padding
/// is not zero.
fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

/// Deflate data.
#[derive(Debug)]
pub(super) struct Inflate(Decompress);

impl Inflate {
    pub(super) fn new(zlib: bool) -> Self {
        Self(Decompress::new(zlib))
    }

    /// Takes some of `input`, puts some into `out`, and says whether the data has ended.
    pub(super) fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<(Step, bool), Cause> {
        let (consumed, produced) = (self.0.total_in(), self.0.total_out());
        let status = self
            .0
            .decompress(input, out, FlushDecompress::None)
            .map_err(|_| undecodable("expected deflate data, got something else"))?;
        let step = Step {
            consumed: usize::try_from(self.0.total_in() - consumed).unwrap_or(input.len()),
            produced: usize::try_from(self.0.total_out() - produced).unwrap_or(out.len()),
        };
        match status {
            Status::StreamEnd => Ok((step, true)),
            Status::Ok | Status::BufError => Ok((step, false)),
        }
    }
}
