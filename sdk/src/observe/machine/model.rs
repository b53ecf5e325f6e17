//! The machine against a small model of what R1 to R7 permit, over random schedules.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use ulid::Ulid;

use super::*;
use crate::machine::{Machine as _, Wall};

/// A position: of log or epoch `id`, at `n`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pos {
    in_log: bool,
    id: u8,
    n: u64,
}

type Hist = (bool, u8);

impl Pos {
    fn hist(self) -> Hist {
        (self.in_log, self.id)
    }

    fn cursor(self) -> Cursor {
        if self.in_log {
            Cursor::log(LogId::new(Ulid(self.id.into())), self.n)
        } else {
            Cursor::Epoch { epoch: Epoch::new(Ulid(self.id.into())), count: self.n }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Link { log: u8, epoch: u8, head: u64 },
    Unlink { why: u16 },
    Value(Pos, bool),
    Unchanged(Pos),
    Absent(Pos),
    Unserved(Option<u64>),
    Pass(u64),
    StrayTick,
    End(EndReason),
    Denied,
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    let pos = (any::<bool>(), 0..2_u8, 0..6_u64).prop_map(|(in_log, id, n)| Pos { in_log, id, n });
    prop_oneof![
        6 => (0..2_u8, 0..2_u8, 0..5_u64).prop_map(|(log, epoch, head)| Op::Link { log, epoch, head }),
        3 => (0..2_u16).prop_map(|why| Op::Unlink { why }),
        10 => (pos.clone(), prop::bool::weighted(0.8)).prop_map(|(pos, ok)| Op::Value(pos, ok)),
        5 => pos.clone().prop_map(Op::Unchanged),
        4 => pos.prop_map(Op::Absent),
        2 => prop::option::of(0..30_000_u64).prop_map(Op::Unserved),
        6 => (0..20_000_u64).prop_map(Op::Pass),
        1 => Just(Op::StrayTick),
        1 => prop::sample::select(vec![Op::End(EndReason::Gone), Op::End(EndReason::Denied), Op::Denied, Op::Close]),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    None,
    Shown,
    Doubtful,
    Absent,
}

/// What an event may lead to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Fresh { at: Pos, take: bool },
    Ended(End),
    Neither,
}

#[derive(Debug, Default)]
struct Model {
    link: Option<(u8, u8, u64)>,
    /// The open subscription: what it named, and how it was answered.
    sub: Option<(Option<Pos>, Answer)>,
    shown: Option<Pos>,
    fresh: bool,
    ended: bool,
    highest: BTreeMap<Hist, u64>,
    absent: Option<(Hist, Duration)>,
    absent_since: Duration,
}

impl Model {
    /// The newest that is known to exist of the history of `pos`.
    fn known(&self, pos: Pos) -> u64 {
        let head = self.link.filter(|&(log, ..)| (true, log) == pos.hist()).map_or(0, |(.., head)| head);
        head.max(self.highest.get(&pos.hist()).copied().unwrap_or(0))
    }

    fn saw(&mut self, pos: Pos) {
        if let Some((log, _, head)) = &mut self.link
            && (true, *log) == pos.hist()
        {
            *head = (*head).max(pos.n);
        }
    }

    fn leave_absence(&mut self, now: Duration) {
        if let (Some((_, Answer::Absent)), Some((_, used))) = (&self.sub, &mut self.absent) {
            *used += now - self.absent_since;
            self.absent_since = now;
        }
    }

    fn answer(&mut self, answer: Answer) {
        if let Some((_, was)) = &mut self.sub {
            *was = answer;
        }
    }

    fn verdict(&mut self, now: Duration, op: Op) -> Verdict {
        if self.ended {
            return Verdict::Neither;
        }
        let open = self.sub;
        match (op, open) {
            (Op::Denied, _) => Verdict::Ended(End::Denied),
            (Op::Close, _) => Verdict::Ended(End::Closed),
            (Op::End(EndReason::Gone), Some(_)) => Verdict::Ended(End::Gone),
            (Op::End(EndReason::Denied), Some(_)) => Verdict::Ended(End::Denied),
            (Op::Link { log, epoch, head }, _) => {
                self.leave_absence(now);
                self.sub = None;
                if self.highest.get(&(true, log)).is_some_and(|&n| head < n) {
                    self.highest.remove(&(true, log));
                }
                self.link = Some((log, epoch, head));
                Verdict::Neither
            }
            (Op::Unlink { .. }, _) => {
                self.leave_absence(now);
                self.sub = None;
                self.link = None;
                Verdict::Neither
            }
            (Op::Value(pos, ok), Some(_)) => {
                self.absent = None;
                let good = ok && pos.n >= self.known(pos);
                if good || !ok {
                    self.saw(pos);
                }
                self.answer(if good { Answer::Shown } else { Answer::Doubtful });
                if good { Verdict::Fresh { at: pos, take: true } } else { Verdict::Neither }
            }
            (Op::Unchanged(pos), Some((after, answer))) => {
                let named = match answer {
                    Answer::None => after,
                    Answer::Shown => self.shown,
                    Answer::Doubtful | Answer::Absent => None,
                };
                let good = named.is_some_and(|named| named.hist() == pos.hist()) && pos.n >= self.known(pos);
                self.leave_absence(now);
                self.answer(if good { Answer::Shown } else { Answer::Doubtful });
                if good {
                    self.absent = None;
                    self.saw(pos);
                    Verdict::Fresh { at: pos, take: false }
                } else {
                    Verdict::Neither
                }
            }
            (Op::Absent(pos), Some(_)) => {
                self.leave_absence(now);
                if pos.n < self.known(pos) {
                    self.answer(Answer::Doubtful);
                } else if self.highest.contains_key(&pos.hist()) {
                    return Verdict::Ended(End::Gone);
                } else {
                    self.saw(pos);
                    if self.absent.is_none_or(|(of, _)| of != pos.hist()) {
                        self.absent = Some((pos.hist(), Duration::ZERO));
                    }
                    self.absent_since = now;
                    self.answer(Answer::Absent);
                }
                Verdict::Neither
            }
            (Op::Unserved(_), Some(_)) => {
                self.leave_absence(now);
                self.sub = None;
                Verdict::Neither
            }
            (Op::StrayTick, Some((_, Answer::Absent))) => {
                let used = self.absent.map_or(Duration::ZERO, |(_, used)| used) + (now - self.absent_since);
                if used >= Settings::default().grace { Verdict::Ended(End::Gone) } else { Verdict::Neither }
            }
            (Op::StrayTick | Op::Pass(_), _) => Verdict::Neither,
            (Op::Value(..) | Op::Unchanged(_) | Op::Absent(_) | Op::Unserved(_) | Op::End(_), None) => Verdict::Neither,
        }
    }

    fn check(&mut self, actions: &[Action], verdict: Verdict) -> Result<(), TestCaseError> {
        let was_ended = self.ended;
        let mut said = Verdict::Neither;
        for action in actions {
            prop_assert!(!was_ended, "R3: nothing follows an end, but {action:?} did");
            prop_assert!(!self.ended, "R3: the end is the last");
            match action {
                Action::Unsubscribe => self.sub = None,
                Action::Subscribe { after } => {
                    let Some((log, epoch, _)) = self.link else { return Err(TestCaseError::fail("no link")) };
                    prop_assert!(self.sub.is_none(), "one subscription at a time");
                    let named = after.and(self.shown);
                    if let (Some(after), Some(shown)) = (after, self.shown) {
                        prop_assert_eq!(*after, shown.cursor(), "R4: what is held, and nothing else");
                        prop_assert!([(true, log), (false, epoch)].contains(&shown.hist()), "R4: another history");
                        prop_assert_eq!(self.highest.get(&shown.hist()), Some(&shown.n), "R4: a log that went back");
                    }
                    prop_assert_eq!(after.is_some(), named.is_some());
                    self.sub = Some((named, Answer::None));
                }
                Action::Publish(Shown::Fresh { at, take }) => {
                    let Verdict::Fresh { at: pos, .. } = verdict else {
                        return Err(TestCaseError::fail(format!("R5: {action:?} without an answer")));
                    };
                    prop_assert_eq!(*at, pos.cursor());
                    let before = self.highest.insert(pos.hist(), pos.n);
                    prop_assert!(before.is_none_or(|before| before <= pos.n), "R4: backwards");
                    self.shown = Some(pos);
                    self.fresh = true;
                    said = Verdict::Fresh { at: pos, take: *take };
                }
                Action::Publish(Shown::Stale { .. }) => {
                    prop_assert!(self.shown.is_some());
                    self.fresh = false;
                }
                Action::Publish(Shown::Loading { .. }) => {
                    prop_assert!(self.shown.is_none(), "R1: what is loaded stays loaded");
                    self.fresh = false;
                }
                Action::Publish(Shown::Ended(end)) => {
                    self.ended = true;
                    said = Verdict::Ended(*end);
                }
            }
        }
        prop_assert_eq!(said, verdict);
        Ok(())
    }

    fn invariants(&self, machine: &Machine) -> Result<(), TestCaseError> {
        prop_assert_eq!(machine.is_ended(), self.ended);
        let live = self.sub.is_some_and(|(_, answer)| answer == Answer::Shown);
        if !self.ended {
            prop_assert_eq!(self.fresh, live, "R5: fresh exactly while the newest answer of this link is shown");
        }
        let waits = self.link.is_some() && !self.ended && !live;
        prop_assert_eq!(machine.deadline().is_some(), waits, "R7: a timer while linked and not confirmed");
        Ok(())
    }
}

fn event(op: Op) -> Event {
    match op {
        Op::Link { log, epoch, head } => Event::Linked {
            log: LogId::new(Ulid(log.into())),
            epoch: Epoch::new(Ulid(epoch.into())),
            head,
            durable: false,
        },
        Op::Unlink { why } => Event::Unlinked { cause: Cause::Dropped { code: Some(why) }, not_before: None },
        Op::Value(pos, ok) => {
            Event::Value { at: pos.cursor(), decoded: if ok { Ok(()) } else { Err("something else".into()) } }
        }
        Op::Unchanged(pos) => Event::Unchanged { at: pos.cursor() },
        Op::Absent(pos) => Event::Absent { at: pos.cursor() },
        Op::Unserved(hint) => Event::Unserved {
            cause: Cause::Unavailable { detail: "busy".into() },
            retry_after: hint.map(Duration::from_millis),
        },
        Op::End(reason) => Event::End { reason },
        Op::Denied => Event::Denied,
        Op::Close => Event::Close,
        Op::Pass(_) | Op::StrayTick => Event::Tick,
    }
}

fn step(model: &mut Model, machine: &mut Machine, now: Duration, draw: u64, op: Op) -> Result<(), TestCaseError> {
    let verdict = model.verdict(now, op);
    let now = Now { instant: Monotonic::new(now), wall: Wall::default(), draw };
    let actions = machine.on_event(now, event(op));
    model.check(&actions, verdict)?;
    model.invariants(machine)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn r1_r2_r3_r4_r5_r7_hold_over_random_schedules(ops in prop::collection::vec((op(), any::<u64>()), 1..60)) {
        let mut now = Duration::ZERO;
        let started = Now { instant: Monotonic::ZERO, wall: Wall::default(), draw: 0 };
        let mut machine = Machine::new(Settings::default(), started);
        let mut model = Model::default();
        for (op, draw) in ops {
            let Op::Pass(millis) = op else {
                step(&mut model, &mut machine, now, draw, op)?;
                continue;
            };
            let end = now + Duration::from_millis(millis);
            for _ in 0..10_000 {
                let Some(deadline) = machine.deadline().map(Monotonic::since_start).filter(|&at| at <= end) else { break };
                now = now.max(deadline);
                step(&mut model, &mut machine, now, draw, Op::StrayTick)?;
                prop_assert!(machine.deadline().is_none_or(|next| next.since_start() > now), "a tick settles its timer");
            }
            now = end;
        }
    }
}
