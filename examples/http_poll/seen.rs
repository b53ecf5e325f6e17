//! What one answer says about the work.

use std::sync::Arc;

use outlast::profile::{Work, WorkState};
use serde_json::value::RawValue;

use super::predicate::Predicate;

/// An answer, judged.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What it says.
    pub(crate) state: State,
    /// In a word of the service, where there is one.
    pub(crate) word: Option<Arc<str>>,
    /// The body.
    pub(crate) body: Arc<str>,
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
        Self { state, word: Some(word.into()), body: work.body.to_string().into() }
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
    Unreadable(Arc<str>),
}

impl State {
    /// Whether the work is over.
    pub(crate) fn is_end(&self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled => true,
            Self::Running | Self::Parked | Self::Unreadable(_) => false,
        }
    }

    /// In words.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Running => "running",
            Self::Parked => "parked: waits for a person",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// The conditions of the command line.
pub(crate) struct Conditions {
    /// Whether the work is over.
    pub(crate) done: Predicate,
    /// Whether it ended well; without it, every end is a good one.
    pub(crate) ok: Option<Predicate>,
}

impl Conditions {
    /// What `body` says.
    pub(crate) fn judge(&self, body: &RawValue) -> Seen {
        let text = body.get();
        let verdict = || self.ok.as_ref().map_or(Ok(true), |ok| ok.holds(text.as_bytes()));
        let state = match self.done.holds(text.as_bytes()) {
            Ok(false) => State::Running,
            Ok(true) => match verdict() {
                Ok(true) => State::Succeeded,
                Ok(false) => State::Failed,
                Err(e) => State::Unreadable(format!("--ok: {e}").into()),
            },
            Err(e) => State::Unreadable(format!("--done: {e}").into()),
        };
        Seen { state, word: None, body: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(done: &str, ok: Option<&str>, body: &str) -> State {
        let ok = ok.map(|ok| Predicate::compile(ok).unwrap());
        let conditions = Conditions { done: Predicate::compile(done).unwrap(), ok };
        conditions.judge(&RawValue::from_string(body.to_owned()).unwrap()).state
    }

    /// R3: only a yes ends it, and only a no of `--ok` is a failure.
    #[test]
    fn r3_only_a_boolean_is_a_verdict() {
        let (done, ok) = (".done", Some(".good"));
        assert_eq!(judge(done, ok, r#"{"done":false}"#), State::Running);
        assert_eq!(judge(done, ok, r#"{"done":true,"good":true}"#), State::Succeeded);
        assert_eq!(judge(done, ok, r#"{"done":true,"good":false}"#), State::Failed);
        assert_eq!(judge(done, None, r#"{"done":true}"#), State::Succeeded);
        for body in [r#"{"done":null}"#, r#"{"done":true,"good":null}"#, r#"[]"#, r#"{"done":"true"}"#] {
            assert!(matches!(judge(done, ok, body), State::Unreadable(_)), "{body}");
        }
    }
}
