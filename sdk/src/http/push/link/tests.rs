//! The link by itself, at times of the tests' choosing.

use super::*;
use crate::machine::Wall;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

struct Rig {
    link: Link,
    now: Duration,
    /// How far the wall clock is ahead.
    slept: Duration,
    draw: u64,
}

impl Rig {
    fn new(config: Config) -> Self {
        Self { link: Link::new(config), now: SECOND, slept: Duration::ZERO, draw: u64::MAX }
    }

    fn at(&self) -> Monotonic {
        Monotonic::new(self.now)
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        let now = Now { instant: self.at(), wall: Wall::new(self.now + self.slept), draw: self.draw };
        self.link.on_event(now, event)
    }

    /// How long until the machine wants to be told the time.
    fn ahead(&self) -> Duration {
        self.link.deadline().expect("something is armed").since(self.at())
    }

    /// Lets the armed timer pass.
    fn tick(&mut self) -> Vec<Action> {
        self.now += self.ahead();
        self.on(Event::Tick)
    }

    /// To the dial of the first of these addresses.
    fn dial(&mut self, addresses: &[&str]) -> Vec<Action> {
        if self.link.state == State::New {
            assert_eq!(self.on(Event::Start), [Action::Want]);
        } else {
            assert_eq!(self.tick(), [Action::Want]);
        }
        assert_eq!(self.on(Event::Permitted), [Action::Resolve]);
        self.on(Event::Resolved(addresses.iter().map(|&a| a.into()).collect()))
    }

    fn open(&mut self) -> Vec<Action> {
        self.dial(&["a"]);
        self.on(Event::Upgraded)
    }

    /// One that is up and has answered the first ping.
    fn up() -> Self {
        let mut rig = Self::new(Config::default());
        assert_eq!(rig.open(), [Action::Attached]);
        assert_eq!(rig.on(Event::Tick), [Action::Ping(1)]);
        assert_eq!(rig.on(pong(1)), []);
        rig
    }
}

fn pong(n: u64) -> Event {
    Event::Life(liveness::Event::Pong { n })
}

fn lost(code: Option<u16>, retry_after: Option<Duration>) -> Event {
    Event::Lost { cause: Cause::Dropped { code }, code, retry_after, denied: false }
}

/// The attempt came to nothing.
fn missed() -> Action {
    Action::Missed { absent: false, retry_after: None }
}

fn stalled(phase: Phase) -> Cause {
    Cause::Stalled { phase, bound: 5 * SECOND }
}

/// R7: each phase has its bound, and after each the next attempt is armed.
#[test]
fn r7_each_phase_is_bounded_by_five_seconds() {
    let mut rig = Rig::new(Config::default());
    rig.on(Event::Start);
    rig.on(Event::Permitted);
    assert_eq!(rig.ahead(), 5 * SECOND, "resolve");
    assert_eq!(rig.tick(), [Action::Abort, missed()]);
    for phase in [Phase::Connect, Phase::Tls, Phase::Upgrade] {
        assert_eq!(rig.dial(&["a"]), [Action::Dial("a".into())]);
        rig.now += 4 * SECOND;
        rig.on(Event::Began(phase));
        assert_eq!(rig.ahead(), 5 * SECOND, "{phase}");
        assert_eq!(rig.tick(), [Action::Abort, missed()]);
        assert!(rig.ahead() <= 5 * SECOND);
    }
    let mut rig = Rig::new(Config { confirms: true, ..Config::default() });
    assert_eq!(rig.open(), [], "not before it is confirmed");
    assert_eq!(rig.on(Event::Tick), [Action::Ping(1)], "and its life is watched");
    rig.now += 4 * SECOND;
    assert_eq!(rig.on(pong(1)), []);
    assert_eq!(rig.ahead(), SECOND, "or the look for sleep");
    rig.now += SECOND;
    assert_eq!(rig.on(Event::Message), [Action::Abort, missed()], "late, whatever else is said");
    assert!(rig.ahead() <= 5 * SECOND);
}

/// What is confirmed is up, once.
#[test]
fn it_is_up_with_the_confirmation() {
    let mut rig = Rig::new(Config { confirms: true, ..Config::default() });
    rig.open();
    rig.on(Event::Tick);
    assert_eq!(rig.on(Event::Message), []);
    assert!(!rig.link.is_attached());
    assert_eq!(rig.on(Event::Confirmed), [Action::Attached]);
    assert_eq!(rig.on(Event::Confirmed), []);
    assert!(rig.link.is_attached());
    assert_eq!(rig.on(lost(None, None)), [Action::Abort, Action::Detached(Cause::Dropped { code: None }), missed()]);
    assert!(!rig.link.is_attached());
}

/// A dead address does not keep the link from a live one; and each round asks the name anew (R8, FC-42).
#[test]
fn fc_42_addresses_are_tried_in_turn_and_asked_for_in_each_round() {
    let mut rig = Rig::new(Config::default());
    assert_eq!(rig.dial(&["a", "b", "c"]), [Action::Dial("a".into())]);
    assert_eq!(rig.tick(), [Action::Abort, Action::Dial("b".into())]);
    let cause = Cause::Unreachable { detail: "refused".into() };
    assert_eq!(rig.on(Event::Unreachable(cause.clone())), [Action::Dial("c".into())]);
    assert_eq!(rig.on(Event::Unreachable(cause)), [missed()]);
    assert_eq!(rig.dial(&["d"]), [Action::Dial("d".into())], "after another `Resolve`");
    // Who answers is not passed over for another address.
    assert_eq!(
        rig.on(Event::Failed { cause: Cause::Status { code: 502 }, retry_after: None, absent: false }),
        [missed()]
    );
}

/// FC-49: a peer that accepts and closes within a second, over and over: the delays grow to the cap.
#[test]
fn fc_49_the_backoff_grows_while_the_link_is_not_proven() {
    for (up, heard) in [(MILLI, true), (4_999 * MILLI, true), (6 * SECOND, false)] {
        let mut rig = Rig::new(Config { heartbeat: 60 * SECOND, ..Config::default() });
        let mut delays = Vec::new();
        for _ in 0..120 {
            rig.open();
            if heard {
                rig.on(Event::Message);
            }
            rig.now += up;
            rig.on(lost(Some(1000), None));
            delays.push(rig.ahead());
        }
        assert!(delays.is_sorted(), "{delays:?}");
        assert_eq!(*delays.last().unwrap(), 5 * SECOND, "{up:?}, {heard}");
    }
}

/// FC-49: five seconds up and one message, or one answer to a ping, prove a link.
#[test]
fn fc_49_a_proven_link_ends_the_outage() {
    for proof in [Event::Message, pong(1)] {
        let mut rig = Rig::new(Config { heartbeat: 60 * SECOND, ..Config::default() });
        rig.now += 3_600 * SECOND;
        for _ in 0..3 {
            rig.open();
            rig.on(Event::Tick);
            assert_eq!(rig.on(proof.clone()), []);
            rig.now += 5 * SECOND;
            let ended = [Action::Abort, Action::Detached(Cause::Dropped { code: Some(1001) })];
            assert_eq!(rig.on(lost(Some(1001), None)), [&[Action::Proven], &ended[..]].concat());
            assert_eq!(rig.ahead(), 20 * MILLI, "{proof:?}");
            // A time without it, then up again.
            rig.now += 100 * SECOND;
        }
    }
}

/// FC-50: the table of close codes. None ends the stream.
#[test]
fn fc_50_close_codes() {
    for code in [None, Some(1000), Some(1001), Some(1005), Some(1006), Some(1011), Some(1012), Some(4000)] {
        let mut rig = Rig::up();
        assert_eq!(rig.on(lost(code, None))[..2], [Action::Abort, Action::Detached(Cause::Dropped { code })]);
        assert!(rig.ahead() <= 20 * MILLI, "{code:?}");
        assert_eq!(rig.tick(), [Action::Want]);
    }
    let mut rig = Rig::up();
    rig.on(lost(Some(1013), Some(7 * SECOND)));
    assert_eq!(rig.ahead(), 7 * SECOND, "not before the hint");
    let mut rig = Rig::up();
    rig.on(lost(Some(1013), None));
    assert_eq!(rig.ahead(), 5 * SECOND, "without a time");
    for code in [1008, 3000, 3003, 4401, 4403] {
        let mut rig = Rig::up();
        rig.on(lost(Some(code), None));
        assert!((SECOND..=2 * SECOND).contains(&rig.ahead()), "{code}: another credential is looked for");
        let mut rig = Rig::up();
        rig.on(Event::Lost { cause: Cause::Unauthorized, code: Some(code), retry_after: None, denied: true });
        assert_eq!(rig.ahead(), 30 * SECOND, "{code}: the second time");
    }
}

/// R3, R8: refusals and hints at the upgrade.
#[test]
fn r8_what_the_answer_to_the_upgrade_asks_for_is_kept_to() {
    let mut rig = Rig::new(Config::default());
    rig.dial(&["a", "b"]);
    rig.on(Event::Refused { denied: false, sent: true });
    assert_eq!(rig.ahead(), 2 * SECOND, "its next use is a backoff step away");
    rig.dial(&["a"]);
    rig.on(Event::Refused { denied: true, sent: true });
    assert_eq!(rig.ahead(), 30 * SECOND);
    rig.tick();
    assert_eq!(rig.on(Event::Denied), []);
    assert_eq!(rig.ahead(), 30 * SECOND);
    rig.dial(&["a"]);
    rig.on(Event::Failed { cause: Cause::Status { code: 503 }, retry_after: Some(40 * SECOND), absent: false });
    assert_eq!(rig.ahead(), 40 * SECOND);
    rig.dial(&["a"]);
    rig.on(Event::Failed { cause: Cause::Status { code: 503 }, retry_after: Some(Duration::MAX), absent: false });
    assert_eq!(rig.ahead(), 24 * 3_600 * SECOND, "a mistyped one");
}

/// What other streams are told: healthy once, or why it came to nothing; a refused credential and the rate are no fault of
/// the stream, but it is refused itself where no credential was sent.
#[test]
fn an_attempt_that_comes_to_nothing_is_told() {
    let mut rig = Rig::up();
    rig.now += 4 * SECOND;
    assert_eq!(rig.on(Event::Message), []);
    rig.now += SECOND;
    assert_eq!(rig.on(Event::Message), [Action::Proven]);
    assert_eq!(rig.on(Event::Message), [], "once");
    assert!(!rig.on(lost(None, Some(SECOND))).contains(&missed()), "it was healthy");

    let failed = |code, retry_after, absent| Event::Failed { cause: Cause::Status { code }, retry_after, absent };
    for (event, told) in [
        (failed(404, None, true), Some(Action::Missed { absent: true, retry_after: None })),
        (failed(503, Some(SECOND), false), Some(Action::Missed { absent: false, retry_after: Some(SECOND) })),
        (
            Event::Failed {
                cause: Cause::RateLimited { retry_after: SECOND },
                retry_after: Some(SECOND),
                absent: false,
            },
            None,
        ),
        (Event::Refused { denied: false, sent: true }, None),
        (Event::Refused { denied: true, sent: true }, None),
        (Event::Refused { denied: false, sent: false }, Some(Action::Missed { absent: true, retry_after: None })),
        (Event::Refused { denied: true, sent: false }, Some(Action::Missed { absent: true, retry_after: None })),
    ] {
        let mut rig = Rig::new(Config::default());
        rig.dial(&["a"]);
        assert_eq!(rig.on(event.clone()), Vec::from_iter(told), "{event:?}");
    }
    for event in [Event::Unheld(Cause::Connecting), Event::Denied] {
        let mut rig = Rig::new(Config::default());
        rig.on(Event::Start);
        assert_eq!(rig.on(event), []);
    }
    for (code, retry_after, told) in [
        (1001, None, Some(None)),
        (1013, None, Some(Some(5 * SECOND))),
        (1013, Some(7 * SECOND), Some(Some(7 * SECOND))),
        (4401, None, None),
    ] {
        let mut rig = Rig::up();
        let actions = rig.on(lost(Some(code), retry_after));
        let told = told.map(|retry_after| Action::Missed { absent: false, retry_after });
        assert_eq!(actions.get(2), told.as_ref(), "{code}");
    }
    // Whatever it says, a link that is not confirmed proves nothing.
    let mut rig = Rig::new(Config { confirms: true, phase: 9 * SECOND, ..Config::default() });
    rig.open();
    rig.on(Event::Message);
    rig.now += 6 * SECOND;
    assert!(!rig.on(Event::Message).contains(&Action::Proven));
    rig.now += 3 * SECOND;
    assert!(rig.on(Event::Message).contains(&missed()));
}

/// FC-26, R7: a peer that is gone without a word is let go of within heartbeat + answer of its last byte.
#[test]
fn fc_26_a_half_open_link_is_found() {
    let mut rig = Rig::up();
    let last = rig.now;
    let said = loop {
        let said = rig.tick();
        if said.contains(&Action::Abort) {
            break said;
        }
    };
    assert_eq!(said, [Action::Abort, Action::Detached(stalled(Phase::Idle))]);
    assert_eq!(rig.now - last, 15 * SECOND);
    assert!(rig.ahead() <= 5 * SECOND, "and dialed again");
}

/// FC-29, R7: at every moment something is armed, whichever answer to a ping is missing.
#[test]
fn fc_29_a_lost_answer_leaves_a_timer_armed() {
    for missing in 1..6 {
        let mut rig = Rig::new(Config::default());
        rig.open();
        let mut dead = false;
        for _ in 0..200 {
            assert!(rig.ahead() <= SECOND, "the look for sleep is the nearest");
            for action in rig.tick() {
                dead |= action == Action::Abort;
                if let Action::Ping(n) = action
                    && n != missing
                {
                    rig.on(pong(n));
                }
            }
            if dead {
                break;
            }
        }
        assert!(dead, "no other answer comes in time for {missing}");
    }
}

/// R7: after a sleep the link is asked for a sign of life at once.
#[test]
fn r7_a_jump_of_the_clock_forces_a_ping() {
    let mut rig = Rig::up();
    rig.now += 2 * SECOND;
    assert_eq!(rig.on(Event::Tick), []);
    rig.slept += 3_600 * SECOND;
    rig.now += SECOND;
    assert_eq!(rig.on(Event::Tick), [Action::Ping(2)]);
}

/// What an attempt that was abandoned still tells changes nothing.
#[test]
fn what_is_over_is_not_listened_to() {
    let mut rig = Rig::up();
    for event in
        [Event::Upgraded, Event::Permitted, Event::Refused { denied: true, sent: true }, Event::Began(Phase::Tls)]
    {
        assert_eq!(rig.on(event), []);
    }
    rig.on(lost(None, None));
    let waiting = rig.link.clone();
    for event in [Event::Confirmed, Event::Message, pong(3), lost(Some(1008), None), Event::Upgraded, Event::Start] {
        assert_eq!(rig.on(event), []);
        assert_eq!(rig.link, waiting);
    }
}
