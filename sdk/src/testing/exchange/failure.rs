//! What hyper's errors mean.

use std::error::Error;
use std::io;

use super::Target;
use crate::http::exchange::{Failure, FailureKind};

/// No answer came.
pub(super) fn before_the_head(target: &Target, e: &hyper::Error) -> Failure {
    let kind = match http2(e) {
        Some(e) if not_processed(e) => FailureKind::NotProcessed,
        Some(e) if e.is_library() => FailureKind::Malformed,
        Some(_) => FailureKind::Closed,
        None if e.is_parse() => FailureKind::Malformed,
        None => FailureKind::Closed, // hyper's "user error" too: it is how a connection task that is gone shows
    };
    Failure::new(kind, detail(&target.authority, e))
}

/// The head came, the body not to its end.
pub(super) fn in_the_body(authority: &str, e: &hyper::Error) -> Failure {
    let malformed = match http2(e) {
        Some(e) => e.is_library(),
        // This is how hyper's decoder of chunks speaks of what it cannot read.
        None => source::<io::Error>(e)
            .is_some_and(|e| matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)),
    };
    let kind = if malformed { FailureKind::Malformed } else { FailureKind::Incomplete };
    Failure::new(kind, detail(authority, e))
}

/// RFC 9113, 8.7: a stream that was refused, or that lies past the last one of a GOAWAY (6.8), was not processed.
/// h2 fails only streams past the last one with the peer's GOAWAY; the others go on.
fn not_processed(e: &h2::Error) -> bool {
    (e.is_reset() && e.is_remote() && e.reason() == Some(h2::Reason::REFUSED_STREAM))
        || (e.is_go_away() && e.is_remote())
}

fn http2(e: &hyper::Error) -> Option<&h2::Error> {
    source(e)
}

fn source<T: Error + 'static>(e: &hyper::Error) -> Option<&T> {
    let mut source = e.source();
    while let Some(e) = source {
        if let Some(found) = e.downcast_ref() {
            return Some(found);
        }
        source = e.source();
    }
    None
}

/// The whole chain; hyper quotes no header and no URL in it.
fn detail(authority: &str, e: &hyper::Error) -> String {
    let mut text = format!("{authority}: {e}");
    let mut source = e.source();
    while let Some(e) = source {
        text.push_str(&format!(": {e}"));
        source = e.source();
    }
    text
}
