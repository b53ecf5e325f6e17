//! The server as its clients meet it: JSON frames over a WebSocket over a stream in memory.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod commands;
mod farm;
mod flaky;
mod lifecycle;
mod peer;
mod reads;
