//! Up: one link.

use std::time::Duration;

use super::credential::Refusal;
use super::race::{Race, Why};
use super::vocabulary::{Action, Event};
use super::{Health, LONGEST_SPREAD, Link, State, Supervisor};
use crate::connection::close::CloseMeaning;
use crate::error::Cause;
use crate::machine::{Actions, Now};

/// What the client says when its caller closes the connection: a normal closure (RFC 6455, 7.4.1).
const NORMAL_CLOSURE: u16 = 1000;

impl Supervisor {
    pub(super) fn while_up(&mut self, now: &Now, mut link: Link, event: Event, actions: &mut Actions<Action>) -> State {
        self.mature(now, &mut link);
        match event {
            Event::Exchanged { link: id } if id == link.id => match &mut link.health {
                Health::Young { exchanged, .. } => *exchanged = true,
                Health::Silent => self.prove(&mut link),
                Health::Proven => {}
            },
            Event::Draining { link: id } if id == link.id => link.draining = true,
            Event::Spread { link: id, spread } if id == link.id => self.spread = spread.min(LONGEST_SPREAD),
            Event::Lost { link: id, cause, code, retry_after } if id == link.id => {
                return self.lost(now, link, cause, code, retry_after, actions);
            }
            Event::Close => {
                actions.push(Action::Disconnect { link: link.id, code: NORMAL_CLOSURE });
                return State::Closed;
            }
            // Of another link.
            Event::Exchanged { .. } | Event::Draining { .. } | Event::Spread { .. } | Event::Lost { .. } => {}
            // Of the race that this link has won.
            Event::Discovered { .. }
            | Event::DiscoverFailed { .. }
            | Event::Resolved { .. }
            | Event::ResolveFailed { .. }
            | Event::Advanced { .. }
            | Event::Failed { .. }
            | Event::Refused { .. }
            | Event::Welcomed { .. }
            | Event::Credential(_)
            | Event::Delay(_)
            | Event::Tick => {}
        }
        State::Up(link)
    }

    fn mature(&mut self, now: &Now, link: &mut Link) {
        match link.health {
            Health::Young { at, exchanged } if at <= now.instant => {
                if exchanged {
                    self.prove(link);
                } else {
                    link.health = Health::Silent;
                }
            }
            Health::Young { .. } | Health::Silent | Health::Proven => {}
        }
    }

    /// Only this ends an outage (FC-49).
    fn prove(&mut self, link: &mut Link) {
        link.health = Health::Proven;
        self.failures = 0;
        self.credential.proven();
    }

    /// However the link ended, it was not for the user (FC-32).
    fn lost(
        &mut self,
        now: &Now,
        link: Link,
        cause: Cause,
        code: Option<u16>,
        retry_after: Option<Duration>,
        actions: &mut Actions<Action>,
    ) -> State {
        let meaning = CloseMeaning::of(code);
        let hint = match meaning {
            CloseMeaning::RecoverLater => Some(retry_after.unwrap_or(self.config.try_again_later)),
            CloseMeaning::Recover | CloseMeaning::Refused => retry_after,
        };
        if let Some(hint) = hint {
            self.hold(now, &link.flight.address, hint);
        }
        let proven = match link.health {
            Health::Proven => true,
            Health::Young { .. } | Health::Silent => false,
        };
        if proven {
            self.outage_since = now.instant;
        }
        self.down_since = now.wall;
        self.loudness = 0;
        match meaning {
            CloseMeaning::Refused => {
                self.cause = Some(Cause::Unauthorized);
                match self.refuse(link.flight) {
                    Refusal::Denied => self.deny(now, &Race::default(), actions),
                    Refusal::First | Refusal::Uncounted => {
                        let next = self.after_refusal(now);
                        State::Down(Race::new(next.at, next.why))
                    }
                }
            }
            CloseMeaning::Recover | CloseMeaning::RecoverLater => {
                self.cause = Some(cause);
                State::Down(if proven {
                    Race::new(now.instant + now.jitter(self.spread), Why::Fresh)
                } else {
                    Race::after_failure()
                })
            }
        }
    }
}
