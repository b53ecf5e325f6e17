//! What the service says about a command that may have been sent.

use super::action::{Action, Oddity, Record};
use super::stage::{Bound, Fit, Flight, Link, Open, Progress, Question, Stage, Wish};
use super::{Machine, Origin};
use crate::command::Delivery;
use crate::error::Cause;
use crate::machine::{Actions, Now};
use crate::wire::{
    CommandFailure, CommandReport, CommandStatus, FailureReason, RefusalCode, Refused, Retry, Timestamp,
};

impl Machine {
    /// Rows 5, 18 and 21. A report is a fact of the log, whichever question it answers.
    pub(super) fn when_reported(
        &mut self,
        now: Now,
        mut open: Open,
        report: CommandReport,
        out: &mut Actions<Action>,
    ) -> Stage {
        let bound = match &self.link {
            Link::Up { lineage, .. } if open.bound.as_ref().is_none_or(|b| b.fit(lineage) == Fit::Same) => {
                Bound::of(lineage)
            }
            Link::Up { .. } | Link::Down | Link::Denied => {
                out.push(Action::Trace(Oddity::Unasked { got: report.status }));
                return Stage::Open(open);
            }
        };
        self.refusals = 0;
        self.state.cause = None;
        self.accept(now, &mut open, Timestamp { log: bound.log, seq: report.accepted }, out);
        open.bound = Some(bound);
        if report.status.is_terminal() {
            self.state.status = report.status;
            self.state.failure = report.failure;
            self.state.delivery = Delivery::Accepted;
            return self.settle(out);
        }
        if !self.advance(report.status) && report.status.rank() < self.state.status.rank() && open.cancel == Wish::None
        {
            out.push(Action::Trace(Oddity::Backwards { kept: self.state.status, got: report.status }));
        }
        if report.status == CommandStatus::CancelRequested && open.cancel == Wish::Wanted {
            open.cancel = Wish::Acknowledged;
        }
        let answered = match (&open.flight, open.cancel) {
            // Whatever the service reports meanwhile, the cancel itself is not answered yet.
            (Flight::Awaiting { question: Question::Cancel, .. }, Wish::Wanted) => return Stage::Open(open),
            (Flight::Waiting { .. }, Wish::Wanted) => return Stage::Open(open),
            (_, Wish::Wanted) => Flight::Idle,
            (_, Wish::None | Wish::Persisting | Wish::Acknowledged | Wish::Refused) => Flight::Answered,
        };
        open.flight = answered;
        self.proceed(now, open, out)
    }

    /// Row 5 and S2: every replay tells the same acceptance; the first is kept.
    fn accept(&mut self, now: Now, open: &mut Open, timestamp: Timestamp, out: &mut Actions<Action>) {
        match self.state.timestamp {
            Some(kept) if kept.log == timestamp.log => {
                if kept != timestamp {
                    out.push(Action::Trace(Oddity::OtherAcceptance { kept, got: timestamp.seq }));
                }
            }
            Some(_) | None => {
                self.state.timestamp = Some(timestamp);
                out.push(Action::Persist(Record::Accepted { timestamp }));
            }
        }
        match open.progress {
            Progress::Accepted { .. } => {}
            Progress::Sent { .. } | Progress::Indeterminate { .. } => {
                open.progress = Progress::Accepted { seen: now.wall };
            }
        }
    }

    pub(super) fn when_refused(
        &mut self,
        now: Now,
        mut open: Open,
        question: Question,
        refused: Refused,
        out: &mut Actions<Action>,
    ) -> Stage {
        self.state.cause = cause_of(&refused);
        match refused.code {
            RefusalCode::RateLimited => {
                open.flight = Flight::Waiting { until: self.back_off(now, refused.retry_after) };
            }
            RefusalCode::Unavailable | RefusalCode::Other => {
                if question == Question::Call {
                    // It may be in flight elsewhere.
                    open.lost = true;
                    self.give_up_unprotected(&mut open);
                }
                open.flight = Flight::Waiting { until: self.back_off(now, refused.retry_after) };
            }
            RefusalCode::NotFound => return self.when_not_found(now, open, question, out),
            RefusalCode::Expired => return self.when_expired(now, open, &refused.detail, out),
            RefusalCode::KeyConflict => match question {
                // Row 9. Also when an earlier copy is lost: the same command would not conflict with itself.
                Question::Call => {
                    self.fail(FailureReason::KeyConflict, Retry::NewKey, refused.detail);
                    return self.settle(out);
                }
                Question::Attach | Question::Cancel => {
                    out.push(Action::Trace(Oddity::ConflictAfterAcceptance));
                    open.flight = Flight::Waiting { until: self.back_off(now, refused.retry_after) };
                }
            },
            RefusalCode::Invalid => {
                let failure = CommandFailure::new(FailureReason::Invalid, Retry::Never, refused.detail);
                return self.when_rejected(now, open, question, failure, out);
            }
            RefusalCode::Denied => {
                let failure = CommandFailure::new(FailureReason::Denied, Retry::Never, refused.detail);
                return self.when_rejected(now, open, question, failure, out);
            }
        }
        self.proceed(now, open, out)
    }

    /// W8 and rows 14 to 17 and 20.
    fn when_not_found(&mut self, now: Now, mut open: Open, question: Question, out: &mut Actions<Action>) -> Stage {
        let never_seen = self.settings.origin == Origin::Attach && self.state.timestamp.is_none();
        let bound = match &open.bound {
            Some(bound) if !never_seen || question == Question::Cancel => bound.clone(),
            Some(_) | None => return self.not_found(Retry::SameKey, "the service has no record of the key", out),
        };
        let doubt = match &open.progress {
            Progress::Sent { doubt } => doubt.clone(),
            Progress::Accepted { .. } | Progress::Indeterminate { .. } => None,
        };
        let since = match open.progress {
            Progress::Accepted { seen } => seen.max(self.minted),
            Progress::Sent { .. } | Progress::Indeterminate { .. } => self.minted,
        };
        if let Some(failure) = doubt {
            self.state.status = CommandStatus::Failed;
            self.state.failure = Some(failure);
            return self.settle(out);
        }
        if now.wall >= since + bound.retention {
            return self.not_found(Retry::Never, "the service has no record of the key, or has forgotten it", out);
        }
        let resendable = match (question, &open.progress) {
            (Question::Cancel, _) | (_, Progress::Indeterminate { .. }) => false,
            (Question::Call | Question::Attach, Progress::Sent { .. }) => true,
            (Question::Call | Question::Attach, Progress::Accepted { .. }) => !bound.durable,
        };
        if resendable && open.cancel == Wish::None {
            return self.resubmit(now, open, bound, out);
        }
        open.progress = Progress::Indeterminate { asking: false };
        open.flight = Flight::Answered;
        self.proceed(now, open, out)
    }

    /// Row 17. The service's clock says that the key is outside; only an acceptance inside says otherwise.
    fn when_expired(&mut self, now: Now, mut open: Open, detail: &str, out: &mut Actions<Action>) -> Stage {
        match (&open.progress, &open.bound) {
            (Progress::Accepted { seen }, Some(bound)) if now.wall < *seen + bound.retention => {
                open.progress = Progress::Indeterminate { asking: false };
                open.flight = Flight::Answered;
                self.proceed(now, open, out)
            }
            (Progress::Accepted { .. } | Progress::Sent { .. } | Progress::Indeterminate { .. }, _) => {
                self.not_found(Retry::Never, detail, out)
            }
        }
    }

    /// The service will not do what was asked, and would not later.
    fn when_rejected(
        &mut self,
        now: Now,
        mut open: Open,
        question: Question,
        failure: CommandFailure,
        out: &mut Actions<Action>,
    ) -> Stage {
        let detail = std::sync::Arc::clone(&failure.message);
        match question {
            Question::Call if !open.lost => {
                self.state.status = CommandStatus::Failed;
                self.state.failure = Some(failure);
                return self.settle(out);
            }
            // An earlier copy may have been recorded before the service changed its mind.
            Question::Call => {
                open.flight = Flight::Idle;
                match &mut open.progress {
                    Progress::Sent { doubt } => *doubt = Some(failure),
                    Progress::Accepted { .. } | Progress::Indeterminate { .. } => {}
                }
            }
            Question::Attach if open.bound.is_none() => {
                self.state.status = CommandStatus::Failed;
                self.state.failure = Some(failure);
                return self.settle(out);
            }
            Question::Attach => {
                out.push(Action::Trace(Oddity::Refused { detail }));
                match open.progress {
                    Progress::Accepted { .. } => {
                        open.flight = Flight::Waiting { until: self.back_off(now, None) };
                    }
                    Progress::Sent { .. } | Progress::Indeterminate { .. } => {
                        open.progress = Progress::Indeterminate { asking: false };
                        open.flight = Flight::Answered;
                    }
                }
            }
            Question::Cancel => {
                out.push(Action::Trace(Oddity::Refused { detail }));
                open.cancel = Wish::Refused;
                open.flight = Flight::Idle;
                match open.progress {
                    Progress::Sent { .. } => open.progress = Progress::Indeterminate { asking: true },
                    Progress::Accepted { .. } | Progress::Indeterminate { .. } => {}
                }
            }
        }
        self.proceed(now, open, out)
    }
}

/// What a refusal that may pass says of why.
fn cause_of(refused: &Refused) -> Option<Cause> {
    match refused.code {
        RefusalCode::RateLimited => Some(Cause::RateLimited { retry_after: refused.retry_after.unwrap_or_default() }),
        RefusalCode::Unavailable | RefusalCode::Other => {
            Some(Cause::Unavailable { detail: refused.detail.as_str().into() })
        }
        RefusalCode::Invalid
        | RefusalCode::KeyConflict
        | RefusalCode::NotFound
        | RefusalCode::Expired
        | RefusalCode::Denied => None,
    }
}
