//! What crosses modules: one small service, and a world for it to fail in.

mod jobs;
mod world;

pub use jobs::{Job, JobState, Jobs, JobsClient, JobsServer, Workshop};
pub use world::World;
