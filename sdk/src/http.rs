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
mod intake;
mod keepers;
pub mod pacing;
pub mod poll;
mod poller;
mod pool;
pub mod push;
mod reader;
mod redirect;
mod requester;
mod shared;
pub mod sse;
mod told;
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
