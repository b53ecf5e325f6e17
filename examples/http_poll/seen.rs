//! What one answer says about the work.

use outlast::profile::{Work, WorkState};
use serde_json::value::RawValue;

use super::predicate::Verdict;

/// An answer, judged.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What it says.
    pub(crate) state: State,
    /// In a word of the service, where there is one.
    pub(crate) word: Option<String>,
    /// The body.
    pub(crate) body: String,
}

impl Seen {
    /// What a profile made of an answer.
    pub(crate) fn of_work(work: &Work) -> Self {
        let state = match work.state {
            WorkState::Queued | WorkState::Running => State::Running,
            WorkState::Parked => State::Parked,
            WorkState::Succeeded => State::Succeeded,
            WorkState::Failed => State::Failed,
            WorkState::Canceled => State::Canceled,
        };
        let attempt = work.attempt.filter(|attempt| *attempt > 1).map(|n| format!(", attempt {n}")).unwrap_or_default();
        let warning = work.warning.as_ref().map(|warning| format!(", {warning}")).unwrap_or_default();
        let word = format!("{}{attempt}{warning}", work.status);
        Self { state, word: Some(word), body: work.body.to_string() }
    }

    /// What the expressions say of an answer.
    pub(crate) fn of_verdict(verdict: Verdict, body: &RawValue) -> Self {
        let state = match verdict {
            Verdict::Running => State::Running,
            Verdict::Succeeded => State::Succeeded,
            Verdict::Failed => State::Failed,
            Verdict::Unreadable(why) => State::Unreadable(why),
        };
        Self { state, word: None, body: body.get().to_owned() }
    }
}

/// What an answer says about the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It goes on.
    Running,
    /// It waits for a person.
    Parked,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
    /// It was canceled.
    Canceled,
    /// The answer is neither yes nor no, with the reason. Never an end.
    Unreadable(String),
}

impl State {
    /// Whether the work is over.
    pub(crate) fn is_end(&self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled => true,
            Self::Running | Self::Parked | Self::Unreadable(_) => false,
        }
    }

    /// In a word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Parked => "parked",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Unreadable(_) => "unreadable",
        }
    }
}
