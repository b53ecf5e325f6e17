//! Logs and records that are others, or no more: rows 11 to 17.

use super::*;

/// Rows 11 and 12, W2 and S5: another log gets no byte; the wait goes on until the original is back.
#[test]
fn row_11_12_w2_another_log_holds_the_command() {
    for (mut rig, resumed, delivery) in
        [(Rig::sent(), "call", Delivery::Sent), (Rig::accepted(), "attach", Delivery::Accepted)]
    {
        assert_eq!(rig.relink_to(lineage(2)), QUIET);
        assert_eq!((rig.hold(), rig.delivery()), (Some(Hold::OtherLog), Delivery::Indeterminate));
        assert!(!rig.machine.state().ends_wait(), "held never ends a wait");
        assert_eq!(rig.on(Event::Tick), QUIET);
        rig.on(Event::Unlinked);
        assert_eq!(rig.hold(), Some(Hold::OtherLog), "no word yet from the original");
        assert_eq!(rig.on(Event::Linked(lineage(1))), [resumed]);
        assert_eq!((rig.hold(), rig.delivery()), (None, delivery));
    }
}

/// Row 11, FC-81: a head below what was seen is another history under the same name, a restored backup.
#[test]
fn row_11_fc81_a_head_that_went_back_holds_the_command() {
    let mut rig = Rig::sent();
    let restored = Lineage { history: 1, ..lineage(1) };
    assert_eq!(rig.relink_to(restored.clone()), QUIET);
    assert_eq!((rig.hold(), rig.delivery()), (Some(Hold::OtherLog), Delivery::Indeterminate));
    assert_eq!(rig.relink(), ["call"], "row 12: the original is back");

    // A command that was first sent to the restored history belongs to that one.
    let mut rig = Rig::sent_as(Rig::call(), restored.clone());
    assert_eq!((rig.hold(), rig.delivery()), (None, Delivery::Sent));
    assert_eq!(rig.relink(), QUIET);
    assert_eq!(rig.relink_to(restored), ["call"]);
    rig.on(report(Succeeded, 9));
    assert_eq!(rig.status(), Succeeded);
}

/// FC-81: with a durable record, a restart between effect and answer is one effect: resent, and the replay is shown.
#[test]
fn fc81_a_restart_with_the_same_log_replays() {
    let mut rig = Rig::sent();
    assert_eq!(rig.relink_to(lineage(1)), ["call"]);
    rig.on(report(Succeeded, 11));
    assert_eq!((rig.status(), rig.machine.state().timestamp()), (Succeeded, Some(after(11))));
}

/// K1: keys of two principals never meet, so a command is not resent as somebody else.
#[test]
fn row_11_k1_another_principal_holds_the_command() {
    let mut rig = Rig::sent();
    let other = Lineage { principal: Principal::new("other").unwrap(), ..lineage(1) };
    assert_eq!(rig.relink_to(other), QUIET);
    assert_eq!(rig.hold(), Some(Hold::OtherPrincipal));
    assert_eq!(rig.relink(), ["call"]);
}

/// Row 14, W8 and FC-66: never accepted inside retention: resubmitted once under the same key.
/// Row 15: the second answer is the end.
#[test]
fn row_14_15_w8_fc66_not_found_is_resubmitted_once() {
    let mut rig = Rig::sent();
    assert_eq!(rig.refuse(RefusalCode::NotFound), ["call"]);
    assert!(rig.trail.contains(&Action::Persist(Record::NotFoundOnce { log: log(1) })));
    assert_eq!((rig.calls(), rig.status()), (vec![MINTED; 2], Pending));
    assert_eq!(rig.refuse(RefusalCode::NotFound), QUIET);
    assert_eq!((rig.status(), failure(&rig)), (NotFound, (FailureReason::NotFound, Retry::SameKey)));
}

/// Row 14: the flag is durable before the resubmission, else a crash would make it twice.
#[test]
fn row_14_w8_the_flag_is_persisted_before_the_resubmission() {
    let mut rig = Rig::sent();
    rig.durable_at_once = false;
    assert_eq!(rig.refuse(RefusalCode::NotFound), QUIET);
    let record = Record::NotFoundOnce { log: log(1) };
    assert_eq!(rig.on(Event::PersistFailed { record: record.clone(), detail: "disk full".into() }), ["trace"]);
    assert_eq!(rig.wake(), ["call"], "the unflagged copy, whose refusal is the first still");
    assert_eq!(rig.refuse(RefusalCode::NotFound), QUIET);
    assert_eq!(rig.on(Event::Persisted(record)), ["call"]);
    assert_eq!(rig.status(), Pending);
}

/// Row 14, W8 and FC-66: a service that keeps no durable record and restarted has forgotten it, accepted or not.
#[test]
fn row_14_w8_fc66_a_volatile_service_that_restarted_gets_it_once_more() {
    for mut rig in [Rig::sent_as(Rig::call(), volatile(1)), Rig::accepted_as(Rig::call(), volatile(1))] {
        let before = rig.status();
        assert_eq!(rig.relink_to(volatile(2)), ["call"]);
        assert_eq!((rig.status(), rig.delivery(), rig.hold()), (before, Delivery::Sent, None));
        rig.on(report(Pending, 3));
        assert_eq!(rig.status(), before, "never backwards, also over a resubmission (W3)");
        assert_eq!(rig.machine.state().timestamp(), Some(Timestamp { log: log(2), seq: 3 }));
        assert_eq!(rig.relink_to(volatile(3)), QUIET);
        assert_eq!(rig.status(), NotFound, "row 15");
    }
    let mut rig = Rig::accepted_as(Rig::call(), volatile(1));
    assert_eq!(rig.relink_to(volatile(1)), ["attach"]);
    assert_eq!(rig.refuse(RefusalCode::NotFound), ["call"], "gone from the same log");
}

/// Row 16, W8 and FC-66: an accepted command whose record is gone is never run again.
#[test]
fn row_16_w8_a_lost_record_is_indeterminate() {
    let mut rig = Rig::accepted();
    assert_eq!(rig.relink(), ["attach"]);
    assert_eq!(rig.refuse(RefusalCode::NotFound), QUIET);
    assert_eq!((rig.status(), rig.delivery()), (Running, Delivery::Indeterminate));
    assert!(rig.machine.state().ends_wait());
    assert_eq!(rig.relink(), ["attach"], "asked for again, never sent again");
    rig.refuse(RefusalCode::NotFound);
    assert_eq!((rig.calls().len(), rig.status()), (1, Running));
}

/// Row 17, W8: outside retention a missing record is the end, with the advice never to resend.
#[test]
fn row_17_w8_not_found_outside_retention() {
    let mut rig = Rig::accepted();
    rig.on(Event::Unlinked);
    rig.pass(DAY);
    assert_eq!(rig.on(Event::Linked(lineage(1))), ["attach"]);
    rig.refuse(RefusalCode::NotFound);
    assert_eq!((rig.status(), failure(&rig)), (NotFound, (FailureReason::NotFound, Retry::Never)));

    for cancel in [false, true] {
        let mut rig = Rig::sent();
        rig.relink();
        if cancel {
            rig.on(Event::Cancel);
            assert_eq!(rig.relink(), ["cancel"]);
        }
        rig.refuse(RefusalCode::Expired);
        assert_eq!((rig.status(), failure(&rig)), (NotFound, (FailureReason::NotFound, Retry::Never)));
    }
}
