//! One test, or a few, for each promise about reads; each names it.

use std::time::Duration;

use ulid::Ulid;

use super::*;
use crate::machine::{Machine as _, Wall};
use crate::wire::{RefusalCode, Refused};

const SECOND: Duration = Duration::from_secs(1);

fn log(n: u128) -> LogId {
    LogId::new(Ulid(n))
}

fn epoch(n: u128) -> Epoch {
    Epoch::new(Ulid(n))
}

/// Position `seq` in log 1.
fn at(seq: Seq) -> Cursor {
    Cursor::log(log(1), seq)
}

fn dropped() -> Cause {
    Cause::Dropped { code: None }
}

fn unreachable() -> Cause {
    Cause::Unreachable { detail: "refused".into() }
}

/// A read driven by hand, with a mean draw.
struct Read {
    machine: Machine,
    now: Monotonic,
    draw: u64,
}

impl Read {
    fn new() -> Self {
        let now = Now { instant: Monotonic::ZERO, wall: Wall::default(), draw: 0 };
        Self { machine: Machine::new(Settings::default(), now), now: Monotonic::ZERO, draw: u64::MAX / 2 }
    }

    /// Linked, and shows position `seq` of log 1 as fresh.
    fn fresh(seq: Seq) -> Self {
        let mut read = Self::new();
        read.linked(1, seq);
        assert_eq!(read.value(at(seq)), [fresh(at(seq), true)]);
        read
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        let now = Now { instant: self.now, wall: Wall::default(), draw: self.draw };
        self.machine.on_event(now, event)
    }

    /// To a server of log `n` with this head, in its first life.
    fn linked(&mut self, n: u128, head: Seq) -> Vec<Action> {
        self.on(Event::Linked { log: log(n), epoch: epoch(n), head, durable: false })
    }

    fn unlinked(&mut self, cause: Cause) -> Vec<Action> {
        self.on(Event::Unlinked { cause, not_before: None })
    }

    fn value(&mut self, at: Cursor) -> Vec<Action> {
        self.on(Event::Value { at, decoded: Ok(()) })
    }

    fn garbage(&mut self, at: Cursor) -> Vec<Action> {
        self.on(Event::Value { at, decoded: Err("a number".into()) })
    }

    fn unserved(&mut self, retry_after: Option<Duration>) -> Vec<Action> {
        self.on(Event::Unserved { cause: Cause::Unavailable { detail: "busy".into() }, retry_after })
    }

    /// Lets time pass, with a tick at each deadline on the way.
    fn pass(&mut self, time: Duration) -> Vec<Action> {
        let end = self.now + time;
        let mut actions = Vec::new();
        while let Some(deadline) = self.machine.deadline().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            actions.extend(self.on(Event::Tick));
        }
        self.now = end;
        actions
    }

    fn since_start(&self, d: Duration) -> Monotonic {
        Monotonic::ZERO + d
    }
}

fn fresh(at: Cursor, take: bool) -> Action {
    Action::Publish(Shown::Fresh { at, take })
}

fn stale(since: Monotonic, cause: Cause) -> Action {
    Action::Publish(Shown::Stale { since, cause, not_before: None })
}

fn loading(cause: Cause) -> Action {
    Action::Publish(Shown::Loading { since: Monotonic::ZERO, cause: Some(cause), not_before: None })
}

fn ended(end: End) -> Action {
    Action::Publish(Shown::Ended(end))
}

fn subscribe(after: Option<Cursor>) -> Action {
    Action::Subscribe { after }
}

fn undecodable() -> Cause {
    Cause::Undecodable { detail: "a number".into() }
}

#[test]
fn r1_a_day_of_failed_rounds_leaves_the_last_value_stale() {
    let mut read = Read::fresh(7);
    read.now = read.since_start(5 * SECOND);
    let since = read.now;
    assert_eq!(read.unlinked(dropped()), [stale(since, dropped())]);
    for round in 0..20_000 {
        read.pass(5 * SECOND);
        let shown = read.unlinked(unreachable());
        // The cause is news once; the instant it was last fresh stays.
        assert_eq!(shown, if round == 0 { vec![stale(since, unreachable())] } else { vec![] });
    }
    assert_eq!(read.linked(1, 9), [subscribe(Some(at(7)))]);
    assert_eq!(read.value(at(9)), [fresh(at(9), true)]);
}

#[test]
fn r2_it_is_loading_however_often_the_first_attempts_fail_and_says_the_last_cause() {
    let mut read = Read::new();
    assert_eq!(read.unlinked(unreachable()), [loading(unreachable())]);
    assert_eq!(read.unlinked(dropped()), [loading(dropped())]);
    read.linked(1, 3);
    assert_eq!(read.garbage(at(3)), [loading(undecodable())]);
    assert_eq!(read.unlinked(dropped()), [loading(dropped())]);
    assert_eq!(read.unlinked(dropped()), [], "nothing is said twice");
    read.linked(1, 3);
    assert_eq!(read.value(at(3)), [fresh(at(3), true)]);
}

/// FC-04: a clean end of the stream decides nothing.
#[test]
fn r3_fc_04_a_clean_close_is_a_cause_and_not_an_end() {
    let mut read = Read::fresh(7);
    for code in [1000, 1001, 1005, 1006, 1011, 1012, 1013] {
        let cause = Cause::Dropped { code: Some(code) };
        assert_eq!(read.unlinked(cause.clone()), [stale(read.now, cause)]);
        read.linked(1, 7);
        assert_eq!(read.on(Event::Unchanged { at: at(7) }), [fresh(at(7), false)]);
    }
    assert!(!read.machine.is_ended());
}

#[test]
fn r3_the_service_the_credential_and_the_caller_end_a_read_and_nothing_follows() {
    let gone = |read: &mut Read| read.on(Event::End { reason: EndReason::Gone });
    let denied = |read: &mut Read| read.on(Event::End { reason: EndReason::Denied });
    let refused = |read: &mut Read| read.on(Event::Denied);
    let closed = |read: &mut Read| read.on(Event::Close);
    type Ending = fn(&mut Read) -> Vec<Action>;
    let cases: [(Ending, End); 4] =
        [(gone, End::Gone), (denied, End::Denied), (refused, End::Denied), (closed, End::Closed)];
    for (ending, end) in cases {
        let mut read = Read::fresh(7);
        assert_eq!(ending(&mut read).last(), Some(&ended(end)));
        assert!(read.machine.is_ended());
        assert_eq!(read.machine.deadline(), None);
        for after in [gone, closed, refused] {
            assert_eq!(after(&mut read), []);
        }
        assert_eq!(read.value(at(8)), []);
        assert_eq!(read.linked(1, 8), []);
        assert_eq!(read.unlinked(dropped()), []);
    }
}

#[test]
fn r3_a_read_that_is_closed_while_unlinked_ends_too() {
    let mut read = Read::new();
    assert_eq!(read.on(Event::Close), [ended(End::Closed)]);
    let mut read = Read::new();
    assert_eq!(read.on(Event::Denied), [ended(End::Denied)]);
}

#[test]
fn r3_only_a_denial_among_the_refusals_ends_a_read() {
    let refused = |code| Refused { code, detail: "d".to_owned(), retry_after: Some(SECOND) };
    assert_eq!(Event::refused(&refused(RefusalCode::Denied)), Event::End { reason: EndReason::Denied });
    let causes = [
        (RefusalCode::Invalid, Cause::Refused { detail: "d".into() }),
        (RefusalCode::RateLimited, Cause::RateLimited { retry_after: SECOND }),
        (RefusalCode::NotFound, Cause::Unavailable { detail: "d".into() }),
        (RefusalCode::Unavailable, Cause::Unavailable { detail: "d".into() }),
        (RefusalCode::Other, Cause::Unavailable { detail: "d".into() }),
    ];
    for (code, cause) in causes {
        assert_eq!(Event::refused(&refused(code)), Event::Unserved { cause, retry_after: Some(SECOND) });
    }
}

#[test]
fn r3_an_undecodable_value_is_never_shown_and_is_read_again() {
    let mut read = Read::fresh(7);
    assert_eq!(read.garbage(at(8)), [stale(read.now, undecodable())]);
    assert_eq!(read.pass(SECOND), [Action::Unsubscribe, subscribe(Some(at(7)))]);
    // The one at 8 exists, so what is older than it is not the present state.
    assert_eq!(read.value(at(7)), [stale(read.since_start(Duration::ZERO), Cause::Behind)]);
    assert_eq!(read.value(at(8)), [fresh(at(8), true)]);
    assert_eq!(read.machine.deadline(), None);
}

#[test]
fn r3_undecodable_values_in_a_stream_do_not_put_off_the_next_read() {
    let mut read = Read::fresh(7);
    read.garbage(at(8));
    let deadline = read.machine.deadline();
    read.pass(Duration::from_millis(1));
    read.garbage(at(9));
    assert_eq!(read.machine.deadline(), deadline);
}

/// FC-14: just after a create, "not found" is not yet visible; after the grace it is gone.
#[test]
fn r3_fc_14_absent_before_it_was_seen_means_not_yet_visible_then_gone() {
    let mut read = Read::new();
    read.linked(1, 3);
    assert_eq!(read.on(Event::Absent { at: at(3) }), [loading(Cause::NotYetVisible)]);
    assert_eq!(read.pass(9 * SECOND), []);
    assert_eq!(read.on(Event::Absent { at: at(4) }), [], "a second answer does not start the grace again");
    assert_eq!(read.pass(SECOND), [Action::Unsubscribe, ended(End::Gone)]);

    let mut read = Read::new();
    read.linked(1, 3);
    read.on(Event::Absent { at: at(3) });
    read.pass(3 * SECOND);
    assert_eq!(read.value(at(4)), [fresh(at(4), true)]);
    assert_eq!(read.pass(60 * SECOND), []);
}

/// FC-14: after it was seen once, "not found" is an answer.
#[test]
fn r3_fc_14_absent_after_it_was_seen_in_the_same_log_is_gone() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(1, 9);
    assert_eq!(read.on(Event::Absent { at: at(9) }), [Action::Unsubscribe, ended(End::Gone)]);
}

#[test]
fn r3_the_grace_runs_only_while_the_service_confirms_the_absence() {
    let mut read = Read::new();
    read.linked(1, 3);
    read.on(Event::Absent { at: at(3) });
    read.pass(6 * SECOND);
    read.unlinked(dropped());
    assert_eq!(read.pass(3600 * SECOND), []);
    read.linked(1, 3);
    read.pass(2 * SECOND);
    read.on(Event::Absent { at: at(3) });
    assert_eq!(read.pass(Duration::from_millis(3999)), []);
    assert_eq!(read.pass(Duration::from_millis(1)), [Action::Unsubscribe, ended(End::Gone)]);
}

#[test]
fn r3_another_log_gets_a_grace_of_its_own_and_the_old_value_stays() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(2, 1);
    let not_yet = stale(Monotonic::ZERO, Cause::NotYetVisible);
    assert_eq!(read.on(Event::Absent { at: Cursor::log(log(2), 1) }), [not_yet]);
    assert_eq!(read.pass(9 * SECOND), []);
    assert_eq!(read.pass(SECOND), [Action::Unsubscribe, ended(End::Gone)]);
}

/// A server that still replays its log does not know yet what there is.
#[test]
fn r3_absent_as_of_before_the_link_decides_nothing() {
    let mut read = Read::new();
    read.linked(1, 100);
    for seq in [0, 10, 99] {
        let first = seq == 0;
        let shown = read.on(Event::Absent { at: at(seq) });
        assert_eq!(shown, if first { vec![loading(Cause::NotYetVisible)] } else { vec![] });
        assert_eq!(read.pass(5 * SECOND), [Action::Unsubscribe, subscribe(None)]);
    }
    assert_eq!(read.value(at(100)), [fresh(at(100), true)]);

    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(1, 9);
    assert_eq!(read.on(Event::Absent { at: at(5) }), [stale(read.now, Cause::Behind)], "it was created after 5");
}

#[test]
fn r4_a_snapshot_below_what_is_shown_is_behind_and_not_shown() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(1, 7);
    assert_eq!(read.value(at(6)), [stale(read.now, Cause::Behind)]);
    assert_eq!(read.on(Event::Unchanged { at: at(6) }), [stale(read.now, undecodable_unchanged())]);
    assert_eq!(read.pass(SECOND), [Action::Unsubscribe, subscribe(None)]);
    assert_eq!(read.value(at(7)), [fresh(at(7), true)]);
    assert_eq!(read.value(at(6)), [stale(read.now, Cause::Behind)], "nor on a live subscription");
}

fn undecodable_unchanged() -> Cause {
    Cause::Undecodable { detail: "expected a value, got `unchanged`".into() }
}

#[test]
fn r4_unchanged_as_of_before_what_is_shown_is_behind() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(1, 7);
    assert_eq!(read.on(Event::Unchanged { at: at(6) }), [stale(read.now, Cause::Behind)]);
    assert_eq!(read.pass(SECOND), [Action::Unsubscribe, subscribe(Some(at(7)))]);
    assert_eq!(read.on(Event::Unchanged { at: at(7) }), [fresh(at(7), false)]);
}

#[test]
fn r4_a_new_logs_snapshot_replaces_what_was_shown_and_the_old_cursor_is_not_sent() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    let new = |seq| Cursor::log(log(2), seq);
    assert_eq!(read.linked(2, 3), [stale(read.now, Cause::OtherLog), subscribe(None)]);
    assert_eq!(read.value(new(3)), [fresh(new(3), true)]);
    read.unlinked(dropped());
    assert_eq!(read.linked(2, 3), [subscribe(Some(new(3)))]);
}

#[test]
fn r4_unchanged_is_believed_only_of_the_log_that_the_subscription_named() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(2, 3);
    let other = Cursor::log(log(2), 9);
    // Nothing was named: there is nothing that could be unchanged.
    assert_eq!(read.on(Event::Unchanged { at: other }), [stale(read.now, undecodable_unchanged())]);
    assert_eq!(read.pass(SECOND), [Action::Unsubscribe, subscribe(None)]);

    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(1, 7);
    assert_eq!(read.on(Event::Unchanged { at: other }), [stale(read.now, Cause::OtherLog)]);
    assert_eq!(read.pass(SECOND), [Action::Unsubscribe, subscribe(None)], "the whole value, to be sure");
}

#[test]
fn r4_a_log_seen_before_does_not_come_back_older() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(2, 3);
    read.value(Cursor::log(log(2), 3));
    read.unlinked(dropped());
    let back = read.linked(1, 7);
    assert_eq!(back, [stale(read.now, Cause::OtherLog), subscribe(None)], "the value at 7 is no longer held");
    assert_eq!(read.value(at(6)), [stale(read.now, Cause::Behind)]);
    assert_eq!(read.value(at(7)), [fresh(at(7), true)]);
}

#[test]
fn r4_a_log_whose_head_went_back_is_another_log() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    assert_eq!(read.linked(1, 5), [stale(read.now, Cause::OtherLog), subscribe(None)]);
    assert_eq!(read.value(at(5)), [fresh(at(5), true)]);
    read.unlinked(dropped());
    assert_eq!(read.linked(1, 6), [subscribe(Some(at(5)))]);
}

/// FC-21: after a restart the in-memory counter starts again, and a cursor of the old life is not sent.
#[test]
fn r4_fc_21_another_epoch_forces_a_full_snapshot() {
    let counter = |life, count| Cursor::Epoch { epoch: epoch(life), count };
    let link =
        |read: &mut Read, life| read.on(Event::Linked { log: log(1), epoch: epoch(life), head: 0, durable: false });
    let mut read = Read::new();
    link(&mut read, 1);
    assert_eq!(read.value(counter(1, 100)), [fresh(counter(1, 100), true)]);
    read.unlinked(dropped());
    assert_eq!(link(&mut read, 1), [subscribe(Some(counter(1, 100)))], "the same life knows it");
    read.unlinked(dropped());
    assert_eq!(link(&mut read, 2), [subscribe(None)]);
    assert_eq!(read.value(counter(2, 1)), [fresh(counter(2, 1), true)], "a lower count of another life is newer");
}

#[test]
fn r5_fresh_comes_only_from_an_answer_to_a_subscription_made_after_the_drop() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    assert_eq!(read.value(at(8)), [], "a late answer of the lost connection");
    assert_eq!(read.on(Event::Unchanged { at: at(7) }), []);
    assert_eq!(read.linked(1, 7), [subscribe(Some(at(7)))], "linked is not fresh");
    assert_eq!(read.on(Event::Unchanged { at: at(7) }), [fresh(at(7), false)]);
}

#[test]
fn r5_a_connection_that_took_the_place_of_another_confirms_anew() {
    let mut read = Read::fresh(7);
    let actions = read.linked(1, 8);
    assert_eq!(actions, [stale(read.now, dropped()), subscribe(Some(at(7)))]);
}

#[test]
fn r5_a_snapshot_taken_before_the_link_came_up_is_not_fresh() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    // The log grew to 9 during the drop; the service has come to 8 and then to 9.
    read.linked(1, 9);
    assert_eq!(read.value(at(8)), [stale(read.now, Cause::Behind)]);
    assert_eq!(read.pass(SECOND), [Action::Unsubscribe, subscribe(Some(at(7)))]);
    assert_eq!(read.value(at(9)), [fresh(at(9), true)]);
}

#[test]
fn r5_fc_17_a_state_reached_before_subscribing_is_seen_without_a_further_event() {
    let mut read = Read::new();
    assert_eq!(read.linked(1, 7), [subscribe(None)]);
    assert_eq!(read.value(at(7)), [fresh(at(7), true)]);
    assert_eq!(read.pass(3600 * SECOND), []);
}

#[test]
fn r7_without_a_first_answer_it_subscribes_again_after_15_s() {
    let mut read = Read::fresh(7);
    read.unlinked(dropped());
    read.linked(1, 7);
    assert_eq!(read.pass(Duration::from_millis(14_999)), []);
    let stalled = Cause::Stalled { phase: Phase::FirstByte, bound: 15 * SECOND };
    let again = [Action::Unsubscribe, stale(Monotonic::ZERO, stalled), subscribe(Some(at(7)))];
    assert_eq!(read.pass(Duration::from_millis(1)), again);
    assert_eq!(read.pass(15 * SECOND), [Action::Unsubscribe, subscribe(Some(at(7)))], "and again, for ever");
}

#[test]
fn r7_a_tick_before_the_deadline_does_nothing() {
    let mut read = Read::new();
    read.linked(1, 7);
    assert_eq!(read.on(Event::Tick), []);
    read.unlinked(dropped());
    assert_eq!(read.on(Event::Tick), []);
}

#[test]
fn r8_an_unserved_read_is_made_again_after_a_growing_delay() {
    let mut read = Read::new();
    read.draw = u64::MAX;
    read.linked(1, 7);
    let delays: Vec<_> = (0..8)
        .map(|_| {
            read.unserved(None);
            let deadline = read.machine.deadline().unwrap();
            let delay = deadline.since(read.now);
            assert_eq!(read.pass(delay), [subscribe(None)]);
            delay.as_millis()
        })
        .collect();
    assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    read.value(at(7));
    read.unserved(None);
    assert_eq!(read.machine.deadline().unwrap().since(read.now).as_millis(), 100, "an answer starts it over");
}

#[test]
fn r8_the_delay_is_jittered_over_the_whole_range() {
    let mut read = Read::new();
    read.draw = 0;
    read.linked(1, 7);
    read.unserved(None);
    assert_eq!(read.machine.deadline(), Some(read.now));
}

#[test]
fn r8_r9_a_hint_is_kept_across_connections_and_told() {
    let mut read = Read::fresh(7);
    let busy = Cause::Unavailable { detail: "busy".into() };
    let hint = read.now + 60 * SECOND;
    let told = Shown::Stale { since: read.now, cause: busy, not_before: Some(hint) };
    assert_eq!(read.unserved(Some(60 * SECOND)), [Action::Publish(told)]);
    read.pass(10 * SECOND);
    read.unlinked(dropped());
    assert_eq!(read.linked(1, 7), [], "the service asked not to be asked");
    assert_eq!(read.pass(Duration::from_millis(49_999)), []);
    assert_eq!(read.pass(Duration::from_millis(1)), [subscribe(Some(at(7)))]);
}

#[test]
fn r8_an_answer_of_a_subscription_that_is_over_is_dropped() {
    let mut read = Read::fresh(7);
    read.unserved(None);
    assert_eq!(read.value(at(8)), []);
    assert_eq!(read.on(Event::Absent { at: at(8) }), []);
    assert_eq!(read.on(Event::End { reason: EndReason::Gone }), []);
    assert_eq!(read.unserved(None), []);
}

#[test]
fn closing_ends_the_subscription_if_there_is_one() {
    assert_eq!(Read::fresh(7).on(Event::Close), [Action::Unsubscribe, ended(End::Closed)]);
    let mut read = Read::fresh(7);
    read.unserved(None);
    assert_eq!(read.on(Event::Close), [ended(End::Closed)]);
}

/// R3, W2: another durable log without the resource ends nothing: it may be a wrong volume, and the original may come back.
#[test]
fn r3_another_durable_log_is_no_authority() {
    let mut read = Read::fresh(5);
    read.unlinked(Cause::Dropped { code: None });
    read.on(Event::Linked { log: log(2), epoch: epoch(2), head: 9, durable: true });
    for _ in 0..20 {
        let said = read.on(Event::Absent { at: Cursor::log(log(2), 9) });
        assert!(!said.contains(&ended(End::Gone)), "{said:?}");
        let said = read.pass(SECOND);
        assert!(!said.contains(&ended(End::Gone)), "{said:?}");
    }
    read.unlinked(Cause::Dropped { code: None });
    read.linked(1, 6);
    assert_eq!(read.value(at(6)), [fresh(at(6), true)], "the original is back");
}
