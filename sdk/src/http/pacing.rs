//! How often a budget is used: pure.

mod vocabulary;

pub use vocabulary::{Action, Event, Limits, Ticket};
