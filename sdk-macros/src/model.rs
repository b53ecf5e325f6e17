//! What was written, understood: a declared service, and the handlers of one.

mod handlers;
mod names;
mod service;
mod types;

pub(crate) use handlers::{Handler, Handlers};
pub(crate) use service::{Argument, Method, Service};
