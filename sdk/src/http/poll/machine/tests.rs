//! One test, or a few, for each promise and field case that this machine keeps; each names it.

mod failures;
mod marks;
mod pace;
mod phases;
mod stream;

use std::time::Duration;

use ulid::Ulid;

use super::*;
use crate::http::poll::Answer;
use crate::machine::{Machine as _, Wall};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A read driven by hand, with a mean draw. The budget permits whatever is wanted unless told otherwise.
struct Read {
    machine: Machine,
    now: Monotonic,
    draw: u64,
}

impl Read {
    fn new(settings: Settings) -> Self {
        let now = Now { instant: Monotonic::ZERO, wall: Wall::default(), draw: 0 };
        let machine = Machine::new(settings, Epoch::new(Ulid(7)), now);
        Self { machine, now: Monotonic::ZERO, draw: u64::MAX / 2 }
    }

    /// Begun; its first request is under way.
    fn begun(settings: Settings) -> Self {
        let mut read = Self::new(settings);
        assert_eq!(read.on(Event::Start), [Action::Want]);
        assert_eq!(read.on(Event::Permitted), [send(false, Connection::Any)]);
        read
    }

    /// Shows a value with these marks as fresh.
    fn fresh(settings: Settings, marks: Marks) -> Self {
        let mut read = Self::begun(settings);
        let shown = read.value(marks);
        assert_eq!(shown[0], fresh(1, true));
        read
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        let now = Now { instant: self.now, wall: Wall::default(), draw: self.draw };
        self.machine.on_event(now, event)
    }

    fn answer(&mut self, answer: Answer) -> Vec<Action> {
        self.on(Event::Answered { answer, retry_after: None, holds: None })
    }

    fn value(&mut self, marks: Marks) -> Vec<Action> {
        self.answer(Answer::Value(marks))
    }

    fn unserved(&mut self, cause: Cause, retry_after: Option<Duration>) -> Vec<Action> {
        self.on(Event::Answered { answer: Answer::Unserved(cause), retry_after, holds: None })
    }

    fn failed(&mut self, cause: Cause) -> Vec<Action> {
        self.on(Event::Failed { cause, again: false })
    }

    /// Lets time pass, with a tick at each deadline on the way.
    fn pass(&mut self, time: Duration) -> Vec<Action> {
        let end = self.now + time;
        let mut actions = Vec::new();
        while let Some(deadline) = self.machine.deadline().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            actions.extend(self.on(Event::Tick));
            assert!(self.machine.deadline().is_none_or(|next| next > self.now), "a tick settles its timer");
        }
        self.now = end;
        actions
    }

    /// How long until the deadline.
    fn ahead(&self) -> Duration {
        self.machine.deadline().unwrap().since(self.now)
    }

    /// Goes to the next look and sends its request. How long that took, and the request.
    fn look(&mut self) -> (Duration, Action) {
        let ahead = self.ahead();
        assert_eq!(self.pass(ahead), [Action::Want]);
        (ahead, self.permitted())
    }

    fn permitted(&mut self) -> Action {
        let sent = self.on(Event::Permitted);
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.into_iter().next().unwrap()
    }
}

fn send(validate: bool, connection: Connection) -> Action {
    Action::Send { validate, connection }
}

fn fresh(count: u64, take: bool) -> Action {
    Action::Publish(Shown::Fresh { at: Cursor::Epoch { epoch: Epoch::new(Ulid(7)), count }, take })
}

fn stale(since: Monotonic, cause: Cause) -> Action {
    Action::Publish(Shown::Stale { since, cause, not_before: None })
}

fn loading(cause: Cause) -> Action {
    Action::Publish(Shown::Loading { since: Monotonic::ZERO, cause: Some(cause), not_before: None })
}

fn ended(end: End) -> Action {
    Action::Publish(Shown::Ended(end))
}

fn publications(actions: &[Action]) -> Vec<Action> {
    actions.iter().filter(|action| matches!(action, Action::Publish(_))).cloned().collect()
}

/// The interval that was said last.
fn scheduled(actions: &[Action]) -> Duration {
    match actions.last() {
        Some(Action::Scheduled(interval)) => *interval,
        other => panic!("expected an interval, got {other:?}"),
    }
}

fn running() -> Marks {
    Marks::terminal(false)
}

fn over() -> Marks {
    Marks::terminal(true)
}

fn status(code: u16) -> Cause {
    Cause::Status { code }
}

fn dropped() -> Cause {
    Cause::Dropped { code: None }
}

fn at(time: Duration) -> Monotonic {
    Monotonic::ZERO + time
}
