//! The decisions of a polled read: one pure machine for each.

mod vocabulary;

pub use vocabulary::{Action, Answer, Bounds, Event, Generation, Marks, Pace, Settings};
