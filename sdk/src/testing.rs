//! A network in memory, a simulated clock and seeded randomness, for tests without real time.
//!
//! Everything runs inside one tokio runtime with paused time: a restart of ten seconds takes microseconds.
//!
//! - [`Net`] is a [`Network`](crate::transport::Network) of names and addresses that can vanish, move,
//!   fall silent or be reached only through a relay;
//! - [`Life`] is one life of a server process: its tasks live in one set, and ending it is `kill -9`;
//! - [`Script`] is an HTTP service that answers as it was told to, and misbehaves as it was told to;
//! - [`SimulatedExchange`] is the HTTP client over such a network;
//! - [`SimulatedClock`] is the wall clock, which people may set;
//! - [`env()`] puts a clock and a seed together.
//!
//! A service that is away for a minute, and a command called meanwhile:
//!
//! ```
//! use std::time::Duration;
//! use outlast::call::{Args, Method, Params};
//! use outlast::log::{MemoryLog, Subject};
//! use outlast::server::{Events, Routes, RpcScope, Server};
//! use outlast::testing::{Life, Net, env};
//! use outlast::Client;
//!
//! const GREET: Method = Method::new("greeter.v1/greet");
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (net, log) = (Net::new(), MemoryLog::declared_durable(&env(1)));
//! let start = async || {
//!     let routes = Routes::new("greeter", 1).command(&GREET, |_: RpcScope, mut args: Args| async move {
//!         Ok(Events::on(Subject::of(["greeting", &args.take::<String>("name")?])).push("hello"))
//!     });
//!     Server::builder(log.clone()).env(env(2)).service(routes).start().await
//! };
//! let life = Life::serve(&net, "greeter", start().await?.router());
//! let client = Client::builder("ws://greeter/").network(net.clone()).env(env(3)).open()?;
//! client.caller().call(&GREET, Params::new().with("name", "ada")).await?;
//!
//! life.kill();
//! let greet = client.caller().call(&GREET, Params::new().with("name", "grace"));
//! tokio::time::sleep(Duration::from_secs(60)).await; // no time at all
//! let _life = Life::serve(&net, "greeter", start().await?.router());
//! greet.await?;
//! # Ok(())
//! # }
//! ```
//!
//! A scripted service, which takes half a minute and then hangs up in the middle of its answer:
//!
//! ```
//! use std::time::Duration;
//! use outlast::http::Exchange;
//! use outlast::http::exchange::{FailureKind, Request};
//! use outlast::testing::{Net, Reply, Script, SimulatedExchange};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let net = Net::new();
//! let ci = Script::serve(&net, "ci.example");
//! let run = Reply::json(["queued", "running"]);
//! ci.replies("/run", [run.clone(), run.after(Duration::from_secs(30)).cut(5)]);
//!
//! let exchange = SimulatedExchange::new(net);
//! let get = Request::get("http://ci.example/run?page=1".parse()?);
//! let mut answer = exchange.send(get.clone()).await?;
//! assert_eq!(answer.chunk().await?.as_deref(), Some(&br#"["queued","running"]"#[..]));
//!
//! let mut answer = exchange.send(get).await?; // no time at all
//! assert_eq!(answer.chunk().await?.as_deref(), Some(&br#"["que"#[..]));
//! assert_eq!(answer.chunk().await.unwrap_err().kind, FailureKind::Incomplete);
//! assert_eq!((ci.asked("/run").len(), ci.connections()), (2, 1));
//! # Ok(())
//! # }
//! ```

mod clock;
mod exchange;
mod life;
mod net;
mod pipe;
mod relay;
mod script;

pub use clock::{SimulatedClock, env};
pub use exchange::SimulatedExchange;
pub use life::{Life, serve_connection};
pub use net::{Listener, Net};
pub use relay::{Fault, Relay};
pub use script::{Asked, Reply, Script, StreamHandle};
