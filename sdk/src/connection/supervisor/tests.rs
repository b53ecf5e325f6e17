//! The promises of the supervisor, each in virtual time.

mod credentials;

use super::rig::*;
use super::*;
use crate::connection::backoff::{Backoff, Schedule};
use crate::connection::discover::Endpoint;
use crate::error::Phase;

/// How often the source itself is asked.
fn asks(actions: &[Action]) -> usize {
    actions.iter().filter(|action| **action == Action::AskCredential { anew: true }).count()
}

fn published(actions: &[Action]) -> Option<&LinkState> {
    actions.iter().rev().find_map(|action| match action {
        Action::Publish(state) => Some(state),
        _ => None,
    })
}

fn cause(rig: &Rig) -> Option<Cause> {
    rig.supervisor.shown().cause().cloned()
}

fn stalled(phase: Phase) -> Option<Cause> {
    Some(Cause::Stalled { phase, bound: SECOND * 5 })
}

fn with_source() -> Config {
    Config { credential_source: true, ..Config::default() }
}

fn with_credential(rig: &mut Rig) -> Attempt {
    let actions = rig.tell(Event::Tick);
    assert_eq!(asks(&actions), 1);
    rig.tell(Event::Credential(Ok(Generation::new(1))));
    let attempt = rig.found(&["a"]);
    rig.tell(Event::Welcomed { attempt, welcome: welcome(Duration::ZERO) });
    rig.tell(Event::Exchanged { link: attempt });
    rig.run_until(rig.time + SECOND * 6);
    attempt
}

/// R7: each phase has a named timer, and one that hangs is over after its bound of 5 s; then the next round begins.
#[test]
fn r7_every_phase_is_bounded() {
    type Setup = fn(&mut Rig) -> Option<Attempt>;
    let phases: [(Phase, Setup); 7] = [
        (Phase::Discover, |rig| {
            rig.tell(Event::Tick);
            None
        }),
        (Phase::Resolve, |rig| {
            rig.tell(Event::Tick);
            rig.tell(Event::Discovered { endpoints: vec![endpoint()] });
            None
        }),
        (Phase::Credential, |rig| {
            rig.tell(Event::Tick);
            rig.tell(Event::Discovered { endpoints: vec![endpoint()] });
            rig.tell(Event::Resolved { endpoint: endpoint(), targets: vec!["a".into()] });
            None
        }),
        (Phase::Connect, |rig| Some(rig.dial())),
        (Phase::Tls, |rig| {
            let attempt = rig.dial();
            rig.tell(Event::Advanced { attempt, phase: DialPhase::Tls });
            Some(attempt)
        }),
        (Phase::Upgrade, |rig| {
            let attempt = rig.dial();
            rig.tell(Event::Advanced { attempt, phase: DialPhase::Upgrade });
            Some(attempt)
        }),
        (Phase::Welcome, |rig| {
            let attempt = rig.dial();
            rig.tell(Event::Advanced { attempt, phase: DialPhase::Welcome });
            Some(attempt)
        }),
    ];
    for (phase, setup) in phases {
        let config = if phase == Phase::Credential { with_source() } else { Config::default() };
        let mut rig = Rig::fixed(config, u64::MAX);
        let attempt = setup(&mut rig);
        // Nothing answers any more, neither this nor what later rounds ask.
        rig.run_until(SECOND * 5 - MS);
        assert_eq!(cause(&rig), None, "{phase}");
        let done = rig.run_until(SECOND * 5);
        assert_eq!(cause(&rig), stalled(phase), "{phase}");
        if let Some(attempt) = attempt {
            assert!(done.contains(&(SECOND * 5, Action::Abort { attempt })), "{phase}");
        }
        rig.run_to(SECOND, |action| *action == Action::Discover);
    }
}

/// R7: a dial that goes from phase to phase gets the bound of each, and none twice.
#[test]
fn r7_a_phase_is_entered_once() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let attempt = rig.dial();
    for phase in [DialPhase::Tls, DialPhase::Upgrade, DialPhase::Welcome] {
        rig.run_until(rig.time + SECOND * 4);
        rig.tell(Event::Advanced { attempt, phase });
        rig.tell(Event::Advanced { attempt, phase: DialPhase::Connect });
        rig.tell(Event::Advanced { attempt, phase });
    }
    rig.run_until(SECOND * 17 - MS);
    assert!(rig.in_flight.contains(&attempt));
    rig.tell(Event::Advanced { attempt, phase: DialPhase::Welcome });
    rig.run_until(SECOND * 17);
    assert!(!rig.in_flight.contains(&attempt));
    assert_eq!(cause(&rig), stalled(Phase::Welcome));
}

/// R7: while down, a jump of the wall clock either way, noticed within a second, dials at once.
#[test]
fn r7_a_clock_jump_in_backoff_dials_at_once() {
    for forward in [true, false] {
        let mut rig = Rig::fixed(Config::default(), u64::MAX);
        rig.live_until(SECOND * 100, &mut single_instance(Duration::MAX, Duration::ZERO));
        let attempt = rig.dial();
        rig.fail(attempt);
        assert_eq!(rig.next_round(), Some(SECOND * 5), "without a jump");
        if forward {
            rig.wall += SECOND * 3600;
        } else {
            rig.wall -= SECOND * 3600;
        }
        rig.run_to(SECOND, |action| *action == Action::Discover);
    }
}

/// R7: a jump while a dial hangs lets go of it: it may have been made before the sleep.
#[test]
fn r7_a_clock_jump_in_a_race_starts_over() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let attempt = rig.dial();
    rig.wall += SECOND * 60;
    let actions = rig.run_to(SECOND, |action| *action == Action::Discover);
    assert!(actions.contains(&Action::Abort { attempt }));
    let attempt = rig.found(&["a"]);
    assert!(rig.in_flight.contains(&attempt));
}

/// R7, FC-49: a clock that flaps is not a loop of dials.
#[test]
fn r7_a_flapping_clock_restarts_no_more_than_every_five_seconds() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let (mut rounds, mut world) = (0, single_instance(Duration::MAX, Duration::ZERO));
    rig.live_until(SECOND * 200, &mut world);
    for second in 201..=260 {
        if second % 2 == 0 {
            rig.wall += SECOND * 10;
        } else {
            rig.wall -= SECOND * 10;
        }
        rig.live_until(SECOND * second, &mut |time, action| {
            rounds += u32::from(*action == Action::Discover);
            world(time, action)
        });
    }
    // 60 s hold 12 restarts and, at the greatest draw, a round of its own after at most each of them.
    assert!((12..=26).contains(&rounds), "{rounds}");
}

/// R8: a day without an answer, and it asks and dials on, at least every 5 s, each time anew.
#[test]
fn r8_never_gives_up() {
    let mut rig = Rig::seeded(Config::default(), 8);
    let mut world = single_instance(Duration::MAX, Duration::ZERO);
    let (mut last, mut dials, mut asked, mut longest) = (Duration::ZERO, 0, 0, Duration::ZERO);
    let day = SECOND * 86_400;
    rig.live_until(day, &mut |time, action| {
        asked += u32::from(*action == Action::Discover);
        if matches!(action, Action::Dial { .. }) {
            longest = longest.max(time - last);
            last = time;
            dials += 1;
        }
        world(time, action)
    });
    assert_eq!(dials, asked, "every dial is of a round that asked anew");
    assert!(day - last <= SECOND * 5);
    assert!(longest <= SECOND * 5, "{longest:?}");
    // A dial every 2.5 s in the mean: no hammering either.
    assert!((30_000..40_000).contains(&dials), "{dials}");
}

/// R8: a failed or empty discovery is a failed round, and the user can see why.
#[test]
fn r8_discovery_that_fails_is_a_failed_round() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    rig.tell(Event::Tick);
    rig.tell(Event::DiscoverFailed { detail: "no DNS".into() });
    assert_eq!(cause(&rig), Some(Cause::Unresolved { detail: "no DNS".into() }));
    rig.run_to(SECOND, |action| *action == Action::Discover);
    let actions = rig.tell(Event::Discovered { endpoints: vec![] });
    assert!(matches!(published(&actions), Some(LinkState::Connecting { cause: Some(Cause::Unresolved { .. }), .. })));
    rig.run_to(SECOND, |action| *action == Action::Discover);
    rig.tell(Event::Discovered { endpoints: vec![endpoint()] });
    rig.tell(Event::ResolveFailed { endpoint: endpoint(), detail: "no such host".into() });
    assert_eq!(cause(&rig), Some(Cause::Unresolved { detail: "no such host".into() }));
    rig.run_to(SECOND, |action| *action == Action::Discover);
    rig.tell(Event::Discovered { endpoints: vec![endpoint()] });
    rig.tell(Event::Resolved { endpoint: endpoint(), targets: vec![] });
    rig.up(Duration::ZERO);
    assert!(rig.supervisor.shown().is_up());
}

/// R8, FC-55: not before the hint, then at once, however long the outage.
#[test]
fn r8_a_hint_is_kept_to() {
    let mut rig = Rig::seeded(Config::default(), 55);
    let attempt = rig.dial();
    let start = rig.time;
    let cause = Cause::RateLimited { retry_after: SECOND * 7 };
    rig.tell(Event::Failed { attempt, cause, retry_after: Some(SECOND * 7) });
    let mut first = None;
    let mut world = single_instance(Duration::MAX, Duration::ZERO);
    rig.live_until(start + SECOND * 9, &mut |time, action| {
        if matches!(action, Action::Dial { .. }) {
            first.get_or_insert(time);
        }
        world(time, action)
    });
    assert_eq!(first, Some(start + SECOND * 7));
}

/// R8: a hint that comes while its endpoint is being resolved again holds for what is resolved.
#[test]
fn r8_a_hint_holds_for_addresses_that_come_after_it() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let attempt = rig.dial_at(&["a"]);
    // The dial takes long, so discovery is asked again.
    rig.run_to(SECOND, |action| *action == Action::Discover);
    let actions = rig.tell(Event::Discovered { endpoints: vec![endpoint()] });
    assert!(actions.contains(&Action::Resolve(endpoint())));
    rig.tell(Event::Failed { attempt, cause: Cause::Status { code: 503 }, retry_after: Some(SECOND * 7) });
    let actions = rig.tell(Event::Resolved { endpoint: endpoint(), targets: vec!["b".into()] });
    assert_eq!(dials(&actions), []);
}

/// R8: an absurd hint is bounded, and does not silence the client for good.
#[test]
fn r8_a_hint_without_end_is_bounded() {
    let mut rig = Rig::seeded(Config::default(), 3);
    let attempt = rig.dial();
    rig.tell(Event::Failed { attempt, cause: unreachable(), retry_after: Some(Duration::MAX) });
    let mut world = single_instance(Duration::ZERO, Duration::ZERO);
    rig.live_until(SECOND * 24 * 3600 - SECOND, &mut world);
    assert_eq!(rig.supervisor.link(), None);
    rig.live_until(SECOND * 24 * 3600 + SECOND, &mut world);
    assert!(rig.supervisor.link().is_some());
}

/// FC-42: a hint holds for the endpoint that gave it; a service that moves meanwhile is found at once.
#[test]
fn fc42_a_hint_does_not_hide_the_new_place() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let attempt = rig.dial();
    rig.tell(Event::Failed { attempt, cause: Cause::Status { code: 503 }, retry_after: Some(SECOND * 3600) });
    rig.run_to(SECOND, |action| *action == Action::Discover);
    let moved = Endpoint::new("ws://new.example");
    let actions = rig.tell(Event::Discovered { endpoints: vec![endpoint(), moved.clone()] });
    assert!(actions.contains(&Action::Resolve(moved.clone())));
    assert!(!actions.contains(&Action::Resolve(endpoint())), "its hour is not over");
    let actions = rig.tell(Event::Resolved { endpoint: moved, targets: vec!["b".into()] });
    assert_eq!(dials(&actions).len(), 1);
}

/// FC-42: the old place hangs and the service comes back elsewhere: asked anew while the dial is under way, and dialed
/// within one backoff step of the new place being known.
#[test]
fn fc42_a_dial_loop_that_runs_long_asks_again() {
    let mut rig = Rig::seeded(Config::default(), 42);
    let moved_at = SECOND * 30 + MS * 100;
    let mut found = None;
    rig.live_until(SECOND * 40, &mut |time, action| match action {
        Action::Discover => Some(Event::Discovered { endpoints: vec![endpoint()] }),
        Action::Resolve(endpoint) => {
            let targets = if time < moved_at { vec!["old".into()] } else { vec!["new".into()] };
            Some(Event::Resolved { endpoint: endpoint.clone(), targets })
        }
        Action::Dial { attempt, address } if &*address.target == "new" => {
            found.get_or_insert(time);
            Some(Event::Welcomed { attempt: *attempt, welcome: welcome(Duration::ZERO) })
        }
        // The old place swallows everything.
        _ => None,
    });
    let step = Backoff::default().cap(moved_at);
    let lag = found.unwrap() - moved_at;
    assert!(lag <= step, "{lag:?} > {step:?}");
    assert!(rig.supervisor.shown().is_up());
}

/// R8: one address that hangs does not keep another, which refuses now, from being dialed again.
#[test]
fn r8_a_hanging_address_does_not_slow_the_others() {
    let mut rig = Rig::seeded(Config::default(), 1);
    let back = SECOND;
    let mut up = None;
    rig.live_until(SECOND * 3, &mut |time, action| match action {
        Action::Discover => Some(Event::Discovered { endpoints: vec![endpoint()] }),
        Action::Resolve(endpoint) => {
            Some(Event::Resolved { endpoint: endpoint.clone(), targets: vec!["hangs".into(), "restarts".into()] })
        }
        Action::Dial { attempt, address } if &*address.target == "restarts" => Some(if time < back {
            Event::Failed { attempt: *attempt, cause: unreachable(), retry_after: None }
        } else {
            up.get_or_insert(time);
            Event::Welcomed { attempt: *attempt, welcome: welcome(Duration::ZERO) }
        }),
        _ => None,
    });
    assert!(up.unwrap() <= back + MS * 750, "{up:?}");
}

/// RFC 8305: one address each 250 ms, the next at once when one fails, the first to be welcomed wins and ends the rest.
#[test]
fn addresses_race_with_a_head_start_each() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let first = rig.dial_at(&["a", "b", "c", "d"]);
    assert_eq!(dials(&rig.tell(Event::Tick)), []);
    rig.pass(MS * 249);
    assert_eq!(dials(&rig.tell(Event::Tick)), []);
    rig.pass(MS);
    let second = dials(&rig.tell(Event::Tick));
    assert_eq!(second.len(), 1);
    rig.pass(MS * 100);
    let third = dials(&rig.fail(second[0]));
    assert_eq!(third.len(), 1, "at once");
    let actions = rig.tell(Event::Welcomed { attempt: third[0], welcome: welcome(Duration::ZERO) });
    assert_eq!(actions[0], Action::Abort { attempt: first });
    assert!(matches!(published(&actions), Some(LinkState::Up { .. })));
    // What the losers still say is dropped; no dial follows.
    assert_eq!(rig.tell(Event::Welcomed { attempt: first, welcome: welcome(Duration::ZERO) }), []);
    assert_eq!(rig.supervisor.link(), Some(third[0]));
    assert_eq!(rig.fail(second[0]), []);
    assert_eq!(dials(&rig.run_until(SECOND * 60).into_iter().map(|(_, action)| action).collect::<Vec<_>>()), []);
}

/// The endpoints take turns: one that resolves to many addresses does not keep the next from being dialed.
#[test]
fn endpoints_take_turns() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    rig.tell(Event::Tick);
    let other = Endpoint::new("ws://other.example");
    rig.tell(Event::Discovered { endpoints: vec![endpoint(), other.clone(), endpoint()] });
    let many = (0..300).map(|n| Arc::from(format!("a{n}"))).collect();
    rig.tell(Event::Resolved { endpoint: endpoint(), targets: many });
    rig.tell(Event::Resolved { endpoint: other.clone(), targets: vec!["b".into()] });
    // The first 256 wait, the first of them is in flight: the other's one has its place.
    let actions = rig.run_to(MS * 250, |action| matches!(action, Action::Dial { .. }));
    assert!(actions.iter().any(|action| matches!(action, Action::Dial { address, .. } if address.endpoint == other)));
}

/// A relay accepts and has nothing behind it: bounded by the upgrade's 5 s, while another address is dialed beside it.
#[test]
fn a_relay_that_hangs_is_only_one_of_the_dials() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let relay = rig.dial_at(&["relay", "direct"]);
    rig.tell(Event::Advanced { attempt: relay, phase: DialPhase::Upgrade });
    let direct = dials(&rig.run_to(MS * 250, |action| matches!(action, Action::Dial { .. })))[0];
    rig.fail(direct);
    let done = rig.run_until(SECOND * 5);
    assert!(done.contains(&(SECOND * 5, Action::Abort { attempt: relay })));
}

/// FC-32: a link that this side closed because a pong was missing is dialed again; only `Close` stops.
#[test]
fn fc32_a_self_made_close_is_never_the_users() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let link = rig.proven(Duration::ZERO);
    let cause = Cause::Stalled { phase: Phase::Idle, bound: SECOND * 5 };
    let actions = rig.tell(Event::Lost { link, cause: cause.clone(), code: None, retry_after: None });
    assert!(actions.contains(&Action::Discover), "at once: the link had proven healthy and the spread is zero");
    assert!(matches!(published(&actions), Some(LinkState::Down { cause: shown, .. }) if *shown == cause));
    rig.found(&["a"]);
    let actions = rig.tell(Event::Close);
    assert_eq!(published(&actions), Some(&LinkState::Closed));
    assert_eq!(rig.supervisor.deadline(), None);
}

/// FC-49: accepted and closed within a second, over and over: the delays grow to the cap.
#[test]
fn fc49_accept_and_close_is_throttled() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let mut delays = Vec::new();
    while rig.time < SECOND * 400 {
        let link = rig.up(Duration::ZERO);
        rig.tell(Event::Exchanged { link });
        rig.run_until(rig.time + MS * 900);
        rig.lose(link, Some(1000));
        delays.push(rig.next_round().unwrap());
    }
    assert!(delays.is_sorted(), "{delays:?}");
    assert_eq!(delays[0], MS * 500);
    assert_eq!(*delays.last().unwrap(), SECOND * 5);
}

/// FC-49: only 5 s up *and* one exchange end an outage.
#[test]
fn fc49_only_proven_health_resets() {
    let lost_after = |up: Duration, exchange: bool| {
        let mut rig = Rig::fixed(Config::default(), u64::MAX);
        rig.live_until(SECOND * 200, &mut single_instance(Duration::MAX, Duration::ZERO));
        let link = rig.up(Duration::ZERO);
        if exchange {
            rig.tell(Event::Exchanged { link });
        }
        rig.run_until(rig.time + up);
        let actions = rig.lose(link, None);
        if actions.contains(&Action::Discover) { Duration::ZERO } else { rig.next_round().unwrap() }
    };
    assert_eq!(lost_after(SECOND * 5, true), Duration::ZERO);
    assert_eq!(lost_after(SECOND * 5 - MS, true), SECOND * 5);
    assert_eq!(lost_after(SECOND * 60, false), SECOND * 5);
}

/// FC-49: an exchange that comes after the 5 s counts when it comes.
#[test]
fn fc49_a_late_exchange_proves_health() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let link = rig.up(Duration::ZERO);
    rig.run_until(rig.time + SECOND * 60);
    rig.tell(Event::Exchanged { link });
    assert!(rig.lose(link, None).contains(&Action::Discover));
}

/// FC-50: the table of close codes, as the supervisor acts on it; the caller's own close stops.
#[test]
fn fc50_close_codes() {
    for code in [Some(1000), Some(1001), None, Some(1005), Some(1006), Some(1011), Some(1012)] {
        let mut rig = Rig::fixed(with_source(), u64::MAX);
        let link = with_credential(&mut rig);
        let actions = rig.lose(link, code);
        assert!(actions.contains(&Action::Discover), "{code:?}");
        assert_eq!(asks(&actions), 0, "{code:?}");
    }
    for code in [1008, 3000, 3003, 4401, 4403] {
        let mut rig = Rig::fixed(with_source(), u64::MAX);
        let link = with_credential(&mut rig);
        rig.lose(link, Some(code));
        assert_eq!(cause(&rig), Some(Cause::Unauthorized));
        let actions = rig.run_to(SECOND, |action| *action == Action::Discover);
        assert_eq!(asks(&actions), 1, "{code}");
    }
    for (hint, wait) in [(Some(SECOND * 9), SECOND * 9), (None, SECOND * 5)] {
        let mut rig = Rig::seeded(Config::default(), 1013);
        let link = rig.proven(Duration::ZERO);
        let start = rig.time;
        let mut world = single_instance(Duration::ZERO, Duration::ZERO);
        let code = Some(1013);
        let actions = rig.tell(Event::Lost { link, cause: Cause::Dropped { code }, code, retry_after: hint });
        rig.answer(actions, &mut world);
        rig.live_until(start + wait - MS, &mut world);
        assert_eq!(rig.supervisor.link(), None);
        rig.live_until(start + wait, &mut world);
        assert!(rig.supervisor.link().is_some());
    }
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let link = rig.proven(Duration::ZERO);
    let actions = rig.tell(Event::Close);
    assert_eq!(actions, [Action::Disconnect { link, code: 1000 }, Action::Publish(LinkState::Closed)]);
    assert_eq!(rig.lose(link, Some(1000)), []);
}

/// A drain is shown, changes nothing else, and its end is an ordinary drop.
#[test]
fn a_draining_link_stays() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let link = rig.proven(Duration::ZERO);
    let actions = rig.tell(Event::Draining { link });
    assert!(matches!(actions[..], [Action::Publish(LinkState::Draining { .. })]));
    rig.run_until(rig.time + SECOND * 60);
    assert_eq!(rig.supervisor.link(), Some(link));
    assert!(rig.lose(link, Some(1001)).contains(&Action::Discover));
}

/// R8: the first dial after the drop of a proven link is uniform in [0, spread]; a pong may restate the spread.
#[test]
fn r8_the_first_dial_is_spread() {
    for (draw, expected) in [(0, 0), (u64::MAX / 2, 4_000), (u64::MAX, 8_000)] {
        let mut rig = Rig::fixed(Config::default(), draw);
        let link = rig.proven(SECOND * 99);
        rig.tell(Event::Spread { link, spread: SECOND * 8 });
        let actions = rig.lose(link, Some(1012));
        let delay = rig.next_round().unwrap_or_default();
        assert!(delay.abs_diff(MS * expected) <= MS, "{delay:?}");
        assert_eq!(actions.contains(&Action::Discover), expected == 0);
    }
}

/// R8: a limit on the outage is the caller's choice and counts as the caller's close.
#[test]
fn r8_giving_up_is_opt_in() {
    let config = Config { give_up_after: Some(SECOND * 30), ..Config::default() };
    let mut rig = Rig::seeded(config, 4);
    rig.live_until(SECOND * 30 - MS, &mut single_instance(Duration::MAX, Duration::ZERO));
    assert_ne!(*rig.supervisor.shown(), LinkState::Closed);
    let actions = rig.run_to(MS, |action| matches!(action, Action::Publish(_)));
    assert_eq!(published(&actions), Some(&LinkState::Closed));
}

/// R8: any iterator or closure of delays is a policy; where it ends the default schedule goes on.
#[test]
fn r8_a_callers_policy_is_asked() {
    let config = Config { schedule: Schedule::Asked, ..Config::default() };
    let mut rig = Rig::fixed(config, u64::MAX);
    let mut policy = [MS * 700, SECOND * 90].into_iter();
    for (n, expected) in [(1, MS * 700), (2, SECOND * 90), (3, Backoff::default().cap(MS * 90_700))] {
        let attempt = rig.dial_at(&["a"]);
        let actions = rig.fail(attempt);
        let Some(Action::AskDelay { failures, .. }) = actions.first() else { panic!("{actions:?}") };
        assert_eq!(*failures, n);
        rig.tell(Event::Delay(policy.next()));
        assert_eq!(rig.next_round(), Some(expected));
        rig.tell(Event::Delay(Some(SECOND * 3600)));
        assert_eq!(rig.next_round(), Some(expected), "asked once, answered once");
        if n == 2 {
            rig.run_until(rig.time + SECOND * 89);
        }
    }
    // One that never answers is gone past.
    let attempt = rig.dial();
    rig.fail(attempt);
    rig.run_to(SECOND * 5, |action| *action == Action::Discover);
}

/// What a service said tells more than what this side noticed, within one round.
#[test]
fn the_cause_shown_is_the_most_telling_of_the_round() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let first = rig.dial_at(&["a", "b"]);
    let actions = rig.tell(Event::Failed { attempt: first, cause: Cause::Status { code: 503 }, retry_after: None });
    rig.fail(dials(&actions)[0]);
    assert_eq!(cause(&rig), Some(Cause::Status { code: 503 }));
    let attempt = rig.dial();
    rig.fail(attempt);
    assert_eq!(cause(&rig), Some(unreachable()));
}

/// A link shows since when it is down, not since the last failure.
#[test]
fn down_since_is_when_the_link_ended() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let link = rig.proven(Duration::ZERO);
    let ended = Wall::new(rig.wall);
    rig.lose(link, None);
    let attempt = rig.found(&["a"]);
    rig.pass(SECOND);
    rig.fail(attempt);
    assert_eq!(*rig.supervisor.shown(), LinkState::Down { since: ended, cause: unreachable() });
}
