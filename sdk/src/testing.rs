//! A network in memory, a simulated clock and seeded randomness, for tests without real time.
//!
//! Everything runs inside one tokio runtime with paused time: a restart of ten seconds takes microseconds.
//!
//! - [`Net`] is a [`Network`](crate::transport::Network) of names and addresses that can vanish, move,
//!   fall silent or be reached only through a relay;
//! - [`Life`] is one life of a server process: its tasks live in one set, and ending it is `kill -9`;
//! - [`SimulatedClock`] is the wall clock, which people may set;
//! - [`env()`] puts a clock and a seed together.

mod clock;
mod life;
mod net;
mod pipe;
mod relay;

pub use clock::{SimulatedClock, env};
pub use life::{Life, serve_connection};
pub use net::{Listener, Net};
pub use relay::{Fault, Relay};
