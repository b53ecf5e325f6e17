//! Where drivers get their time and randomness from; machines are handed both.
#![expect(clippy::disallowed_methods, reason = "the one place that reads clocks and draws randomness for all drivers")]

#[cfg(feature = "client")]
mod alarm;

#[cfg(feature = "client")]
pub(crate) use alarm::Alarm;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng};
use tokio::time::Instant;
use ulid::Ulid;

use crate::machine::{Monotonic, Now, Wall};

/// A wall clock: the time since 1970, as this machine believes it to be.
pub trait WallClock: Send + Sync + 'static {
    /// The present wall time.
    fn now(&self) -> Wall;
}

/// The operating system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> Wall {
        Wall::new(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
    }
}

/// A driver's surroundings: tokio's monotonic time, a wall clock and a source of randomness.
///
/// Cloning is cheap and shares all three. Monotonic time is tokio's, so a paused runtime moves it;
/// wall time is a [`WallClock`] of its own, because a paused runtime does not move that.
#[derive(Clone)]
pub struct Env {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Instant,
    wall: Box<dyn WallClock>,
    draws: Mutex<StdRng>,
}

impl Env {
    /// The system's clocks, and a generator seeded by the operating system.
    pub fn system() -> Self {
        let draws = StdRng::try_from_rng(&mut SysRng).unwrap_or_else(|_| {
            // Only a kernel without a source gets here: the clock still tells two processes apart.
            StdRng::seed_from_u64(SystemClock.now().since_epoch().as_nanos() as u64 ^ u64::from(std::process::id()))
        });
        Self::with_draws(SystemClock, draws)
    }

    /// A wall clock of one's own and a seed that makes every draw repeatable.
    pub fn new(wall: impl WallClock, seed: u64) -> Self {
        Self::with_draws(wall, StdRng::seed_from_u64(seed))
    }

    fn with_draws(wall: impl WallClock, draws: StdRng) -> Self {
        let draws = Mutex::new(draws);
        Self { shared: Arc::new(Shared { origin: Instant::now(), wall: Box::new(wall), draws }) }
    }

    /// The time, with a fresh draw.
    pub fn now(&self) -> Now {
        Now { instant: self.instant(), wall: self.wall(), draw: self.draw() }
    }

    /// The same for a machine that does without the wall clock, which stands at 1970 here.
    #[cfg(feature = "http")]
    pub(crate) fn now_without_wall(&self) -> Now {
        Now { instant: self.instant(), wall: Wall::default(), draw: self.draw() }
    }

    /// Monotonic time since this environment was made.
    pub fn instant(&self) -> Monotonic {
        Monotonic::new(Instant::now().saturating_duration_since(self.shared.origin))
    }

    /// Wall time.
    pub fn wall(&self) -> Wall {
        self.shared.wall.now()
    }

    /// One uniform draw over all `u64`.
    pub fn draw(&self) -> u64 {
        self.shared.draws.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// A new ULID of the present wall time.
    pub fn ulid(&self) -> Ulid {
        let random = (u128::from(self.draw()) << 64) | u128::from(self.draw());
        Ulid::from_parts(self.wall().millis(), random)
    }

    /// The tokio instant of `at`.
    pub fn tokio_instant(&self, at: Monotonic) -> Instant {
        // A deadline beyond tokio's range is as good as never.
        self.shared
            .origin
            .checked_add(at.since_start())
            .unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400 * 365))
    }

    /// Completes at `at`; never, for `None`.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the deadline is the machine's.
    pub async fn sleep_until(&self, at: Option<Monotonic>) {
        match at {
            Some(at) => tokio::time::sleep_until(self.tokio_instant(at)).await,
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("instant", &self.instant()).field("wall", &self.wall()).finish_non_exhaustive()
    }
}
