//! Reads of services that know nothing of Outlast: plain HTTP, polled, with the same promises (R1-R10).

mod agent;
mod answer;
mod budgets;
mod decode;
pub mod exchange;
pub mod feed;
mod fetcher;
pub(crate) mod fields;
mod get;
mod guide;
mod keepers;
pub mod pacing;
pub mod poll;
mod poller;
mod pool;
pub mod push;
mod redirect;
mod requester;
pub mod sse;
mod told;
mod validator;

pub use agent::{Agent, AgentBuilder};
pub(crate) use answer::json;
pub use exchange::Exchange;
pub use get::{Get, Look, Page, Read, get};
pub(crate) use guide::{Guide, Guided, Turn};
pub(crate) use poller::Decode;
pub use pool::{Pool, PoolBuilder};
pub use told::{Told, Window};
