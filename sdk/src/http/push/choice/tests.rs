//! The choice by itself, at times of the tests' choosing.

use proptest::prelude::*;

use super::*;
use crate::machine::Wall;

const SECOND: Duration = Duration::from_secs(1);
const ABSENT: Event = Event::Missed { absent: true, retry_after: None };
const MISSED: Event = Event::Missed { absent: false, retry_after: None };

struct Rig {
    choice: Choice,
    now: Duration,
    draw: u64,
}

impl Rig {
    fn new(count: usize) -> Self {
        Self { choice: Choice::new(Config::default(), count), now: SECOND, draw: 0 }
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        let now = Now { instant: Monotonic::new(self.now), wall: Wall::new(self.now), draw: self.draw };
        self.choice.on_event(now, event)
    }

    fn ahead(&self) -> Option<Duration> {
        self.choice.deadline().map(|at| at.since(Monotonic::new(self.now)))
    }

    /// Lets the armed timer pass.
    fn tick(&mut self) -> Vec<Action> {
        self.now += self.ahead().expect("something is armed");
        self.on(Event::Tick)
    }
}

fn from_to(from: usize, to: usize) -> [Action; 2] {
    [Action::Leave(from), Action::Open(to)]
}

/// One stream alone is always open, whatever happens to it.
#[test]
fn one_stream_never_gives_way() {
    let mut rig = Rig::new(1);
    for _ in 0..100 {
        for event in [MISSED, ABSENT, Event::Tick, Event::Proven] {
            assert_eq!(rig.on(event), []);
            assert_eq!((rig.choice.open(), rig.choice.deadline()), (Some(0), None));
        }
    }
}

#[test]
fn three_attempts_or_an_answer_that_there_is_none_give_way() {
    let mut rig = Rig::new(2);
    assert_eq!(rig.on(MISSED), []);
    assert_eq!(rig.on(MISSED), []);
    assert_eq!(rig.on(Event::Proven), []);
    assert_eq!(rig.on(MISSED), [], "counted anew after a healthy link");
    assert_eq!(rig.on(MISSED), []);
    assert_eq!(rig.on(MISSED), from_to(0, 1));
    assert_eq!(rig.choice.open(), Some(1));
    let mut rig = Rig::new(2);
    assert_eq!(rig.on(ABSENT), from_to(0, 1));
}

/// The first is tried again ten minutes later, less up to a tenth, and has one attempt.
#[test]
fn the_first_is_tried_again() {
    let mut rig = Rig::new(2);
    rig.on(ABSENT);
    rig.now += 5 * SECOND;
    assert_eq!(rig.on(Event::Proven), []);
    assert_eq!(rig.ahead(), Some(595 * SECOND));
    assert_eq!(rig.tick(), from_to(1, 0));
    assert_eq!(rig.ahead(), None);
    assert_eq!(rig.on(MISSED), from_to(0, 1));
    assert_eq!(rig.ahead(), Some(600 * SECOND));
    rig.on(Event::Proven);
    assert_eq!(rig.tick(), from_to(1, 0));
    rig.on(Event::Proven);
    assert_eq!(rig.on(MISSED), [], "it is the open one again, with all its attempts");
    let mut rig = Rig { draw: u64::MAX, ..Rig::new(2) };
    rig.on(ABSENT);
    assert_eq!(rig.ahead(), Some(540 * SECOND));
}

/// R8: once each has come to nothing, there is one attempt for each delay of an outage of that length.
#[test]
fn r8_a_service_that_is_down_is_tried_as_one_stream_would() {
    let mut rig = Rig { draw: u64::MAX, ..Rig::new(3) };
    for (from, to) in [(0, 1), (1, 2)] {
        assert_eq!(rig.on(MISSED), []);
        assert_eq!(rig.on(MISSED), []);
        assert_eq!(rig.on(MISSED), from_to(from, to));
    }
    rig.now += 10 * SECOND;
    rig.on(MISSED);
    rig.on(MISSED);
    assert_eq!(rig.on(MISSED), [Action::Leave(2)]);
    assert_eq!(rig.choice.open(), None);
    let mut delays = Vec::new();
    for next in (0..3).cycle().take(200) {
        delays.push(rig.ahead().unwrap());
        assert_eq!(rig.on(MISSED), [], "nothing is open");
        assert_eq!(rig.tick(), [Action::Open(next)]);
        assert_eq!(rig.on(MISSED), [Action::Leave(next)], "one attempt");
    }
    assert!(delays.is_sorted(), "{delays:?}");
    assert_eq!((delays[0], delays[199]), (SECOND / 2, 5 * SECOND));
    // One that is healthy ends the outage.
    rig.tick();
    rig.on(Event::Proven);
    rig.on(MISSED);
    assert_eq!(rig.on(MISSED), []);
}

/// R8: what the service asks for holds for the streams that it was asked of.
#[test]
fn r8_retry_after_is_kept_to_before_a_stream_is_asked_again() {
    let later = |absent, after| Event::Missed { absent, retry_after: Some(after) };
    let mut rig = Rig::new(2);
    assert_eq!(rig.on(later(true, 40 * SECOND)), from_to(0, 1), "the other was not asked");
    assert_eq!(rig.on(later(true, 50 * SECOND)), [Action::Leave(1)]);
    assert_eq!(rig.ahead(), Some(40 * SECOND));
    assert_eq!(rig.tick(), [Action::Open(0)]);
    assert_eq!(rig.on(ABSENT), [Action::Leave(0)]);
    assert_eq!(rig.tick(), [Action::Open(0)], "the other is not to be asked for 10 s more");
    rig.now += 10 * SECOND;
    assert_eq!(rig.on(ABSENT), [Action::Leave(0)]);
    assert_eq!(rig.tick(), [Action::Open(1)]);
    let mut rig = Rig::new(2);
    rig.on(later(true, 3600 * SECOND));
    rig.on(Event::Proven);
    assert_eq!(rig.ahead(), Some(3600 * SECOND), "longer than the ten minutes");
    rig.now += 600 * SECOND;
    assert_eq!(rig.on(Event::Tick), []);
    let mut rig = Rig::new(2);
    rig.on(later(true, Duration::MAX));
    assert_eq!(rig.ahead(), Some(24 * 3600 * SECOND), "a mistyped one");
}

/// What the service of one stream asks for keeps no other away: it may be elsewhere.
#[test]
fn retry_after_of_one_stream_is_not_that_of_another() {
    let hour = Event::Missed { absent: false, retry_after: Some(3600 * SECOND) };
    let mut rig = Rig::new(2);
    rig.on(ABSENT);
    rig.on(hour);
    assert_eq!(rig.ahead(), Some(600 * SECOND), "the first is tried as ever");
    assert_eq!(rig.tick(), from_to(1, 0));
    // Not the one that asked for an hour.
    assert_eq!(rig.on(MISSED), [Action::Leave(0)]);
    assert_eq!(rig.tick(), [Action::Open(0)]);
    assert!(rig.now < 632 * SECOND, "{:?}", rig.now);
    let mut rig = Rig::new(2);
    rig.on(ABSENT);
    rig.on(MISSED);
    rig.on(MISSED);
    assert_eq!(rig.on(hour), [Action::Leave(1)]);
    assert_eq!(rig.tick(), [Action::Open(0)]);
    assert!(rig.now < 2 * SECOND, "{:?}", rig.now);
}

proptest! {
    /// Whatever happens: one is open or a timer is armed, what is opened was not open, and what is left was.
    #[test]
    fn one_is_open_or_a_timer_is_armed(
        count in 1..5usize,
        steps in proptest::collection::vec((0..5u8, 0..700u64, any::<u64>()), 1..200),
    ) {
        let mut rig = Rig::new(count);
        let mut open = Some(0);
        for (step, seconds, draw) in steps {
            rig.draw = draw;
            rig.now += Duration::from_secs(seconds);
            let actions = rig.on(match step {
                0 => Event::Proven,
                1 => ABSENT,
                2 => MISSED,
                3 => Event::Missed { absent: false, retry_after: Some(Duration::from_secs(seconds)) },
                _ => Event::Tick,
            });
            for action in actions {
                match action {
                    Action::Leave(left) => prop_assert_eq!(open.take(), Some(left)),
                    Action::Open(opened) => {
                        prop_assert!(open.is_none() && opened < count);
                        open = Some(opened);
                    }
                }
            }
            prop_assert_eq!(rig.choice.open(), open);
            prop_assert_eq!(rig.choice.deadline().is_some(), open != Some(0));
        }
    }
}
