//! The coding `gzip` (RFC 1952): members, each with a header, deflate data, a checksum and a length.

use flate2::Crc;

use super::deflate::Inflate;
use super::{Step, undecodable};
use crate::error::Cause;

/// A longer header is refused: honest ones hold a file name at most.
const LONGEST_HEADER: usize = 4 * 1024;

#[derive(Debug)]
pub(super) struct Gzip {
    state: State,
    members: u64,
}

#[derive(Debug)]
enum State {
    /// The header, as far as it has come; nothing of it between two members.
    Header(Vec<u8>),
    /// The data.
    Data { inflate: Inflate, sum: Crc },
    /// The checksum and the length, as far as they have come.
    Trailer { came: Vec<u8>, sum: Crc },
}

impl Gzip {
    pub(super) fn new() -> Self {
        Self { state: State::Header(Vec::new()), members: 0 }
    }

    /// Whether the body may end here: after a member, or after several.
    pub(super) fn is_complete(&self) -> bool {
        match &self.state {
            State::Header(came) => came.is_empty() && self.members > 0,
            State::Data { .. } | State::Trailer { .. } => false,
        }
    }

    pub(super) fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, Cause> {
        match &mut self.state {
            State::Header(came) => {
                let before = came.len();
                came.extend_from_slice(&input[..input.len().min(LONGEST_HEADER - before)]);
                match header(came) {
                    Header::Whole(length) => {
                        self.state = State::Data { inflate: Inflate::new(false), sum: Crc::new() };
                        Ok(Step { consumed: length - before, produced: 0 })
                    }
                    Header::Partial if came.len() < LONGEST_HEADER => Ok(Step { consumed: input.len(), produced: 0 }),
                    Header::Partial => Err(undecodable("expected a gzip header of at most 4 KiB, got a longer one")),
                    Header::Wrong if self.members > 0 => {
                        Err(undecodable("expected the end of a gzip body, got more bytes"))
                    }
                    Header::Wrong => Err(undecodable("expected a gzip header, got something else")),
                }
            }
            State::Data { inflate, sum } => {
                let (step, ended) = inflate.step(input, out)?;
                sum.update(&out[..step.produced]);
                if ended {
                    self.state = State::Trailer { came: Vec::with_capacity(8), sum: std::mem::take(sum) };
                }
                Ok(step)
            }
            State::Trailer { came, sum } => {
                let consumed = input.len().min(8 - came.len().min(8));
                came.extend_from_slice(&input[..consumed]);
                if let [a, b, c, d, e, f, g, h] = **came {
                    // The length is counted modulo 2^32 (2.3.1), by `Crc` too.
                    if u32::from_le_bytes([a, b, c, d]) != sum.sum() || u32::from_le_bytes([e, f, g, h]) != sum.amount()
                    {
                        return Err(undecodable("expected gzip data as its checksum says, got other data"));
                    }
                    self.members += 1;
                    self.state = State::Header(Vec::new());
                }
                Ok(Step { consumed, produced: 0 })
            }
        }
    }
}

enum Header {
    /// It is this long.
    Whole(usize),
    Partial,
    Wrong,
}

/// Reads a member's header (2.3).
fn header(bytes: &[u8]) -> Header {
    const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
    const CHECK: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;
    if bytes.iter().zip(MAGIC).any(|(byte, magic)| *byte != magic) {
        return Header::Wrong;
    }
    let Some(flags) = bytes.get(3).copied() else { return Header::Partial };
    if flags & RESERVED != 0 {
        return Header::Wrong;
    }
    let mut length = 10;
    if flags & EXTRA != 0 {
        let Some([low, high]) = bytes.get(length..length + 2) else { return Header::Partial };
        length += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let rest = bytes.get(length..).unwrap_or_default();
            let Some(end) = rest.iter().position(|byte| *byte == 0) else { return Header::Partial };
            length += end + 1;
        }
    }
    if flags & CHECK != 0 {
        let Some([low, high]) = bytes.get(length..length + 2) else { return Header::Partial };
        let mut sum = Crc::new();
        sum.update(&bytes[..length]);
        if sum.sum() & 0xffff != u32::from(u16::from_le_bytes([*low, *high])) {
            return Header::Wrong;
        }
        length += 2;
    }
    if bytes.len() < length { Header::Partial } else { Header::Whole(length) }
}
