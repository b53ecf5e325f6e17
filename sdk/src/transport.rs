//! Bytes to frames: a network that connects, proxies, TLS, and the WebSocket upgrade.

#[cfg(feature = "client")]
mod dial;
#[cfg(feature = "client")]
mod handshake;
mod limits;
mod meter;
#[cfg(feature = "client")]
mod network;
#[cfg(feature = "client")]
pub(crate) mod tls;
#[cfg(feature = "http")]
mod tunnel;
#[cfg(feature = "client")]
mod upgrade;
#[cfg(feature = "client")]
mod websocket;

#[cfg(feature = "client")]
pub use network::{Io, Network, Tcp};

#[cfg(feature = "http")]
pub(crate) use dial::TRY_AGAIN_LATER;
#[cfg(feature = "client")]
pub(crate) use dial::{DialFailure, Dialed, dial, hint};
#[cfg(feature = "server")]
pub(crate) use limits::config;
#[cfg(feature = "server")]
pub(crate) use meter::Metered;
#[cfg(feature = "client")]
pub(crate) use tls::Tls;
#[cfg(feature = "http")]
pub(crate) use tunnel::Proxy;
#[cfg(feature = "http")]
pub(crate) use upgrade::{NoUpgrade, Upgraded, upgrade};
#[cfg(feature = "client")]
pub(crate) use websocket::{Received, Socket};
