//! How often it looks.

use super::*;
use crate::http::poll::Pace;

/// The interval is a tenth of the time since the last change, between the bounds, less up to a tenth, and is said.
#[test]
fn r8_the_interval_follows_the_time_since_the_last_change() {
    let interval = |unchanged: Duration, draw| {
        let mut read = Read::fresh(Settings::default(), running());
        // As if the budget had held the look for that long.
        read.look();
        read.now = at(unchanged);
        read.draw = draw;
        scheduled(&read.answer(Answer::Unchanged))
    };
    for (unchanged, expected) in [(5, 1_000), (30, 3_000), (200, 20_000), (299, 29_900), (301, 30_000), (9_000, 30_000)]
    {
        let expected = expected * MILLI;
        assert_eq!(interval(unchanged * SECOND, 0), expected, "{unchanged} s");
        assert_eq!(interval(unchanged * SECOND, u64::MAX), expected * 9 / 10, "{unchanged} s, less a tenth at most");
    }
    let mut read = Read::fresh(Settings::default(), running().at_version(1));
    assert_eq!(read.ahead(), 950 * MILLI, "soon after the first value");
    read.look();
    read.now = at(100 * SECOND);
    assert_eq!(scheduled(&read.value(running().at_version(1))), 9_500 * MILLI, "the same version is no change");
    read.look();
    assert_eq!(scheduled(&read.value(running().at_version(2))), 950 * MILLI, "a change");
}

/// R8: a pace of zero means no wait after a good answer, the service's own times excepted; after a failure there is one.
#[test]
fn r8_a_pace_of_zero_waits_after_failures_only() {
    let settings = Settings { pace: Pace::every(Duration::ZERO), ..Settings::default() };
    let mut read = Read::begun(settings);
    for number in 1..=3 {
        assert_eq!(read.value(running()), [fresh(number, true), Action::Want]);
        read.permitted();
    }
    assert_eq!(read.answer(Answer::Unchanged), [fresh(4, false), Action::Want]);
    read.permitted();
    let answered = Event::Answered { answer: Answer::Unchanged, retry_after: Some(9 * SECOND), holds: None };
    assert_eq!(scheduled(&read.on(answered)), 9 * SECOND);
    for _ in 0..3 {
        read.look();
        assert!(scheduled(&read.unserved(Cause::Status { code: 502 }, None)) >= LEAST);
    }
    read.look();
    assert!(scheduled(&read.answer(Answer::Nothing)) >= LEAST);
}

/// R8: what the service states is a floor under the interval, whatever the draw.
#[test]
fn r8_a_stated_interval_is_a_floor() {
    for draw in [0, u64::MAX / 2, u64::MAX] {
        let mut read = Read::fresh(Settings::default(), running());
        read.draw = draw;
        read.look();
        let answered = Event::Answered { answer: Answer::Unchanged, retry_after: None, holds: Some(60 * SECOND) };
        assert_eq!(scheduled(&read.on(answered)), 60 * SECOND);
        read.look();
        let answered =
            Event::Answered { answer: Answer::Unchanged, retry_after: Some(9 * SECOND), holds: Some(8 * SECOND) };
        assert_eq!(scheduled(&read.on(answered)), 9 * SECOND);
    }
}

/// FC-07: a long poll that ran out is no value and no failure, and goes on at once; then the value comes.
#[test]
fn fc_07_an_expired_long_poll_continues_and_is_never_a_value() {
    let mut read = Read::begun(Settings { wait: Some(30 * SECOND), ..Settings::default() });
    for _ in 0..5 {
        read.pass(30 * SECOND);
        assert_eq!(read.answer(Answer::Nothing), [Action::Want], "nothing is shown, and it goes on at once");
        assert_eq!(read.permitted(), send(false, Connection::Any));
    }
    assert_eq!(publications(&read.value(running())), [fresh(6, true)]);
    assert_eq!(read.look().1, send(true, Connection::Any), "a long poll names what is shown");
    read.pass(20 * SECOND);
    assert_eq!(read.answer(Answer::Nothing), [fresh(7, false), Action::Want], "nothing has happened: it is current");
    assert_eq!(read.permitted(), send(true, Connection::Any));
    read.pass(20 * SECOND);
    assert_eq!(read.answer(Answer::Unchanged), [fresh(8, false), Action::Want], "said as 304");
}

/// A long poll that is answered at once by a service that knows none is a poll at the usual pace.
#[test]
fn r8_a_service_without_long_polls_is_polled_at_the_pace() {
    let mut read = Read::fresh(Settings { wait: Some(30 * SECOND), ..Settings::default() }, running());
    read.look();
    assert_eq!(scheduled(&read.answer(Answer::Unchanged)), Duration::from_millis(950));
}

/// FC-07, FC-19: answers of nothing that come at once are no loop, and after one the whole value is asked for.
#[test]
fn fc_07_fc_19_empty_answers_that_come_at_once_back_off() {
    for wait in [None, Some(30 * SECOND)] {
        let mut read = Read::fresh(Settings { wait, ..Settings::default() }, running());
        assert_eq!(read.look().1, send(true, Connection::Any));
        let begin = read.now;
        read.answer(Answer::Nothing);
        let (mut looks, mut named) = (0, 0);
        while read.now < begin + 60 * SECOND {
            let (delay, sent) = read.look();
            assert!(delay >= LEAST);
            looks += 1;
            named += u32::from(sent == send(true, Connection::Any));
            assert_eq!(publications(&read.answer(Answer::Nothing)), [], "of the whole value it says nothing");
        }
        assert!(looks < 200, "{looks} looks in a minute, {wait:?}");
        assert_eq!(named, 0, "FC-19: at most one such answer, then the whole value");
        read.look();
        assert_eq!(publications(&read.value(over())).len(), 1);
        assert_eq!(read.look().1, send(true, Connection::Any));
    }
}

/// While the read is stale a long poll must not keep its recovery back.
#[test]
fn r5_a_stale_read_asks_for_an_answer_at_once() {
    let mut read = Read::fresh(Settings { wait: Some(30 * SECOND), ..Settings::default() }, running());
    read.look();
    read.unserved(Cause::RateLimited { retry_after: SECOND }, Some(SECOND));
    assert_eq!(read.look().1, send(false, Connection::Any));
}

/// R8, FC-55: what a head asked for is kept when its body fails, stalls, or is followed by another connection's failure; no
/// hint and no jump of the clock goes under it.
#[test]
fn r8_what_a_head_asks_for_outlives_its_body() {
    let told = || {
        let mut read = Read::fresh(Settings::default(), running());
        read.look();
        assert!(read.on(Event::Told(60 * SECOND)).is_empty());
        assert!(read.on(Event::Told(5 * SECOND)).is_empty(), "a later head takes nothing of it");
        read
    };
    let mut cut = told();
    assert_eq!(scheduled(&cut.failed(dropped())), 60 * SECOND);
    assert!(cut.on(Event::Hint).is_empty() && cut.on(Event::Woke).is_empty());
    assert_eq!(cut.ahead(), 60 * SECOND);
    let mut again = told();
    assert_eq!(scheduled(&again.on(Event::Failed { cause: dropped(), again: true })), 60 * SECOND);
    let mut stalled = told();
    let bound = stalled.ahead();
    assert_eq!(scheduled(&stalled.pass(bound)), 60 * SECOND - bound);
    let mut woken = told();
    assert!(woken.on(Event::Woke).is_empty(), "it is not sent again before the time");
    assert_eq!(scheduled(&woken.value(running())), 60 * SECOND);
}

/// R8: a service that answers, and answers nothing of use, is soon asked no more often than one that is well. What is away
/// is looked for more often.
#[test]
fn r8_a_service_that_fails_is_in_the_end_asked_no_more_often_than_a_healthy_one() {
    let unserved = |read: &mut Read| read.unserved(Cause::Status { code: 500 }, None);
    let behind = |read: &mut Read| read.answer(Answer::Value(running().at_version(1)));
    let nothing = |read: &mut Read| read.answer(Answer::Nothing);
    let unreachable = |read: &mut Read| {
        let cause = Cause::Unreachable { detail: "refused".into() };
        read.on(Event::Failed { cause, again: false })
    };
    type Answered = fn(&mut Read) -> Vec<Action>;
    let of: [(Answered, u32, bool); 4] =
        [(unserved, 60, false), (behind, 60, false), (nothing, 60, false), (unreachable, 200, true)];
    for (which, (answered, first, away)) in of.into_iter().enumerate() {
        let settings = Settings { pace: Pace::every(30 * SECOND), ..Settings::default() };
        let mut read = Read::fresh(settings, running().at_version(2));
        read.look();
        let begin = read.now;
        answered(&mut read);
        let (mut looks, mut longest) = ([0; 10], Duration::ZERO);
        while read.now < begin + 600 * SECOND {
            let (delay, _) = read.look();
            longest = longest.max(delay);
            let minute = read.now.since(begin).as_secs() / 60;
            if let Some(looks) = looks.get_mut(minute as usize) {
                *looks += 1;
            }
            answered(&mut read);
        }
        assert!((3..=first).contains(&looks[0]), "{which}: {looks:?}, it is found again soon");
        assert!(longest <= 30 * SECOND, "{which}: {longest:?}, and never later than its interval");
        let settled = &looks[3..];
        assert_eq!(settled.iter().all(|looks| *looks <= 3), !away, "{which}: {looks:?}");
    }
}

/// R8: a service that was away is looked for as soon again while it starts and answers nothing of use, whatever stood
/// before it.
#[test]
fn r8_a_service_that_comes_back_with_failures_is_asked_soon() {
    let mut read = Read::fresh(Settings { pace: Pace::every(30 * SECOND), ..Settings::default() }, running());
    read.look();
    let begin = read.now;
    while read.now < begin + 120 * SECOND {
        read.unserved(Cause::Status { code: 503 }, None);
        read.look();
    }
    let away = || Event::Failed { cause: Cause::Unreachable { detail: "refused".into() }, again: false };
    read.on(away());
    while read.now < begin + 300 * SECOND {
        read.look();
        read.on(away());
    }
    read.look();
    for _ in 0..3 {
        read.unserved(Cause::Status { code: 503 }, None);
        let (delay, _) = read.look();
        assert!(delay <= 5 * SECOND, "{delay:?}");
    }
}

/// R8: a body that is always cut, or stalls, is an answer, too.
#[test]
fn r8_a_service_whose_bodies_are_cut_is_asked_as_one_that_fails() {
    let mut read = Read::fresh(Settings { pace: Pace::every(30 * SECOND), ..Settings::default() }, running());
    read.look();
    let begin = read.now;
    let cut = |read: &mut Read| {
        read.on(Event::Began(Phase::Idle));
        read.failed(dropped());
    };
    cut(&mut read);
    let mut late = 0;
    while read.now < begin + 600 * SECOND {
        read.look();
        late += u32::from(read.now > begin + 300 * SECOND);
        cut(&mut read);
    }
    assert!((5..=15).contains(&late), "{late} looks in the second five minutes");
}
