//! Down: a race for a link.

use std::sync::Arc;
use std::time::Duration;

use super::credential::Refusal;
use super::race::{AT_ONCE, Flight, NextRound, Race, Why};
use super::vocabulary::{Action, Event};
use super::{Health, LONGEST_SPREAD, Link, State, Supervisor, abort_all, close};
use crate::connection::backoff::Schedule;
use crate::connection::dial::{Attempt, DialPhase};
use crate::connection::discover::Address;
use crate::error::{Cause, Phase};
use crate::machine::{Actions, Now};
use crate::wire::Welcome;

/// A caller's policy that has not answered by then is gone past.
const POLICY_BOUND: Duration = Duration::from_secs(5);

impl Supervisor {
    pub(super) fn while_down(
        &mut self,
        now: &Now,
        mut race: Race,
        event: Event,
        actions: &mut Actions<Action>,
    ) -> State {
        match event {
            Event::Discovered { endpoints } => {
                if race.discover.take().is_some() {
                    if endpoints.is_empty() {
                        self.fail(&mut race, Cause::Unresolved { detail: "discovery gave no endpoint".into() });
                    }
                    for endpoint in endpoints {
                        if !self.holds.is_held(&endpoint, now.instant) {
                            race.enqueue_endpoint(endpoint);
                        }
                    }
                }
            }
            Event::DiscoverFailed { detail } => {
                if race.discover.take().is_some() {
                    self.fail(&mut race, Cause::Unresolved { detail });
                }
            }
            Event::Resolved { endpoint, targets } => {
                if race.resolving.remove(&endpoint).is_some() {
                    if targets.is_empty() {
                        let detail = format!("{endpoint} has no address").into();
                        self.fail(&mut race, Cause::Unresolved { detail });
                    }
                    race.enqueue_targets(&endpoint, targets, self.round, self.suspect.as_ref());
                    race.leave_alone(&self.holds, now.instant);
                }
            }
            Event::ResolveFailed { endpoint, detail } => {
                if race.resolving.remove(&endpoint).is_some() {
                    self.fail(&mut race, Cause::Unresolved { detail });
                }
            }
            Event::Advanced { attempt, phase } => {
                // Only forward, so that a dial's whole time is bounded by the sum of its phases.
                if let Some(flight) = race.flights.get_mut(&attempt).filter(|flight| flight.phase < phase) {
                    flight.phase = phase;
                    flight.bound = now.instant + self.config.bound(phase);
                }
            }
            Event::Failed { attempt, cause, retry_after } => {
                if let Some(flight) = race.flights.remove(&attempt) {
                    if let Some(hint) = retry_after {
                        self.hold(now, &flight.address, hint);
                        race.leave_alone(&self.holds, now.instant);
                    }
                    self.fail_dial(&mut race, cause);
                }
            }
            Event::Refused { attempt } => {
                if let Some(flight) = race.flights.remove(&attempt) {
                    match self.refuse(flight) {
                        Refusal::Uncounted => self.fail_dial(&mut race, Cause::Unauthorized),
                        Refusal::First => {
                            self.note(Cause::Unauthorized);
                            race.halt();
                            race.next = Some(self.after_refusal(now));
                        }
                        Refusal::Denied => return self.deny(now, &race, actions),
                    }
                }
            }
            Event::Welcomed { attempt, welcome } => {
                if let Some(flight) = race.flights.remove(&attempt) {
                    abort_all(&race, actions);
                    return self.welcomed(now, attempt, flight, welcome);
                }
            }
            Event::Credential(answer) => {
                if race.credential.take().is_some() {
                    match answer {
                        Ok(generation) => {
                            if !self.credential.answered(generation) {
                                return self.deny(now, &race, actions);
                            }
                        }
                        Err(cause) => self.fail_round(&mut race, cause),
                    }
                }
            }
            Event::Delay(delay) => {
                if race.next.is_some_and(|next| next.why == Why::Policy) {
                    let delay = delay.unwrap_or_else(|| self.config.backoff.delay(now, self.outage(now), self.spread));
                    race.next = Some(NextRound { at: now.instant + delay, why: Why::Backoff });
                }
            }
            Event::Close => return close(&race, actions),
            Event::Tick => self.expire(now, &mut race, actions),
            // Of a link that is over.
            Event::Exchanged { .. } | Event::Draining { .. } | Event::Spread { .. } | Event::Lost { .. } => {}
        }
        State::Down(race)
    }

    /// What has passed its bound has failed (R7).
    fn expire(&mut self, now: &Now, race: &mut Race, actions: &mut Actions<Action>) {
        let stalled = |phase, bound| Cause::Stalled { phase, bound };
        if race.discover.is_some_and(|at| at <= now.instant) {
            race.discover = None;
            self.fail(race, stalled(Phase::Discover, self.config.discover));
        }
        let resolving = race.resolving.len();
        race.resolving.retain(|_, at| *at > now.instant);
        if race.resolving.len() < resolving {
            self.fail(race, stalled(Phase::Resolve, self.config.resolve));
        }
        let expired = race.flights.iter().filter(|(_, flight)| flight.bound <= now.instant);
        let expired: Vec<_> = expired.map(|(attempt, flight)| (*attempt, flight.phase)).collect();
        for (attempt, phase) in expired {
            race.flights.remove(&attempt);
            actions.push(Action::Abort { attempt });
            self.fail_dial(race, stalled(phase.into(), self.config.bound(phase)));
        }
        if race.credential.is_some_and(|at| at <= now.instant) {
            self.fail_round(race, stalled(Phase::Credential, self.config.credential));
        }
    }

    /// Starts what can be started, and arms the next round.
    pub(super) fn proceed(&mut self, now: &Now, race: &mut Race, actions: &mut Actions<Action>) {
        if race.next.is_some_and(|next| next.at <= now.instant) {
            self.begin_round(now, race, actions);
        }
        while race.resolving.len() < AT_ONCE
            && let Some(endpoint) = race.unresolved.pop_front()
        {
            race.resolving.insert(endpoint.clone(), now.instant + self.config.resolve);
            actions.push(Action::Resolve(endpoint));
        }
        while let Some(address) = race.take_startable(now.instant) {
            self.attempts += 1;
            let attempt = Attempt(self.attempts);
            let flight = Flight {
                address: address.clone(),
                phase: DialPhase::Connect,
                bound: now.instant + self.config.connect,
                generation: self.credential.present(),
                round: self.round,
            };
            race.flights.insert(attempt, flight);
            race.stagger = Some(now.instant + self.config.stagger);
            self.held_until = None;
            actions.push(Action::Dial { attempt, address });
        }
        if race.discover.is_some() || race.credential.is_some() {
            return;
        }
        if race.failed && race.is_started() {
            race.failed = false;
            if race.next.is_none_or(|next| next.why == Why::Ask) {
                race.next = Some(self.back_off(now, actions));
            }
        }
        if race.next.is_none() {
            race.next = Some(if race.is_idle() {
                let delay = self.config.backoff.delay(now, self.outage(now), self.spread);
                let free = self.holds.next_free(now.instant);
                self.held_until = free;
                let at = now.instant + delay;
                NextRound { at: free.map_or(at, |free| free.min(at)), why: Why::Held }
            } else {
                let delay = self.config.backoff.cap(self.outage(now)).max(self.spread);
                NextRound { at: now.instant + delay, why: Why::Ask }
            });
        }
    }

    /// Every round asks anew where the service is (R8, FC-42), and for the credential: it may be about to expire (R3).
    fn begin_round(&mut self, now: &Now, race: &mut Race, actions: &mut Actions<Action>) {
        self.round += 1;
        self.loudness = 0;
        race.next = None;
        race.failed = false;
        if self.credential.has_source() {
            race.credential = Some(now.instant + self.config.credential);
            actions.push(Action::AskCredential { anew: self.credential.is_stale() });
        }
        race.discover = Some(now.instant + self.config.discover);
        actions.push(Action::Discover);
    }

    fn back_off(&mut self, now: &Now, actions: &mut Actions<Action>) -> NextRound {
        self.failures = self.failures.saturating_add(1);
        let outage = self.outage(now);
        match self.config.schedule {
            Schedule::Default => {
                let delay = self.config.backoff.delay(now, outage, self.spread);
                NextRound { at: now.instant + delay, why: Why::Backoff }
            }
            Schedule::Asked => {
                actions.push(Action::AskDelay { outage, failures: self.failures });
                NextRound { at: now.instant + POLICY_BOUND, why: Why::Policy }
            }
        }
    }

    /// A step that is never nothing: the two refusals of one credential are to be a backoff step apart (R3).
    pub(super) fn after_refusal(&self, now: &Now) -> NextRound {
        let half = self.config.backoff.cap(self.outage(now)) / 2;
        let delay = (half + now.jitter(half)).max(now.jitter(self.spread));
        NextRound { at: now.instant + delay, why: Why::Refusal }
    }

    pub(super) fn outage(&self, now: &Now) -> Duration {
        now.instant.since(self.outage_since)
    }

    fn fail(&mut self, race: &mut Race, cause: Cause) {
        race.failed = true;
        self.note(cause);
    }

    /// A dial that fails lets the next one start at once (RFC 8305, 5).
    fn fail_dial(&mut self, race: &mut Race, cause: Cause) {
        race.stagger = None;
        self.fail(race, cause);
    }

    fn fail_round(&mut self, race: &mut Race, cause: Cause) {
        race.halt();
        self.fail(race, cause);
    }

    /// Remembers why, for the user. Of one round's causes what the service said tells more than what this side noticed.
    fn note(&mut self, cause: Cause) {
        let loudness = loudness(&cause);
        if loudness >= self.loudness {
            self.loudness = loudness;
            self.cause = Some(cause);
        }
    }

    /// Keeps away from an endpoint. The spread on top keeps those that were told the same time from coming at once.
    pub(super) fn hold(&mut self, now: &Now, address: &Address, hint: Duration) {
        let hint = hint.saturating_add(now.jitter(self.spread));
        self.holds.hold(address.endpoint.clone(), now.instant, hint);
    }

    pub(super) fn refuse(&mut self, flight: Flight) -> Refusal {
        let refusal = self.credential.refused(flight.generation, flight.round, self.round);
        self.suspect = Some(flight.address);
        refusal
    }

    fn welcomed(&mut self, now: &Now, id: Attempt, flight: Flight, welcome: Arc<Welcome>) -> State {
        self.ever_up = true;
        self.denied_since = None;
        self.suspect = None;
        self.spread = welcome.spread.min(LONGEST_SPREAD);
        let health = Health::Young { at: now.instant + self.config.proven_after, exchanged: false };
        State::Up(Link { id, flight, welcome, health, draining: false })
    }
}

/// How much a cause tells the user: what the service said tells more than what this side noticed.
fn loudness(cause: &Cause) -> u8 {
    match cause {
        Cause::Unauthorized => 2,
        Cause::Status { .. }
        | Cause::RateLimited { .. }
        | Cause::Unavailable { .. }
        | Cause::Refused { .. }
        | Cause::Misdirected { .. }
        | Cause::Undecodable { .. } => 1,
        Cause::Connecting
        | Cause::Unresolved { .. }
        | Cause::Unreachable { .. }
        | Cause::Dropped { .. }
        | Cause::Stalled { .. }
        | Cause::CredentialUnavailable { .. }
        | Cause::NotYetVisible
        | Cause::Behind
        | Cause::OtherLog => 0,
    }
}
