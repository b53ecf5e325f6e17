//! Denied: the credential was refused twice, and only another one is tried (R3).

use super::race::{Race, Why};
use super::vocabulary::{Action, Event};
use super::{Recheck, State, Supervisor, abort_all, close};
use crate::error::Cause;
use crate::machine::{Actions, Now};

impl Supervisor {
    pub(super) fn deny(&mut self, now: &Now, race: &Race, actions: &mut Actions<Action>) -> State {
        abort_all(race, actions);
        self.cause = Some(Cause::Unauthorized);
        self.denied_since.get_or_insert(now.wall);
        State::Denied(Recheck::At(now.instant + self.config.denied_recheck))
    }

    pub(super) fn while_denied(
        &mut self,
        now: &Now,
        recheck: Recheck,
        event: Event,
        actions: &mut Actions<Action>,
    ) -> State {
        let later = State::Denied(Recheck::At(now.instant + self.config.denied_recheck));
        match (event, recheck) {
            (Event::Close, _) => close(&Race::default(), actions),
            (Event::Credential(Ok(generation)), Recheck::Asking { .. }) => {
                if self.credential.answered(generation) {
                    self.denied_since = None;
                    State::Down(Race::new(now.instant, Why::Fresh))
                } else {
                    later
                }
            }
            (Event::Credential(Err(_)), Recheck::Asking { .. }) => later,
            (Event::Tick, Recheck::Asking { bound }) if bound <= now.instant => later,
            (Event::Tick, Recheck::At(at)) if at <= now.instant => self.recheck(now, actions),
            // Of attempts and links that are over, and ticks before their time.
            (
                Event::Discovered { .. }
                | Event::DiscoverFailed { .. }
                | Event::Resolved { .. }
                | Event::ResolveFailed { .. }
                | Event::Advanced { .. }
                | Event::Failed { .. }
                | Event::Refused { .. }
                | Event::Welcomed { .. }
                | Event::Exchanged { .. }
                | Event::Draining { .. }
                | Event::Spread { .. }
                | Event::Lost { .. }
                | Event::Credential(_)
                | Event::Delay(_)
                | Event::Tick,
                Recheck::At(_) | Recheck::Asking { .. },
            ) => State::Denied(recheck),
        }
    }

    /// Asks for another credential. A client without a source has no token to spare: it dials once, and stays denied to
    /// its user until it is welcomed.
    pub(super) fn recheck(&mut self, now: &Now, actions: &mut Actions<Action>) -> State {
        if self.credential.has_source() {
            actions.push(Action::AskCredential { anew: true });
            State::Denied(Recheck::Asking { bound: now.instant + self.config.credential })
        } else {
            self.credential.reprieve();
            State::Down(Race::new(now.instant, Why::Fresh))
        }
    }
}
