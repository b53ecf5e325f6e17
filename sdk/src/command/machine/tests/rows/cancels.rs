//! Cancels: rows 19 and 20.

use super::*;

/// Row 19, W5: shown at once, durable, then sent to the command by its key.
#[test]
fn row_19_w5_cancel_is_persisted_and_sent() {
    let mut rig = Rig::accepted();
    rig.durable_at_once = false;
    assert_eq!(rig.on(Event::Cancel), QUIET);
    assert_eq!(rig.status(), CancelRequested);
    assert_eq!(rig.on(Event::Cancel), QUIET, "idempotent");
    assert_eq!(rig.on(Event::Persisted(Record::CancelRequested)), ["cancel"]);
    assert_eq!(rig.on(report(Running, 11)), QUIET, "reported meanwhile: not an answer to the cancel");
    assert_eq!(rig.wake(), ["cancel"], "so the cancel is asked again");
    rig.on(report(CancelRequested, 11));
    assert_eq!(rig.machine.deadline(), None, "answered");
    rig.on(report(Canceled, 11));
    assert_eq!(rig.status(), Canceled);
}

/// Row 19: a disk that is full does not keep a cancel from the service.
#[test]
fn row_19_a_cancel_that_cannot_be_persisted_is_sent() {
    let mut rig = Rig::accepted();
    rig.durable_at_once = false;
    rig.on(Event::Cancel);
    let failed = Event::PersistFailed { record: Record::CancelRequested, detail: "disk full".into() };
    assert_eq!(rig.on(failed), ["trace", "cancel"]);
}

/// Row 19, K1: the cancel waits for the call's answer, because a key conflict says that it would hit another command.
#[test]
fn row_19_k1_a_cancel_does_not_overtake_its_call() {
    let mut rig = Rig::sent();
    assert_eq!(rig.on(Event::Cancel), QUIET);
    assert_eq!(rig.status(), CancelRequested);
    rig.refuse(RefusalCode::KeyConflict);
    assert_eq!(rig.status(), Failed);
    assert!(!rig.trail.iter().any(|action| matches!(action, Action::SendCancel { .. })));

    let mut rig = Rig::sent();
    rig.on(Event::Cancel);
    assert_eq!(rig.on(report(Pending, 11)), ["cancel"], "answered");

    let mut rig = Rig::sent();
    rig.on(Event::Cancel);
    assert_eq!(rig.wake(), ["cancel"], "not answered in time; the call is not repeated");
}

/// Row 19: a held command's cancel goes out when the original is back.
#[test]
fn row_19_a_held_cancel_waits_for_the_original() {
    let mut rig = Rig::accepted();
    rig.relink_to(lineage(2));
    assert_eq!(rig.on(Event::Cancel), QUIET);
    assert_eq!((rig.status(), rig.hold()), (CancelRequested, Some(Hold::OtherLog)));
    assert_eq!(rig.relink(), ["cancel"]);
}

/// Row 20, W5: a lost acknowledgement repeats the cancel, never the call.
#[test]
fn row_20_w5_a_lost_cancel_is_repeated() {
    let mut rig = Rig::sent();
    rig.on(Event::Cancel);
    assert_eq!(rig.relink(), ["cancel"]);
    assert_eq!(rig.wake(), ["cancel"]);
    rig.on(report(CancelRequested, 11));
    assert_eq!(rig.relink(), ["cancel"]);
    assert_eq!(rig.calls().len(), 1);
}

/// Row 20: NOT_FOUND from a service that does not record cancels of unknown keys: a late copy may still run.
#[test]
fn row_20_not_found_without_fencing_is_indeterminate() {
    let mut rig = Rig::sent();
    rig.on(Event::Cancel);
    assert_eq!(rig.relink(), ["cancel"]);
    rig.refuse(RefusalCode::NotFound);
    assert_eq!((rig.status(), rig.delivery()), (CancelRequested, Delivery::Indeterminate));
    assert!(rig.machine.state().ends_wait());
    assert_eq!(rig.relink(), ["cancel"]);
}

/// W5: a service that does not take the cancel is not a failure of the work.
#[test]
fn w5_a_refused_cancel_leaves_the_command_open() {
    let mut rig = Rig::accepted();
    assert_eq!(rig.on(Event::Cancel), ["cancel"]);
    assert_eq!(rig.refuse(RefusalCode::Denied), ["trace", "attach"]);
    assert_eq!(rig.status(), CancelRequested);
    rig.on(report(Succeeded, 11));
    assert_eq!(rig.status(), Succeeded);
}
