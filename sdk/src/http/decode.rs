//! Content codings, decoded under a bound on what comes out (RFC 9110, 8.4).
//!
//! The bound is on what comes out because a body of a few kilobytes can unfold into gigabytes. A body that ends too
//! early, goes on after its end, or fails its checksum is an error and never a shorter value (R3).

mod deflate;
mod gzip;

use ::http::header::CONTENT_ENCODING;
use ::http::{HeaderMap, HeaderValue};
use bytes::{Bytes, BytesMut};

use self::deflate::Deflate;
use self::gzip::Gzip;
use super::fields;
use crate::error::Cause;

/// What to send as `Accept-Encoding`.
pub(crate) const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, deflate");

/// How much comes out at once.
const PIECE: usize = 32 * 1024;
/// No honest service applies more codings to one body.
const MOST_CODINGS: usize = 4;

/// Decodes one body, as it comes.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// In the order in which they are undone, which is the reverse of how the header names them.
    layers: Vec<Layer>,
    /// What came and has no coding.
    plain: Bytes,
    plain_out: u64,
    limit: u64,
    failed: Option<Cause>,
}

#[derive(Debug)]
struct Layer {
    coding: Coding,
    input: Bytes,
    /// Where a piece is put together; what leaves is as long as it is, so that small pieces stay small.
    piece: Vec<u8>,
    /// Whether the last piece was full, so that more may come out without further input.
    more: bool,
    began: bool,
    out: u64,
}

#[derive(Debug)]
enum Coding {
    Gzip(Gzip),
    Deflate(Deflate),
}

/// How far one step came.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    consumed: usize,
    produced: usize,
}

impl Decoder {
    /// A decoder for a body of which no layer unfolds into more than `limit` bytes.
    ///
    /// # Errors
    /// When `Content-Encoding` names what is not known here.
    pub(crate) fn of(headers: &HeaderMap, limit: u64) -> Result<Self, Cause> {
        let mut layers = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().map_err(|_| unknown("one that is no text"))?;
            for name in fields::split(value, b',') {
                let coding = match name.to_ascii_lowercase().as_str() {
                    "" | "identity" => continue,
                    // 8.4.1.3: the two mean the same.
                    "gzip" | "x-gzip" => Coding::Gzip(Gzip::new()),
                    "deflate" => Coding::Deflate(Deflate::new()),
                    _ => return Err(unknown(&fields::shown(name, 40))),
                };
                layers.push(Layer::of(coding));
            }
        }
        if layers.len() > MOST_CODINGS {
            return Err(undecodable(format!("expected at most {MOST_CODINGS} content codings, got {}", layers.len())));
        }
        layers.reverse();
        Ok(Self { layers, plain: Bytes::new(), plain_out: 0, limit, failed: None })
    }

    /// Takes the next piece of the body; what comes out is to be taken from the iterator, to its end.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Pieces<'_> {
        let room = match self.layers.first_mut() {
            Some(layer) => &mut layer.input,
            None => &mut self.plain,
        };
        if room.is_empty() {
            *room = chunk;
        } else if !chunk.is_empty() {
            // Only when the iterator before was not taken to its end.
            let mut joined = BytesMut::with_capacity(room.len() + chunk.len());
            joined.extend_from_slice(room);
            joined.extend_from_slice(&chunk);
            *room = joined.freeze();
        }
        Pieces { ended: false, decoder: self }
    }

    /// What comes next out of what was pushed, for whoever takes it piece by piece; to be asked until there is none before
    /// the next push.
    pub(crate) fn next_piece(&mut self) -> Option<Result<Bytes, Cause>> {
        Pieces { ended: false, decoder: self }.next()
    }

    /// Says that the body has ended.
    ///
    /// A body without a single byte is complete in every coding: it is what services send that have nothing to say.
    ///
    /// # Errors
    /// When it ended before the end of what was encoded, or was not decodable.
    pub(crate) fn finish(&mut self) -> Result<(), Cause> {
        if let Some(cause) = &self.failed {
            return Err(cause.clone());
        }
        let complete = |layer: &Layer| {
            let taken = layer.input.is_empty() && !layer.more;
            taken && (!layer.began || layer.coding.is_complete())
        };
        if self.plain.is_empty() && self.layers.iter().all(complete) {
            return Ok(());
        }
        Err(undecodable("expected the whole of an encoded body, got a part"))
    }

    fn pull(&mut self) -> Result<Option<Bytes>, Cause> {
        if let Some(last) = self.layers.len().checked_sub(1) {
            return pull(&mut self.layers, last, self.limit);
        }
        if self.plain.is_empty() {
            return Ok(None);
        }
        let piece = std::mem::take(&mut self.plain);
        count(&mut self.plain_out, piece.len(), self.limit)?;
        Ok(Some(piece))
    }
}

/// What comes out of one piece of a body, in pieces of at most 32 KiB where it was encoded.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    decoder: &'a mut Decoder,
    ended: bool,
}

impl Iterator for Pieces<'_> {
    type Item = Result<Bytes, Cause>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let pulled = match &self.decoder.failed {
            Some(cause) => Err(cause.clone()),
            None => self.decoder.pull(),
        };
        match pulled {
            Ok(Some(piece)) => Some(Ok(piece)),
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(cause) => {
                self.ended = true;
                self.decoder.failed = Some(cause.clone());
                Some(Err(cause))
            }
        }
    }
}

/// The next piece that comes out of layer `at`.
fn pull(layers: &mut [Layer], at: usize, limit: u64) -> Result<Option<Bytes>, Cause> {
    loop {
        let Some((layer, below)) = layers.get_mut(..=at).and_then(<[Layer]>::split_last_mut) else { return Ok(None) };
        if layer.input.is_empty() && !layer.more {
            let Some(before) = at.checked_sub(1) else { return Ok(None) };
            match pull(below, before, limit)? {
                Some(piece) => layer.input = piece,
                None => return Ok(None),
            }
        }
        if let Some(piece) = layer.advance(limit)? {
            return Ok(Some(piece));
        }
    }
}

impl Layer {
    fn of(coding: Coding) -> Self {
        Self { coding, input: Bytes::new(), piece: vec![0; PIECE], more: false, began: false, out: 0 }
    }

    fn advance(&mut self, limit: u64) -> Result<Option<Bytes>, Cause> {
        let mut filled = 0;
        self.began |= !self.input.is_empty();
        while let Some(free) = self.piece.get_mut(filled..).filter(|free| !free.is_empty()) {
            let step = self.coding.step(&self.input, free)?;
            let _ = self.input.split_to(step.consumed);
            filled += step.produced;
            if self.input.is_empty() && step.produced == 0 {
                break;
            }
            if step.consumed == 0 && step.produced == 0 {
                return Err(undecodable("expected encoded data, got what makes no progress"));
            }
        }
        self.more = filled == PIECE;
        // Every layer is bounded: a bomb may unfold into codings that come to nothing.
        count(&mut self.out, filled, limit)?;
        Ok(self.piece.get(..filled).filter(|piece| !piece.is_empty()).map(Bytes::copy_from_slice))
    }
}

impl Coding {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, Cause> {
        match self {
            Self::Gzip(gzip) => gzip.step(input, out),
            Self::Deflate(deflate) => deflate.step(input, out),
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Self::Gzip(gzip) => gzip.is_complete(),
            Self::Deflate(deflate) => deflate.is_complete(),
        }
    }
}

/// Counts what came out, and refuses what is over the limit.
fn count(out: &mut u64, bytes: usize, limit: u64) -> Result<(), Cause> {
    *out = out.saturating_add(bytes as u64);
    if *out > limit {
        return Err(undecodable(format!("expected a body of at most {limit} bytes, got more")));
    }
    Ok(())
}

fn unknown(name: &str) -> Cause {
    undecodable(format!("expected the content coding gzip or deflate, got {name}"))
}

fn undecodable(detail: impl Into<std::sync::Arc<str>>) -> Cause {
    Cause::Undecodable { detail: detail.into() }
}

#[cfg(test)]
mod tests;
