//! Times as headers state them.

use std::time::{Duration, UNIX_EPOCH};

use ::http::HeaderMap;
use ::http::header::{AGE, DATE};

use crate::http::fields;
use crate::machine::{LONGEST_HINT, Wall};

/// What time it is for the service that answered.
#[derive(Clone, Copy)]
pub(super) struct Clock<'a> {
    headers: &'a HeaderMap,
    wall: &'a dyn Fn() -> Wall,
}

impl<'a> Clock<'a> {
    /// By the answer's own `Date` and `Age`, which are read once something needs them; by `wall` without them.
    pub(super) fn of(headers: &'a HeaderMap, wall: &'a dyn Fn() -> Wall) -> Self {
        Self { headers, wall }
    }

    /// When the answer was made.
    fn made(self) -> Wall {
        fields::lines(self.headers, DATE).find_map(date).unwrap_or_else(self.wall)
    }

    /// How long after the answer was made `date` is.
    pub(super) fn since_made(self, date: Wall) -> Duration {
        date.since(self.made())
    }

    /// How long a cache has kept the answer.
    pub(super) fn age(self) -> Duration {
        fields::lines(self.headers, AGE).find_map(whole_seconds).unwrap_or_default()
    }

    /// How long `date` lies ahead, at most [`LONGEST_HINT`]; zero if it has passed.
    pub(super) fn until(self, date: Wall) -> Duration {
        self.since_made(date).saturating_sub(self.age()).min(LONGEST_HINT)
    }
}

/// A date in any of the three forms of RFC 9110, 5.6.7.
pub(super) fn date(text: &str) -> Option<Wall> {
    let time = httpdate::parse_http_date(text).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(Wall::new)
}

/// Seconds, at most [`LONGEST_HINT`]. A fraction is no valid one, but is sent: it is rounded up.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    number(text).map(|n| Duration::from_secs(n).min(LONGEST_HINT))
}

/// Whole seconds as RFC 9111, 1.2.2 has them: digits only, and too many of them are as good as for ever.
pub(super) fn whole_seconds(text: &str) -> Option<Duration> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// A time at which something starts anew: a date, seconds from now, or a time since 1970.
///
/// Which of the numbers it is, its size tells: 10^8 seconds from now are three years, since 1970 they are 1973. The same
/// goes for milliseconds and less, which some count in.
pub(super) fn reset(text: &str, clock: Clock<'_>) -> Option<Duration> {
    const EPOCH: u64 = 100_000_000;
    const BEYOND_SECONDS: u64 = 1_000 * EPOCH;
    if let Some(date) = date(text) {
        return Some(clock.until(date));
    }
    let mut n = number(text)?;
    while n >= BEYOND_SECONDS {
        n = n.div_ceil(1_000);
    }
    let stated = Duration::from_secs(n);
    Some(if n >= EPOCH { clock.until(Wall::new(stated)) } else { stated.min(LONGEST_HINT) })
}

/// A count of requests. Less than none is none; of a fraction only the whole is there to be used.
pub(super) fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, _) = decimal(text)?;
    Some(if negative { 0 } else { whole })
}

/// A number, rounded up.
fn number(text: &str) -> Option<u64> {
    let (whole, fraction) = decimal(text.trim())?;
    Some(whole.saturating_add(u64::from(fraction)))
}

/// The whole part of `12` or `12.5`, and whether there is more than that. Too large a number is the largest.
fn decimal(text: &str) -> Option<(u64, bool)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    Some((whole.parse().unwrap_or(u64::MAX), fraction.bytes().any(|b| b != b'0')))
}
