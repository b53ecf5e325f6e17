//! How a service is asked to cancel.

use std::sync::Arc;

use super::Call;

/// How work is canceled in one stage. A description: nothing acts upon it yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cancel {
    /// In which.
    pub stage: Arc<str>,
    /// What is called.
    pub call: Call,
    /// What its answer means.
    pub acknowledged: Acknowledged,
    /// What is called where the first is not enough.
    pub force: Option<Call>,
}

/// What the answer to a cancel means. Whether the work is canceled only its status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Acknowledged {
    /// The wish was heard.
    Queued,
    /// The work has stopped.
    Stopped,
    /// Nothing: it comes whether or not there was something to cancel.
    Nothing,
}
