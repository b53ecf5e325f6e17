//! Reads of services that know nothing of Outlast: plain HTTP, polled, with the same promises (R1-R10).
//!
//! For programs that wait for what somebody else's service does: a build, a deployment, a job. What comes back is an
//! [`Observable`](crate::Observable) as of any other read. Once loaded it never fails for a transport reason, and only the
//! service or the caller ends it.
//!
//! ```no_run
//! # #[derive(serde::Deserialize)] struct Run { status: String }
//! # async fn wait(token: outlast::Credential) -> Result<(), Box<dyn std::error::Error>> {
//! let run = outlast::http::get("https://ci.example/runs/7").credential(token).observe::<Run>()?;
//! let run = run.until(|run| run.status == "completed").await?;
//! println!("{}", run.status);
//! # Ok(()) }
//! ```
//!
//! [`get`] sets a read up and uses the [`Agent`] that all reads of a runtime share; proxies, certificates and limits of your
//! own are an [`AgentBuilder`]'s. [`Get`] has the bounds, the pace and the credential of one read, [`Read`] how its
//! bodies become values. [`profile`](crate::profile) knows the habits of some services.
//!
//! | module | what it has |
//! |---|---|
//! | [`poll`] | what an answer means and when to look again: [`Pace`](poll::Pace), [`Bounds`](poll::Bounds), [`Marks`](poll::Marks) |
//! | [`push`] | streams beside a read that say when to look: server-sent events, WebSockets |
//! | [`feed`] | logs and event streams as such: each item once and in order |
//! | [`pacing`] | the budget that all requests to one origin with one credential share |
//! | [`exchange`] | what sends the requests: [`Pool`], or one of your own |
//! | [`sse`] | the parser of event streams |
//!
//! The manual explains them in [one chapter](crate::manual::polling); [another](crate::manual::defaults) has every bound and
//! default, and where it is set.

mod agent;
mod answer;
mod budgets;
mod decode;
mod egress;
pub mod exchange;
pub mod feed;
mod fetcher;
pub(crate) mod fields;
mod get;
mod guide;
mod intake;
mod keepers;
pub mod pacing;
pub mod poll;
mod poller;
mod pool;
mod proxies;
pub mod push;
mod query;
mod reader;
mod redirect;
mod requester;
mod shared;
pub mod sse;
mod told;
mod trust;
mod validator;

pub use agent::{Agent, AgentBuilder};
pub(crate) use answer::json;
pub use exchange::Exchange;
pub use get::{Get, Read, get};
pub(crate) use guide::{Guide, Guided, Turn};
pub use poller::Look;
pub use pool::{Pool, PoolBuilder};
pub(crate) use reader::Decode;
pub use reader::Page;
pub use told::{Told, Window};
