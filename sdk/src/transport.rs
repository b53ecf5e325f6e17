//! Bytes to frames: a network that connects, TLS, and the WebSocket upgrade.

#[cfg(feature = "client")]
mod dial;
#[cfg(feature = "client")]
mod network;
#[cfg(feature = "client")]
mod tls;
mod websocket;

#[cfg(feature = "client")]
pub use network::{Io, Network, Tcp};

#[cfg(feature = "client")]
pub(crate) use dial::{DialFailure, Dialed, dial, hint};
#[cfg(feature = "client")]
pub(crate) use tls::Tls;
pub(crate) use websocket::{Received, Socket, config};
