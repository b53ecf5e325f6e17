//! For a read whose answers say where it continues: which address is read, and what its answers come down to.

use std::sync::Arc;

use url::Url;

use super::poll::Answer;
use super::push::Push;
use super::reader::Decode;
use crate::machine::Now;

/// Leads a read from one address to another.
pub(crate) trait Guide<T>: Send {
    /// The address to read.
    fn url(&self) -> &Url;

    /// How an answer from there is decoded.
    fn decode(&self) -> Arc<Decode<T>>;

    /// A stream that says when something changes there, with others of the same behind it.
    fn push(&self) -> Option<Push>;

    /// What an answer comes down to; `value` is there with [`Answer::Value`].
    fn judge(&mut self, now: Now, answer: Answer, value: Option<&T>) -> Guided;

    /// This value is shown from now on: the machine took it.
    fn shown(&mut self, now: Now, value: &T);

    /// A request came to no answer.
    fn unanswered(&mut self, now: Now);
}

/// What an answer came down to.
#[derive(Debug)]
pub(crate) struct Guided {
    /// What the machine is told.
    pub(crate) answer: Answer,
    /// Whether another address is read from now on.
    pub(crate) turn: Option<Turn>,
}

/// When another address is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// At once.
    AtOnce,
    /// When the next look is due.
    InTime,
}
