//! What a polled read is held to.

use std::time::Duration;

use crate::connection::Backoff;
use crate::error::Phase;

/// The bounds of a polled read. [`Default`] has the documented ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Settings {
    /// How often to look.
    pub pace: Pace,
    /// What each phase of a request may take (R7).
    pub bounds: Bounds,
    /// How long the service is asked to hold a request open until something changes: added to the bound on the first
    /// byte. Default: not at all.
    pub wait: Option<Duration>,
    /// How long a resource may be answered 404, and nothing else, before that means that there is none (R3, FC-14); of one that
    /// was seen at least 1 s. Default 10 s. For as long, too, a service that may have restarted has to say nothing but lower
    /// versions before they are taken for a count that begins anew (FC-21).
    pub grace: Duration,
    /// The delays after failures (R8).
    pub backoff: Backoff,
    /// Ends the read as closed once an outage has lasted this long, counted from its first failure (R8, FC-45).
    /// Default: never.
    pub give_up: Option<Duration>,
    /// Whether the service reopens what was terminal without another attempt number. Default no.
    pub reopens: bool,
    /// How often to look all the same while a stream of events says when something changes. Default 60 s.
    pub reread: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pace: Pace::default(),
            bounds: Bounds::default(),
            wait: None,
            grace: Duration::from_secs(10),
            backoff: Backoff::default(),
            give_up: None,
            reopens: false,
            reread: Duration::from_secs(60),
        }
    }
}

impl Settings {
    /// Looks so often. Default: from 1 s soon after a change to 30 s.
    #[must_use]
    pub const fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Bounds each phase of a request so (R7). Default: those of [`Bounds`].
    #[must_use]
    pub const fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Asks the service to hold a request open for so long, in whole seconds, until something changes. Default: not at all.
    #[must_use]
    pub const fn with_wait(self, wait: Duration) -> Self {
        Self { wait: Some(wait), ..self }
    }

    /// Takes 404s for "not yet", or for a proxy's, for so long (R3, FC-14). Default 10 s.
    #[must_use]
    pub const fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Waits so long after failures (R8). Default: those of [`Backoff`].
    #[must_use]
    pub const fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Ends the read as closed once an outage has lasted so long (R8, FC-45). Default: never.
    #[must_use]
    pub const fn with_give_up(self, give_up: Duration) -> Self {
        Self { give_up: Some(give_up), ..self }
    }

    /// Whether the service reopens what was terminal without another attempt number. Default no.
    #[must_use]
    pub const fn with_reopens(self, reopens: bool) -> Self {
        Self { reopens, ..self }
    }

    /// Looks so often all the same while a stream of events says when something changes. Default 60 s.
    #[must_use]
    pub const fn with_reread(self, reread: Duration) -> Self {
        Self { reread, ..self }
    }
}

/// How often to look: a share of the time for which nothing has changed, between two bounds, less up to a tenth at random.
///
/// What the service states (`Cache-Control`, `X-Poll-Interval`, `Retry-After`) is a floor under it, and what a shared
/// budget permits comes on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Pace {
    /// The shortest interval. Default 1 s.
    pub least: Duration,
    /// The longest. Default 30 s.
    pub most: Duration,
    /// The interval is the time since the last change divided by this. Default 10. Zero is taken for one.
    pub share: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { least: Duration::from_secs(1), most: Duration::from_secs(30), share: 10 }
    }
}

impl Pace {
    /// From `least` soon after a change to `most`.
    pub fn between(least: Duration, most: Duration) -> Self {
        Self { least, most: most.max(least), ..Self::default() }
    }

    /// One interval for all. Zero looks again as soon as a good answer is there, for a service of one's own that bears it;
    /// after anything else the backoff holds.
    pub fn every(interval: Duration) -> Self {
        Self::between(interval, interval)
    }

    /// The interval is the time since the last change divided by this. Default 10. Zero is taken for one.
    #[must_use]
    pub const fn with_share(self, share: u32) -> Self {
        Self { share, ..self }
    }
}

/// What each phase of a request may take (R7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Bounds {
    /// The credential. Default 5 s. Reads of one agent and origin that share a source share its answers, too, and the bound of
    /// the first of them is that of all.
    pub credential: Duration,
    /// The name. Default 5 s.
    pub resolve: Duration,
    /// The connection. Default 5 s.
    pub connect: Duration,
    /// The TLS session. Default 5 s.
    pub tls: Duration,
    /// Sending the request. Default 10 s.
    pub write: Duration,
    /// From the request to the head of its answer, beside the time for which it asked to be held. Default 15 s.
    pub first_byte: Duration,
    /// Between two pieces of the body. Default 10 s.
    pub idle: Duration,
    /// From the head of the answer to the end of its body, however steadily it drips. Default 60 s.
    pub body: Duration,
}

impl Bounds {
    /// What a phase may take.
    pub(crate) const fn of(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Credential => self.credential,
            Phase::Discover | Phase::Resolve => self.resolve,
            Phase::Connect => self.connect,
            Phase::Tls => self.tls,
            Phase::Write => self.write,
            Phase::Upgrade | Phase::Welcome | Phase::FirstByte => self.first_byte,
            Phase::Idle => self.idle,
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        let five = Duration::from_secs(5);
        Self {
            credential: five,
            resolve: five,
            connect: five,
            tls: five,
            write: Duration::from_secs(10),
            first_byte: Duration::from_secs(15),
            idle: Duration::from_secs(10),
            body: Duration::from_secs(60),
        }
    }
}

impl Bounds {
    /// Waits so long for the source of credentials. Default 5 s.
    #[must_use]
    pub const fn with_credential(self, credential: Duration) -> Self {
        Self { credential, ..self }
    }

    /// Waits so long for the name. Default 5 s.
    #[must_use]
    pub const fn with_resolve(self, resolve: Duration) -> Self {
        Self { resolve, ..self }
    }

    /// Waits so long for the connection. Default 5 s.
    #[must_use]
    pub const fn with_connect(self, connect: Duration) -> Self {
        Self { connect, ..self }
    }

    /// Waits so long for the TLS session. Default 5 s.
    #[must_use]
    pub const fn with_tls(self, tls: Duration) -> Self {
        Self { tls, ..self }
    }

    /// Takes so long to send the request. Default 10 s.
    #[must_use]
    pub const fn with_write(self, write: Duration) -> Self {
        Self { write, ..self }
    }

    /// Waits so long for the head of an answer, beside the time for which it asked to be held. Default 15 s.
    #[must_use]
    pub const fn with_first_byte(self, first_byte: Duration) -> Self {
        Self { first_byte, ..self }
    }

    /// Waits so long between two pieces of a body. Default 10 s.
    #[must_use]
    pub const fn with_idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// Waits so long for the end of a body, from its head on. Default 60 s.
    #[must_use]
    pub const fn with_body(self, body: Duration) -> Self {
        Self { body, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_set_by_its_name() {
        let n = Duration::from_secs;
        let bounds = Bounds::default().with_credential(n(1)).with_resolve(n(2)).with_connect(n(3)).with_tls(n(4));
        let bounds = bounds.with_write(n(5)).with_first_byte(n(6)).with_idle(n(7)).with_body(n(8));
        let (credential, resolve, connect, tls) = (n(1), n(2), n(3), n(4));
        let (write, first_byte, idle, body) = (n(5), n(6), n(7), n(8));
        assert_eq!(bounds, Bounds { credential, resolve, connect, tls, write, first_byte, idle, body });
        let pace = Pace::between(n(1), n(2)).with_share(3);
        assert_eq!(pace, Pace { least: n(1), most: n(2), share: 3 });
        let backoff = Backoff::default().with_fraction(7);
        let settings = Settings::default().with_pace(pace).with_bounds(bounds).with_wait(n(1)).with_grace(n(2));
        let settings = settings.with_backoff(backoff).with_give_up(n(3)).with_reopens(true).with_reread(n(4));
        let (wait, grace, give_up, reread) = (Some(n(1)), n(2), Some(n(3)), n(4));
        assert_eq!(settings, Settings { pace, bounds, wait, grace, backoff, give_up, reopens: true, reread });
    }
}
