//! Outlast: reads and writes that outlast the connection.

pub mod call;
#[cfg(feature = "client")]
pub mod client;
pub mod command;
pub mod connection;
pub mod env;
pub mod error;
pub mod key;
pub mod log;
pub mod machine;
pub mod observe;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(any(feature = "client", feature = "server"))]
pub mod transport;
pub mod wire;

pub use command::{CommandFailure, CommandState, CommandStatus};
pub use error::{Cause, Error};
pub use key::{CommandKey, KeyLevel};
pub use observe::{End, Known, Observable, Reading, WaitError};
pub use wire::Timestamp;
