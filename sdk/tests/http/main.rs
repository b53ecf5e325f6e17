//! Polled reads end to end: an agent, a scripted service and a network in memory, in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod adversity;
mod answers;
mod conditional;
mod credentials;
mod hangs;
mod lifetime;
mod longpoll;
mod order;
mod outages;
mod rates;
mod secrets;
mod stress;
mod verdicts;
mod world;
