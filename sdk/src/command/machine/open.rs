//! A command that may have been sent: what is asked next, and what happens when nothing comes back.

use super::action::{Action, Oddity, Record};
use super::event::Event;
use super::stage::{Bound, Fit, Flight, Link, Open, Progress, Question, Stage, Wish};
use super::{Machine, Origin};
use crate::command::Protection;
use crate::machine::{Actions, Now};
use crate::wire::{CommandFailure, CommandStatus, FailureReason, Retry};

impl Machine {
    pub(super) fn when_open(&mut self, now: Now, mut open: Open, event: Event, out: &mut Actions<Action>) -> Stage {
        match event {
            Event::Linked(lineage) => {
                self.lose(&mut open);
                // R as the same history states it now.
                if let Some(bound) = open.bound.as_mut().filter(|bound| bound.fit(&lineage) == Fit::Same) {
                    bound.retention = lineage.retention;
                }
            }
            Event::Unlinked | Event::CredentialDenied => self.lose(&mut open),
            Event::Report(report) => return self.when_reported(now, open, report, out),
            Event::Refused { ask, refused } => {
                let question = match &open.flight {
                    Flight::Awaiting { question, ask: awaited, .. } if *awaited == ask => *question,
                    // A refused question has no further reports, whatever was reported before.
                    Flight::Answered if ask == self.asked => {
                        open.flight = Flight::Waiting { until: self.back_off(now, refused.retry_after) };
                        return Stage::Open(open);
                    }
                    // It answers an older question: whatever it says, the newest one will say.
                    Flight::Awaiting { .. }
                    | Flight::Idle
                    | Flight::Waiting { .. }
                    | Flight::Answered
                    | Flight::Persisting(_) => return Stage::Open(open),
                };
                return self.when_refused(now, open, question, refused, out);
            }
            Event::Cancel => self.wish_cancel(&mut open, out),
            Event::Persisted(Record::CancelRequested) => self.want_cancel(&mut open),
            // A cancel is harmless to repeat and to lose; the caller wants it now.
            Event::PersistFailed { record: Record::CancelRequested, detail } => {
                out.push(Action::Trace(Oddity::NotPersisted { detail }));
                self.want_cancel(&mut open);
            }
            Event::Persisted(Record::NotFoundOnce { log }) => match open.flight {
                Flight::Persisting(bound) if bound.log == log => {
                    // The acceptance of the forgotten copy says nothing of the new one.
                    self.state.timestamp = None;
                    open = Open { cancel: open.cancel, resubmitted: true, ..Open::sent(bound) };
                }
                Flight::Persisting(_)
                | Flight::Idle
                | Flight::Awaiting { .. }
                | Flight::Waiting { .. }
                | Flight::Answered => {}
            },
            Event::PersistFailed { record, detail } => {
                out.push(Action::Trace(Oddity::NotPersisted { detail }));
                if matches!((&record, &open.flight), (Record::NotFoundOnce { .. }, Flight::Persisting(_))) {
                    open.flight = Flight::Waiting { until: self.back_off(now, None) };
                }
            }
            Event::Tick => match open.flight {
                Flight::Awaiting { until, .. } if until <= now.instant => self.lose(&mut open),
                Flight::Waiting { until } if until <= now.instant => open.flight = Flight::Idle,
                Flight::Awaiting { .. }
                | Flight::Waiting { .. }
                | Flight::Idle
                | Flight::Answered
                | Flight::Persisting(_) => {}
            },
            Event::Called | Event::Persisted(_) | Event::Draining | Event::HandleDropped | Event::ClientClosed => {}
        }
        self.proceed(now, open, out)
    }

    /// Asks the next question, if none is outstanding and the connection reaches the command's history.
    pub(super) fn proceed(&mut self, now: Now, mut open: Open, out: &mut Actions<Action>) -> Stage {
        // Row 10. What was sent is not called back: an answer to it still counts.
        if let (Progress::Sent { doubt: None }, Some(bound)) = (&open.progress, &open.bound)
            && now.wall >= self.horizon_of(bound)
        {
            open.progress = Progress::Indeterminate { asking: true };
        }
        if open.flight != Flight::Idle {
            return Stage::Open(open);
        }
        let Link::Up { lineage, draining } = &self.link else { return Stage::Open(open) };
        match open.bound.as_ref().map_or(Fit::Same, |bound| bound.fit(lineage)) {
            Fit::Held(_) => return Stage::Open(open),
            Fit::Forgotten => match (open.cancel, &open.progress) {
                (Wish::None, Progress::Sent { .. } | Progress::Accepted { .. }) => {
                    let onto = Bound::of(lineage);
                    return self.resubmit(now, open, onto, out);
                }
                // A cancel is recorded wherever it is sent, so that a late copy does not run there (W5).
                (Wish::None | Wish::Persisting | Wish::Wanted | Wish::Acknowledged | Wish::Refused, _) => {
                    open.bound = Some(Bound::of(lineage));
                    if !matches!(open.progress, Progress::Indeterminate { .. }) {
                        open.progress = Progress::Indeterminate { asking: true };
                    }
                }
            },
            Fit::Same => {}
        }
        let question = match (open.cancel, &open.progress) {
            // It goes out in a moment, and the call must not overtake it.
            (Wish::Persisting, _) => return Stage::Open(open),
            // Row 20: repeated on each connection.
            (Wish::Wanted | Wish::Acknowledged, _) => Question::Cancel,
            (Wish::None, Progress::Sent { doubt: None }) => Question::Call,
            (Wish::None, Progress::Sent { doubt: Some(_) }) => Question::Attach,
            (Wish::None, Progress::Accepted { .. } | Progress::Indeterminate { .. }) => Question::Attach,
            // What was to be canceled is not sent again.
            (Wish::Refused, _) => Question::Attach,
        };
        if question == Question::Cancel && open.bound.is_none() {
            open.bound = Some(Bound::of(lineage));
        }
        // Row 24: no copy is outstanding, so it would be a first send.
        if question == Question::Call && *draining && !open.lost {
            return Stage::Open(open);
        }
        self.ask(now, &mut open, question, out);
        Stage::Open(open)
    }

    /// The outstanding question will not be answered. Rows 6 and 7.
    fn lose(&mut self, open: &mut Open) {
        match open.flight {
            Flight::Awaiting { question, .. } => {
                if question == Question::Call {
                    open.lost = true;
                    self.give_up_unprotected(open);
                }
                open.flight = Flight::Idle;
            }
            Flight::Answered | Flight::Idle => open.flight = Flight::Idle,
            // The service asked to wait, not the connection.
            Flight::Waiting { .. } | Flight::Persisting(_) => {}
        }
    }

    /// Row 7: without deduplication a copy whose answer is lost is never resent.
    pub(super) fn give_up_unprotected(&self, open: &mut Open) {
        match (self.settings.protection, &open.progress) {
            (Protection::Unprotected, Progress::Sent { .. }) => {
                open.progress = Progress::Indeterminate { asking: true };
            }
            (Protection::Unprotected, Progress::Accepted { .. } | Progress::Indeterminate { .. })
            | (Protection::Recorded | Protection::BestEffort, _) => {}
        }
    }

    /// Row 19: shown at once, sent when durable.
    pub(super) fn wish_cancel(&mut self, open: &mut Open, out: &mut Actions<Action>) {
        match open.cancel {
            Wish::None => {
                open.cancel = Wish::Persisting;
                self.advance(CommandStatus::CancelRequested);
                out.push(Action::Persist(Record::CancelRequested));
            }
            // Asked again by the caller, asked again of the service.
            Wish::Refused => self.want_cancel(open),
            Wish::Persisting | Wish::Wanted | Wish::Acknowledged => {}
        }
    }

    fn want_cancel(&self, open: &mut Open) {
        open.cancel = Wish::Wanted;
        match open.flight {
            // An unanswered call may be refused as a key conflict. Then the key is another command's, and
            // the cancel would hit that one: its answer is waited for, at most as long as any answer.
            Flight::Awaiting { question: Question::Call, .. } | Flight::Waiting { .. } | Flight::Persisting(_) => {}
            Flight::Awaiting { question: Question::Attach | Question::Cancel, .. }
            | Flight::Answered
            | Flight::Idle => open.flight = Flight::Idle,
        }
    }

    /// Row 18: forward only.
    pub(super) fn advance(&mut self, status: CommandStatus) -> bool {
        let forward = status.rank() > self.state.status.rank();
        if forward {
            self.state.status = status;
        }
        forward
    }

    /// Rows 14 and 15, W8: the service has no record of a command that may be sent to `onto` once more.
    pub(super) fn resubmit(&mut self, now: Now, mut open: Open, onto: Bound, out: &mut Actions<Action>) -> Stage {
        match self.settings.protection {
            Protection::Unprotected => {
                open.progress = Progress::Indeterminate { asking: false };
                open.flight = Flight::Answered;
                return Stage::Open(open);
            }
            Protection::Recorded | Protection::BestEffort => {}
        }
        let sendable = self.settings.origin == Origin::Call && now.wall < self.horizon_of(&onto);
        if open.resubmitted || !sendable {
            return self.not_found(Retry::SameKey, "the service has no record of the key", out);
        }
        // Row 24: to this service it would be a first send.
        if let Link::Up { draining: false, .. } = self.link {
            out.push(Action::Persist(Record::NotFoundOnce { log: onto.log }));
            open.flight = Flight::Persisting(onto);
        } else {
            // Until the next connection.
            open.flight = Flight::Answered;
        }
        Stage::Open(open)
    }

    /// Rows 15 and 17.
    pub(super) fn not_found(&mut self, retry: Retry, message: &str, out: &mut Actions<Action>) -> Stage {
        self.state.status = CommandStatus::NotFound;
        self.state.failure = Some(CommandFailure::new(FailureReason::NotFound, retry, message));
        self.settle(out)
    }

    pub(super) fn settle(&mut self, out: &mut Actions<Action>) -> Stage {
        self.state.hold = None;
        self.state.asking = false;
        out.push(Action::Persist(Record::Settled(self.state.clone())));
        Stage::Done
    }
}
