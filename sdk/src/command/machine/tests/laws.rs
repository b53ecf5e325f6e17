//! What holds after every event of any schedule.

use std::collections::{HashSet, VecDeque};

use proptest::prelude::*;

use super::*;

/// One step of a schedule. What it means depends on what is outstanding.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The oldest record becomes durable, or fails to.
    Persist {
        ok: bool,
    },
    /// A welcome of one of the histories.
    Link(Whose),
    Unlink,
    Drain,
    Deny,
    Report {
        status: CommandStatus,
        accepted: Seq,
    },
    Refuse {
        code: RefusalCode,
        late: bool,
        hint: Option<u64>,
    },
    Cancel,
    Drop,
    /// Time passes up to the machine's deadline.
    Wake,
    /// Time passes on both clocks.
    Pass {
        seconds: u64,
    },
    /// The wall clock is set.
    Set {
        seconds: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Whose {
    Original,
    Restored,
    OtherLog,
    OtherPrincipal,
}

fn statuses() -> impl Strategy<Value = CommandStatus> {
    use CommandStatus::{CancelRequested, Canceled, Failed, NotFound, Pending, Running, Succeeded};
    prop::sample::select(vec![Pending, Running, CancelRequested, Canceled, Succeeded, Failed, NotFound])
}

fn codes() -> impl Strategy<Value = RefusalCode> {
    use RefusalCode::{Denied, Expired, Invalid, KeyConflict, NotFound, Other, RateLimited, Unavailable};
    prop::sample::select(vec![
        Invalid,
        KeyConflict,
        NotFound,
        NotFound,
        Expired,
        Unavailable,
        Unavailable,
        RateLimited,
        Denied,
        Other,
    ])
}

fn step() -> impl Strategy<Value = Step> {
    let whose = prop::sample::select(vec![
        Whose::Original,
        Whose::Original,
        Whose::Original,
        Whose::Restored,
        Whose::OtherLog,
        Whose::OtherPrincipal,
    ]);
    prop_oneof![
        6 => prop::bool::weighted(0.8).prop_map(|ok| Step::Persist { ok }),
        5 => whose.prop_map(Step::Link),
        3 => Just(Step::Unlink),
        1 => Just(Step::Drain),
        1 => Just(Step::Deny),
        3 => (statuses(), prop::sample::select(vec![11, 11, 11, 12])).prop_map(|(status, accepted)| Step::Report { status, accepted }),
        4 => (codes(), prop::bool::weighted(0.2), prop::option::of(0_u64..100)).prop_map(|(code, late, hint)| Step::Refuse { code, late, hint }),
        1 => Just(Step::Cancel),
        1 => Just(Step::Drop),
        4 => Just(Step::Wake),
        2 => (0_u64..100_000).prop_map(|seconds| Step::Pass { seconds }),
        1 => (0_u64..200_000).prop_map(|seconds| Step::Set { seconds }),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Call,
    Attach,
    Cancel,
}

/// The driver's side of a run: what it was told to do, and what the laws remember of it.
struct Run {
    rig: Rig,
    durable: bool,
    unwritten: VecDeque<Record>,
    /// The logs to which a call may go: those of durable `Sent` and `NotFoundOnce` records.
    sendable: HashSet<LogId>,
    link: Option<Lineage>,
    /// The unanswered question, and when it was asked.
    outstanding: Option<(Asked, Ask, Monotonic)>,
    /// Some copy's fate is unknown.
    lost: bool,
    /// Each call: to which history, as whom, with which minted-at.
    calls: Vec<(LogId, u32, Principal, Wall)>,
    settled: Option<CommandStatus>,
    released: bool,
}

impl Run {
    fn new(origin: Origin, protection: Protection, durable: bool) -> Self {
        let settings = Settings { origin, protection, ..settings() };
        let mut run = Self {
            rig: Rig::new(settings),
            durable,
            unwritten: VecDeque::new(),
            sendable: HashSet::new(),
            link: None,
            outstanding: None,
            lost: false,
            calls: Vec::new(),
            settled: None,
            released: false,
        };
        run.feed(Event::Called);
        run
    }

    fn lineage(&self, whose: Whose) -> Lineage {
        let original = Lineage { durable: self.durable, ..lineage(1) };
        match whose {
            Whose::Original => original,
            Whose::Restored => Lineage { history: 1, ..original },
            Whose::OtherLog => Lineage { log: log(2), ..original },
            Whose::OtherPrincipal => Lineage { principal: Principal::new("other").unwrap(), ..original },
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Persist { ok } => {
                let Some(record) = self.unwritten.pop_front() else { return };
                if ok {
                    if let Record::Sent { log, .. } | Record::NotFoundOnce { log } = &record {
                        self.sendable.insert(*log);
                    }
                    self.feed(Event::Persisted(record));
                } else {
                    self.feed(Event::PersistFailed { record, detail: "disk full".into() });
                }
            }
            Step::Link(whose) => {
                let lineage = self.lineage(whose);
                self.lose();
                self.link = Some(lineage.clone());
                self.feed(Event::Linked(lineage));
            }
            Step::Unlink => {
                self.lose();
                self.link = None;
                self.feed(Event::Unlinked);
            }
            Step::Deny => {
                self.lose();
                self.link = None;
                self.feed(Event::CredentialDenied);
            }
            Step::Drain => self.feed(Event::Draining),
            Step::Report { status, accepted } => {
                // Only a connection that carried a question carries reports.
                if self.outstanding.take().is_some() {
                    self.feed(report(status, accepted));
                }
            }
            Step::Refuse { code, late, hint } => {
                let Some((asked, ask, _)) = self.outstanding else { return };
                let refused = Refused { code, detail: "no".into(), retry_after: hint.map(Duration::from_secs) };
                if late {
                    let state = self.rig.machine.state().clone();
                    self.feed(Event::Refused { ask: Ask(ask.0.wrapping_sub(1)), refused });
                    assert_eq!(self.rig.machine.state(), &state, "an older question's refusal changes nothing");
                } else {
                    self.outstanding = None;
                    self.lost |= asked == Asked::Call && matches!(code, RefusalCode::Unavailable | RefusalCode::Other);
                    self.feed(Event::Refused { ask, refused });
                }
            }
            Step::Cancel => self.feed(Event::Cancel),
            Step::Drop => self.feed(Event::HandleDropped),
            Step::Wake => {
                let Some(at) = self.rig.machine.deadline() else { return };
                self.rig.pass(at.since(self.rig.now.instant));
                if self.outstanding.is_some_and(|(_, _, asked)| self.rig.now.instant.since(asked) >= ANSWER) {
                    self.lose();
                }
                self.feed(Event::Tick);
            }
            Step::Pass { seconds } => {
                // A driver wakes the machine no later than its deadline.
                let until = self.rig.now.instant + Duration::from_secs(seconds);
                if self.rig.machine.deadline().is_none_or(|at| at > until) {
                    self.rig.pass(Duration::from_secs(seconds));
                }
            }
            Step::Set { seconds } => self.rig.now.wall = MINTED + Duration::from_secs(seconds),
        }
    }

    /// Whatever is outstanding will not be answered.
    fn lose(&mut self) {
        self.lost |= self.outstanding.take().is_some_and(|(asked, _, _)| asked == Asked::Call);
    }

    fn feed(&mut self, event: Event) {
        let before = self.rig.machine.state().clone();
        let actions = self.rig.machine.on_event(self.rig.now, event);
        for action in actions {
            assert!(!self.released, "nothing after release: {action:?}");
            match action {
                Action::Persist(record) => self.unwritten.push_back(record),
                Action::SendCall { ask, minted } => self.called(ask, minted),
                Action::SendAttach { ask } => {
                    self.sent(Asked::Attach, ask);
                }
                Action::SendCancel { ask, .. } => {
                    self.sent(Asked::Cancel, ask);
                }
                Action::Publish(state) => {
                    assert_eq!(&state, self.rig.machine.state());
                    if state.status().is_terminal() {
                        assert!(self.settled.is_none_or(|first| first == state.status()), "W3: one terminal status");
                        self.settled = Some(state.status());
                    }
                }
                Action::Trace(_) => {}
                Action::Release => self.released = true,
            }
        }
        let state = self.rig.machine.state();
        assert!(state.status().rank() >= before.status().rank(), "W3: {before:?} -> {state:?}");
        if before.status().is_terminal() {
            assert_eq!(state.status(), before.status(), "W3: nothing follows a terminal status");
        }
        let deadline = self.rig.machine.deadline();
        if self.released || self.settled.is_some() {
            assert_eq!(deadline, None, "no timer is left behind");
        } else if let Some((_, _, asked)) = self.outstanding {
            assert!(deadline.is_some_and(|at| at <= asked + ANSWER), "R7: an unanswered question has a timer");
        }
    }

    fn sent(&mut self, asked: Asked, ask: Ask) -> Lineage {
        assert_eq!(self.settled, None, "nothing is sent after the end");
        let overtakes = asked == Asked::Cancel && matches!(self.outstanding, Some((Asked::Attach, ..)));
        assert!(self.outstanding.is_none() || overtakes, "one question at a time");
        self.outstanding = Some((asked, ask, self.rig.now.instant));
        self.link.clone().expect("sent without a connection")
    }

    fn called(&mut self, ask: Ask, minted: Wall) {
        let to = self.sent(Asked::Call, ask);
        let settings = &self.rig.machine.settings;
        assert_eq!(settings.origin, Origin::Call, "a followed key is never sent");
        assert!(self.sendable.contains(&to.log), "W1: sent before it was durable");
        assert!(!(self.lost && settings.protection == Protection::Unprotected), "W2: resent without deduplication");
        let call = (to.log, to.history, to.principal, minted);
        if let Some(first) = self.calls.first() {
            assert_eq!(
                (&first.2, first.3),
                (&call.2, call.3),
                "W1, K1: one principal and one minted-at for all copies"
            );
            if self.durable {
                assert_eq!((first.0, first.1), (call.0, call.1), "W2: sent to another history");
            }
            let horizon = call.3 + (DAY - Duration::from_secs(60));
            assert!(self.rig.now.wall < horizon, "W2: resent past the horizon");
        }
        self.calls.push(call);
    }
}

const ANSWER: Duration = Duration::from_secs(15);

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// W1, W2, W3, K1 and R7, over any schedule of answers, faults, clocks and wishes.
    #[test]
    fn the_laws_hold_on_every_schedule(
        origin in prop::sample::select(vec![Origin::Call, Origin::Call, Origin::Attach]),
        protection in prop::sample::select(vec![Protection::Recorded, Protection::Unprotected]),
        durable in any::<bool>(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut run = Run::new(origin, protection, durable);
        for step in steps {
            run.take(step);
        }
    }
}
