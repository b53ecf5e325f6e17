//! Restored logs, wrong clocks, dead links, hostile peers and odd callers, seen through the public API.

mod clocks;
mod closing;
mod commands;
mod credentials;
mod histories;
mod hostile;
mod keys;
mod limits;
mod liveness;
mod panics;
mod raw;
mod reads;
mod support;
