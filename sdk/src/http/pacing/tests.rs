//! The rules of the table, one by one.

use super::rig::*;
use super::*;
use crate::http::told::Window;

fn ticket(number: u64) -> Ticket {
    Ticket::new(number)
}

fn rig() -> Rig {
    Rig::new(Limits::default(), 7)
}

/// Grants ticket `number` now.
fn grant(rig: &mut Rig, number: u64) {
    assert_eq!(rig.tell(Event::Wanted(ticket(number))), [ticket(number)]);
}

/// How long from now until `number` is granted, if nothing else happens.
fn wait(rig: &mut Rig, number: u64) -> Duration {
    let start = rig.time;
    let mut granted = rig.tell(Event::Wanted(ticket(number)));
    while !granted.contains(&ticket(number)) {
        let at = rig.pacing.deadline().expect("somebody waits (R7)").since_start();
        granted = rig.pass(at - rig.time);
    }
    rig.time - start
}

/// A request and its answer, at once.
fn exchange(rig: &mut Rig, number: u64, told: Told) -> Duration {
    let waited = wait(rig, number);
    rig.tell(Event::Told(ticket(number), told));
    rig.tell(Event::Ended(ticket(number)));
    waited
}

#[test]
fn r8_thirty_waiters_share_one_budget() {
    let mut rig = rig();
    for number in 0..30 {
        rig.tell(Event::Wanted(ticket(number)));
    }
    rig.pass(SECOND * 10);
    let tickets: Vec<_> = rig.granted.iter().map(|(_, ticket)| *ticket).collect();
    assert_eq!(tickets, (0..30).map(ticket).collect::<Vec<_>>(), "in the order in which they came");
    assert_eq!(rig.granted[29].0, MS * 200 * 29, "five a second");
}

#[test]
fn fc_55_nothing_is_granted_before_the_time_that_the_service_asked_for() {
    for asked in [SECOND * 7, SECOND * 3600] {
        let mut rig = rig();
        let before = exchange(&mut rig, 1, refusal(Some(asked)));
        let until = rig.pacing.held_until().unwrap().since_start();
        assert!(until >= before + asked && until <= before + asked + SECOND, "stated for R9: {until:?}");
        assert_eq!(before + wait(&mut rig, 2), until);
    }
}

#[test]
fn fc_55_of_two_times_the_longer_counts_whichever_comes_last() {
    for order in [[7, 30], [30, 7]] {
        let mut rig = rig();
        grant(&mut rig, 1);
        rig.pass(MS * 200);
        grant(&mut rig, 2);
        for (number, asked) in (1..).zip(order) {
            rig.tell(Event::Told(ticket(number), refusal(Some(SECOND * asked))));
        }
        assert!(wait(&mut rig, 3) >= SECOND * 30);
    }
}

#[test]
fn fc_55_an_answer_to_an_earlier_request_does_not_end_a_hold() {
    let mut rig = rig();
    grant(&mut rig, 1);
    rig.pass(MS * 200);
    grant(&mut rig, 2);
    rig.tell(Event::Told(ticket(2), refusal(Some(SECOND * 30))));
    rig.tell(Event::Told(ticket(1), left(5000, SECOND * 3600)));
    assert!(wait(&mut rig, 3) >= SECOND * 30);
}

#[test]
fn after_a_hold_one_request_asks_whether_it_is_over() {
    let mut rig = rig();
    exchange(&mut rig, 1, refusal(Some(SECOND * 10)));
    for number in 2..32 {
        rig.tell(Event::Wanted(ticket(number)));
    }
    let start = rig.pacing.held_until().unwrap().since_start() - rig.time;
    assert_eq!(rig.pass(start + MS * 900), [ticket(2)]);
    rig.tell(Event::Told(ticket(2), refusal(Some(SECOND * 10))));
    let start = rig.pacing.held_until().unwrap().since_start() - rig.time;
    assert_eq!(rig.pass(start + MS * 100), [ticket(3)]);
    rig.tell(Event::Told(ticket(3), Told::default()));
    assert_eq!(rig.pass(SECOND).len(), 5, "an accepted one opens the way");
}

#[test]
fn a_wait_for_one_resource_does_not_stop_the_others() {
    let mut rig = rig();
    exchange(&mut rig, 1, Told { retry_after: Some(SECOND * 30), ..Told::default() });
    assert_eq!(wait(&mut rig, 2), MS * 200);
}

#[test]
fn nothing_remaining_holds_until_the_reset() {
    let mut rig = rig();
    exchange(&mut rig, 1, left(0, SECOND * 40));
    let waited = wait(&mut rig, 2);
    assert!(waited >= SECOND * 40 && waited <= SECOND * 41, "{waited:?}");
}

#[test]
fn several_processes_do_not_return_at_the_same_time() {
    let mut times: Vec<_> = (0..20)
        .map(|seed| {
            let mut rig = Rig::new(Limits::default(), seed);
            exchange(&mut rig, 1, left(0, SECOND * 40));
            wait(&mut rig, 2)
        })
        .collect();
    times.sort();
    times.dedup();
    assert!(times.len() > 15 && times[0] >= SECOND * 40 && times[times.len() - 1] <= SECOND * 41, "{times:?}");
}

#[test]
fn what_remains_is_spread_until_the_reset() {
    let mut rig = rig();
    exchange(&mut rig, 1, left(10, SECOND * 100));
    assert_eq!(wait(&mut rig, 2), SECOND * 10);
    rig.tell(Event::Told(ticket(2), left(9, SECOND * 90)));
    assert_eq!(wait(&mut rig, 3), SECOND * 10);
}

#[test]
fn a_large_budget_is_not_spread() {
    let mut rig = rig();
    exchange(&mut rig, 1, left(4999, SECOND * 3600));
    for number in 2..32 {
        rig.tell(Event::Wanted(ticket(number)));
    }
    assert_eq!(rig.pass(MS * 200 * 30).len(), 30);
}

/// A window that counts every request but the free ones, and that another client uses too.
struct Fixed {
    limit: u64,
    length: Duration,
    /// Requests of the other client, a second.
    others: u64,
    free: bool,
    used: u64,
    ours: u64,
    refused: u64,
    at: Duration,
    /// When in its window all was used up.
    used_up: Vec<Duration>,
}

impl Fixed {
    fn new(limit: u64, length: Duration, others: u64, free: bool) -> Self {
        let (used, ours, refused, at, used_up) = (0, 0, 0, Duration::ZERO, Vec::new());
        Self { limit, length, others, free, used, ours, refused, at, used_up }
    }

    fn uses(&mut self, requests: u64, at: Duration) {
        if self.used < self.limit && self.used + requests >= self.limit {
            self.used_up.push(self.since_reset(at));
        }
        self.used = (self.used + requests).min(self.limit);
    }

    fn since_reset(&self, at: Duration) -> Duration {
        Duration::from_nanos((at.as_nanos() % self.length.as_nanos()) as u64)
    }

    /// The others come at each full second.
    fn catch_up(&mut self, at: Duration) {
        while self.at + SECOND <= at {
            self.at += SECOND;
            if self.since_reset(self.at).is_zero() {
                self.used = 0;
            }
            self.uses(self.others, self.at);
        }
    }
}

impl Service for Fixed {
    fn asked(&mut self, at: Duration) -> Option<Told> {
        self.catch_up(at);
        let reset = self.length - self.since_reset(at);
        if self.used >= self.limit {
            self.refused += 1;
            return Some(Told { throttled: true, ..left(0, reset) });
        }
        self.uses(u64::from(!self.free), at);
        self.ours += 1;
        Some(left(self.limit - self.used, reset))
    }
}

#[test]
fn r8_a_window_lasts_until_its_reset_however_many_wait() {
    let service = Fixed::new(60, SECOND * 60, 0, false);
    let mut world = World::new(Limits::default(), 3, service, 30);
    world.run(SECOND * 600, |_| false);
    assert_eq!(world.service.refused, 0);
    assert!(world.service.ours >= 9 * 45, "and is used: {}", world.service.ours);
    assert!(world.served.iter().all(|served| *served >= 12), "{:?}", world.served);
}

#[test]
fn r8_a_window_that_others_use_too_lasts_until_its_reset() {
    // The others leave 60 of 240.
    let service = Fixed::new(240, SECOND * 60, 3, false);
    let mut world = World::new(Limits::default(), 3, service, 30);
    world.run(SECOND * 1200, |_| false);
    let service = &world.service;
    assert!(service.refused <= 2, "{} refused", service.refused);
    assert!(service.used_up.iter().all(|at| *at > SECOND * 50), "used up {:?} into their windows", service.used_up);
    assert!(service.ours >= 19 * 40, "our share is used: {}", service.ours);
    assert!(world.served.iter().all(|served| *served >= 20), "{:?}", world.served);
}

#[test]
fn r8_others_that_use_everything_do_not_starve_us() {
    let service = Fixed::new(240, SECOND * 60, 100, false);
    let mut world = World::new(Limits::default(), 3, service, 5);
    world.run(SECOND * 1200, |_| false);
    assert!(world.service.refused <= 40, "{}", world.service.refused);
    assert!(world.served.iter().all(|served| *served >= 4), "{:?}", world.served);
}

#[test]
fn answers_that_cost_nothing_do_not_slow_us() {
    // 40 of 60 are used up already, the hour is long.
    let mut service = Fixed::new(60, SECOND * 3600, 0, true);
    service.used = 40;
    let mut world = World::new(Limits::default(), 3, service, 5);
    world.run(SECOND * 3600, |_| false);
    assert!(world.service.ours > 5 * 3000, "{}", world.service.ours);
}

#[test]
fn an_answer_that_is_no_newer_does_not_raise_what_remains() {
    let mut rig = rig();
    for number in 1..4 {
        wait(&mut rig, number);
    }
    rig.tell(Event::Told(ticket(3), left(1, SECOND * 100)));
    rig.tell(Event::Told(ticket(1), left(3000, SECOND * 100)));
    assert!(wait(&mut rig, 4) >= SECOND * 99, "one remains for 100 s");
    // What is granted after that is certainly newer.
    rig.tell(Event::Told(ticket(4), left(3000, SECOND * 100)));
    assert_eq!(wait(&mut rig, 5), MS * 200);
}

#[test]
fn no_more_are_under_way_than_remain() {
    let mut rig = Rig::new(limits(MS, 64, SECOND * 60), 7);
    exchange(&mut rig, 1, left(2, SECOND * 500));
    // Two remain, but answers that cost nothing let requests follow each other.
    for number in 2..8 {
        exchange(&mut rig, number, left(2, SECOND * 500));
    }
    assert_eq!(wait(&mut rig, 8), MS);
    rig.tell(Event::Told(ticket(8), left(1, SECOND * 500)));
    let waited = wait(&mut rig, 9);
    assert!(waited < SECOND * 400, "{waited:?}");
    for number in 10..12 {
        rig.tell(Event::Wanted(ticket(number)));
    }
    let left_of_window = SECOND * 490 - waited;
    assert_eq!(rig.pass(left_of_window), [], "one remains, and one is not answered");
    assert!(rig.pacing.held_until() <= Some(Monotonic::new(rig.time)), "it may be any moment");
    assert_eq!(rig.tell(Event::Ended(ticket(9))), [ticket(10)], "it may not have got there");
}

#[test]
fn absurd_values_are_survived() {
    let absurd = [
        left(u64::MAX, Duration::MAX),
        left(0, Duration::MAX),
        left(1, Duration::MAX),
        left(0, Duration::ZERO),
        left(u64::MAX, Duration::from_nanos(1)),
        Told { windows: vec![Window::new("core", Some(3), u64::MAX, SECOND)], ..Told::default() },
        Told { windows: vec![Window::new("core", Some(0), 0, SECOND * 30)], ..Told::default() },
        Told { windows: (0..99).map(|n| Window::new(format!("{n}"), None, n, SECOND)).collect(), ..refusal(None) },
    ];
    for told in absurd {
        let mut rig = rig();
        exchange(&mut rig, 1, told.clone());
        let waited = wait(&mut rig, 2);
        assert!(waited <= SECOND * 3601, "{told:?}: {waited:?}");
    }
    let mut rig = rig();
    exchange(&mut rig, 1, refusal(Some(Duration::MAX)));
    let waited = wait(&mut rig, 2);
    assert!(waited >= SECOND * 86_400 && waited <= SECOND * 86_401, "{waited:?}");
}

#[test]
fn what_holds_is_not_forgotten_for_many_other_windows() {
    let mut rig = rig();
    let mut windows: Vec<_> = (0..99).map(|n| Window::new(format!("{n}"), None, 9000, SECOND * 9)).collect();
    windows.push(Window::new("core", None, 0, SECOND * 50));
    exchange(&mut rig, 1, Told { windows, ..Told::default() });
    assert!(wait(&mut rig, 2) >= SECOND * 50);
}

#[test]
fn fc_11_each_refusal_doubles_the_time_and_each_success_shortens_it() {
    let mut rig = rig();
    exchange(&mut rig, 1, Told::default());
    let mut waits: Vec<_> = (2..14).map(|number| exchange(&mut rig, number, refusal(None))).collect();
    assert_eq!(waits[..5], [200, 400, 800, 1600, 3200].map(|ms| MS * ms));
    assert_eq!(waits[11], SECOND * 60, "at most");
    waits = (14..60).map(|number| exchange(&mut rig, number, Told::default())).collect();
    assert!(waits.windows(2).all(|pair| pair[1] <= pair[0]), "{waits:?}");
    assert_eq!(waits[45], MS * 200);
}

#[test]
fn fc_11_refusals_of_requests_granted_before_are_one_refusal() {
    let mut rig = rig();
    for number in 0..10 {
        rig.tell(Event::Wanted(ticket(number)));
    }
    rig.pass(SECOND * 2);
    for number in 0..10 {
        rig.tell(Event::Told(ticket(number), refusal(None)));
    }
    assert_eq!(wait(&mut rig, 10), MS * 400);
}

/// Permits so many a second, in a bucket of as many.
struct Bucket {
    rate: f64,
    filled: f64,
    at: Duration,
    retry_after: Option<Duration>,
    /// When it refused.
    refused: Vec<Duration>,
}

impl Service for Bucket {
    fn asked(&mut self, at: Duration) -> Option<Told> {
        self.filled = (self.filled + (at - self.at).as_secs_f64() * self.rate).min(self.rate.max(1.0));
        self.at = at;
        if self.filled < 1.0 {
            self.refused.push(at);
            return Some(refusal(self.retry_after));
        }
        self.filled -= 1.0;
        Some(Told::default())
    }
}

#[test]
fn fc_11_thirty_waiters_fall_below_what_a_service_takes_and_all_are_served() {
    for retry_after in [None, Some(SECOND)] {
        for rate in [0.5, 1.0, 2.0, 4.0] {
            let service = Bucket { rate, filled: rate.max(1.0), at: Duration::ZERO, retry_after, refused: Vec::new() };
            let mut world = World::new(Limits::default(), 5, service, 30);
            world.run(SECOND * 3600, |world| world.served.iter().all(|served| *served >= 5));
            let end = world.rig.time;
            assert!(world.served.iter().all(|served| *served >= 5), "{rate}: {:?}", world.served);
            let accepted: usize = world.served.iter().sum();
            assert!(accepted as f64 > rate * end.as_secs_f64() * 0.7, "{rate}: what is permitted is used, {accepted}");
            // Within a few intervals, and then for ever.
            let mut from = SECOND * 10;
            while from + SECOND * 20 < end {
                let granted = world.rate(from, from + SECOND * 20) as f64;
                assert!(granted <= rate * 20.0 * 1.05 + 2.0, "{rate}: {granted} in 20 s from {from:?}");
                from += SECOND;
            }
            let late = world.service.refused.iter().filter(|at| **at > SECOND * 10).count();
            assert!(late * 12 <= accepted, "{rate}: {late} refused after the start, {accepted} accepted");
        }
    }
}

#[test]
fn first_wanted_first_granted_and_who_leaves_holds_up_nobody() {
    let mut rig = rig();
    for number in 0..6 {
        rig.tell(Event::Wanted(ticket(number)));
    }
    rig.tell(Event::Ended(ticket(1)));
    rig.tell(Event::Ended(ticket(3)));
    assert_eq!(rig.pass(SECOND), [2, 4, 5].map(ticket));
}

#[test]
fn no_more_are_under_way_than_the_bound_and_an_end_makes_room() {
    let mut rig = Rig::new(limits(MS * 10, 2, SECOND * 60), 7);
    for number in 0..4 {
        rig.tell(Event::Wanted(ticket(number)));
    }
    assert_eq!(rig.pass(SECOND * 14), [ticket(1)], "two are under way");
    rig.tell(Event::Told(ticket(0), Told::default()));
    assert_eq!(rig.pass(MS * 900), [], "an answer's head is not its end");
    assert_eq!(rig.tell(Event::Ended(ticket(0))), [ticket(2)]);
}

/// R7: those that never end keep nobody from a place for longer than that.
#[test]
fn r7_what_has_been_under_way_for_long_takes_no_place() {
    let mut rig = Rig::new(limits(MS * 10, 2, SECOND * 60), 7);
    for number in 0..6 {
        rig.tell(Event::Wanted(ticket(number)));
    }
    rig.pass(OCCUPIES - MS);
    assert_eq!(rig.granted.len(), 2);
    rig.pass(SECOND);
    assert_eq!(rig.granted[2..], [(OCCUPIES, ticket(2)), (OCCUPIES + MS * 10, ticket(3))]);
    rig.pass(OCCUPIES);
    assert_eq!(rig.granted.len(), 6);
}

/// R8: a request that never reached the service takes nothing of its rate, after a refusal and in a window that is nearly
/// used up: the next one is due when it was before.
#[test]
fn r8_a_request_that_was_never_sent_counts_for_nothing() {
    for told in [refusal(None), refusal(Some(SECOND * 20)), left(10, SECOND * 600)] {
        let twice = |end: fn(Ticket) -> Event| {
            let mut rig = rig();
            for number in 0..3 {
                exchange(&mut rig, number, Told::default());
                rig.pass(SECOND * 10);
            }
            exchange(&mut rig, 3, told.clone());
            let waited = wait(&mut rig, 4);
            rig.tell(end(ticket(4)));
            (waited, wait(&mut rig, 5))
        };
        let (waited, again) = twice(Event::Unsent);
        assert!(waited > SECOND * 4 && again <= SECOND, "{waited:?}, then {again:?}");
        let (_, again) = twice(Event::Ended);
        assert!(again > SECOND * 4, "one that may have been sent counts: {again:?}");
    }
}

#[test]
fn a_ticket_given_back_unused_is_the_first_again() {
    let mut rig = rig();
    grant(&mut rig, 1);
    rig.tell(Event::Wanted(ticket(2)));
    rig.tell(Event::Wanted(ticket(1)));
    assert_eq!(rig.pass(SECOND), [1, 2].map(ticket));
}

#[test]
fn r9_a_pause_longer_than_the_longest_spacing_is_a_hold() {
    let mut rig = rig();
    exchange(&mut rig, 1, left(4, SECOND * 400));
    assert_eq!(rig.pacing.held_until(), Some(Monotonic::new(SECOND * 100)));
    let mut rig = self::rig();
    exchange(&mut rig, 1, left(40, SECOND * 400));
    assert_eq!(rig.pacing.held_until(), None);
}

#[test]
fn an_unused_machine_says_when_it_may_be_forgotten() {
    let mut rig = rig();
    assert_eq!(rig.pacing.remembers_until(), None);
    exchange(&mut rig, 1, Told::default());
    assert_eq!(rig.pacing.remembers_until(), Some(Monotonic::new(MS * 200)));
    exchange(&mut rig, 2, refusal(Some(SECOND * 100)));
    assert!(rig.pacing.remembers_until() >= Some(Monotonic::new(SECOND * 100)));
}
