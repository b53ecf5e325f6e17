//! One budget for each origin and credential, shared by all that ask there (R8).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use url::{Host, Origin, Url};

use crate::credential::{Credential, Fingerprint};
use crate::env::Env;
use crate::http::pacing::{Action, Event, Limits, Pacing, Ticket};
use crate::http::told::Told;
use crate::machine::{Machine as _, Monotonic, Now};

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

/// An origin, and who asks there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    origin: Origin,
    credential: Option<Fingerprint>,
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
        let key = Key { origin: origin.clone(), credential: credential.map(Credential::fingerprint) };
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

    /// Asks for one request that may be sent at once; else takes a place in the queue.
    pub(crate) fn want_now(self) -> Result<Granted, Permit> {
        match self.pace.want() {
            Ok(ticket) => Ok(Granted::new(self, ticket)),
            Err(seat) => Err(Permit { seat: Some(seat), budget: self, held: None, first: false }),
        }
    }

    /// Whether the two are one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.user, &other.user)
    }

    /// The origin that it is for.
    pub(crate) fn origin(&self) -> &Origin {
        &self.user.origin
    }

    /// Whether it is for the origin of `url`.
    pub(crate) fn is_at(&self, url: &Url) -> bool {
        let Origin::Tuple(scheme, host, port) = self.origin() else { return false };
        let is_host = match (host, url.host()) {
            (Host::Domain(one), Some(Host::Domain(other))) => one == other,
            (Host::Ipv4(one), Some(Host::Ipv4(other))) => *one == other,
            (Host::Ipv6(one), Some(Host::Ipv6(other))) => *one == other,
            (Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_), _) => false,
        };
        is_host && scheme == url.scheme() && Some(*port) == url.port_or_known_default()
    }

    /// Whether it is for who asks with that credential.
    pub(crate) fn is_for(&self, credential: Option<&Credential>) -> bool {
        self.user.credential == credential.map(Credential::fingerprint)
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
                    return Step::Granted(Granted::new(self.budget.clone(), ticket));
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
            self.budget.pace.tell([Event::Ended(seat.ticket)]);
        }
    }
}

/// A request that may be sent, or is under way. Dropping it says that it has ended.
#[derive(Debug)]
pub(crate) struct Granted {
    budget: Budget,
    ticket: Ticket,
    /// Whether its end was told.
    over: AtomicBool,
}

impl Granted {
    fn new(budget: Budget, ticket: Ticket) -> Self {
        Self { budget, ticket, over: AtomicBool::new(false) }
    }

    /// What has granted it.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What the head of its answer says.
    pub(crate) fn told(&self, told: &Told) {
        self.budget.pace.tell([Event::Told(self.ticket, told.clone())]);
    }

    /// It has ended already.
    pub(crate) fn ended(&self) {
        if !self.over.swap(true, Ordering::Relaxed) {
            self.budget.pace.tell([Event::Ended(self.ticket)]);
        }
    }

    /// What the head of its answer says, which is all there is of it.
    pub(crate) fn told_and_ended(&self, told: &Told) {
        let told = Event::Told(self.ticket, told.clone());
        if self.over.swap(true, Ordering::Relaxed) {
            // What is said once more after that still counts.
            self.budget.pace.tell([told]);
        } else {
            self.budget.pace.tell([told, Event::Ended(self.ticket)]);
        }
    }

    /// It never reached the service.
    pub(crate) fn unsent(&self) {
        if !self.over.swap(true, Ordering::Relaxed) {
            self.budget.pace.tell([Event::Unsent(self.ticket)]);
        }
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.ended();
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

    /// A grant, if there is one at once; else a seat.
    fn want(&self) -> Result<Ticket, Seat> {
        let mut state = lock(&self.state);
        let ticket = Ticket::new(state.tickets);
        state.tickets += 1;
        if state.event(self.env.now_without_wall(), Event::Wanted(ticket)) == Some(ticket) {
            return Ok(ticket);
        }
        Err(state.seat(ticket, false))
    }

    fn seat(&self) -> Seat {
        match self.want() {
            Ok(ticket) => lock(&self.state).seat(ticket, true),
            Err(seat) => seat,
        }
    }

    /// All of them happen now.
    fn tell<const N: usize>(&self, events: [Event; N]) {
        let mut state = lock(&self.state);
        let now = self.env.now_without_wall();
        for event in events {
            if let Event::Ended(ticket) | Event::Unsent(ticket) = &event {
                state.seats.remove(ticket);
            }
            state.event(now, event);
        }
    }

    fn look(&self, seat: &Seat, said: Option<Monotonic>, first: &mut bool) -> Look {
        let mut state = lock(&self.state);
        let now = self.env.now_without_wall();
        let instant = now.instant;
        if state.pacing.deadline().is_some_and(|at| at <= instant) {
            // Whoever should have minded it has not: from now on this one does.
            *first |= state.pacing.first() != Some(seat.ticket);
            state.event(now, Event::Tick);
        }
        if state.seats.get(&seat.ticket).is_some_and(|waiter| waiter.granted) {
            if state.pacing.forbidden_until().is_none_or(|until| until <= instant) {
                state.seats.remove(&seat.ticket);
                return Look::Granted;
            }
            // Granted before that was known, and not sent: it goes back, and is the first one (FC-55).
            if let Some(waiter) = state.seats.get_mut(&seat.ticket) {
                waiter.granted = false;
            }
            state.event(now, Event::Wanted(seat.ticket));
        }
        let held = state.pacing.held_until().filter(|&until| until > instant);
        if let Some(until) = held.filter(|_| held != said) {
            return Look::Held(until);
        }
        let minds = *first || state.pacing.first() == Some(seat.ticket);
        let grace = if minds { Duration::ZERO } else { GRACE };
        Look::Wait(state.pacing.deadline().map_or(instant + LOOK, |at| (at + grace).min(instant + LOOK)))
    }

    /// Whether a new machine would decide otherwise.
    fn remembers(&self, now: Monotonic) -> bool {
        lock(&self.state).pacing.remembers_until().is_some_and(|until| until > now)
    }
}

impl State {
    fn seat(&mut self, ticket: Ticket, granted: bool) -> Seat {
        let notify = Arc::new(Notify::new());
        self.seats.insert(ticket, Waiter { granted, notify: Arc::clone(&notify) });
        Seat { ticket, notify }
    }

    /// What is granted is told to who sits for it; returned is what nobody does.
    fn event(&mut self, now: Now, event: Event) -> Option<Ticket> {
        if self.seats.is_empty() {
            // Nobody waits: nobody minds the timer, and nobody is told of a hold.
            self.minded = None;
            return self.pacing.on_event(now, event).pop().map(|Action::Grant(ticket)| ticket);
        }
        let held = self.pacing.held_until().filter(|&until| until > now.instant);
        let mut seatless = None;
        for action in self.pacing.on_event(now, event) {
            let Action::Grant(ticket) = action;
            match self.seats.get_mut(&ticket) {
                Some(waiter) => {
                    waiter.granted = true;
                    waiter.notify.notify_one();
                }
                None => seatless = Some(ticket),
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
        seatless
    }
}

#[cfg(test)]
mod tests;
