//! The promises of liveness, in virtual time.

use proptest::prelude::*;

use super::*;
use crate::machine::Wall;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HEARTBEAT: Duration = Duration::from_secs(10);
const WALL: Duration = Duration::from_secs(1_700_000_000);

/// A link's end and its time. Checks after every event what holds always.
struct Rig {
    liveness: Liveness,
    time: Duration,
    wall: Duration,
    dead: bool,
}

fn at(time: Duration, wall: Duration) -> Now {
    Now { instant: Monotonic::new(time), wall: Wall::new(wall), draw: 0 }
}

fn idle(bound: Duration) -> Action {
    Action::Dead(Cause::Stalled { phase: Phase::Idle, bound })
}

const WRITE_STALLED: Action = Action::Dead(Cause::Stalled { phase: Phase::Write, bound: Duration::from_secs(10) });

impl Rig {
    fn client(heartbeat: Duration) -> Self {
        let liveness = Liveness::client(&at(Duration::ZERO, WALL), heartbeat, Config::default());
        Self { liveness, time: Duration::ZERO, wall: WALL, dead: false }
    }

    fn server(heartbeat: Duration) -> Self {
        let liveness = Liveness::server(&at(Duration::ZERO, WALL), heartbeat, Config::default());
        Self { liveness, time: Duration::ZERO, wall: WALL, dead: false }
    }

    fn pass(&mut self, time: Duration) {
        self.time += time;
        self.wall += time;
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        let tick = event == Event::Tick;
        let actions = self.liveness.on_event(at(self.time, self.wall), event);
        assert!(!self.dead || actions.is_empty(), "nothing after the end");
        self.dead |= actions.iter().any(|action| matches!(action, Action::Dead(_)));
        assert!(!self.dead || matches!(actions[..], [] | [Action::Dead(_)]), "the end is the last action, alone");
        match self.liveness.deadline() {
            None => assert!(self.dead, "a timer is armed at every instant of a link (R7)"),
            Some(deadline) => {
                assert!(!self.dead);
                assert!(!tick || deadline.since_start() > self.time, "a tick leaves no timer due");
            }
        }
        actions
    }

    /// Time passes to `until`, with a tick at each deadline.
    fn run_until(&mut self, until: Duration) -> Vec<(Duration, Action)> {
        let mut done = Vec::new();
        while let Some(deadline) = self.liveness.deadline() {
            let deadline = deadline.since_start().max(self.time);
            if deadline > until {
                break;
            }
            self.pass(deadline - self.time);
            let actions = self.tell(Event::Tick);
            done.extend(actions.into_iter().map(|action| (self.time, action)));
        }
        self.pass(until - self.time);
        done
    }
}

/// R7: a ping at once, which is the first exchange, and one each heartbeat, whatever else arrives.
#[test]
fn r7_a_ping_each_heartbeat() {
    let mut rig = Rig::client(HEARTBEAT);
    let mut pings = Vec::new();
    for second in 0..=40 {
        for (time, action) in rig.run_until(SECOND * second) {
            let Action::Ping { n } = action else { panic!("{action:?}") };
            pings.push((n, time));
            assert_eq!(rig.tell(Event::Pong { n }), []);
        }
        rig.tell(Event::Received);
    }
    assert_eq!(pings, [(1, Duration::ZERO), (2, SECOND * 10), (3, SECOND * 20), (4, SECOND * 30), (5, SECOND * 40)]);
}

/// FC-26: the path goes dark in mid-idle: found within ping interval + answer.
#[test]
fn fc26_a_half_open_link_is_found_within_heartbeat_and_answer() {
    let mut rig = Rig::client(HEARTBEAT);
    for (n, second) in (1..=91).zip((0..=900).step_by(10)) {
        assert_eq!(rig.run_until(SECOND * second), [(SECOND * second, Action::Ping { n })]);
        rig.tell(Event::Pong { n });
    }
    // 15 idle minutes, then nothing comes through.
    let done = rig.run_until(SECOND * 2_000);
    assert_eq!(done, [(SECOND * 910, Action::Ping { n: 92 }), (SECOND * 915, idle(SECOND * 5))]);
}

/// FC-29: exactly one answer is lost: the link is over within the bound. With other bytes still arriving it is probed
/// once more, and lives on if that is answered.
#[test]
fn fc29_one_lost_answer_leaves_a_timer_armed() {
    let mut rig = Rig::client(HEARTBEAT);
    assert_eq!(rig.run_until(SECOND * 60), [(Duration::ZERO, Action::Ping { n: 1 }), (SECOND * 5, idle(SECOND * 5))]);

    let mut rig = Rig::client(HEARTBEAT);
    rig.run_until(SECOND * 3);
    rig.tell(Event::Received);
    assert_eq!(rig.run_until(SECOND * 6), [(SECOND * 5, Action::Ping { n: 2 })]);
    assert!(rig.liveness.armed().iter().any(|(timer, _)| *timer == LivenessTimer::Pong));
    rig.tell(Event::Pong { n: 2 });
    assert_eq!(rig.run_until(SECOND * 15), [(SECOND * 15, Action::Ping { n: 3 })]);
}

/// FC-29: a peer that sends and never answers is not probed for ever.
#[test]
fn fc29_traffic_without_answers_is_no_life() {
    let mut rig = Rig::client(HEARTBEAT);
    let mut done = Vec::new();
    for tenth in 0..=200 {
        done.extend(rig.run_until(MS * 100 * tenth));
        rig.tell(Event::Received);
    }
    let died = done.last().unwrap();
    assert_eq!(*died, (SECOND * 10, idle(SECOND * 5)));
}

/// FC-26: the second chance ends within heartbeat + answer of the last byte, also where the heartbeat is short.
#[test]
fn fc26_a_second_chance_is_no_extension() {
    let mut rig = Rig::client(SECOND);
    rig.run_until(SECOND * 2 + MS * 500);
    rig.tell(Event::Received);
    let done = rig.run_until(SECOND * 60);
    assert_eq!(done.last(), Some(&(SECOND * 8 + MS * 500, idle(SECOND * 5))));
}

/// R7: a pong to an older ping than the awaited one, or to none of ours, answers nothing.
#[test]
fn r7_a_foreign_pong_is_no_answer() {
    let mut rig = Rig::client(HEARTBEAT);
    rig.run_until(Duration::ZERO);
    rig.tell(Event::Pong { n: 1 });
    rig.run_until(SECOND * 10);
    rig.tell(Event::Pong { n: 1 });
    rig.tell(Event::Pong { n: 7 });
    assert!(rig.liveness.armed().iter().any(|(timer, _)| *timer == LivenessTimer::Pong));
}

/// R7: a jump of the wall clock forces a probe, noticed within a second and answered within 5 s.
#[test]
fn r7_a_clock_jump_forces_a_probe() {
    for forward in [true, false] {
        let mut rig = Rig::client(HEARTBEAT);
        rig.run_until(Duration::ZERO);
        rig.tell(Event::Pong { n: 1 });
        rig.run_until(SECOND * 2 + MS);
        rig.wall = if forward { rig.wall + SECOND * 3600 } else { WALL - SECOND };
        let done = rig.run_until(SECOND * 60);
        assert_eq!(done, [(SECOND * 3, Action::Ping { n: 2 }), (SECOND * 8, idle(SECOND * 5))]);
    }
}

/// R7: a caller's probe is a ping with its own bound, and does not shorten or extend one that is awaited.
#[test]
fn r7_a_probe_pings_at_once() {
    let mut rig = Rig::client(HEARTBEAT);
    rig.run_until(Duration::ZERO);
    assert_eq!(rig.tell(Event::Probe), [], "one is awaited");
    rig.tell(Event::Pong { n: 1 });
    rig.run_until(SECOND * 2);
    assert_eq!(rig.tell(Event::Probe), [Action::Ping { n: 2 }]);
    assert_eq!(rig.run_until(SECOND * 60), [(SECOND * 7, idle(SECOND * 5))]);
}

/// R7: a write without progress is over after 10 s; progress extends it, more work for it does not.
#[test]
fn r7_a_stalled_write_is_bounded() {
    for mut rig in [Rig::client(HEARTBEAT), Rig::server(HEARTBEAT)] {
        rig.run_until(Duration::ZERO);
        rig.tell(Event::Pong { n: 1 });
        rig.tell(Event::WriteStarted);
        rig.run_until(SECOND * 6);
        rig.tell(Event::WriteProgressed);
        rig.run_until(SECOND * 12);
        rig.tell(Event::Received);
        rig.tell(Event::WriteStarted);
        let done = rig.run_until(SECOND * 60);
        assert_eq!(done.last(), Some(&(SECOND * 16, WRITE_STALLED)));
        assert_eq!(rig.liveness.deadline(), None);
    }
}

/// R7: a ping that waits behind a large write is not held to its bound before it can have been sent.
#[test]
fn r7_a_ping_behind_a_write_has_the_writes_bound() {
    let mut rig = Rig::client(HEARTBEAT);
    rig.run_until(Duration::ZERO);
    rig.tell(Event::Pong { n: 1 });
    rig.run_until(SECOND * 9);
    rig.tell(Event::WriteStarted);
    assert_eq!(rig.run_until(SECOND * 18), [(SECOND * 10, Action::Ping { n: 2 })]);
    rig.tell(Event::WriteFinished);
    rig.tell(Event::WriteStarted);
    rig.tell(Event::WriteFinished);
    assert_eq!(rig.run_until(SECOND * 60), [(SECOND * 20, Action::Ping { n: 3 }), (SECOND * 23, idle(SECOND * 5))]);
}

/// R7: when this process did not run, the answers may be waiting unread: one more probe before the link is given up.
#[test]
fn r7_a_late_tick_is_no_proof_of_death() {
    let mut rig = Rig::client(HEARTBEAT);
    rig.run_until(SECOND);
    rig.pass(SECOND * 30);
    assert_eq!(rig.tell(Event::Tick), [Action::Ping { n: 2 }]);
    assert_eq!(rig.run_until(SECOND * 60), [(SECOND * 36, idle(SECOND * 5))]);

    let mut rig = Rig::server(HEARTBEAT);
    rig.pass(SECOND * 30);
    assert_eq!(rig.tell(Event::Tick), []);
    assert_eq!(rig.run_until(SECOND * 60), [(SECOND * 35, idle(SECOND * 20))]);
}

/// R7: the server's end drops a peer that is silent for two heartbeats, and no other.
#[test]
fn r7_a_server_drops_a_silent_peer() {
    let mut rig = Rig::server(HEARTBEAT);
    for second in [19, 38, 57] {
        assert_eq!(rig.run_until(SECOND * second), []);
        assert_eq!(rig.tell(Event::Received), []);
    }
    assert_eq!(rig.tell(Event::Probe), []);
    assert_eq!(rig.run_until(SECOND * 100), [(SECOND * 77, idle(SECOND * 20))]);
}

/// R7: a heartbeat that a service states is kept within bounds: neither a flood nor an hour without a look.
#[test]
fn r7_a_stated_heartbeat_is_bounded() {
    for (stated, kept) in [(Duration::ZERO, MS * 10), (Duration::MAX, SECOND * 60)] {
        let mut rig = Rig::client(stated);
        assert_eq!(rig.run_until(Duration::ZERO), [(Duration::ZERO, Action::Ping { n: 1 })]);
        rig.tell(Event::Pong { n: 1 });
        assert_eq!(rig.run_until(kept), [(kept, Action::Ping { n: 2 })]);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Jump(i64),
    Tell(Event),
    /// The answer to the ping that was sent this many before the last.
    Answer(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..7_000u64).prop_map(Step::Pass),
        1 => (-5_000..5_000i64).prop_map(Step::Jump),
        3 => Just(Step::Tell(Event::Received)),
        2 => Just(Step::Tell(Event::WriteStarted)),
        2 => Just(Step::Tell(Event::WriteProgressed)),
        3 => Just(Step::Tell(Event::WriteFinished)),
        1 => Just(Step::Tell(Event::Probe)),
        1 => Just(Step::Tell(Event::Tick)),
        1 => any::<u64>().prop_map(|n| Step::Tell(Event::Pong { n })),
        8 => (0..3u64).prop_map(Step::Answer),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..80)
}

/// Runs the steps. Pings are numbered without a gap.
fn live(rig: &mut Rig, steps: Vec<Step>) {
    let mut sent = 0;
    let mut see = |actions: Vec<Action>| {
        for action in actions {
            if let Action::Ping { n } = action {
                sent += 1;
                assert_eq!(n, sent);
            }
        }
        sent
    };
    let mut last = 0;
    for step in steps {
        if rig.dead {
            break;
        }
        let actions = match step {
            Step::Pass(ms) => rig
                .run_until(rig.time + MS * u32::try_from(ms).unwrap())
                .into_iter()
                .map(|(_, action)| action)
                .collect(),
            Step::Jump(ms) => {
                let by = Duration::from_millis(ms.unsigned_abs());
                rig.wall = if ms < 0 { rig.wall - by } else { rig.wall + by };
                rig.tell(Event::Tick)
            }
            Step::Tell(event) => rig.tell(event),
            Step::Answer(back) => rig.tell(Event::Pong { n: u64::max(last, back) - back }),
        };
        last = see(actions);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// R7, FC-26, FC-29: whatever happened before, a client's link over which nothing more arrives is found dead within
    /// heartbeat + answer; within the write's bound more where a write was under way.
    #[test]
    fn fc26_silence_is_always_found(heartbeat_ms in 10..30_000u64, steps in steps()) {
        let heartbeat = MS * u32::try_from(heartbeat_ms).unwrap();
        let mut rig = Rig::client(heartbeat);
        live(&mut rig, steps);
        if !rig.dead {
            let writing = rig.liveness.armed().iter().any(|(timer, _)| *timer == LivenessTimer::Write);
            let bound = if writing { heartbeat.max(SECOND * 10) } else { heartbeat + SECOND * 5 };
            let until = rig.time + bound;
            rig.run_until(until);
            prop_assert!(rig.dead, "{:?} at {:?}", rig.liveness, rig.time);
        }
    }

    /// R7: the same for the server's end, within two heartbeats.
    #[test]
    fn r7_a_server_always_finds_silence(heartbeat_ms in 10..30_000u64, steps in steps()) {
        let heartbeat = MS * u32::try_from(heartbeat_ms).unwrap();
        let mut rig = Rig::server(heartbeat);
        live(&mut rig, steps);
        let until = rig.time + heartbeat * 2;
        rig.run_until(until);
        prop_assert!(rig.dead);
    }

    /// R7: a link whose every ping is answered, and whose writes are taken, lives.
    #[test]
    fn r7_a_healthy_link_lives(heartbeat_ms in 10..30_000u64, answer_ms in 0..4_000u64, seconds in 1..200u32) {
        let mut rig = Rig::client(MS * u32::try_from(heartbeat_ms).unwrap());
        let answer = MS * u32::try_from(answer_ms).unwrap();
        let mut pending = std::collections::VecDeque::new();
        while rig.time < SECOND * seconds {
            let deadline = rig.liveness.deadline().unwrap().since_start();
            let next = pending.front().map_or(deadline, |(at, _)| deadline.min(*at));
            rig.pass(next.saturating_sub(rig.time));
            let event = match pending.front() {
                Some((at, n)) if *at <= rig.time => {
                    let n = *n;
                    pending.pop_front();
                    Event::Pong { n }
                }
                _ => Event::Tick,
            };
            for action in rig.tell(event) {
                let Action::Ping { n } = action else { panic!("{action:?}") };
                pending.push_back((rig.time + answer, n));
            }
        }
    }
}
