//! How long an answer stays fresh (RFC 9111, 4.2), for a private cache.

use std::time::Duration;

use ::http::HeaderMap;
use ::http::header::{CACHE_CONTROL, EXPIRES};

use super::when::{self, Clock};
use crate::http::fields;
use crate::machine::LONGEST_HINT;

/// `None` where nothing is said; zero where it is said that the answer may not be used again as it is.
///
/// `must-revalidate` forbids to use what is no longer fresh, which a read never does without saying so: it changes
/// nothing here. `s-maxage` is for shared caches. There is no guess from `Last-Modified`.
pub(super) fn of(headers: &HeaderMap, clock: Clock<'_>) -> Option<Duration> {
    let lifetime = lifetime(headers, clock)?;
    Some(lifetime.saturating_sub(clock.age()).min(LONGEST_HINT))
}

fn lifetime(headers: &HeaderMap, clock: Clock<'_>) -> Option<Duration> {
    let mut lifetime: Option<Duration> = None;
    for directive in fields::members(headers, CACHE_CONTROL) {
        let (name, value) = directive.head.split_once('=').unwrap_or((directive.head, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Some(Duration::ZERO),
            "max-age" => {
                // What cannot be read, or is said twice, is taken for the shorter (4.2.1).
                let stated = when::whole_seconds(&fields::unquoted(value)).unwrap_or_default();
                lifetime = Some(lifetime.map_or(stated, |other| other.min(stated)));
            }
            _ => {}
        }
    }
    // `max-age` counts before `Expires`; a date that cannot be read has passed (5.3).
    lifetime.or_else(|| {
        fields::lines(headers, EXPIRES)
            .map(|line| when::date(line).map(|date| clock.since_made(date)).unwrap_or_default())
            .min()
    })
}
