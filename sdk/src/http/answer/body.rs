//! A body: whole, decoded and within its bound, or an error.

use std::sync::Arc;

use ::http::HeaderMap;
use ::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use bytes::{Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::error::Cause;
use crate::http::decode::Decoder;
use crate::http::fields;

/// The most that a body may come to, decoded, by default: 16 MiB.
pub(crate) const MAX_BODY: u64 = 16 * 1024 * 1024;

pub(super) const EMPTY: &str = "expected application/json, got an empty body";

/// Collects a body.
#[derive(Debug)]
pub(crate) struct Body {
    completeness: Completeness,
    decoder: Decoder,
    /// The first piece, which often is the only one and then not copied.
    first: Option<Bytes>,
    /// All pieces, once there are more.
    whole: BytesMut,
}

impl Body {
    /// A body with these headers, of at most `limit` bytes before and after its codings are undone.
    ///
    /// # Errors
    /// When the headers say already that it will not be read: too long, or in an unknown coding.
    pub(crate) fn of(headers: &HeaderMap, limit: u64) -> Result<Self, Cause> {
        let completeness = Completeness::of(headers)?;
        if let Some(length) = completeness.announced().filter(|length| *length > limit) {
            return Err(undecodable(format!("expected a body of at most {limit} bytes, got one of {length}")));
        }
        Ok(Self { completeness, decoder: Decoder::of(headers, limit)?, first: None, whole: BytesMut::new() })
    }

    /// Takes the next piece, as it came.
    ///
    /// # Errors
    /// When it cannot be decoded, or is more than was announced or is allowed. Nothing is to be pushed after that.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Result<(), Cause> {
        self.completeness.took(chunk.len())?;
        for piece in self.decoder.push(chunk) {
            let piece = piece?;
            if self.first.is_none() && self.whole.is_empty() {
                self.first = Some(piece);
                continue;
            }
            // Copied, and not kept as they are: a small piece may hold on to a large buffer.
            self.whole.extend_from_slice(&self.first.take().unwrap_or_default());
            self.whole.extend_from_slice(&piece);
        }
        Ok(())
    }

    /// The whole body, once its end has come.
    ///
    /// # Errors
    /// When it is not whole.
    pub(crate) fn finish(mut self) -> Result<Bytes, Cause> {
        self.completeness.finish()?;
        self.decoder.finish()?;
        Ok(self.first.unwrap_or_else(|| self.whole.freeze()))
    }
}

/// Compares what came of a body with what was announced (RFC 9112, 6.3 and 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Completeness {
    announced: Option<u64>,
    came: u64,
}

impl Completeness {
    /// Of a body with these headers.
    ///
    /// # Errors
    /// When they announce several lengths, or none that is a number.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Cause> {
        // 6.3: a body that says itself where it ends has no other length.
        if headers.contains_key(TRANSFER_ENCODING) {
            return Ok(Self { announced: None, came: 0 });
        }
        let mut announced = None;
        for line in headers.get_all(CONTENT_LENGTH) {
            // 8.6 of RFC 9110: the same length several times is one.
            for text in fields::split(line.to_str().unwrap_or_default(), b',') {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let length: Option<u64> = if digits { text.parse().ok() } else { None };
                if length.is_none() || announced.is_some_and(|other| Some(other) != length) {
                    return Err(undecodable("expected one Content-Length, got something else"));
                }
                announced = length;
            }
        }
        Ok(Self { announced, came: 0 })
    }

    /// How many bytes are to come in all, where that was said.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.announced
    }

    /// So many more bytes came, as they were sent.
    ///
    /// # Errors
    /// When they are more than were announced.
    pub(crate) fn took(&mut self, bytes: usize) -> Result<(), Cause> {
        self.came = self.came.saturating_add(bytes as u64);
        match self.announced {
            Some(length) if self.came > length => {
                Err(undecodable(format!("expected a body of {length} bytes, got more")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The body has ended.
    ///
    /// # Errors
    /// When bytes are missing: the connection has ended before the body.
    pub(crate) fn finish(&self) -> Result<(), Cause> {
        match self.announced {
            Some(length) if self.came < length => Err(Cause::Dropped { code: None }),
            Some(_) | None => Ok(()),
        }
    }
}

/// The value of a whole body. A byte order mark before it is overlooked (RFC 8259, 8.1).
///
/// # Errors
/// When it is empty, cut off, has something after its end, or is no `T`. What is said of it quotes nothing of the body but
/// the name of a variant or a field that is not known.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Cause> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    if body.iter().all(|byte| byte.is_ascii_whitespace()) {
        return Err(undecodable(EMPTY));
    }
    serde_json::from_slice(body).map_err(|e| {
        let at = format!("line {} column {}", e.line(), e.column());
        undecodable(match e.classify() {
            Category::Eof => format!("expected JSON, got a part of it that ends at {at}"),
            Category::Syntax | Category::Io => format!("expected JSON, got something else at {at}"),
            Category::Data => format!("expected another value: {}", without_quotes(&e.to_string())),
        })
    })
}

/// The text of a whole body, without a byte order mark.
///
/// # Errors
/// When it is not UTF-8.
pub(crate) fn text(body: Bytes) -> Result<String, Cause> {
    let text = String::from_utf8(body.into()).map_err(|e| {
        undecodable(format!("expected text in UTF-8, got another byte at {}", e.utf8_error().valid_up_to()))
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// `message` with `".."` for every string in it, and cut short: what a body holds may be secret.
fn without_quotes(message: &str) -> String {
    const LONGEST: usize = 300;
    let mut out = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for character in message.chars().take(LONGEST) {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if quoted => {
                quoted = false;
                out.push_str("..\"");
            }
            '"' => {
                quoted = true;
                out.push('"');
            }
            _ if quoted => {}
            _ => out.push(character),
        }
    }
    out
}

fn undecodable(detail: impl Into<Arc<str>>) -> Cause {
    Cause::Undecodable { detail: detail.into() }
}
