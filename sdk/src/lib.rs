//! Reads and writes that outlast the connection.
//!
//! For programs that start work on a remote service and wait for it: CI runners, build pollers, deploy tools.
//!
//! - A read is an [`Observable`]: once loaded it never fails for a transport reason. It goes stale, says why, and
//!   recovers by itself (R1).
//! - A write is a [`Command`]: its key exists before the first byte is sent and travels with every resend, so it is
//!   recorded at most once (W1, S1). It can be canceled at any time, and awaiting it gives `Ok` only for success.
//! - The [`server`] half keeps these promises on a durable [`log`].
//!
//! ```no_run
//! use outlast::{Client, Command, Observable};
//!
//! #[outlast::service]
//! trait BuildFarm {
//!     fn build(&self, id: String) -> Observable<String>;
//!     fn submit_build(&self, #[key] sha: String) -> Command;
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::open("wss://builds.example")?; // returns at once, connects behind
//! let farm = BuildFarmClient::new(&client);
//! let submit = farm.submit_build("4f1c2a".into()); // its key exists now
//! let build = farm.build("4f1c2a".into());
//! submit.await?; // survives restarts of the server
//! println!("{:?}", build.latest());
//! # Ok(())
//! # }
//! ```
//!
//! The [`manual`] explains each promise, and has what these pages cite: rows of state tables, field cases (FC-26) and
//! [all defaults](manual::defaults). A [declared service](manual::declaring) can also be written by hand
//! against [`call`], [`client::Caller`] and [`server::Routes`].
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `client` | yes | connections, reads, commands |
//! | `http` | yes | reads of any HTTP service: polling, event streams, logs, profiles |
//! | `macros` | yes | declared services: `#[outlast::service]`, `#[outlast::handlers]` |
//! | `server` | yes | dispatch, executions, projections, the axum router |
//! | `sqlite` | yes | the embedded durable log |
//! | `testing` | no | a network in memory, a simulated clock, fault injection, the log's conformance suite |

pub mod call;
#[cfg(feature = "client")]
pub mod client;
pub mod command;
pub mod connection;
#[cfg(feature = "client")]
pub mod credential;
#[cfg(feature = "macros")]
pub mod declare;
pub mod env;
pub mod error;
mod generation;
#[cfg(feature = "http")]
pub mod http;
pub mod key;
pub mod log;
pub mod machine;
#[cfg(all(any(doc, doctest), feature = "client"))]
pub mod manual;
pub mod observe;
#[cfg(feature = "http")]
pub mod profile;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(any(feature = "client", feature = "server"))]
pub mod transport;
pub mod wire;

#[cfg(feature = "client")]
pub use client::Client;
#[cfg(feature = "client")]
pub use command::with_command_key;
#[cfg(any(feature = "client", feature = "macros"))]
pub use command::{Command, CommandError};
pub use command::{CommandFailure, CommandState, CommandStatus};
#[cfg(feature = "client")]
pub use credential::{Credential, Credentials};
pub use error::{Cause, Error};
pub use key::{CommandKey, KeyLevel};
pub use observe::{End, Known, Observable, Reading, WaitError};
#[cfg(all(feature = "macros", feature = "server"))]
pub use outlast_macros::handlers;
#[cfg(feature = "macros")]
pub use outlast_macros::service;
pub use wire::Timestamp;

/// The README's examples compile.
#[cfg(all(doctest, feature = "http", feature = "macros"))]
#[doc = include_str!("../../README.md")]
struct Readme;
