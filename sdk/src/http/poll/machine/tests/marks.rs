//! Never backwards.

use super::*;

fn attempt(n: u64) -> Marks {
    running().of_attempt(n)
}

fn done(n: u64) -> Marks {
    over().of_attempt(n)
}

/// Shows `first`, then is answered `then`: whether that is shown.
fn shows(settings: &Settings, first: Marks, then: Marks) -> bool {
    let mut read = Read::fresh(settings.clone(), first);
    read.look();
    let since = read.now;
    let shown = publications(&read.value(then));
    let yes = shown == [fresh(2, true)];
    assert!(yes || shown == [stale(since, Cause::Behind)], "{first:?}, {then:?}: {shown:?}");
    yes
}

/// R4, R10, FC-88: the whole table of what may follow what.
#[test]
fn r4_r10_fc_88_a_value_is_shown_only_if_it_is_not_before_what_is() {
    let settings = Settings::default();
    for (first, then, yes) in [
        (attempt(2), attempt(1), false),
        (attempt(2), attempt(2), true),
        (attempt(2), attempt(3), true),
        (attempt(2).at_version(5), attempt(2).at_version(4), false),
        (attempt(2).at_version(5), attempt(2).at_version(5), true),
        (attempt(2).at_version(5), attempt(3).at_version(1), true),
        (attempt(2).at_version(5), done(2).at_version(4), false),
        (attempt(2), done(2), true),
        (attempt(2), done(1), false),
        (done(2), attempt(3), true),
        (done(2), done(2), true),
        (done(2), attempt(2), false),
        (done(2).at_version(5), attempt(2).at_version(6), false),
        (running().at_version(5), running().at_version(4), false),
        (over(), over(), true),
        (over(), running(), false),
    ] {
        assert_eq!(shows(&settings, first, then), yes, "{first:?}, then {then:?}");
    }
}

/// R4: what a value leaves unsaid was said before.
#[test]
fn r4_a_value_without_marks_lowers_no_floor() {
    let mut read = Read::fresh(Settings::default(), attempt(2).at_version(5));
    read.look();
    assert_eq!(publications(&read.value(running())), [fresh(2, true)]);
    read.look();
    assert_eq!(publications(&read.value(attempt(1))), [stale(read.now, Cause::Behind)]);
    read.look();
    assert_eq!(publications(&read.value(attempt(2).at_version(4))), []);
    read.look();
    assert_eq!(publications(&read.value(attempt(2).at_version(5))), [fresh(5, true)]);
}

/// R4: a replica that lags is asked again after growing steps, and is no outage.
#[test]
fn r4_what_is_behind_is_read_again() {
    let mut read = Read::fresh(Settings { give_up: Some(5 * SECOND), ..Settings::default() }, attempt(2));
    read.look();
    let begin = read.now;
    read.value(attempt(1));
    let mut looks = 0;
    while read.now < begin + 60 * SECOND {
        read.look();
        assert_eq!(publications(&read.value(attempt(1))), [], "nothing is said twice");
        looks += 1;
    }
    assert!((20..200).contains(&looks), "{looks} looks in a minute");
    assert_eq!(read.look().1, send(true, Connection::Any));
    assert_eq!(publications(&read.answer(Answer::Unchanged)).len(), 1);
}

/// R10, FC-88: the same attempt never goes on, however often the service says so.
#[test]
fn r10_fc_88_a_terminal_of_a_known_attempt_is_never_reopened() {
    let mut read = Read::fresh(Settings::default(), done(2));
    for n in 0..100 {
        read.look();
        let behind = if n == 0 { vec![stale(read.now, Cause::Behind)] } else { vec![] };
        assert_eq!(publications(&read.value(attempt(2))), behind);
    }
    read.look();
    assert_eq!(publications(&read.value(attempt(3))), [fresh(102, true)], "a later attempt is shown at once");
}

/// R10: where the service reopens, or counts no attempts, a second answer a second later must say so again.
#[test]
fn r10_a_reopening_is_believed_the_second_time() {
    let reopens = Settings { reopens: true, ..Settings::default() };
    for (settings, first, then) in [
        (reopens.clone(), done(2), attempt(2)),
        (reopens.clone(), done(2).at_version(5), attempt(2).at_version(6)),
        (reopens, over(), running()),
        (Settings::default(), over(), running()),
        (Settings::default(), done(2), running()),
    ] {
        let mut read = Read::fresh(settings, first);
        read.look();
        let since = read.now;
        assert_eq!(publications(&read.value(then)), [stale(since, Cause::Behind)]);
        read.on(Event::Hint);
        assert_eq!(read.permitted(), send(true, Connection::Any));
        assert_eq!(publications(&read.value(then)), [], "too soon");
        read.look();
        assert!(read.now >= since + SECOND);
        assert_eq!(publications(&read.value(then)), [fresh(4, true)]);
    }
}

/// R10: what confirms the terminal between the two takes the doubt away.
#[test]
fn r10_a_reopening_that_was_denied_begins_anew() {
    let mut read = Read::fresh(Settings::default(), over());
    read.look();
    read.value(running());
    read.look();
    assert_eq!(publications(&read.answer(Answer::Unchanged)), [fresh(3, false)]);
    read.look();
    assert_eq!(publications(&read.value(running())), [stale(read.now, Cause::Behind)]);
}

/// FC-21, R4: a service that has restarted and counts anew is believed once it has said nothing else for the grace. One that
/// has not, or that says so in between only, is not.
#[test]
fn fc_21_a_service_that_counts_anew_is_believed_in_time() {
    let lower = |terminal| Answer::Value(Marks::terminal(terminal).at_version(2));
    let shows =
        |read: &mut Read, answer: Answer| publications(&read.answer(answer)).contains(&fresh(read.machine.count, true));
    for (restarted, over_before, over, believed) in [
        (true, false, true, true),
        (true, false, false, true),
        (true, true, true, true),
        (true, true, false, false),
        (false, false, true, false),
    ] {
        let mut read = Read::fresh(Settings::default(), Marks::terminal(over_before).at_version(100));
        read.look();
        if restarted {
            read.failed(dropped());
            read.look();
        }
        let begin = read.now;
        let mut shown = None;
        while shown.is_none() && read.now < begin + 100 * SECOND {
            shown = shows(&mut read, lower(over)).then(|| read.now.since(begin));
            read.look();
        }
        assert_eq!(shown.is_some(), believed, "{restarted} {over_before} {over}");
        assert!(shown.is_none_or(|after| after >= 10 * SECOND), "{shown:?}");
    }
    let mut read = Read::fresh(Settings::default(), running().at_version(100));
    read.look();
    read.failed(dropped());
    read.look();
    for n in 0..200 {
        let answer = if n % 2 == 1 { Answer::Unserved(status(502)) } else { lower(true) };
        assert!(!shows(&mut read, answer), "not in one piece");
        read.look();
    }
}
