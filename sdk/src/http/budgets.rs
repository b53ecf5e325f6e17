//! One budget for each origin and credential, shared by all that ask there (R8).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ::http::HeaderMap;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use url::Origin;

use crate::credential::Credential;
use crate::env::Env;
use crate::http::Told;
use crate::http::pacing::{Action, Event, Limits, Pacing, Ticket};
use crate::machine::{Machine as _, Monotonic};

/// Who waits behind others minds the timer himself once the first of them has left it for so long: his runtime may have
/// ended, or he may not be polled.
const GRACE: Duration = Duration::from_secs(1);
/// How often each waiter looks at least (R7).
const LOOK: Duration = Duration::from_secs(15);
/// How many entries there are at least before one looks for those that nobody needs.
const SWEEP: usize = 16;

/// All budgets of one agent. Cloning shares them.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    shared: Arc<Registry>,
}

#[derive(Debug)]
struct Registry {
    env: Env,
    limits: Limits,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    entries: HashMap<Key, Entry>,
    /// At how many entries to look for those that nobody needs.
    sweep: usize,
}

/// An origin, and the SHA-256 of the header that proves who asks.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    origin: Origin,
    credential: Option<[u8; 32]>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not even the hash of a credential.
        f.debug_struct("Key").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Stays while somebody uses that key, and while the machine knows something that still counts.
#[derive(Debug)]
struct Entry {
    pace: Arc<Paced>,
    users: Weak<Key>,
}

impl Budgets {
    /// No budgets yet; each one will have these limits.
    pub(crate) fn new(env: Env, limits: Limits) -> Self {
        let table = Mutex::new(Table { entries: HashMap::new(), sweep: SWEEP });
        Self { shared: Arc::new(Registry { env, limits, table }) }
    }

    /// The budget of that credential at that origin. One that nobody has used keeps the budget of the one `before` it,
    /// if that was for the same origin: a service counts by who asks, not by the token of the hour.
    pub(crate) fn of(&self, origin: &Origin, credential: Option<&Credential>, before: Option<&Budget>) -> Budget {
        let key = Key { origin: origin.clone(), credential: credential.map(digest) };
        let mut table = lock(&self.shared.table);
        if let Some(entry) = table.entries.get_mut(&key) {
            let user = entry.users.upgrade().unwrap_or_else(|| Arc::new(key));
            entry.users = Arc::downgrade(&user);
            return Budget { pace: Arc::clone(&entry.pace), user };
        }
        self.shared.sweep(&mut table);
        let pace = match before.filter(|before| before.user.origin == key.origin) {
            Some(before) => Arc::clone(&before.pace),
            None => Arc::new(Paced::new(&self.shared.env, self.shared.limits)),
        };
        let user = Arc::new(key.clone());
        table.entries.insert(key, Entry { pace: Arc::clone(&pace), users: Arc::downgrade(&user) });
        Budget { pace, user }
    }
}

impl Registry {
    /// Removes what nobody needs, each time that the number has doubled.
    fn sweep(&self, table: &mut Table) {
        if table.entries.len() < table.sweep {
            return;
        }
        let now = self.env.instant();
        let is_used = |entry: &Entry| entry.users.strong_count() > 0;
        // A budget that is used under another credential needs no old one's entry.
        let used: HashSet<_> = table.entries.values().filter(|e| is_used(e)).map(|e| Arc::as_ptr(&e.pace)).collect();
        table.entries.retain(|_, entry| {
            is_used(entry) || (!used.contains(&Arc::as_ptr(&entry.pace)) && entry.pace.remembers(now))
        });
        table.sweep = (table.entries.len() * 2).max(SWEEP);
    }
}

/// Nothing of the credential can be had from it.
fn digest(credential: &Credential) -> [u8; 32] {
    let mut headers = HeaderMap::new();
    credential.apply(&mut headers);
    let mut hash = Sha256::new();
    for (name, value) in &headers {
        // A header's name has no colon.
        hash.update(name.as_str());
        hash.update(b":");
        hash.update(value.as_bytes());
    }
    hash.finalize().into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The budget of one origin and credential. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pace: Arc<Paced>,
    /// Keeps the entry.
    user: Arc<Key>,
}

impl Budget {
    /// Asks for one request. The place in the queue is taken now.
    pub(crate) fn want(&self) -> Permit {
        Permit { seat: Some(self.pace.seat()), budget: self.clone(), held: None, first: false }
    }

    /// Whether the service has said that it wants no request for now.
    pub(crate) fn is_forbidden(&self) -> bool {
        let now = self.pace.env.instant();
        lock(&self.pace.state).pacing.forbidden_until().is_some_and(|until| until > now)
    }

    /// Before when certainly no request is granted, if that lies ahead.
    #[cfg(test)]
    pub(crate) fn held_until(&self) -> Option<Monotonic> {
        let now = self.pace.env.instant();
        lock(&self.pace.state).pacing.held_until().filter(|&until| until > now)
    }
}

/// What comes of asking.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing is granted before that time. Said once for each such time.
    Held(Monotonic),
    /// The request may be sent.
    Granted(Granted),
}

/// A place in the queue. Dropping it gives it up.
#[derive(Debug)]
pub(crate) struct Permit {
    budget: Budget,
    seat: Option<Seat>,
    /// The hold that was said last.
    held: Option<Monotonic>,
    /// Whether this one minds the timer although others are before it: they have not.
    first: bool,
}

impl Permit {
    /// The next that comes of it. After a grant it asks for one more request.
    ///
    /// # Cancel safety
    /// Dropping the future loses neither the place nor a grant.
    pub(crate) async fn next(&mut self) -> Step {
        let pace = Arc::clone(&self.budget.pace);
        loop {
            let seat = self.seat.get_or_insert_with(|| pace.seat());
            let alarm = match pace.look(seat, self.held, &mut self.first) {
                Look::Held(until) => {
                    self.held = Some(until);
                    return Step::Held(until);
                }
                Look::Granted => {
                    (self.held, self.first) = (None, false);
                    let ticket = seat.ticket;
                    // From here on the grant ends the ticket.
                    self.seat = None;
                    return Step::Granted(Granted { budget: self.budget.clone(), ticket });
                }
                Look::Wait(alarm) => alarm,
            };
            tokio::select! {
                biased;
                () = seat.notify.notified() => {}
                () = pace.env.sleep_until(Some(alarm)) => {}
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            self.budget.pace.tell(Event::Ended(seat.ticket));
        }
    }
}

/// A request that may be sent, or is under way. Dropping it says that it has ended.
#[derive(Debug)]
pub(crate) struct Granted {
    budget: Budget,
    ticket: Ticket,
}

impl Granted {
    /// What the head of its answer says.
    pub(crate) fn told(&self, told: &Told) {
        self.budget.pace.tell(Event::Told(self.ticket, told.clone()));
    }

    /// It has ended already.
    pub(crate) fn ended(&self) {
        self.budget.pace.tell(Event::Ended(self.ticket));
    }

    /// It never reached the service.
    pub(crate) fn unsent(&self) {
        self.budget.pace.tell(Event::Unsent(self.ticket));
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.budget.pace.tell(Event::Ended(self.ticket));
    }
}

/// A machine, and who waits for it. It has no task: whoever waits drives it.
#[derive(Debug)]
struct Paced {
    env: Env,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pacing: Pacing,
    tickets: u64,
    /// Those that have not taken their grant.
    seats: HashMap<Ticket, Waiter>,
    /// Who minds the timer, and what he was last told of it.
    minded: Option<(Ticket, Monotonic)>,
}

#[derive(Debug)]
struct Waiter {
    granted: bool,
    notify: Arc<Notify>,
}

/// A waiter's own end.
#[derive(Debug)]
struct Seat {
    ticket: Ticket,
    notify: Arc<Notify>,
}

/// What a waiter sees.
enum Look {
    Held(Monotonic),
    Granted,
    Wait(Monotonic),
}

impl Paced {
    fn new(env: &Env, limits: Limits) -> Self {
        let pacing = Pacing::new(limits);
        let state = State { pacing, tickets: 0, seats: HashMap::new(), minded: None };
        Self { env: env.clone(), state: Mutex::new(state) }
    }

    fn seat(&self) -> Seat {
        let mut state = lock(&self.state);
        let (ticket, notify) = (Ticket::new(state.tickets), Arc::new(Notify::new()));
        state.tickets += 1;
        state.seats.insert(ticket, Waiter { granted: false, notify: Arc::clone(&notify) });
        state.event(&self.env, Event::Wanted(ticket));
        Seat { ticket, notify }
    }

    fn tell(&self, event: Event) {
        let mut state = lock(&self.state);
        if let Event::Ended(ticket) | Event::Unsent(ticket) = &event {
            state.seats.remove(ticket);
        }
        state.event(&self.env, event);
    }

    fn look(&self, seat: &Seat, said: Option<Monotonic>, first: &mut bool) -> Look {
        let mut state = lock(&self.state);
        let now = self.env.instant();
        if state.pacing.deadline().is_some_and(|at| at <= now) {
            // Whoever should have minded it has not: from now on this one does.
            *first |= state.pacing.first() != Some(seat.ticket);
            state.event(&self.env, Event::Tick);
        }
        if state.seats.get(&seat.ticket).is_some_and(|waiter| waiter.granted) {
            if state.pacing.forbidden_until().is_none_or(|until| until <= now) {
                state.seats.remove(&seat.ticket);
                return Look::Granted;
            }
            // Granted before that was known, and not sent: it goes back, and is the first one (FC-55).
            if let Some(waiter) = state.seats.get_mut(&seat.ticket) {
                waiter.granted = false;
            }
            state.event(&self.env, Event::Wanted(seat.ticket));
        }
        let held = state.pacing.held_until().filter(|&until| until > now);
        if let Some(until) = held.filter(|_| held != said) {
            return Look::Held(until);
        }
        let minds = *first || state.pacing.first() == Some(seat.ticket);
        let grace = if minds { Duration::ZERO } else { GRACE };
        Look::Wait(state.pacing.deadline().map_or(now + LOOK, |at| (at + grace).min(now + LOOK)))
    }

    /// Whether a new machine would decide otherwise.
    fn remembers(&self, now: Monotonic) -> bool {
        lock(&self.state).pacing.remembers_until().is_some_and(|until| until > now)
    }
}

impl State {
    fn event(&mut self, env: &Env, event: Event) {
        let now = env.now();
        let held = self.pacing.held_until().filter(|&until| until > now.instant);
        for action in self.pacing.on_event(now, event) {
            let Action::Grant(ticket) = action;
            if let Some(waiter) = self.seats.get_mut(&ticket) {
                waiter.granted = true;
                waiter.notify.notify_one();
            }
        }
        let holds = self.pacing.held_until().filter(|&until| until > now.instant);
        if holds.is_some() && holds != held {
            self.seats.values().for_each(|waiter| waiter.notify.notify_one());
        }
        let minds = self.pacing.first().zip(self.pacing.deadline());
        if minds != self.minded {
            self.minded = minds;
            // The timer has another minder, or is set to another time.
            if let Some(waiter) = minds.and_then(|(ticket, _)| self.seats.get(&ticket)) {
                waiter.notify.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests;
