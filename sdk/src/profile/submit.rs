//! How a service takes work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::Method;

use super::{Pointer, Taken, Template};

/// How work is submitted. A description: nothing acts upon it yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Submit {
    /// What is called.
    pub call: Call,
    /// The stage that follows ..
    pub stage: Arc<str>,
    /// .. and what the answer gives for it.
    pub bind: BTreeMap<Arc<str>, Taken>,
    /// Whether a copy is recognised.
    pub dedupe: Dedupe,
    /// How work whose submission was not answered is found.
    pub correlate: Option<Correlate>,
}

/// A request that changes something. A description: nothing sends it yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Call {
    /// The method.
    pub method: Method,
    /// Where, from the service's root.
    pub path: Template,
    /// For JSON-RPC: the method in the body.
    pub rpc: Option<Arc<str>>,
}

/// Whether a service recognises a copy of a submission. A description: nothing acts upon it yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dedupe {
    /// No: two copies are two pieces of work.
    #[default]
    None,
    /// By a name that the client chooses: the second is refused.
    Name {
        /// Where in the body of the submission.
        at: Pointer,
    },
    /// By a token that the client chooses.
    Token {
        /// Where in the body of the submission.
        at: Pointer,
        /// For how long it is remembered.
        window: Duration,
    },
}

/// How work whose submission was not answered is found. A description: nothing acts upon it yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Correlate {
    /// Where in the body of the submission a text of ours goes.
    pub inject: Pointer,
    /// Where work is listed. `{since}` stands for the time of the submission.
    pub path: Template,
    /// The list in the answer.
    pub each: Pointer,
    /// Where in an element our text turns up, itself or inside of another.
    pub holds: Pointer,
    /// What the element gives for the stage that follows.
    pub bind: BTreeMap<Arc<str>, Taken>,
}
