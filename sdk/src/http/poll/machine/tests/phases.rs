//! Bounds: of each phase, of the budget's hold, of sleep.

use super::*;
use crate::http::poll::Pace;

/// R7: a hang in any phase is found within its bound, is a cause, and the read goes on.
#[test]
fn r7_a_hang_in_each_phase_is_found_within_its_bound() {
    let bounds = Settings::default().bounds;
    let phases = [
        (Phase::Credential, bounds.credential, Connection::Any),
        (Phase::Resolve, bounds.resolve, Connection::Any),
        (Phase::Connect, bounds.connect, Connection::Any),
        (Phase::Tls, bounds.tls, Connection::Any),
        (Phase::Write, bounds.write, Connection::Fresh),
        (Phase::FirstByte, bounds.first_byte, Connection::Fresh),
        (Phase::Idle, bounds.idle, Connection::Fresh),
    ];
    for (phase, bound, next) in phases {
        let mut read = Read::fresh(Settings::default(), running());
        read.look();
        read.pass(SECOND);
        assert_eq!(read.on(Event::Began(phase)), []);
        assert_eq!(read.ahead(), bound, "{phase}");
        assert_eq!(read.pass(bound - MILLI), []);
        let said = read.pass(MILLI);
        assert_eq!(said[..2], [Action::Abort, stale(read.now, Cause::Stalled { phase, bound })], "{phase}");
        assert_eq!(read.look().1, send(false, next), "{phase}: what hung is not used again");
        assert_eq!(publications(&read.value(running())), [fresh(3, true)]);
    }
}

/// R7: the first byte has its bound before anything began, and the time of a long poll on top.
#[test]
fn r7_the_first_byte_may_take_as_long_as_the_service_was_asked_to_hold_it() {
    let mut read = Read::begun(Settings { wait: Some(60 * SECOND), ..Settings::default() });
    assert_eq!(read.ahead(), 75 * SECOND);
    let said = read.pass(75 * SECOND);
    let stalled = Cause::Stalled { phase: Phase::FirstByte, bound: 75 * SECOND };
    assert_eq!(said[..2], [Action::Abort, loading(stalled)]);
}

/// R7: each piece of the body starts its bound anew, but a body that drips for ever is a hang as well.
#[test]
fn r7_a_body_that_drips_is_found() {
    let mut read = Read::fresh(Settings::default(), running());
    read.look();
    let sent = read.now;
    let mut said = Vec::new();
    while said.is_empty() {
        read.on(Event::Began(Phase::Idle));
        said = read.pass(9 * SECOND);
        assert!(read.now < sent + 100 * SECOND, "it drips for ever");
    }
    let bound = 60 * SECOND;
    assert_eq!(said[..2], [Action::Abort, stale(sent + bound, Cause::Stalled { phase: Phase::Idle, bound })]);
}

/// R9: what the budget holds back is shown once the look is due, with the time to wait for.
#[test]
fn r9_a_hold_of_the_budget_is_shown() {
    let mut read = Read::fresh(Settings::default(), running());
    assert_eq!(read.pass(read.ahead()), [Action::Want]);
    let (since, until) = (read.now, read.now + 40 * SECOND);
    let held = |retry_after| {
        Action::Publish(Shown::Stale { since, cause: Cause::RateLimited { retry_after }, not_before: Some(until) })
    };
    assert_eq!(read.on(Event::Held { until }), [held(40 * SECOND)]);
    read.pass(10 * SECOND);
    assert_eq!(read.on(Event::Held { until }), [], "nothing is said twice");
    let later = until + 10 * SECOND;
    let shown = read.on(Event::Held { until: later });
    let cause = Cause::RateLimited { retry_after: 40 * SECOND };
    assert_eq!(shown, [Action::Publish(Shown::Stale { since, cause, not_before: Some(later) })]);
    assert_eq!(read.permitted(), send(true, Connection::Any), "the service has not restarted");
    assert_eq!(publications(&read.answer(Answer::Unchanged)), [fresh(2, false)]);

    let mut read = Read::new(Settings::default());
    read.on(Event::Start);
    let cause = Some(Cause::RateLimited { retry_after: SECOND });
    let loading = Shown::Loading { since: at(Duration::ZERO), cause, not_before: Some(at(SECOND)) };
    assert_eq!(read.on(Event::Held { until: at(SECOND) }), [Action::Publish(loading)]);
}

/// R9: a look out of turn that the budget holds back leaves the value fresh until a look is due.
#[test]
fn r9_a_hold_of_a_look_out_of_turn_is_shown_only_once_one_is_due() {
    let mut read = Read::fresh(Settings { pace: Pace::every(20 * SECOND), ..Settings::default() }, running());
    let due = read.ahead();
    assert_eq!(read.on(Event::Hint), [Action::Want]);
    assert_eq!(read.on(Event::Held { until: at(60 * SECOND) }), []);
    assert_eq!(read.ahead(), due);
    let cause = Cause::RateLimited { retry_after: 60 * SECOND - due };
    let shown = Shown::Stale { since: at(due), cause, not_before: Some(at(60 * SECOND)) };
    assert_eq!(read.pass(due), [Action::Publish(shown)]);
    assert_eq!(read.machine.deadline(), None, "the budget's timer is armed");
}

/// R7: after a sleep it looks at once, on a connection of its own, for the whole value.
#[test]
fn r7_a_jump_of_the_clocks_forces_a_look() {
    let mut read = Read::fresh(Settings { wait: Some(60 * SECOND), ..Settings::default() }, running());
    assert_eq!(read.on(Event::Woke), [Action::Want]);
    assert_eq!(read.permitted(), send(false, Connection::Fresh));
    read.pass(6 * SECOND);
    assert_eq!(read.on(Event::Woke), [Action::Abort, Action::Want], "what is under way may hang on what is no more");
    assert_eq!(read.permitted(), send(false, Connection::Fresh));
    read.pass(SECOND);
    assert_eq!(read.on(Event::Woke), [], "a clock that flaps is not a loop of requests");
    assert_eq!(publications(&read.answer(Answer::Same)), [fresh(3, false)], "an aborted request is no failure");
}
