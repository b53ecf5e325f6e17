//! Polled reads end to end: an agent, a scripted service and a network in memory, in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod answers;
mod budgets;
mod callers;
mod clock;
mod conditional;
mod credentials;
mod floors;
mod hangs;
mod lifetime;
mod logs;
mod longpoll;
mod order;
mod origins;
mod outages;
mod profiles;
mod rates;
mod secrets;
mod streams;
mod stress;
mod verdicts;
mod world;
