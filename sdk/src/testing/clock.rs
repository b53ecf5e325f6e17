//! The simulated wall clock.
#![expect(clippy::disallowed_methods, reason = "a clock reads the time")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::env::{Env, WallClock};
use crate::machine::Wall;

/// 2025-11-25T00:00:00Z: where simulated wall time starts.
const START: Duration = Duration::from_secs(1_764_028_800);

/// A wall clock that runs with tokio's time and can be set, as a sleep or an operator does.
#[derive(Clone, Debug)]
pub struct SimulatedClock {
    shared: Arc<(Instant, Mutex<Duration>)>,
}

impl SimulatedClock {
    /// A clock at 2025-11-25T00:00:00Z.
    pub fn new() -> Self {
        Self { shared: Arc::new((Instant::now(), Mutex::new(START))) }
    }

    /// Sets the clock forward, as waking from sleep does.
    pub fn advance(&self, by: Duration) {
        let mut base = self.shared.1.lock().unwrap_or_else(PoisonError::into_inner);
        *base = base.saturating_add(by);
    }

    /// Sets the clock back.
    pub fn set_back(&self, by: Duration) {
        let mut base = self.shared.1.lock().unwrap_or_else(PoisonError::into_inner);
        *base = base.saturating_sub(by);
    }
}

impl Default for SimulatedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl WallClock for SimulatedClock {
    fn now(&self) -> Wall {
        let base = *self.shared.1.lock().unwrap_or_else(PoisonError::into_inner);
        Wall::new(base.saturating_add(self.shared.0.elapsed()))
    }
}

/// Surroundings whose wall time runs with tokio's and whose every draw follows from `seed`.
pub fn env(seed: u64) -> Env {
    Env::new(SimulatedClock::new(), seed)
}
