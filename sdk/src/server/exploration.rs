//! Every run of one command: the shipped command machine against the shipped
//! [`Execution`](super::execution::Execution) over the memory log's store, with each message late, lost or
//! repeated, and either side crashed at any moment.
//!
//! Time is left out: whatever waits may be woken at any moment, so every order of timers is a run too.
//! Of each kind of fault there is one, and a run has a few of them together. The states are visited
//! breadth first, so the first broken promise comes with a shortest run to it.
//!
//! Not in here: a log that is lost or replaced (`command::machine`'s rows 11 to 16), several replicas,
//! and news of a record that gets lost on a connection that stays up, which TCP does not do.

mod accidents;
mod client;
mod command;
mod disk;
mod laws;
mod moves;
mod server;
mod world;

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use self::world::{ANY_TIME, NEVER, Work, World};

/// A run, for the message of a broken promise.
struct Run {
    step: &'static str,
    before: Option<Rc<Self>>,
}

impl Run {
    fn told(&self) -> String {
        let mut steps = vec![self.step];
        let mut run = self.before.as_deref();
        while let Some(earlier) = run {
            steps.push(earlier.step);
            run = earlier.before.as_deref();
        }
        steps.reverse();
        steps.join(" > ")
    }
}

impl World {
    /// In 64 bits: among a few million states, two that share them are not to be expected.
    fn print(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Visits every state, and returns how many there are and how many are ends.
fn explore(first: World) -> (usize, usize) {
    let mut seen = HashSet::from([first.print()]);
    let mut ends = 0;
    let mut frontier = VecDeque::from([(first, Rc::new(Run { step: "call", before: None }))]);
    while let Some((world, run)) = frontier.pop_front() {
        let moves = guarded(&run, "", || world.moves());
        if moves.is_empty() {
            guarded(&run, "the end", || world.check_end());
            ends += 1;
        }
        for (step, next) in moves {
            if seen.insert(next.print()) {
                guarded(&run, step, || next.check());
                frontier.push_back((next, Rc::new(Run { step, before: Some(Rc::clone(&run)) })));
            }
        }
    }
    (seen.len(), ends)
}

/// A broken promise, with the run that led to it.
fn guarded<T>(run: &Run, step: &str, look: impl FnOnce() -> T) -> T {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
    result.unwrap_or_else(|broken| {
        eprintln!("in the run: {} > {step}", run.told());
        std::panic::resume_unwind(broken)
    })
}

/// S1, S2, S4, S6, W1 to W5 and W8: one command that settles with its append.
#[test]
fn every_run_of_a_command_that_settles_at_once() {
    explore_and_tell(Work::AtOnce, NEVER, 2);
    explore_and_tell(Work::AtOnce, ANY_TIME, 2);
}

/// The same for a command that goes on: an executor claims it, and finishes or stops.
#[test]
fn every_run_of_a_command_that_goes_on() {
    explore_and_tell(Work::GoesOn, NEVER, 2);
    explore_and_tell(Work::GoesOn, ANY_TIME, 1);
}

/// With more faults in one run, which takes minutes: only when `OUTLAST_EXPLORE=deep` asks for it.
#[test]
fn every_run_with_more_faults() {
    if std::env::var("OUTLAST_EXPLORE").is_ok_and(|how| how == "deep") {
        explore_and_tell(Work::AtOnce, NEVER, 3);
        explore_and_tell(Work::AtOnce, ANY_TIME, 3);
        explore_and_tell(Work::GoesOn, ANY_TIME, 2);
    }
}

fn explore_and_tell(work: Work, bound: Duration, faults: u8) {
    let (states, ends) = explore(World::new(work, bound, faults));
    println!("{work:?}, at most {faults} faults, bounds of {bound:?}: {states} states, {ends} ends");
}
