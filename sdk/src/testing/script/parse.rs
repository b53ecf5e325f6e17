//! Requests from bytes: as much of RFC 9112 as an honest client needs.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use bytes::{Bytes, BytesMut};

/// Longer heads are refused.
const HEAD: usize = 64 << 10;

/// A request without the connection that it came on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Takes the first whole request off `buffer`; `None` when more bytes are needed.
///
/// # Errors
/// The status to refuse with, when this is no request or one of a kind that is not understood.
pub(super) fn take(buffer: &mut BytesMut) -> Result<Option<Parsed>, u16> {
    let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if buffer.len() > HEAD { Err(431) } else { Ok(None) };
    };
    let (method, target, headers) = head(&buffer[..end]).ok_or(400_u16)?;
    if headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(411); // RFC 9112, 6.3: a server may ask for a length
    }
    let length = match headers.get(header::CONTENT_LENGTH) {
        Some(length) => length.to_str().ok().and_then(|length| length.parse::<usize>().ok()).ok_or(400_u16)?,
        None => 0,
    };
    if buffer.len() - end - 4 < length {
        return Ok(None);
    }
    let mut whole = buffer.split_to(end + 4 + length);
    Ok(Some(Parsed { method, target, headers, body: whole.split_off(end + 4).freeze() }))
}

fn head(bytes: &[u8]) -> Option<(Method, String, HeaderMap)> {
    let mut lines = std::str::from_utf8(bytes).ok()?.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target, version) = (first.next()?, first.next()?, first.next()?);
    if version != "HTTP/1.1" || first.next().is_some() {
        return None;
    }
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        headers.append(name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value.trim()).ok()?);
    }
    Some((method.parse().ok()?, target.to_owned(), headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_once_it_is_whole_and_no_more_than_it() {
        let bytes =
            b"POST /run?a=b HTTP/1.1\r\nHost: ci.example\r\nContent-Length: 4\r\n\r\nbodyGET / HTTP/1.1\r\n\r\n";
        let (mut buffer, mut first) = (BytesMut::new(), None);
        for (at, byte) in bytes.iter().enumerate() {
            buffer.extend_from_slice(&[*byte]);
            if let Some(parsed) = take(&mut buffer).unwrap() {
                first.get_or_insert((at, parsed));
            }
        }
        let (at, parsed) = first.unwrap();
        assert_eq!(&bytes[at + 1..at + 4], b"GET");
        assert_eq!((parsed.method, &*parsed.target, &*parsed.body), (Method::POST, "/run?a=b", &b"body"[..]));
        assert_eq!(parsed.headers["host"], "ci.example");
        assert!(buffer.is_empty(), "the second was taken too");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (bytes, status) in [
            ("GET /\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411),
            (&"x".repeat(HEAD + 1), 431),
        ] {
            assert_eq!(take(&mut BytesMut::from(bytes)), Err(status), "{bytes:.80}");
        }
    }
}
