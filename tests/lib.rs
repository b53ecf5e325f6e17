//! What crosses modules: one small service, written by hand against the public traits, and a world for it to fail in.

mod jobs;
mod world;

pub use jobs::{Job, JobState, Jobs, JobsClient};
pub use world::World;
