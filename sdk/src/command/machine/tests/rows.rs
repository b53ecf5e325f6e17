//! Tests for the rows of the command's table, `manual/machines.md`, and for the field cases that it answers.

mod cancels;
mod lost;

use super::*;
use crate::error::Cause;
use crate::wire::{FailureReason, Retry};
use CommandStatus::{CancelRequested, Canceled, Failed, NotFound, Pending, Running, Succeeded};

const QUIET: [&str; 0] = [];

fn failure(rig: &Rig) -> (FailureReason, Retry) {
    let failure = rig.machine.state().failure().expect("a failure");
    (failure.reason.clone(), failure.retry)
}

/// Row 1, W1: the key is durable before anything else happens.
#[test]
fn row_01_w1_the_key_is_persisted_before_a_byte_is_sent() {
    let mut rig = Rig::call();
    rig.durable_at_once = false;
    rig.on(Event::Linked(lineage(1)));
    assert_eq!(rig.on(Event::Called), QUIET);
    let record = Record::Key { key: settings().key, minted: MINTED };
    assert!(rig.trail.contains(&Action::Persist(record.clone())));
    assert_eq!(rig.on(Event::Linked(lineage(1))), QUIET, "not durable yet");
    assert_eq!(rig.on(Event::Persisted(record)), QUIET, "where it goes is not durable yet");
    assert_eq!((rig.status(), rig.delivery()), (Pending, Delivery::Queued));
}

/// Row 2, W1: what could not be made durable is not sent.
#[test]
fn row_02_w1_a_key_that_cannot_be_persisted_fails_unsent() {
    let mut rig = Rig::call();
    rig.durable_at_once = false;
    rig.on(Event::Called);
    let record = Record::Key { key: settings().key, minted: MINTED };
    rig.on(Event::PersistFailed { record, detail: "disk full".into() });
    assert_eq!((rig.status(), failure(&rig)), (Failed, (FailureReason::NotPersisted, Retry::SameKey)));
    assert_eq!(rig.on(Event::Linked(lineage(1))), QUIET);
}

/// A key that no service takes fails before anything is sent.
#[test]
fn an_invalid_key_fails_unsent() {
    let mut rig = Rig::new(Settings { key: CommandKey::explicit(""), ..settings() });
    rig.on(Event::Called);
    assert_eq!((rig.status(), failure(&rig)), (Failed, (FailureReason::Invalid, Retry::Never)));
    assert_eq!(rig.on(Event::Linked(lineage(1))), QUIET);
}

/// Row 3, W1 and W2: the log it goes to is durable before the first byte.
#[test]
fn row_03_w1_the_log_is_persisted_before_the_first_send() {
    let mut rig = Rig::call();
    rig.on(Event::Called);
    rig.durable_at_once = false;
    assert_eq!(rig.on(Event::Linked(lineage(1))), QUIET);
    let sent = |n| Record::Sent { log: log(n), principal: lineage(n).principal, minted: MINTED };
    assert!(rig.trail.contains(&Action::Persist(sent(1))));
    // The service changes while that is written: nothing was sent, so the new one may have it.
    assert_eq!(rig.relink_to(lineage(2)), QUIET);
    assert_eq!(rig.on(Event::Persisted(sent(1))), QUIET);
    assert!(rig.trail.contains(&Action::Persist(sent(2))));
    assert_eq!(rig.on(Event::Persisted(sent(2))), ["call"]);
    assert_eq!(rig.delivery(), Delivery::Sent);
}

/// Row 3: a record that could not be written is tried again; the key is durable, so failing would be untrue.
#[test]
fn row_03_a_failed_record_of_the_log_is_tried_again() {
    let mut rig = Rig::call();
    rig.on(Event::Called);
    rig.durable_at_once = false;
    rig.on(Event::Linked(lineage(1)));
    let record = Record::Sent { log: log(1), principal: lineage(1).principal, minted: MINTED };
    assert_eq!(rig.on(Event::PersistFailed { record, detail: "disk full".into() }), ["trace"]);
    assert_eq!(rig.status(), Pending);
    rig.durable_at_once = true;
    assert_eq!(rig.wake(), ["call"]);
}

/// Row 4: canceled before a byte was sent, so it never runs; also while its records are being written.
#[test]
fn row_04_a_queued_command_is_canceled_here() {
    let key = CommandKey::minted(Ulid(42));
    let mut rig = Rig::new(Settings { key: key.clone(), ..settings() });
    rig.on(Event::Called);
    assert_eq!(rig.on(Event::Cancel), QUIET);
    assert_eq!((rig.status(), rig.delivery()), (Canceled, Delivery::Queued));
    assert_eq!(rig.on(Event::Linked(lineage(1))), QUIET);

    let mut rig = Rig::new(Settings { key: key.clone(), ..settings() });
    rig.durable_at_once = false;
    rig.on(Event::Called);
    rig.on(Event::Cancel);
    assert_eq!(rig.status(), Canceled);
    rig.durable_at_once = true;
    assert_eq!(rig.on(Event::Persisted(Record::Key { key, minted: MINTED })), QUIET);
    assert_eq!(rig.on(Event::Linked(lineage(1))), QUIET);
}

/// Row 4, W5 and K2: an L2 or L3 key may be running from an earlier life of the client, so its cancel is
/// sent, and its call is not.
#[test]
fn row_04_w5_a_queued_cancel_of_a_shared_key_is_sent() {
    for linked_first in [false, true] {
        let mut rig = Rig::call();
        rig.durable_at_once = false;
        rig.on(Event::Called);
        let key = Record::Key { key: settings().key, minted: MINTED };
        if linked_first {
            rig.on(Event::Linked(lineage(1)));
            rig.on(Event::Persisted(key));
        }
        assert_eq!(rig.on(Event::Cancel), QUIET);
        assert_eq!(rig.status(), CancelRequested);
        rig.durable_at_once = true;
        let said = rig.on(Event::Persisted(Record::CancelRequested));
        let said = if linked_first { said } else { rig.on(Event::Linked(lineage(1))) };
        assert_eq!(said, ["cancel"]);
        rig.on(report(Canceled, 11));
        assert_eq!((rig.status(), rig.calls().len()), (Canceled, 0));
    }
}

/// Row 5, W3: an acceptance is taken in every open state, from the same log only.
#[test]
fn row_05_accepted_from_the_same_log() {
    let rig = Rig::accepted();
    assert_eq!((rig.status(), rig.delivery()), (Running, Delivery::Accepted));
    assert_eq!(rig.machine.state().timestamp(), Some(after(11)));
    assert!(rig.trail.contains(&Action::Persist(Record::Accepted { timestamp: after(11) })));

    let mut rig = Rig::sent();
    rig.relink_to(lineage(2));
    assert_eq!(rig.on(report(Running, 3)), ["trace"], "a report of another log is not ours");
    assert_eq!((rig.status(), rig.machine.state().timestamp()), (Pending, None));

    let mut rig = Rig::unprotected();
    rig = Rig::sent_as(rig, lineage(1));
    rig.relink();
    assert_eq!(rig.delivery(), Delivery::Indeterminate);
    rig.on(report(Succeeded, 11));
    assert_eq!((rig.status(), rig.delivery()), (Succeeded, Delivery::Accepted));
}

/// Row 5, S2: every replay tells the same acceptance; another one is traced and the first is kept.
#[test]
fn row_05_s2_the_first_acceptance_is_kept() {
    let mut rig = Rig::accepted();
    assert_eq!(rig.relink(), ["attach"]);
    assert_eq!(rig.on(report(Running, 12)), ["trace"]);
    assert_eq!(rig.machine.state().timestamp(), Some(after(11)));
}

/// Row 6, W2 and FC-68: a lost answer is asked for again with the same key and minted-at, on the same log.
#[test]
fn row_06_w2_fc68_a_lost_answer_is_resent_to_the_same_log() {
    let mut rig = Rig::sent();
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.relink(), ["call"]);
    assert_eq!(rig.calls(), [MINTED, MINTED]);
    assert_eq!((rig.status(), rig.delivery()), (Pending, Delivery::Sent));
}

/// Row 6, R7 and FC-27: a service that takes the call and never answers is asked again, for ever, and nothing is claimed.
#[test]
fn row_06_r7_fc27_a_silent_service_is_asked_again() {
    let mut rig = Rig::sent();
    for _ in 0..3 {
        let due = rig.machine.deadline().unwrap();
        assert_eq!(due.since(rig.now.instant), Duration::from_secs(15));
        assert_eq!(rig.wake(), ["call"]);
    }
    assert_eq!((rig.status(), rig.delivery()), (Pending, Delivery::Sent));
    assert_eq!(rig.on(report(Succeeded, 11)), QUIET);
    assert_eq!(rig.status(), Succeeded);
}

/// Row 6, FC-57: five answers of "unavailable" are five resends under one key, and the result is the recorded one.
#[test]
fn row_06_fc57_repeated_5xx_is_one_key() {
    let mut rig = Rig::sent();
    for _ in 0..5 {
        assert_eq!(rig.refuse(RefusalCode::Unavailable), QUIET);
        assert_eq!(rig.wake(), ["call"]);
    }
    assert_eq!(rig.calls(), [MINTED; 6]);
    rig.on(report(Succeeded, 11));
    assert_eq!(rig.status(), Succeeded);
}

/// Row 7, W2, FC-57 and FC-68: without deduplication nothing is ever resent after a lost answer.
#[test]
fn row_07_w2_fc57_an_unprotected_command_is_sent_once() {
    for lose in 0..3 {
        let mut rig = Rig::sent_as(Rig::unprotected(), lineage(1));
        let said = match lose {
            0 => rig.relink(),
            1 => rig.wake(),
            _ => {
                assert_eq!(rig.refuse(RefusalCode::Unavailable), QUIET);
                rig.wake()
            }
        };
        assert_eq!(said, ["attach"]);
        assert_eq!((rig.status(), rig.delivery()), (Pending, Delivery::Indeterminate));
        assert!(!rig.machine.state().ends_wait(), "the service is being asked");
        rig.refuse(RefusalCode::NotFound);
        assert_eq!((rig.status(), rig.delivery()), (Pending, Delivery::Indeterminate));
        assert!(rig.machine.state().ends_wait(), "nothing more will be known here");
        assert_eq!(rig.calls().len(), 1);
    }
}

/// Row 7, FC-58: "unknown" is an outcome of its own, and a record that turns up is adopted.
#[test]
fn row_07_fc58_an_unknown_outcome_is_adopted_when_it_is_found() {
    let mut rig = Rig::sent_as(Rig::unprotected(), lineage(1));
    assert_eq!(rig.relink(), ["attach"]);
    rig.on(report(Running, 11));
    assert_eq!((rig.status(), rig.delivery()), (Running, Delivery::Accepted));
}

/// Row 8, W2 and FC-76: asked to wait, it waits max(hint, jitter) and asks with the same key until it has the result.
#[test]
fn row_08_fc76_in_flight_elsewhere_is_waited_for() {
    let mut rig = Rig::sent();
    let wait = |rig: &Rig| rig.machine.deadline().unwrap().since(rig.now.instant);
    let mut waits = Vec::new();
    for _ in 0..8 {
        rig.refuse(RefusalCode::Unavailable);
        waits.push(wait(&rig).as_millis());
        assert_eq!(rig.wake(), ["call"]);
    }
    assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000], "full jitter's cap doubles up to 5 s");
    rig.refuse_for(RefusalCode::RateLimited, Some(Duration::from_secs(20)));
    assert_eq!(wait(&rig), Duration::from_secs(20), "the hint is the longer one");
    assert_eq!(rig.relink(), QUIET, "the hint outlives the connection");
    assert_eq!(rig.wake(), ["call"]);
    assert_eq!(rig.calls(), [MINTED; 10]);
    rig.on(report(Succeeded, 11));
    assert_eq!(rig.status(), Succeeded);
}

/// Row 8: "too many requests" was not processed, so even an unprotected command is sent again.
#[test]
fn row_08_rate_limited_is_resent_without_deduplication() {
    let mut rig = Rig::sent_as(Rig::unprotected(), lineage(1));
    rig.refuse(RefusalCode::RateLimited);
    assert_eq!(rig.wake(), ["call"]);
}

/// Row 9, K1 and W7: the key is another command's; a new key is a new try.
#[test]
fn row_09_k1_a_key_conflict_fails_with_advice() {
    let mut rig = Rig::sent();
    rig.refuse(RefusalCode::KeyConflict);
    assert_eq!((rig.status(), failure(&rig)), (Failed, (FailureReason::KeyConflict, Retry::NewKey)));
}

/// Row 9: an accepted command cannot conflict with itself: asked again.
#[test]
fn row_09_a_key_conflict_after_acceptance_is_a_protocol_fault() {
    let mut rig = Rig::accepted();
    assert_eq!(rig.relink(), ["attach"]);
    assert_eq!(rig.refuse(RefusalCode::KeyConflict), ["trace"]);
    assert_eq!(rig.wake(), ["attach"]);
    assert_eq!(rig.status(), Running);
}

/// W7: what the service will never do fails at once.
#[test]
fn w7_a_rejected_call_fails_for_good() {
    for (code, reason) in [(RefusalCode::Invalid, FailureReason::Invalid), (RefusalCode::Denied, FailureReason::Denied)]
    {
        let mut rig = Rig::sent();
        rig.refuse(code);
        assert_eq!((rig.status(), failure(&rig)), (Failed, (reason, Retry::Never)));
    }
}

/// W2, FC-58: a resend that is rejected says nothing of the copy whose answer was lost; the record decides.
#[test]
fn w2_fc58_a_rejected_resend_is_not_believed_before_the_record_is_asked() {
    let mut rig = Rig::sent();
    assert_eq!(rig.relink(), ["call"]);
    assert_eq!(rig.refuse(RefusalCode::Denied), ["attach"]);
    assert_eq!(rig.status(), Pending);
    let mut other = rig.clone();
    rig.on(report(Running, 11));
    assert_eq!((rig.status(), rig.delivery()), (Running, Delivery::Accepted));
    other.refuse(RefusalCode::NotFound);
    assert_eq!((other.status(), failure(&other)), (Failed, (FailureReason::Denied, Retry::Never)));
}

/// Row 10, W2: past minted-at + R - 2 sigma nothing is resent; it is only asked for.
#[test]
fn row_10_w2_the_retry_horizon_ends_resending() {
    let mut rig = Rig::sent();
    rig.on(Event::Unlinked);
    let horizon = DAY - Duration::from_secs(60);
    assert_eq!(rig.machine.deadline().unwrap().since(rig.now.instant), horizon);
    rig.pass(horizon - Duration::from_secs(1));
    assert_eq!(rig.on(Event::Linked(lineage(1))), ["call"], "one second before");
    rig.on(Event::Unlinked);
    assert_eq!(rig.wake(), QUIET);
    assert_eq!(rig.delivery(), Delivery::Indeterminate);
    assert_eq!(rig.on(Event::Linked(lineage(1))), ["attach"]);
    assert!(!rig.machine.state().ends_wait(), "the service is being asked");
    rig.on(report(Succeeded, 11));
    assert_eq!(rig.status(), Succeeded);
}

/// Row 10: a clock that is set back moves the horizon, not the promise.
#[test]
fn row_10_the_horizon_is_a_wall_time() {
    let mut rig = Rig::sent();
    rig.on(Event::Unlinked);
    rig.now.instant = rig.machine.deadline().unwrap();
    rig.on(Event::Tick);
    assert_eq!(rig.delivery(), Delivery::Sent);
    assert!(rig.machine.deadline().unwrap() > rig.now.instant, "armed again, and not due at once");
}

/// Row 18, W3: forward only.
#[test]
fn row_18_w3_a_lower_status_is_dropped() {
    let mut rig = Rig::accepted();
    assert_eq!(rig.on(report(CancelRequested, 11)), QUIET);
    assert_eq!(rig.on(report(Running, 11)), ["trace"]);
    assert_eq!(rig.on(report(Pending, 11)), ["trace"]);
    assert_eq!(rig.status(), CancelRequested);
    assert_eq!(rig.on(report(Succeeded, 11)), QUIET);
    assert_eq!(rig.status(), Succeeded);
}

/// Row 21: a terminal status from any open state, made durable.
#[test]
fn row_21_a_terminal_status_settles() {
    for mut rig in [Rig::sent(), Rig::accepted(), Rig::sent_as(Rig::unprotected(), lineage(1))] {
        rig.on(report(Failed, 11));
        assert_eq!((rig.status(), rig.delivery()), (Failed, Delivery::Accepted));
        let settled = Action::Persist(Record::Settled(rig.machine.state().clone()));
        assert!(rig.trail.contains(&settled));
        assert_eq!(rig.machine.deadline(), None);
    }
}

/// Row 21, W5 and FC-71: in a race of cancel and completion there is one terminal status, the log's.
#[test]
fn row_21_w5_fc71_completion_beats_a_late_cancel() {
    let mut rig = Rig::accepted();
    assert_eq!(rig.on(Event::Cancel), ["cancel"]);
    rig.on(report(Succeeded, 11));
    assert_eq!(rig.status(), Succeeded);
    assert_eq!(rig.on(report(Canceled, 11)), ["trace"]);
    assert_eq!(rig.status(), Succeeded);
}

/// Row 22, W3: nothing follows a terminal status; a different one is traced.
#[test]
fn row_22_w3_nothing_follows_a_terminal_status() {
    let mut rig = Rig::accepted();
    rig.on(report(Succeeded, 11));
    for event in [report(Running, 11), report(Succeeded, 11), Event::Cancel, Event::Tick, Event::Linked(lineage(1))] {
        assert_eq!(rig.on(event), QUIET);
    }
    assert_eq!(rig.on(report(Failed, 11)), ["trace"]);
    assert_eq!(rig.status(), Succeeded);
}

/// Row 23, R3: a refused credential is no failure of the command; it resumes.
#[test]
fn row_23_r3_denied_holds_the_command() {
    for (mut rig, resumed) in [(Rig::sent(), "call"), (Rig::accepted(), "attach")] {
        let before = (rig.status(), rig.delivery());
        assert_eq!(rig.on(Event::CredentialDenied), QUIET);
        assert_eq!((rig.hold(), (rig.status(), rig.delivery())), (Some(Hold::Denied), before));
        assert!(!rig.machine.state().ends_wait());
        assert_eq!(rig.on(Event::Linked(lineage(1))), [resumed]);
        assert_eq!(rig.hold(), None);
    }
    let mut rig = Rig::call();
    rig.on(Event::Called);
    rig.on(Event::CredentialDenied);
    assert_eq!((rig.hold(), rig.delivery()), (Some(Hold::Denied), Delivery::Queued));
}

/// Row 24: a draining service gets no first send, and keeps what it has.
#[test]
fn row_24_no_first_send_while_draining() {
    let mut rig = Rig::call();
    rig.on(Event::Linked(lineage(1)));
    rig.on(Event::Draining);
    assert_eq!(rig.on(Event::Called), QUIET);
    assert_eq!(rig.delivery(), Delivery::Queued);
    assert_eq!(rig.relink(), ["call"]);
    rig.on(Event::Draining);
    assert_eq!(rig.wake(), ["call"], "not the first: that service may hold the record already");
    rig.on(report(Running, 11));
    assert_eq!(rig.on(Event::Cancel), ["cancel"]);

    let mut rig = Rig::sent();
    rig.on(Event::Draining);
    assert_eq!(rig.refuse(RefusalCode::NotFound), QUIET, "a resubmission would be a first send");
    assert_eq!(rig.relink(), ["call"]);
}

/// Row 25, S3: minted-at is fixed at the first send, so a command that waited long is not born expired.
#[test]
fn row_25_s3_an_unsent_command_is_minted_afresh() {
    let mut rig = Rig::call();
    rig.on(Event::Called);
    rig.pass(2 * DAY);
    assert_eq!(rig.on(Event::Linked(lineage(1))), ["call"]);
    let first = MINTED + 2 * DAY;
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.relink(), ["call"]);
    assert_eq!(rig.calls(), [first, first], "and fixed from then on");
    let sent = Record::Sent { log: log(1), principal: lineage(1).principal, minted: first };
    assert!(rig.trail.contains(&Action::Persist(sent)));
}

/// Row 25: a clock that was ahead when the key was minted does not make it inadmissible.
#[test]
fn row_25_s3_a_key_minted_in_the_future_is_minted_afresh() {
    let mut rig = Rig::new(Settings { minted: MINTED + DAY, ..settings() });
    rig.on(Event::Called);
    assert_eq!(rig.on(Event::Linked(lineage(1))), ["call"]);
    assert_eq!(rig.calls(), [MINTED]);
}

/// Row 27, W4: dropping the handle does not cancel; the machine goes when the command is delivered.
#[test]
fn row_27_w4_dropping_the_handle_does_not_cancel() {
    let mut rig = Rig::call();
    rig.on(Event::Called);
    assert_eq!(rig.on(Event::HandleDropped), QUIET);
    assert_eq!(rig.on(Event::Linked(lineage(1))), ["call"]);
    assert_eq!(rig.relink(), ["call"]);
    assert_eq!(rig.on(report(Running, 11)), ["release"]);
    assert_eq!(rig.on(Event::Linked(lineage(1))), QUIET);
    assert_eq!(rig.machine.deadline(), None);

    let mut rig = Rig::accepted();
    rig.on(Event::Cancel);
    assert_eq!(rig.on(Event::HandleDropped), QUIET, "the cancel is to be delivered");
    assert_eq!(rig.on(report(CancelRequested, 11)), ["release"]);

    let mut rig = Rig::accepted();
    rig.on(report(Succeeded, 11));
    assert_eq!(rig.on(Event::HandleDropped), ["release"]);
}

/// The client's end claims nothing about the work.
#[test]
fn a_closed_client_claims_nothing() {
    let mut rig = Rig::accepted();
    let before = rig.machine.state().clone();
    rig.trail.clear();
    assert_eq!(rig.on(Event::ClientClosed), ["release"]);
    assert_eq!((rig.trail.as_slice(), rig.machine.state()), ([Action::Release].as_slice(), &before));
    assert_eq!(rig.on(report(Succeeded, 11)), QUIET);
}

/// K2: a key that only is followed is never sent; its command is found, or it never was.
#[test]
fn k2_attach_follows_and_never_sends() {
    let mut rig = Rig::attached();
    assert_eq!(rig.on(Event::Linked(lineage(1))), ["attach"]);
    rig.on(report(Running, 11));
    assert_eq!((rig.status(), rig.delivery()), (Running, Delivery::Accepted));
    assert_eq!(rig.relink_to(lineage(2)), QUIET, "found on a log, it belongs to that log");
    assert_eq!(rig.relink(), ["attach"]);
    rig.on(report(Succeeded, 11));
    assert_eq!((rig.status(), rig.calls().len()), (Succeeded, 0));

    let mut rig = Rig::attached();
    rig.on(Event::Linked(lineage(1)));
    rig.refuse(RefusalCode::NotFound);
    assert_eq!((rig.status(), rig.calls().len()), (NotFound, 0));

    let mut rig = Rig::attached();
    rig.on(Event::Linked(lineage(1)));
    assert_eq!(rig.on(Event::HandleDropped), ["release"], "nothing to deliver");
}

/// W5: a cancel by key alone is sent and recorded, also where the key was never seen.
#[test]
fn w5_attach_cancels_by_key() {
    let mut rig = Rig::attached();
    rig.on(Event::Cancel);
    assert_eq!(rig.on(Event::Linked(lineage(1))), ["cancel"]);
    assert_eq!(rig.relink_to(lineage(2)), QUIET, "sent to one log, it belongs to that log");
    assert_eq!(rig.relink(), ["cancel"]);
    rig.on(report(Canceled, 11));
    assert_eq!(rig.status(), Canceled);
}

/// A refusal of an older question is not taken for the newest one's.
#[test]
fn a_late_refusal_is_dropped() {
    let mut rig = Rig::accepted();
    rig.relink();
    let first = rig.last_ask;
    assert_eq!(rig.wake(), ["attach"]);
    let refused = Refused { code: RefusalCode::NotFound, detail: String::new(), retry_after: None };
    assert_eq!(rig.on(Event::Refused { ask: first, refused }), QUIET);
    assert_eq!(rig.delivery(), Delivery::Accepted);
}

/// A question that is refused after a report has no further reports, so it is asked again.
#[test]
fn a_refusal_after_a_report_asks_again() {
    let mut rig = Rig::accepted();
    rig.refuse(RefusalCode::Unavailable);
    assert_eq!(rig.wake(), ["attach"]);
    assert_eq!((rig.status(), rig.delivery()), (Running, Delivery::Accepted));
}

/// Row 8, W7, R9: why the service has not taken it yet is shown, and no longer than that.
#[test]
fn row_8_the_cause_of_a_wait_is_shown() {
    let mut rig = Rig::sent();
    rig.refuse(RefusalCode::Unavailable);
    assert!(matches!(rig.machine.state().cause(), Some(Cause::Unavailable { .. })), "{:?}", rig.machine.state());
    rig.on(report(Running, 11));
    assert_eq!(rig.machine.state().cause(), None);
}
