//! TEMPORARY
use std::pin::Pin;
use std::task::{Context, Poll};
use crate::command::*;
use crate::key::CommandKey;
use crate::observe::Observable;
pub(crate) trait Control: Send + Sync { fn cancel(&self); fn dropped(&self); }
/// c
pub struct Command { key: CommandKey, state: Observable<CommandState>, control: Option<Box<dyn Control>> }
impl Command {
    pub(crate) fn new(key: CommandKey, state: Observable<CommandState>, control: Box<dyn Control>) -> Self { Self { key, state, control: Some(control) } }
    pub(crate) fn failed(key: CommandKey, failure: CommandFailure) -> Self {
        let (p, o) = crate::observe::channel();
        let mut s = CommandState::queued(Protection::Recorded);
        s.status = CommandStatus::Failed; s.failure = Some(failure);
        p.fresh(s); p.leave();
        Self { key, state: o, control: None }
    }
    /// k
    pub fn key(&self) -> &CommandKey { &self.key }
    /// s
    pub fn state(&self) -> Observable<CommandState> { self.state.clone() }
    /// c
    pub fn cancel(&self) { if let Some(c) = &self.control { c.cancel() } }
    /// s
    pub async fn settled(&self) -> CommandState { (*self.state.until(|s| s.ends_wait()).await.unwrap()).clone() }
}
