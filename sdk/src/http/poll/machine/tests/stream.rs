//! A stream of events beside the polling.

use super::*;

/// A read with a stream that is up, and confirmed by a look that started later.
fn attached(marks: Marks) -> Read {
    let mut read = Read::fresh(Settings::default(), marks);
    assert_eq!(read.on(Event::Attached), [Action::Want]);
    read.permitted();
    assert_eq!(publications(&read.answer(Answer::Unchanged)), [fresh(2, false)]);
    read
}

/// What comes after `running` by its version.
fn later() -> Marks {
    over().at_version(2)
}

fn pushed(marks: Marks) -> Event {
    Event::Pushed(Some(marks))
}

/// FC-17: a state that was reached before the stream was up, or while it came up, is seen by a look that starts later.
#[test]
fn fc_17_r5_a_look_that_starts_after_the_attach_decides() {
    let mut read = Read::fresh(Settings::default(), running());
    assert_eq!(read.on(Event::Attached), [Action::Want], "no event will tell what was before");
    read.permitted();
    assert_eq!(publications(&read.value(over())), [fresh(2, true)]);

    // The attach comes while a request is under way, which may be answered with what was before it.
    let mut read = Read::begun(Settings::default());
    assert_eq!(read.on(Event::Attached), []);
    assert_eq!(read.value(running()), [fresh(1, true), Action::Want]);
    assert_eq!(read.on(pushed(over())), [], "nothing pushed counts yet");
    read.permitted();
    assert_eq!(publications(&read.value(over())), [fresh(2, true)]);
}

/// R5: before that look a pushed value is a hint, afterwards it is shown at once.
#[test]
fn r5_what_is_pushed_counts_once_a_later_look_has_confirmed() {
    let mut read = Read::fresh(Settings::default(), running().at_version(1));
    assert_eq!(read.on(pushed(later())), [Action::Want], "without a stream");
    read.permitted();
    read.answer(Answer::Unchanged);
    read.on(Event::Attached);
    assert!(!read.on(pushed(later())).contains(&fresh(3, true)));
    read.look();
    read.answer(Answer::Unchanged);
    assert_eq!(read.on(pushed(later())), [fresh(4, true)]);
    read.on(Event::Detached(dropped()));
    assert_eq!(publications(&read.on(pushed(over().at_version(3)))), [], "it is down");
    read.on(Event::Attached);
    assert_eq!(publications(&read.on(pushed(over().at_version(3)))), [], "another one is confirmed anew");
}

/// FC-88, R4: without marks that prove it, a pushed value may be any former one: it is a hint.
#[test]
fn fc_88_r4_a_pushed_value_that_proves_no_place_is_a_hint() {
    for (shown, event) in [
        (running(), running()),
        (running(), over()),
        (running(), later()),
        (running().at_version(2), over()),
        (running().at_version(2), later()),
        (running().of_attempt(1), over().of_attempt(1)),
    ] {
        let mut read = attached(shown);
        read.pass(2 * SECOND);
        assert_eq!(read.on(pushed(event)), [Action::Want], "{shown:?} {event:?}");
    }
    let mut read = attached(over().of_attempt(1));
    assert_eq!(read.on(pushed(running().of_attempt(2))), [fresh(3, true)], "a later attempt");
}

/// FC-88: the answer to a request that was sent before a pushed value is older than that.
#[test]
fn fc_88_r4_an_answer_that_was_overtaken_is_asked_for_again() {
    for answer in [Answer::Value(running()), Answer::Unchanged, Answer::Absent, Answer::Nothing, Answer::Gone] {
        let mut read = attached(running().at_version(1));
        read.look();
        assert_eq!(read.on(pushed(later())), [fresh(4, true)]);
        let said = read.answer(answer.clone());
        assert_eq!(publications(&said), [], "{answer:?}");
        assert!(scheduled(&said) < SECOND, "{answer:?}");
        assert_eq!(read.look().1, send(false, Connection::Any), "what was pushed has no validator");
        assert_eq!(publications(&read.answer(Answer::Same)), [fresh(5, false)]);
        assert_eq!(read.look().1, send(true, Connection::Any));
    }
    // What proves by itself that it is later is believed.
    let mut read = attached(running().at_version(1));
    read.look();
    read.on(pushed(running().at_version(2)));
    assert_eq!(publications(&read.value(over().at_version(3))), [fresh(5, true)]);
}

/// FC-88: a terminal that was pushed stays, whatever a poll of a lagging replica says.
#[test]
fn fc_88_a_pushed_terminal_stays() {
    let mut read = attached(running().of_attempt(1).at_version(1));
    assert_eq!(read.on(pushed(later().of_attempt(1))), [fresh(3, true)]);
    for _ in 0..20 {
        read.look();
        assert!(
            !publications(&read.value(running().of_attempt(1)))
                .iter()
                .any(|shown| matches!(shown, Action::Publish(Shown::Fresh { .. })))
        );
    }
}

/// An event that comes late is a hint: what is shown stays fresh, and the service decides.
#[test]
fn r4_a_pushed_value_that_is_older_is_a_hint() {
    let mut read = attached(over().of_attempt(2));
    read.pass(2 * SECOND);
    assert_eq!(read.on(pushed(running().of_attempt(1))), [Action::Want]);
    read.permitted();
    assert_eq!(publications(&read.answer(Answer::Unchanged)), [fresh(3, false)]);
    read.pass(2 * SECOND);
    assert_eq!(read.on(Event::Pushed(None)), [Action::Want]);
}

/// R6, R8: hints coalesce: one look, one more after a request that was under way, and no more than the pace permits.
#[test]
fn r8_hints_coalesce_and_are_bounded() {
    let mut read = attached(running());
    read.pass(5 * SECOND);
    assert_eq!(read.on(Event::Hint), [Action::Want]);
    assert_eq!(read.on(Event::Hint), [], "the request starts later");
    read.permitted();
    for _ in 0..10 {
        assert_eq!(read.on(Event::Hint), [], "one under way");
    }
    assert_eq!(scheduled(&read.answer(Answer::Unchanged)), SECOND, "one more");
    assert_eq!(read.on(Event::Hint), []);
    read.look();
    assert!(scheduled(&read.answer(Answer::Unchanged)) > 50 * SECOND, "and only one");

    let begin = read.now;
    let mut looks = 0;
    while read.now < begin + 60 * SECOND {
        for action in read.on(Event::Hint).into_iter().chain(read.pass(10 * MILLI)) {
            if action == Action::Want {
                read.permitted();
                looks += 1;
                read.answer(Answer::Unchanged);
            }
        }
    }
    assert!((55..=61).contains(&looks), "{looks}");
}

/// R8: a stream that is faster than the requests does not make each of its values one.
#[test]
fn r8_a_fast_stream_does_not_multiply_the_looks() {
    let mut read = attached(running().at_version(0));
    let begin = read.now;
    let mut looks = 0;
    let mut version = 0;
    while read.now < begin + 600 * SECOND {
        let said = read.pass(100 * MILLI);
        if said.contains(&Action::Want) {
            read.permitted();
            looks += 1;
        }
        version += 1;
        assert_eq!(publications(&read.on(pushed(running().at_version(version)))).len(), 1);
        if matches!(read.machine.state, State::Sending(_)) {
            read.pass(50 * MILLI);
            read.answer(Answer::Same);
        }
    }
    assert!((10..400).contains(&looks), "{looks} looks in ten minutes");
}

/// The interval is the slow one while the stream is up, and the usual one afterwards; its end makes nothing stale.
#[test]
fn r5_a_stream_that_goes_down_leaves_fresh_what_polling_confirms() {
    let mut read = attached(running());
    assert_eq!(read.ahead(), Duration::from_millis(57_000));
    read.pass(10 * SECOND);
    let said = read.on(Event::Detached(dropped()));
    assert_eq!(publications(&said), []);
    assert_eq!(scheduled(&said), 500 * MILLI, "soon, and not all at one instant");
    assert_eq!(read.look().1, send(false, Connection::Any), "the service may have restarted (FC-21)");
    let said = read.answer(Answer::Same);
    assert_eq!(publications(&said), [fresh(3, false)]);
    assert!(scheduled(&said) < 2 * SECOND, "the usual pace: {said:?}");
}
