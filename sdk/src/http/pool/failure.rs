//! What kind of failure reqwest's errors are, by what is underneath them.
//!
//! Nothing here prints a URL: `place` is a host and a port, and reqwest's own texts, which have the URL, are left out.

use std::error::Error as StdError;
use std::io;
use std::iter;
use std::sync::Arc;

use rustls::AlertDescription;
use url::Url;

use crate::error::Phase;
use crate::http::exchange::{Failure, FailureKind};

/// Where a URL points to, without anything secret in it.
pub(super) fn place(url: &Url) -> Arc<str> {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{host}:{port}").into(),
        (Some(host), None) => host.into(),
        (None, _) => "no host".into(),
    }
}

/// The failure of a request that got no head of an answer, and was in `phase`.
pub(super) fn before_head(error: &reqwest::Error, phase: Phase, place: &str) -> Failure {
    let kind = if error.is_builder() {
        FailureKind::Request
    } else if error.is_connect() {
        connecting(error, phase)
    } else {
        sending(error)
    };
    Failure::new(kind, detail(error, place))
}

/// The failure of a body, after its head.
pub(super) fn in_body(error: &reqwest::Error, place: &str) -> Failure {
    // hyper's decoder of the chunked coding says so of what is none.
    let malformed = |e: &io::Error| matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData);
    let tls = find::<rustls::Error>(error).is_some();
    let kind = match find::<io::Error>(error) {
        Some(e) if malformed(e) && !tls => FailureKind::Malformed,
        Some(_) | None => FailureKind::Incomplete,
    };
    Failure::new(kind, detail(error, place))
}

fn connecting(error: &reqwest::Error, phase: Phase) -> FailureKind {
    if error.is_dns() || phase == Phase::Resolve {
        FailureKind::Resolve
    } else if find::<rustls::Error>(error).is_some() || phase == Phase::Tls {
        FailureKind::Tls
    } else {
        FailureKind::Connect
    }
}

fn sending(error: &reqwest::Error) -> FailureKind {
    if links(error).any(refuses_session) {
        return FailureKind::Tls;
    }
    if let Some(h2) = find::<h2::Error>(error) {
        return http2(h2);
    }
    let Some(hyper) = find::<hyper::Error>(error) else {
        return FailureKind::Request; // only the client itself refuses without either
    };
    if hyper.is_canceled() {
        FailureKind::NotProcessed // the connection ended before anything of the request was written to it
    } else if hyper.is_parse() {
        FailureKind::Malformed
    } else {
        FailureKind::Closed
    }
}

fn http2(error: &h2::Error) -> FailureKind {
    // Only streams past the last one that a GOAWAY without error names end by it (RFC 9113, 6.8 and 8.7).
    let past_goaway = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
    let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if error.is_remote() && (past_goaway || refused) {
        FailureKind::NotProcessed
    } else if error.is_library() {
        FailureKind::Malformed
    } else {
        FailureKind::Closed
    }
}

/// Whether `error` is an alert with which a service refuses the session. In TLS 1.3 a client learns only after its own
/// handshake that its certificate is not wanted, so these count then, too: the service has read nothing.
fn refuses_session(error: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = error.downcast_ref() {
        return matches!(error, rustls::Error::AlertReceived(alert) if REFUSALS.contains(alert));
    }
    // h2 keeps an I/O error's kind and text and no more; rustls' text ends with the alert's name.
    error.is::<io::Error>()
        && error
            .to_string()
            .strip_prefix("received fatal alert: ")
            .is_some_and(|named| REFUSALS.iter().any(|alert| format!("{alert:?}") == named))
}

const REFUSALS: [AlertDescription; 13] = [
    AlertDescription::HandshakeFailure,
    AlertDescription::NoCertificate,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::DecryptError,
    AlertDescription::ProtocolVersion,
    AlertDescription::InsufficientSecurity,
    AlertDescription::CertificateRequired,
];

/// `error` and what is underneath it, into I/O errors, too: their `source` leaves out what they were made from.
fn links<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    iter::from_fn(move || {
        let here = next?;
        next = match here.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => here.source(),
        };
        Some(here)
    })
}

fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    links(error).find_map(|error| error.downcast_ref())
}

/// The place, and the innermost text: it says what happened, those around it say where in the client.
fn detail(error: &reqwest::Error, place: &str) -> String {
    let innermost = links(error).skip(1).last();
    match innermost {
        Some(innermost) => format!("{place}: {innermost}"),
        None => place.to_owned(),
    }
}

/// The texts of `error`, which is not reqwest's, and of what is underneath it.
pub(super) fn chain(error: &(dyn StdError + 'static)) -> String {
    links(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
