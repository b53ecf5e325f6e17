//! What pacing is told, and what it says.

use std::time::Duration;

use crate::http::told::Told;

/// One request that somebody wants to send; unique within one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// The ticket of that number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// The bounds of a budget. [`Default`] has the documented ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// The least time between two requests of one budget, however many share it, as long as the service says
    /// nothing else. Default 200 ms: five a second.
    pub spacing: Duration,
    /// How many requests may be under way at once. An open stream counts until its head has come, and a request that has
    /// been under way for 15 s, such as a long poll, counts no more. Default 64.
    pub in_flight: usize,
    /// The longest time between two requests after refusals for the rate that name no time. Default 60 s.
    pub most_spacing: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { spacing: Duration::from_millis(200), in_flight: 64, most_spacing: Duration::from_secs(60) }
    }
}

impl Limits {
    /// Leaves at least so much time between two requests of one budget. Default 200 ms.
    #[must_use]
    pub const fn with_spacing(self, spacing: Duration) -> Self {
        Self { spacing, ..self }
    }

    /// Has at most so many requests under way at once. Default 64.
    #[must_use]
    pub const fn with_in_flight(self, in_flight: usize) -> Self {
        Self { in_flight, ..self }
    }

    /// Leaves at most so much time between two requests after refusals that name none. Default 60 s.
    #[must_use]
    pub const fn with_most_spacing(self, most_spacing: Duration) -> Self {
        Self { most_spacing, ..self }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// Somebody wants to send a request. Of one that was granted and not answered: it has not been sent and is given
    /// back, but is wanted still; it goes first.
    Wanted(Ticket),
    /// He does not any more, or the request that was granted has ended without a head.
    Ended(Ticket),
    /// The request that was granted has ended and never reached the service: no connection could be made.
    Unsent(Ticket),
    /// The head of a granted request's answer came. The request is still under way until it has `Ended`.
    Told(Ticket, Told),
    /// The machine's deadline passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// The request may be sent now.
    Grant(Ticket),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_set_by_its_name() {
        let (spacing, most_spacing) = (Duration::from_secs(1), Duration::from_secs(2));
        let limits = Limits::default().with_spacing(spacing).with_in_flight(3).with_most_spacing(most_spacing);
        assert_eq!(limits, Limits { spacing, in_flight: 3, most_spacing });
    }
}
