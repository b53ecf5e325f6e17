//! What a body is to be, and what its headers say that it is (RFC 9110, 8.3).

use std::sync::Arc;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, HeaderValue};

use crate::http::fields::{self, Member};

/// What a body is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Expected {
    /// One JSON text, in UTF-8 (RFC 8259, 8.1). It may call itself plain text, as Buildbot's does: its syntax shows what it is.
    Json,
    /// Text in UTF-8. Not HTML: that is what login and error pages are.
    Text,
    /// A log, in whatever character set. Not HTML either.
    Log,
    /// Anything. HTML only from the host that was asked.
    Bytes,
    /// A stream of events (`text/event-stream`), which its name must say.
    EventStream,
}

impl Expected {
    /// What to send as `Accept`.
    pub(crate) fn accept(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json => "application/json",
            Self::Text | Self::Log => "text/plain, */*;q=0.5",
            Self::Bytes => "*/*",
            Self::EventStream => "text/event-stream",
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Text => "text",
            Self::Log => "a log",
            Self::Bytes => "what was asked for",
            Self::EventStream => "text/event-stream",
        }
    }

    /// Whether `media`, in lower case, is it.
    fn is(self, media: &str, elsewhere: bool) -> bool {
        match self {
            Self::Json => matches!(media, "application/json" | "text/json" | "text/plain") || media.ends_with("+json"),
            Self::Text => !is_html(media) && !is_other_than_text(media),
            Self::Log => !is_html(media),
            Self::Bytes => !(elsewhere && is_html(media)),
            Self::EventStream => media == "text/event-stream",
        }
    }
}

/// Checks the type and the character set. A missing type is taken for the expected one, except of a stream of events.
pub(super) fn check(headers: &HeaderMap, expected: Expected, elsewhere: bool) -> Result<(), Arc<str>> {
    let mut stated = false;
    for line in headers.get_all(CONTENT_TYPE) {
        let Ok(line) = std::str::from_utf8(line.as_bytes()) else {
            return Err(format!("expected {}, got a content type that is no text", expected.name()).into());
        };
        if line.trim().is_empty() {
            continue;
        }
        // It is no list, but two lines of it get joined like one; each has to fit.
        for part in fields::split(line, b',') {
            stated = true;
            let member = Member::of(part);
            let media = member.head.to_ascii_lowercase();
            if !expected.is(&media, elsewhere) {
                return Err(format!("expected {}, got {}", expected.name(), fields::shown(&media, 80)).into());
            }
            if let Some(charset) = member.parameter("charset").filter(|charset| !expected.reads(charset)) {
                let charset = fields::shown(&charset, 40);
                return Err(format!("expected {} in UTF-8, got it in {charset}", expected.name()).into());
            }
        }
    }
    if !stated && expected == Expected::EventStream {
        return Err(format!("expected {}, got no content type", expected.name()).into());
    }
    Ok(())
}

impl Expected {
    /// Whether a body in that character set can be read. ASCII is UTF-8.
    fn reads(self, charset: &str) -> bool {
        match self {
            Self::Json | Self::Text | Self::EventStream => {
                ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known))
            }
            Self::Log | Self::Bytes => true,
        }
    }
}

fn is_html(media: &str) -> bool {
    matches!(media, "text/html" | "application/xhtml+xml")
}

fn is_other_than_text(media: &str) -> bool {
    let kinds = ["image/", "audio/", "video/", "font/", "multipart/"];
    media == "text/event-stream" || kinds.iter().any(|kind| media.starts_with(kind))
}
