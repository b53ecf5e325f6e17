//! Random schedules of asks, steps, faults and crashes.

use proptest::prelude::*;

use super::*;

/// One step of a random schedule.
#[derive(Clone, Debug)]
enum Op {
    Ask(usize, u8),
    Step(usize),
    /// The operation under way fails: unreadable, refused, busy, or ambiguous with or without effect.
    Fault(usize, u8),
    Tick(usize, u16),
    /// The replica's process dies and another takes its place.
    Crash(usize),
    /// Somebody else changes the aggregate, or starts the command.
    Foreign(bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..2_usize, 0..5_u8).prop_map(|(r, w)| Op::Ask(r, w)),
        8 => (0..2_usize).prop_map(Op::Step),
        4 => (0..2_usize, 0..4_u8).prop_map(|(r, f)| Op::Fault(r, f)),
        2 => (0..2_usize, 0..12_000_u16).prop_map(|(r, ms)| Op::Tick(r, ms)),
        1 => (0..2_usize).prop_map(Op::Crash),
        1 => any::<bool>().prop_map(Op::Foreign),
    ]
}

impl Rig {
    fn fault(&mut self, replica: usize, fault: u8) {
        let Some(operation) = self.replicas[replica].operation.take() else { return };
        let event = match operation {
            Action::Load => Event::Loaded(None),
            Action::Link { .. } => Event::Linked(None),
            Action::Run { .. } => Event::Decided(Err(refused::unavailable("no"))),
            Action::Append(append) => Event::Appended(match fault {
                0 => Appended::Busy,
                1 => Appended::Unknown,
                _ => {
                    self.store.append(&append); // it happens or conflicts, and nobody is told
                    Appended::Unknown
                }
            }),
            Action::Abandon | Action::Report { .. } | Action::Refuse { .. } | Action::LeaveOut { .. } => {
                unreachable!("no operation")
            }
        };
        self.event(replica, event);
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Ask(replica, want) => {
                let want = match want {
                    0 | 1 => call(1),
                    2 => call(2),
                    3 => Want::Attach,
                    _ => cancel(),
                };
                self.ask(replica, want);
            }
            Op::Step(replica) => {
                self.step(replica);
            }
            Op::Fault(replica, fault) => self.fault(replica, fault),
            Op::Tick(replica, ms) => {
                self.now.instant = self.now.instant + Duration::from_millis(ms.into());
                self.event(replica, Event::Tick);
            }
            Op::Crash(replica) => {
                let bounds = self.replicas[replica].machine.bounds;
                let lost = std::mem::replace(&mut self.replicas[replica].machine, Execution::new(key(), bounds));
                self.replicas[replica].operation = None;
                for (caller, _) in lost.waiting {
                    self.wants.remove(&caller); // whoever waited asks again, as somebody else
                    self.wants.insert(caller + (1 << 32), Want::Attach);
                    self.answers.insert(caller + (1 << 32), No(RefusalCode::Other));
                }
            }
            Op::Foreign(true) => self.foreign(&aggregate(), "1"),
            Op::Foreign(false) => {
                if self.load(&key()).is_some_and(|record| record.status == CommandStatus::Pending) {
                    self.foreign(&key(), r#"{"k":"started"}"#);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// S1, S2, S4, W3, W5, K1 over two replicas of one log: whatever fails in whatever order, there is at
    /// most one effect, one timestamp, one terminal state; every request is answered exactly once; a
    /// timer is armed while anybody waits.
    #[test]
    fn s1_one_effect_whatever_fails(ops in prop::collection::vec(op(), 1..80), goes_on: bool) {
        let mut rig = Rig::new(2, if goes_on { running } else { events });
        let mut terminal = None;
        for op in ops {
            rig.run(op);
            for replica in &rig.replicas {
                prop_assert!(replica.machine.is_idle() || replica.machine.deadline().is_some());
            }
            let status = rig.load(&key()).map(|record| record.status).filter(|status| status.is_terminal());
            prop_assert!(terminal.is_none() || terminal == status, "{terminal:?} became {status:?}");
            terminal = status;
        }
        rig.settle();
        prop_assert!(rig.effects() <= 1);
        prop_assert_eq!(rig.wants.len(), rig.answers.len(), "everybody is answered");
        let record = rig.load(&key());
        for (caller, answer) in &rig.answers {
            if let Yes { status, accepted } = answer {
                let record = record.as_ref().expect("what is reported is recorded");
                prop_assert_eq!(*accepted, record.accepted);
                prop_assert!(!status.is_terminal() || *status == record.status);
                if let Some(Want::Call(offer)) = rig.wants.get(caller) {
                    prop_assert!(record.fingerprint.is_none_or(|f| f == offer.fingerprint), "K1");
                }
            }
        }
        prop_assert_eq!(rig.effects() == 1, record.is_some_and(|r| r.fingerprint.is_some()), "S2: both or neither");
    }
}
