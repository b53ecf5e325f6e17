//! What a request sends so that the service can answer that nothing has changed (RFC 9110, 8.8 and 13.1). Pure.

use std::time::Duration;

use ::http::header::{DATE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use ::http::{HeaderMap, HeaderName, HeaderValue};
use url::{Position, Url};

use super::poll::Generation;
use crate::machine::Wall;

/// The name of a value that was taken: its `ETag`, else its `Last-Modified`.
///
/// It belongs to the URL that answered, after redirects, and to the credential that was sent: services put who asks into
/// their tags (GitHub's change with the token), and a 304 that speaks of what another one sees would hide a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validator {
    url: Url,
    generation: Generation,
    header: HeaderName,
    value: HeaderValue,
}

impl Validator {
    /// From the headers of the 200 whose value was taken, which `url` answered to the credential of that generation.
    pub(crate) fn learn(url: &Url, generation: Generation, headers: &HeaderMap) -> Option<Self> {
        let tagged = tag(headers).map(|value| (IF_NONE_MATCH, value));
        let (header, value) = tagged.or_else(|| modified(headers).map(|value| (IF_MODIFIED_SINCE, value)))?;
        // A copy: what came is a part of the connection's read buffer, and would keep all of it.
        let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        Some(Self { url: url.clone(), generation, header, value })
    }

    /// Puts it among the headers of a request for `url` with the credential of that generation; false where it does not
    /// belong. Whatever else there would validate is removed in both cases.
    pub(crate) fn apply(&self, url: &Url, generation: Generation, headers: &mut HeaderMap) -> bool {
        let belongs = self.generation == generation && addressed(&self.url) == addressed(url);
        for other in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
            if !belongs || other != self.header {
                headers.remove(other);
            }
        }
        if belongs {
            headers.insert(self.header.clone(), self.value.clone());
        }
        belongs
    }
}

/// The tag, weak ones too, byte by byte as it came (8.8.3). Some services leave out the quotes and know it again like that.
fn tag(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut tags = headers.get_all(ETAG).iter();
    let tag = tags.next()?;
    if tags.any(|other| other != tag) {
        return None;
    }
    let bytes = tag.as_bytes();
    let opaque = bytes.strip_prefix(b"W/").unwrap_or(bytes);
    let usable = match opaque {
        [b'"', inner @ .., b'"'] => !inner.contains(&b'"'),
        // Not a list, and above all not `*`, which every value matches (13.1.2).
        bare => !bare.is_empty() && bare.iter().all(|byte| byte.is_ascii_graphic() && !b"\",*".contains(byte)),
    };
    usable.then(|| tag.clone())
}

/// The date, if a later change cannot have the same one: a second has passed between it and the answer, by the same
/// clock (8.8.2.2). Without that, a build that ends in the second in which it was read would never be seen to end.
fn modified(headers: &HeaderMap) -> Option<HeaderValue> {
    let value = headers.get(LAST_MODIFIED)?;
    let (modified, answered) = (date(value)?, date(headers.get(DATE)?)?);
    (answered.since(modified) >= Duration::from_secs(1)).then(|| value.clone())
}

fn date(value: &HeaderValue) -> Option<Wall> {
    let time = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
    time.duration_since(std::time::UNIX_EPOCH).ok().map(Wall::new)
}

/// The URL as it is sent.
fn addressed(url: &Url) -> &str {
    &url[..Position::AfterQuery]
}

#[cfg(test)]
mod tests;
