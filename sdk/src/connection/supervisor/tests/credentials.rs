//! Credentials that expire, that are refused, and that are denied.

use super::*;

/// The link drops, nothing was refused, and the round has the credential that is held.
fn drop_and_dial(rig: &mut Rig, link: Attempt) -> Attempt {
    let actions = rig.lose(link, None);
    assert!(actions.contains(&Action::AskCredential { anew: false }) && asks(&actions) == 0, "{actions:?}");
    rig.tell(Event::Credential(Ok(Generation::new(1))));
    rig.found(&["a"])
}

/// The rounds after a refusal: the source answers `generation`, and one dial follows.
fn redial(rig: &mut Rig, generation: u64) -> Attempt {
    let actions = rig.run_to(SECOND * 10, |action| *action == Action::Discover);
    assert_eq!(asks(&actions), 1, "asked once after a refusal, before the next dial");
    rig.found_later(&["a"]);
    dials(&rig.tell(Event::Credential(Ok(Generation::new(generation)))))[0]
}

/// FC-51: the token expired: one refresh, and the next dial has the new one.
#[test]
fn fc51_an_expired_token_is_refreshed_once() {
    let mut rig = Rig::fixed(with_source(), u64::MAX);
    let link = with_credential(&mut rig);
    let attempt = drop_and_dial(&mut rig, link);
    rig.tell(Event::Refused { attempt });
    assert_eq!(cause(&rig), Some(Cause::Unauthorized));
    let attempt = redial(&mut rig, 2);
    rig.tell(Event::Welcomed { attempt, welcome: welcome(Duration::ZERO) });
    assert!(rig.supervisor.shown().is_up());
    let done = rig.run_until(rig.time + SECOND * 60);
    assert!(!done.iter().any(|(_, action)| matches!(action, Action::AskCredential { .. })));
}

/// R3: each round has a credential that lasts, before its first dial; one that was renewed meanwhile has its own count.
#[test]
fn r3_no_round_dials_with_a_credential_of_before() {
    let mut rig = Rig::fixed(with_source(), u64::MAX);
    let link = with_credential(&mut rig);
    rig.lose(link, Some(1008));
    assert_eq!(cause(&rig), Some(Cause::Unauthorized), "the first refusal of the first one");
    let mut attempt = redial(&mut rig, 1);
    for generation in [2, 3, 4] {
        rig.fail(attempt);
        let actions = rig.run_to(SECOND * 10, |action| *action == Action::Discover);
        assert!(actions.contains(&Action::AskCredential { anew: false }), "{actions:?}");
        rig.found_later(&["a"]);
        attempt = dials(&rig.tell(Event::Credential(Ok(Generation::new(generation)))))[0];
        rig.tell(Event::Refused { attempt });
        assert!(!matches!(rig.supervisor.shown(), LinkState::Denied { .. }), "{generation} was refused once");
        attempt = redial(&mut rig, generation);
    }
}

/// FC-51, R3: no token is used after two refusals; a new one starts its own count.
#[test]
fn fc51_no_token_is_used_after_two_refusals() {
    let mut rig = Rig::fixed(with_source(), 0);
    let link = with_credential(&mut rig);
    let attempt = drop_and_dial(&mut rig, link);
    rig.tell(Event::Refused { attempt });
    let refused_at = rig.time;
    // The new one is refused as well, once.
    let attempt = redial(&mut rig, 2);
    assert!(rig.time - refused_at >= MS * 250, "a backoff step apart, at the least draw too");
    rig.tell(Event::Refused { attempt });
    let refused_at = rig.time;
    let attempt = redial(&mut rig, 2);
    assert!(rig.time - refused_at >= MS * 250);
    let actions = rig.tell(Event::Refused { attempt });
    assert!(matches!(published(&actions), Some(LinkState::Denied { .. })));
    // For an hour the source is asked, and nothing is dialed.
    let until = rig.time + SECOND * 3600;
    let mut asked = 0;
    rig.live_until(until, &mut |_, action| match action {
        Action::AskCredential { anew: true } => {
            asked += 1;
            Some(Event::Credential(if asked % 2 == 0 { Ok(Generation::new(2)) } else { Err(offline()) }))
        }
        other => panic!("{other:?} while denied"),
    });
    assert_eq!(asked, 120, "every 30 s");
    // Another one resumes.
    rig.run_to(SECOND * 30, |action| *action == Action::AskCredential { anew: true });
    let actions = rig.tell(Event::Credential(Ok(Generation::new(3))));
    assert!(actions.contains(&Action::Discover));
    rig.tell(Event::Credential(Ok(Generation::new(3))));
    let attempt = rig.found(&["a"]);
    rig.tell(Event::Welcomed { attempt, welcome: welcome(Duration::ZERO) });
    assert!(rig.supervisor.shown().is_up());
}

/// FC-51: no token is used after two refusals, also where the source goes back to it.
#[test]
fn fc51_a_source_that_goes_back_to_a_denied_token_does_not_get_it_sent() {
    let mut rig = Rig::fixed(with_source(), u64::MAX);
    let link = with_credential(&mut rig);
    let attempt = drop_and_dial(&mut rig, link);
    rig.tell(Event::Refused { attempt });
    let attempt = redial(&mut rig, 1);
    rig.tell(Event::Refused { attempt });
    let answer = |rig: &mut Rig, generation| rig.tell(Event::Credential(Ok(Generation::new(generation))));
    rig.run_to(SECOND * 30, |action| *action == Action::AskCredential { anew: true });
    answer(&mut rig, 2);
    answer(&mut rig, 2);
    let attempt = rig.found(&["a"]);
    rig.tell(Event::Refused { attempt });
    let actions = rig.run_to(SECOND * 10, |action| *action == Action::Discover);
    assert_eq!(asks(&actions), 1);
    rig.found_later(&["a"]);
    let actions = answer(&mut rig, 1);
    assert!(dials(&actions).is_empty() && matches!(published(&actions), Some(LinkState::Denied { .. })), "{actions:?}");
    rig.run_to(SECOND * 30, |action| *action == Action::AskCredential { anew: true });
    assert_eq!(answer(&mut rig, 1), [], "denied it stays");
    rig.run_to(SECOND * 30, |action| *action == Action::AskCredential { anew: true });
    assert!(answer(&mut rig, 2).contains(&Action::Discover), "that one was refused once");
    answer(&mut rig, 2);
    let attempt = rig.found(&["a"]);
    let actions = rig.tell(Event::Refused { attempt });
    assert!(matches!(published(&actions), Some(LinkState::Denied { .. })), "and now twice");
}

/// R3: an unreachable source is only stale, however often and however it fails.
#[test]
fn r3_an_unreachable_source_is_only_a_failed_round() {
    let mut rig = Rig::fixed(with_source(), u64::MAX);
    let link = with_credential(&mut rig);
    rig.lose(link, Some(4401));
    for _ in 0..20 {
        let actions = rig.run_to(SECOND * 10, |action| *action == Action::Discover);
        assert_eq!(asks(&actions), 1);
        rig.tell(Event::Credential(Err(offline())));
        assert_eq!(cause(&rig), Some(offline()));
    }
    let attempt = redial(&mut rig, 1);
    let actions = rig.tell(Event::Refused { attempt });
    assert!(matches!(published(&actions), Some(LinkState::Denied { .. })), "the close was its first refusal");
}

/// R3: the two uses of one credential are a backoff step apart, also where a clock jumps in between.
#[test]
fn r3_a_clock_jump_does_not_shorten_the_step() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    // The step is 5 s at this length of outage.
    rig.live_until(SECOND * 200, &mut single_instance(Duration::MAX, Duration::ZERO));
    let attempt = rig.dial();
    rig.tell(Event::Refused { attempt });
    let refused_at = rig.time;
    rig.wall += SECOND * 60;
    rig.run_to(SECOND * 5, |action| *action == Action::Discover);
    assert_eq!(rig.time - refused_at, SECOND * 5);
}

/// R3: the address that refused is dialed last the next time, so that where there are two, both have to refuse.
#[test]
fn r3_the_address_that_refused_goes_last() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let attempt = rig.dial_at(&["a", "b"]);
    rig.tell(Event::Refused { attempt });
    let attempt = rig.dial_at(&["a", "b"]);
    let State::Down(race) = &rig.supervisor.state else { panic!("down") };
    assert_eq!(&*race.flights[&attempt].address.target, "b");
}

/// R3: refusals by several addresses at once are one.
#[test]
fn r3_refusals_of_one_round_count_once() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let first = rig.dial_at(&["a", "b"]);
    let second = dials(&rig.run_to(MS * 250, |action| matches!(action, Action::Dial { .. })))[0];
    rig.tell(Event::Refused { attempt: first });
    rig.tell(Event::Refused { attempt: second });
    assert!(matches!(rig.supervisor.shown(), LinkState::Connecting { .. }));
    let third = rig.dial_at(&["a", "b"]);
    rig.tell(Event::Refused { attempt: third });
    assert!(matches!(rig.supervisor.shown(), LinkState::Denied { .. }));
}

/// R3: a refusal does not end a dial to a healthy replica that is under way.
#[test]
fn r3_a_replica_may_still_win_after_a_refusal() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let first = rig.dial_at(&["a", "b", "c"]);
    let second = dials(&rig.run_to(MS * 250, |action| matches!(action, Action::Dial { .. })))[0];
    let actions = rig.tell(Event::Refused { attempt: first });
    assert_eq!(dials(&actions), [], "no further use of the credential in this round");
    rig.tell(Event::Welcomed { attempt: second, welcome: welcome(Duration::ZERO) });
    assert!(rig.supervisor.shown().is_up());
}

/// R3: a service that welcomes and then closes with 1008, over and over, has refused; health in between starts anew.
#[test]
fn r3_a_welcome_alone_forgives_no_refusal() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    let link = rig.up(Duration::ZERO);
    rig.lose(link, Some(1008));
    let link = rig.proven(Duration::ZERO);
    let actions = rig.lose(link, Some(1008));
    assert!(matches!(published(&actions), Some(LinkState::Down { .. })), "health in between forgives");
    let link = rig.up(Duration::ZERO);
    let actions = rig.lose(link, Some(1008));
    assert!(matches!(published(&actions), Some(LinkState::Denied { .. })));
}

/// R8: a client without a source of credentials is denied as well, and finds a service that has changed its mind.
#[test]
fn r8_a_denied_anonymous_client_dials_slowly() {
    let mut rig = Rig::fixed(Config::default(), u64::MAX);
    for _ in 0..2 {
        let attempt = rig.dial();
        rig.tell(Event::Refused { attempt });
    }
    assert!(matches!(rig.supervisor.shown(), LinkState::Denied { .. }));
    let denied_at = rig.time;
    let attempt = rig.dial();
    assert_eq!(rig.time - denied_at, SECOND * 30);
    assert_eq!(rig.tell(Event::Refused { attempt }), [], "denied it stays, one dial each time");
    let attempt = rig.dial();
    assert_eq!(rig.time - denied_at, SECOND * 60);
    rig.tell(Event::Welcomed { attempt, welcome: welcome(Duration::ZERO) });
    assert!(rig.supervisor.shown().is_up());
}
