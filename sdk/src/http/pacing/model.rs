//! Random lives of a budget whose service is shared with another client. [`Rig::tell`] checks the laws: nothing is granted
//! that the service has forbidden, no two closer than the spacing, first wanted first granted, a timer is always armed.

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::rig::*;
use super::*;
use crate::http::told::Window;

/// How a service counts.
#[derive(Clone, Copy, Debug)]
enum Counts {
    /// So many in each window.
    Window(Duration),
    /// A bucket that fills within that time.
    Bucket(Duration),
}

/// What a refusal says.
#[derive(Clone, Copy, Debug)]
enum Says {
    Reset,
    RetryAfter,
    Nothing,
}

#[derive(Clone, Debug)]
struct Shape {
    counts: Counts,
    limit: u64,
    says: Says,
    /// In how many of a hundred cases a request of ours is free, and lost.
    free: u64,
    lost: u64,
    /// The other client's requests come this far apart.
    others: Duration,
    /// In how many of a hundred cases an answer says nonsense.
    nonsense: u64,
}

fn shape() -> impl Strategy<Value = Shape> {
    let length = (1..40u32).prop_map(|s| SECOND * s);
    let counts = (any::<bool>(), length).prop_map(|(window, length)| match window {
        true => Counts::Window(length),
        false => Counts::Bucket(length),
    });
    let says = prop_oneof![Just(Says::Reset), Just(Says::RetryAfter), Just(Says::Nothing)];
    let percent = || prop_oneof![2 => Just(0), 1 => 0..60u64];
    (counts, 1..80u64, says, percent(), percent(), 50..5000u32, percent()).prop_map(
        |(counts, limit, says, free, lost, others, nonsense)| Shape {
            counts,
            limit,
            says,
            free,
            lost,
            others: MS * others,
            nonsense,
        },
    )
}

struct Shared {
    shape: Shape,
    draws: StdRng,
    used: u64,
    at: Duration,
    others: Duration,
    /// From now on everything is accepted and nothing is said.
    open: bool,
}

impl Shared {
    fn new(shape: Shape, seed: u64) -> Self {
        let (used, at) = (0, Duration::ZERO);
        Self { shape, draws: StdRng::seed_from_u64(seed), used, at, others: at, open: false }
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.draws.next_u64() % 100 < percent
    }

    /// Lets time pass for the count. Returns the time to its reset.
    fn pass(&mut self, at: Duration) -> Duration {
        let reset = match self.shape.counts {
            Counts::Window(length) => {
                let number = at.as_nanos() / length.as_nanos();
                if number > self.at.as_nanos() / length.as_nanos() {
                    self.used = 0;
                }
                length * (u32::try_from(number).unwrap() + 1) - at
            }
            Counts::Bucket(length) => {
                let each = length / u32::try_from(self.shape.limit).unwrap();
                let refilled = at.as_nanos() / each.as_nanos() - self.at.as_nanos() / each.as_nanos();
                self.used = self.used.saturating_sub(u64::try_from(refilled).unwrap());
                each * u32::try_from(self.used.max(1)).unwrap()
            }
        };
        self.at = at;
        reset
    }
}

impl Service for Shared {
    fn asked(&mut self, at: Duration) -> Option<Told> {
        if self.open {
            return Some(Told::default());
        }
        while self.others < at {
            self.pass(self.others);
            self.used = (self.used + 1).min(self.shape.limit);
            let next = self.draws.next_u64() % (2 * self.shape.others.as_millis() as u64);
            self.others += MS * (1 + next as u32);
        }
        let reset = self.pass(at);
        if self.chance(self.shape.lost) {
            self.used = (self.used + 1).min(self.shape.limit);
            return None;
        }
        if self.chance(self.shape.nonsense) {
            let windows = vec![Window::new(
                if self.chance(50) { "core" } else { "other" },
                self.chance(50).then(|| self.draws.next_u64() >> (self.draws.next_u64() % 64)),
                self.draws.next_u64() >> (self.draws.next_u64() % 64),
                MS * ((self.draws.next_u64() % 60_000) as u32),
            )];
            return Some(Told { throttled: self.chance(20), windows, ..Told::default() });
        }
        let limit = self.shape.limit;
        let throttled = self.used >= limit;
        if !throttled && !self.chance(self.shape.free) {
            self.used += 1;
        }
        let window = Window::new("core", Some(limit), limit - self.used, reset);
        Some(match self.shape.says {
            Says::Reset => Told { throttled, windows: vec![window], ..Told::default() },
            Says::RetryAfter => Told { throttled, retry_after: throttled.then_some(reset), ..Told::default() },
            Says::Nothing => Told { throttled, ..Told::default() },
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r8_fc_55_no_request_is_granted_that_the_service_forbids_and_nobody_starves(
        shape in shape(),
        seed in any::<u64>(),
        waiters in 1..30usize,
        spacing in 1..400u32,
        in_flight in 1..40usize,
        latency in 1..3000u32,
        accidents in 0..30u64,
    ) {
        let (most, longest) = (SECOND * 2, SECOND * 61);
        let mut world = World::new(limits(MS * spacing, in_flight, most), seed, Shared::new(shape, seed), waiters);
        world.latency = MS * latency;
        world.accidents = accidents;
        world.run(SECOND * 120, |_| false);

        // The service takes everything: the holds that are known pass, then each waiter has his turn.
        world.service.open = true;
        world.accidents = 0;
        let before = world.served.clone();
        let turns = u32::try_from(waiters).unwrap_or(u32::MAX);
        let bound = longest + OCCUPIES + (most + world.latency * 2) * turns * 2;
        world.run(SECOND * 120 + bound, |world| world.served.iter().zip(&before).all(|(now, then)| now > then));
        prop_assert!(world.served.iter().zip(&before).all(|(now, then)| now > then), "{:?} {before:?}", world.served);
    }

    #[test]
    fn whatever_is_said_no_deadline_is_farther_than_a_day(
        said in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), 0..16u8), 1..40),
        seed in any::<u64>(),
    ) {
        let mut rig = Rig::new(Limits::default(), seed);
        for (number, (remaining, limit, reset, after, kind)) in (0..).zip(said) {
            let ticket = Ticket::new(number);
            let mut granted = rig.tell(Event::Wanted(ticket));
            while granted.is_empty() {
                let at = rig.pacing.deadline().map(Monotonic::since_start).unwrap_or_default();
                prop_assert!(at - rig.time <= LONGEST_HINT + SECOND);
                granted = rig.pass(at - rig.time);
            }
            let limit = (kind & 1 > 0).then_some(limit);
            let window = Window::new("core", limit, remaining, Duration::from_nanos(reset));
            let retry_after = (kind & 2 > 0).then_some(Duration::from_secs(after));
            let windows = if kind & 8 > 0 { vec![window] } else { Vec::new() };
            rig.tell(Event::Told(ticket, Told { retry_after, throttled: kind & 4 > 0, windows, ..Told::default() }));
            if kind & 1 > 0 {
                rig.tell(if kind & 2 > 0 { Event::Ended(ticket) } else { Event::Unsent(ticket) });
            }
        }
    }
}
