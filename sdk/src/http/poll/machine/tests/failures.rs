//! What is no value, and what ends a read.

use super::*;
use crate::http::poll::Generation;

/// FC-01: polls that answer 502, 500 and a reset are staleness, and afterwards the count starts at zero.
#[test]
fn fc_01_r1_failed_polls_are_stale_and_the_next_value_forgets_them() {
    let mut read = Read::fresh(Settings::default(), running());
    let first = read.machine.clone();
    read.look();
    let since = read.now;
    assert_eq!(publications(&read.unserved(status(502), None)), [stale(since, status(502))]);
    read.look();
    assert_eq!(publications(&read.unserved(status(500), None)), [stale(since, status(500))]);
    read.look();
    assert_eq!(publications(&read.failed(dropped())), [stale(since, dropped())]);
    assert!(read.machine.outage.is_some());
    read.look();
    assert_eq!(publications(&read.value(running())), [fresh(5, true)]);
    assert_eq!((read.machine.outage, read.machine.rough), (first.outage, first.rough), "counted from zero again");
    read.look();
    assert_eq!(publications(&read.value(over())), [fresh(6, true)]);
}

/// R1, R8: an hour of failures leaves the last value, says each cause once, and costs no more looks than a healthy hour.
#[test]
fn r1_r8_an_hour_of_failures_is_one_stale_reading() {
    let mut read = Read::fresh(Settings::default(), running());
    read.look();
    let (since, end) = (read.now, read.now + 3_600 * SECOND);
    assert_eq!(publications(&read.unserved(status(503), None)), [stale(since, status(503))]);
    let mut looks = 0;
    while read.now < end {
        read.look();
        assert_eq!(publications(&read.unserved(status(503), None)), [], "nothing is said twice");
        looks += 1;
    }
    assert!((120..250).contains(&looks), "{looks} looks, in the end each 30 s");
    assert!(read.ahead() <= Duration::from_secs(30));
}

/// FC-51, R7, R8: a credential that cannot be had is staleness, and the next look is planned. The service was not asked, so
/// that what is known of its connection and its life stays; a limit on the outage counts it.
#[test]
fn fc_51_r8_no_credential_is_a_failure_that_was_not_sent() {
    let unavailable = || Cause::CredentialUnavailable { detail: "sealed".into() };
    let mut read = Read::fresh(Settings { give_up: Some(60 * SECOND), ..Settings::default() }, running());
    read.pass(SECOND);
    let since = read.now;
    let before = (read.machine.connection, read.machine.doubted);
    for shown in [vec![stale(since, unavailable())], vec![]] {
        assert!(matches!(read.machine.state, State::Wanting { .. }));
        assert_eq!(publications(&read.failed(unavailable())), shown);
        assert!(matches!(read.machine.state, State::Idle { .. }), "a timer is armed");
        assert_eq!((read.machine.connection, read.machine.doubted), before);
        let ahead = read.ahead();
        read.pass(ahead);
    }
    read.now = since + 60 * SECOND;
    assert_eq!(publications(&read.failed(unavailable())), [ended(End::Closed)]);
}

/// R2: it is loading however often the first attempts fail, and says the last cause.
#[test]
fn r2_it_is_loading_until_the_first_value() {
    let mut read = Read::begun(Settings::default());
    assert_eq!(publications(&read.unserved(status(502), None)), [loading(status(502))]);
    read.look();
    assert_eq!(publications(&read.failed(dropped())), [loading(dropped())]);
    read.look();
    assert_eq!(publications(&read.value(running())), [fresh(3, true)]);
}

/// FC-04: an empty 200, a login page, a body cut short: none of them ends the read, with or without a value.
#[test]
fn fc_04_r3_no_answer_without_authority_ends_it() {
    let causes = [
        Cause::Undecodable { detail: "expected JSON, got an empty body".into() },
        status(200),
        status(203),
        status(500),
        status(599),
        dropped(),
        Cause::Refused { detail: "no such field".into() },
        Cause::Unauthorized,
    ];
    for loaded in [false, true] {
        let mut read = Read::begun(Settings::default());
        if loaded {
            read.value(running());
            read.look();
        }
        for cause in causes.iter().cycle().take(200) {
            let shown = read.unserved(cause.clone(), None);
            assert!(!read.machine.is_ended() && publications(&shown).len() == 1, "{cause:?}: {shown:?}");
            read.look();
        }
        assert_eq!(publications(&read.value(over())).len(), 1);
    }
}

/// FC-14: 404 for the first 3 s after a create is not visible yet.
#[test]
fn fc_14_r3_a_resource_that_shows_up_within_the_grace_is_read() {
    let mut read = Read::begun(Settings::default());
    assert_eq!(publications(&read.answer(Answer::Absent)), [loading(Cause::NotYetVisible)]);
    while read.now < at(3 * SECOND) {
        assert!(read.look().0 <= SECOND, "it is looked for again soon");
        assert_eq!(publications(&read.answer(Answer::Absent)), []);
    }
    read.look();
    assert_eq!(publications(&read.value(running())).len(), 1);
}

/// FC-14: after the grace there is none; its time runs only while the service says so.
#[test]
fn fc_14_r3_the_grace_ends_it_and_counts_only_confirmed_absence() {
    let mut read = Read::begun(Settings::default());
    while publications(&read.answer(Answer::Absent)) != [ended(End::Gone)] {
        read.look();
    }
    assert_eq!(read.now, at(10 * SECOND));
    assert_eq!(read.on(Event::Tick), []);

    let mut read = Read::begun(Settings::default());
    read.answer(Answer::Absent);
    read.look();
    read.failed(dropped());
    // Nobody says anything about the resource for a minute.
    for _ in 0..60 {
        read.pass(SECOND);
        if matches!(read.machine.state, State::Wanting { .. }) {
            read.permitted();
            read.failed(dropped());
        }
    }
    read.look();
    let again = read.now;
    while publications(&read.answer(Answer::Absent)) != [ended(End::Gone)] {
        read.look();
    }
    assert_eq!(read.now.since(again), 10 * SECOND, "the time up to the failure was confirmed by nobody");
}

/// FC-14: what was seen once and is absent for all of the grace is gone; but the 404 of a proxy in front of a restarting
/// service does not last so long. A grace of zero is one second here.
#[test]
fn fc_14_r3_a_404_after_a_value_must_be_said_for_the_grace() {
    for (grace, gone) in [(10 * SECOND, 10 * SECOND), (Duration::ZERO, SECOND)] {
        let mut read = Read::fresh(Settings { grace, ..Settings::default() }, running());
        read.look();
        let since = read.now;
        assert_eq!(publications(&read.answer(Answer::Absent)), [stale(since, Cause::NotYetVisible)]);
        loop {
            let (delay, sent) = read.look();
            assert!(delay <= SECOND && sent == send(false, Connection::Any));
            if publications(&read.answer(Answer::Absent)) == [ended(End::Gone)] {
                break;
            }
        }
        assert_eq!(read.now.since(since), gone);
    }

    let mut read = Read::fresh(Settings::default(), running());
    for cause in [status(502), dropped(), status(503)] {
        read.look();
        assert!(!publications(&read.answer(Answer::Absent)).contains(&ended(End::Gone)), "after {cause}");
        read.look();
        read.unserved(cause, None);
    }
    read.look();
    read.answer(Answer::Absent);
    read.look();
    assert_eq!(publications(&read.value(running())).len(), 1);
}

/// R3: 410 is an authority's word.
#[test]
fn r3_gone_ends_at_once_and_nothing_follows() {
    let mut read = Read::fresh(Settings::default(), running());
    read.look();
    assert_eq!(read.answer(Answer::Gone), [ended(End::Gone)]);
    assert_eq!(read.machine.deadline(), None);
    for event in [Event::Tick, Event::Hint, Event::Woke, Event::Attached, Event::Denied, Event::Close, Event::Permitted]
    {
        assert_eq!(read.on(event), []);
    }
}

/// FC-51: a refused credential is staleness; the next attempt is a step later, and only the keeper's word is a denial.
#[test]
fn fc_51_r3_a_refusal_is_stale_and_only_denied_ends() {
    for (draw, delay) in [(0, SECOND), (u64::MAX, 2 * SECOND)] {
        let mut read = Read::fresh(Settings::default(), running());
        read.look();
        read.draw = draw;
        let since = read.now;
        assert_eq!(
            publications(&read.answer(Answer::Refused(Generation::default()))),
            [stale(since, Cause::Unauthorized)]
        );
        assert_eq!(read.look().0, delay);
        assert_eq!(publications(&read.answer(Answer::Refused(Generation::new(1)))), [], "another one is refused too");
        read.look();
        assert_eq!(read.on(Event::Denied), [Action::Abort, ended(End::Denied)]);
    }
}

/// R9, FC-55: no attempt before what the service asked for, and the observers see until when.
#[test]
fn fc_55_r9_retry_after_is_kept_to_and_shown() {
    let mut read = Read::fresh(Settings::default(), running());
    read.look();
    let (since, cause) = (read.now, Cause::RateLimited { retry_after: 7 * SECOND });
    let shown = read.unserved(cause.clone(), Some(7 * SECOND));
    let not_before = Some(read.now + 7 * SECOND);
    assert_eq!(publications(&shown), [Action::Publish(Shown::Stale { since, cause, not_before })]);
    for event in [Event::Hint, Event::Woke, Event::Attached, Event::Detached(dropped()), Event::Hint, Event::Start] {
        assert_eq!(read.on(event), [], "nothing shortens it");
    }
    assert_eq!(read.look(), (7 * SECOND, send(false, Connection::Fresh)), "and then it is made at once");

    // An hour: a wait of a minute can say at once that nothing will come.
    let shown = read.unserved(status(503), Some(3_600 * SECOND));
    let not_before = Some(read.now + 3_600 * SECOND);
    assert_eq!(publications(&shown), [Action::Publish(Shown::Stale { since, cause: status(503), not_before })]);
    assert_eq!(scheduled(&shown), 3_600 * SECOND);

    let mut read = Read::begun(Settings::default());
    let shown = read.unserved(status(503), Some(7 * SECOND));
    let loading =
        Shown::Loading { since: at(Duration::ZERO), cause: Some(status(503)), not_before: Some(at(7 * SECOND)) };
    assert_eq!(publications(&shown), [Action::Publish(loading)]);
}

/// FC-45: the outage counts from its first failure, not from the start of the long poll, and one retry comes first.
#[test]
fn fc_45_giving_up_counts_from_the_first_failure_and_after_a_retry() {
    let settings = Settings { wait: Some(900 * SECOND), give_up: Some(120 * SECOND), ..Settings::default() };
    let mut read = Read::fresh(settings.clone(), running());
    read.look();
    read.pass(600 * SECOND);
    let first = read.now;
    assert!(!read.failed(dropped()).contains(&ended(End::Closed)));
    read.look();
    while !read.failed(status(502)).contains(&ended(End::Closed)) {
        assert!(read.now.since(first) < 200 * SECOND, "it never gives up");
        if !read.pass(read.ahead()).contains(&Action::Want) {
            break;
        }
        read.permitted();
    }
    assert!(read.machine.is_ended());
    assert_eq!(read.now.since(first), 120 * SECOND);

    // Not even a hint of an hour goes without the one retry, and an answer begins anew.
    let mut read = Read::fresh(settings, running());
    read.look();
    read.unserved(status(503), Some(3_600 * SECOND));
    assert_eq!(read.look().0, 3_600 * SECOND);
    read.answer(Answer::Value(running()));
    read.look();
    assert!(!read.failed(dropped()).contains(&ended(End::Closed)), "another outage");
    read.look();
    read.pass(500 * SECOND);
    assert_eq!(read.failed(status(502)), [ended(End::Closed)], "its retry failed after the limit");
}

/// FC-45: while the budget holds the next attempt the limit ends it too, and what was wanted is taken back.
#[test]
fn fc_45_giving_up_takes_back_what_is_wanted() {
    let mut read = Read::fresh(Settings { give_up: Some(60 * SECOND), ..Settings::default() }, running());
    read.look();
    read.unserved(status(500), None);
    let first = read.now;
    read.look();
    read.unserved(status(500), None);
    assert_eq!(read.pass(read.ahead()), [Action::Want]);
    let shown = read.pass(60 * SECOND);
    assert_eq!(shown, [Action::Withdraw, ended(End::Closed)]);
    assert!(read.machine.deadline().is_none() && read.now > first);
}

/// FC-90: a pooled connection that ends under the request is no failure of the read: once more, at once, on a fresh one.
#[test]
fn fc_90_one_more_attempt_on_a_fresh_connection_and_nothing_is_shown() {
    let again = || Event::Failed { cause: dropped(), again: true };
    let mut read = Read::fresh(Settings::default(), running());
    read.look();
    assert_eq!(read.on(again()), [Action::Want]);
    assert_eq!(read.permitted(), send(false, Connection::Fresh));
    assert_eq!(publications(&read.value(running())), [fresh(3, true)]);

    read.look();
    assert_eq!(read.on(again()), [Action::Want]);
    read.permitted();
    let since = read.now;
    assert_eq!(publications(&read.on(again())), [stale(since, dropped())], "the second time it is a failure");
    assert_eq!(read.look().1, send(false, Connection::Fresh));
    assert_eq!(read.on(again()), [Action::Want], "once in each look");
}

/// FC-21: after a failure the service may be another life of itself, whose `unchanged` says nothing.
#[test]
fn fc_21_r4_after_an_outage_the_whole_value_is_read_and_unchanged_is_not_believed() {
    let mut read = Read::fresh(Settings::default(), running());
    assert_eq!(read.look().1, send(true, Connection::Any));
    let since = read.now;
    read.failed(dropped());
    assert_eq!(read.look().1, send(false, Connection::Fresh));
    let undecodable = Cause::Undecodable { detail: "expected a value, got `unchanged`".into() };
    assert_eq!(publications(&read.answer(Answer::Unchanged)), [stale(since, undecodable.clone())]);
    assert_eq!(read.look().1, send(false, Connection::Any), "and not asked for again");
    assert_eq!(publications(&read.value(over())), [fresh(4, true)], "it converges without a change");
    assert_eq!(read.look().1, send(true, Connection::Any));

    let mut read = Read::begun(Settings::default());
    assert_eq!(publications(&read.answer(Answer::Unchanged)), [loading(undecodable)], "unchanged from what?");
}

/// R8, R3: the caller's close gives back what it has.
#[test]
fn r3_close_ends_it_in_every_state() {
    let closed = || ended(End::Closed);
    let mut read = Read::new(Settings::default());
    assert_eq!(read.on(Event::Close), [closed()]);
    let mut read = Read::new(Settings::default());
    read.on(Event::Start);
    assert_eq!(read.on(Event::Close), [Action::Withdraw, closed()]);
    let mut read = Read::begun(Settings::default());
    assert_eq!(read.on(Event::Close), [Action::Abort, closed()]);
    let mut read = Read::fresh(Settings::default(), running());
    assert_eq!(read.on(Event::Close), [closed()]);
}

/// FC-45, R8: a proxy in front of a service that is gone answers 404 and 502 in turns, which is no good answer, either.
#[test]
fn fc_45_giving_up_counts_through_404s() {
    for seen in [false, true] {
        let settings = Settings { give_up: Some(300 * SECOND), ..Settings::default() };
        let mut read = if seen { Read::fresh(settings, running()) } else { Read::begun(settings) };
        if seen {
            read.look();
        }
        let begin = read.now;
        for n in 0.. {
            if n % 2 == 0 {
                read.unserved(status(502), None);
            } else {
                read.answer(Answer::Absent);
            }
            let ahead = read.ahead();
            if read.pass(ahead) != [Action::Want] {
                break;
            }
            read.permitted();
        }
        assert!(read.machine.is_ended(), "seen: {seen}");
        assert_eq!(read.now.since(begin), 300 * SECOND);
    }
}

/// R5, FC-17, FC-23: what a stream says while a look is under way that then fails leads to another one soon, however slow the
/// looks have become.
#[test]
fn fc_23_a_hint_during_a_look_that_fails_is_not_lost() {
    for event in [Event::Hint, Event::Attached] {
        let mut read = Read::fresh(Settings::default(), running());
        assert_eq!(read.on(Event::Attached), [Action::Want]);
        read.permitted();
        let begin = read.now;
        while read.now < begin + 600 * SECOND {
            read.unserved(status(502), None);
            read.look();
        }
        read.on(event);
        read.unserved(status(502), None);
        let (delay, _) = read.look();
        assert!(delay <= 5 * SECOND, "{delay:?}");
    }
}
