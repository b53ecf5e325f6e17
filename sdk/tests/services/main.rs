//! Services as they are documented to behave, and as they misbehave, watched by their shipped profiles in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod any;
mod buildbot;
mod feeds;
mod github;
mod gitlab;
mod jenkins;
mod odd;
mod rig;
