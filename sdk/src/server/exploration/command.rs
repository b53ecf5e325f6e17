//! The one command: who sends it, its key, and what it makes.

use crate::key::{CommandRef, Principal};
use crate::log::Subject;
use crate::server::record::subject_of;

pub(super) fn principal() -> Principal {
    Principal::new("ci").unwrap()
}

pub(super) fn key() -> Subject {
    subject_of(&command()).unwrap()
}

pub(super) fn build() -> Subject {
    Subject::of(["build", "1"])
}

fn command() -> CommandRef {
    CommandRef::new(principal(), "release:42")
}
