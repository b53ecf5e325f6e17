//! Profiles against what services are documented to say, and against how they misbehave.

mod files;
mod locating;
mod services;
mod staging;

use serde_json::Value;

use super::{Profile, Work, WorkState};

/// What `body` says, in few words: the state, the status, and how many warnings.
fn said(profile: &Profile, stage: &str, body: &Value) -> (WorkState, String, usize) {
    let work = read(profile, stage, body);
    (work.state, work.status.to_string(), usize::from(work.warning.is_some()))
}

#[track_caller]
fn read(profile: &Profile, stage: &str, body: &Value) -> Work {
    profile.read(stage, body).unwrap_or_else(|e| panic!("{stage}: {e}: {body}"))
}

#[track_caller]
fn unreadable(profile: &Profile, stage: &str, body: &Value) -> String {
    profile.read(stage, body).unwrap_err().to_string()
}
