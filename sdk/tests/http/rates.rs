//! How often a service is asked, and how it says so itself.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use outlast::env::WallClock as _;
use outlast::http::poll::Pace;
use outlast::testing::{Asked, Reply};
use outlast::{Cause, Credential};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::world::{HOUR, MILLI, MINUTE, Record, Run, SECOND, World, doubted, run};

/// How a service throttles.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    /// 429 and no more.
    Nothing,
    /// Also what remains in the window of a minute.
    Windows,
}

/// Counts requests and refuses those above the limit.
struct Throttle {
    says: Says,
    /// So many in a sliding second, or in each minute.
    limit: usize,
    begin: Instant,
    recent: VecDeque<Instant>,
    refused: usize,
}

impl Throttle {
    fn answer(&mut self, asked: &Asked, reply: impl FnOnce() -> Reply) -> Reply {
        match self.says {
            Says::Nothing => {
                self.recent.retain(|at| asked.at - *at < SECOND);
                self.recent.push_back(asked.at);
                if self.recent.len() > self.limit {
                    self.refused += 1;
                    return Reply::status(429);
                }
                reply()
            }
            Says::Windows => {
                let elapsed = (asked.at - self.begin).as_secs();
                let minute = elapsed / 60;
                self.recent.retain(|at| (*at - self.begin).as_secs() / 60 == minute);
                self.recent.push_back(asked.at);
                let over = self.recent.len() > self.limit;
                self.refused += usize::from(over);
                let reply = if over { Reply::status(429) } else { reply() };
                reply
                    .header("x-ratelimit-limit", self.limit)
                    .header("x-ratelimit-remaining", self.limit.saturating_sub(self.recent.len()))
                    .header("x-ratelimit-reset", 60 - elapsed % 60)
            }
        }
    }
}

/// FC-11, R8: thirty waiters share one credential and the service throttles. No waiter fails, all together come under the
/// limit within a few intervals and stay there, and each ends with the verdict of its own build.
async fn thirty_waiters(says: Says, limit: usize, per: Duration) {
    let world = World::new();
    let begin = world.tokio_now();
    let throttle = Throttle { says, limit, begin, recent: VecDeque::new(), refused: 0 };
    let throttle = std::sync::Arc::new(std::sync::Mutex::new(throttle));
    let mut waits = JoinSet::new();
    for n in 0..30_u32 {
        let (throttle, over_at) = (std::sync::Arc::clone(&throttle), Duration::from_secs(400 + u64::from(n)));
        world.ci.on(&format!("/build/{n}"), move |asked| {
            assert_eq!(asked.header("authorization"), Some("Bearer shared"));
            let over = asked.at - begin >= over_at;
            throttle
                .lock()
                .unwrap()
                .answer(asked, || run(&if over { format!("verdict-{n}") } else { "running".into() }))
        });
        let get = world.get(&format!("/build/{n}")).pace(Pace::every(5 * SECOND));
        let read = get.credential(Credential::bearer("shared").unwrap()).observe::<Run>().unwrap();
        waits.spawn(async move {
            let seen = Record::of(&read);
            let known = read.until(Run::is_over).within(HOUR).await;
            (n, known.map(|known| known.status.clone()).map_err(|e| e.to_string()), seen.end())
        });
    }
    while let Some(ended) = waits.join_next().await {
        let (n, status, end) = ended.unwrap();
        assert_eq!((status, end), (Ok(format!("verdict-{n}")), None));
    }
    // From the first minute on: the rate as a whole.
    let mut asked: Vec<_> =
        (0..30).flat_map(|n| world.ci.asked(&format!("/build/{n}"))).map(|a| a.at - begin).collect();
    asked.sort();
    let window = 10 * per;
    let settled: Vec<_> = asked.iter().copied().filter(|at| (MINUTE..400 * SECOND).contains(at)).collect();
    assert!(settled.len() > 100, "starved: {}", settled.len());
    let most = limit * 10;
    for (at, from) in settled.iter().enumerate() {
        let within = settled[at..].iter().take_while(|other| **other - *from < window).count();
        assert!(within <= most, "{within} requests within {window:?} after {from:?}, {most} are permitted");
    }
    let refused = throttle.lock().unwrap().refused;
    assert!(refused * 20 < asked.len(), "{refused} of {} were refused", asked.len());
}

/// FC-11, R8: 429 without any word on when.
#[tokio::test(start_paused = true)]
async fn fc_11_thirty_waiters_come_under_a_limit_that_is_not_told() {
    thirty_waiters(Says::Nothing, 3, SECOND).await;
}

/// FC-11, R8: with headers that tell what remains.
#[tokio::test(start_paused = true)]
async fn fc_11_thirty_waiters_keep_to_a_limit_that_is_told() {
    thirty_waiters(Says::Windows, 90, MINUTE).await;
}

impl World {
    /// Tokio's time now, as the service sees it.
    fn tokio_now(&self) -> Instant {
        self.env.tokio_instant(self.env.instant())
    }

    /// A date that long from now, as headers have it.
    fn date(&self, ahead: Duration) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + self.clock.now().since_epoch() + ahead)
    }
}

/// FC-55, R8: 429, 503 and 403 with `Retry-After`, in seconds and as a date: no attempt before it, none is a refusal, and
/// one comes soon after it.
#[tokio::test(start_paused = true)]
async fn fc_55_nothing_is_asked_before_the_time_that_the_service_states() {
    for status in [429, 503, 403] {
        for form in ["seconds", "date", "date and a clock that is wrong"] {
            let what = format!("{status}, {form}");
            let world = World::new();
            world.ci.replies("/run", [run("running")]);
            let token = Credential::bearer("token").unwrap();
            let read = world.get("/run").credential(token).observe::<Run>().unwrap();
            let seen = Record::of(&read);
            world.shows(&read, "running", SECOND).await;
            let refusal = Reply::status(status);
            let refusal = match form {
                "seconds" => refusal.header("retry-after", 7),
                // A date has whole seconds, and the clock may be past the beginning of one.
                "date" => refusal.header("retry-after", world.date(10 * SECOND)),
                _ => refusal.header("date", world.date(HOUR)).header("retry-after", world.date(HOUR + 7 * SECOND)),
            };
            world.ci.replies("/run", [refusal, run("success")]);
            let refused = world.ci.until("/run", 2).await.at;
            world.shows(&read, "success", 15 * SECOND).await;
            let asked = world.ci.asked("/run");
            assert_eq!(asked.len(), 3, "{what}");
            let waited = asked[2].at - refused;
            assert!((7 * SECOND..11 * SECOND).contains(&waited), "{what}: {waited:?}");
            assert!(
                seen.causes().iter().all(|cause| matches!(cause, Cause::RateLimited { .. })),
                "{:?}",
                seen.causes()
            );
        }
    }
}

/// FC-55, R9: a wait whose next permitted attempt lies past its budget says so at once, and with the cause.
#[tokio::test(start_paused = true)]
async fn fc_55_a_wait_that_cannot_succeed_says_so_at_once() {
    for loaded in [false, true] {
        let world = World::new();
        let limited = Reply::status(429).header("retry-after", 3600);
        world.ci.replies("/run", loaded.then(|| run("running")).into_iter().chain([limited, run("success")]));
        let read = world.get("/run").observe::<Run>().unwrap();
        let (wait, took) = world.time(read.until(Run::is_over).within(60 * SECOND)).await;
        let wait = wait.unwrap_err();
        assert!(wait.is_still_pending() && wait.last().last().is_some() == loaded);
        assert_eq!(wait.cause(), Some(&Cause::RateLimited { retry_after: HOUR }));
        assert!(took < 1_500 * MILLI, "after {took:?}");
        // Another wait of the same read, and one of a later read with the same budget, know it from the start.
        let later = world.get("/other").observe::<Run>().unwrap();
        for read in [&read, &later] {
            let (wait, took) = world.time(read.until(Run::is_over).within(60 * SECOND)).await;
            assert!(wait.unwrap_err().is_still_pending());
            assert!(took < SECOND, "after {took:?}");
        }
        assert_eq!(world.ci.total(), 1 + usize::from(loaded));
        // Nothing has failed: with more time it succeeds.
        assert_eq!(read.until(Run::is_over).within(2 * HOUR).await.unwrap().status, "success");
    }
}

/// FC-55: a 403 whose body alone speaks of the rate is a limit too, and no refusal of the credential.
#[tokio::test(start_paused = true)]
async fn fc_55_a_body_that_speaks_of_the_rate_is_no_refusal() {
    let world = World::new();
    let limited = Reply::json(serde_json::json!({ "message": "You have exceeded a secondary rate limit." }));
    let limited = limited.with_status(403);
    world.ci.replies("/run", [limited.clone(), limited.clone(), limited.clone(), limited, run("success")]);
    let read = world.get("/run").credential(Credential::bearer("t").unwrap()).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.shows(&read, "success", 5 * MINUTE).await;
    assert!(seen.causes().iter().all(|cause| matches!(cause, Cause::RateLimited { .. })), "{:?}", seen.causes());
}

/// R8: two reads of one origin and credential share what the service says; another credential has its own budget.
#[tokio::test(start_paused = true)]
async fn r8_reads_of_one_agent_share_a_budget() {
    let world = World::new();
    let token = |name: &str| Credential::bearer(name).unwrap();
    world.ci.replies("/a", [run("running"), Reply::status(429).header("retry-after", 60), run("success")]);
    for path in ["/b", "/c"] {
        world.ci.replies(path, [run("running")]);
    }
    let a = world.get("/a").credential(token("one")).observe::<Run>().unwrap();
    let b = world.get("/b").credential(token("one")).observe::<Run>().unwrap();
    let c = world.get("/c").credential(token("two")).observe::<Run>().unwrap();
    let limited = world.ci.until("/a", 2).await.at;
    world.shows(&a, "success", 2 * MINUTE).await;
    let within = |path: &str| {
        let held = limited + 10 * MILLI..limited + MINUTE;
        world.ci.asked(path).iter().filter(|asked| held.contains(&asked.at)).count()
    };
    assert_eq!(within("/b"), 0, "the same credential");
    assert!(within("/c") > 50, "another one: {}", within("/c"));
    world.shows(&b, "running", 5 * SECOND).await;
    assert!(c.latest().is_fresh());
}

/// R8: a service counts by who asks, not by the token of the hour: a token that was renewed has the budget of the old one.
#[tokio::test(start_paused = true)]
async fn r8_a_renewed_token_keeps_its_budget() {
    let world = World::new();
    let used_up = run("running").header("x-ratelimit-limit", 1).header("x-ratelimit-remaining", 0);
    world.ci.replies("/run", [used_up.header("x-ratelimit-reset", 60), run("success")]);
    let minted = AtomicUsize::new(0);
    let source = move || {
        let token = format!("t{}", minted.fetch_add(1, Ordering::Relaxed));
        async move { Ok(Credential::bearer(token)?.lasting(2 * SECOND)) }
    };
    let read = world.get("/run").pace(Pace::every(5 * SECOND)).credential(source).observe::<Run>().unwrap();
    world.shows(&read, "success", 2 * MINUTE).await;
    let asked = world.ci.asked("/run");
    assert_ne!(asked[0].header("authorization"), asked[1].header("authorization"));
    assert!(asked[1].at - asked[0].at >= MINUTE, "after {:?}", asked[1].at - asked[0].at);
}

/// R8: dials of a service that is away take nothing of its rate: a read that was slowed down finds it again as soon as
/// another, whether the address refuses or is dark.
#[tokio::test(start_paused = true)]
async fn r8_dials_of_a_service_that_is_away_take_nothing_of_its_rate() {
    for dark in [false, true] {
        let world = World::new();
        let few = run("running").header("x-ratelimit-limit", 100).header("x-ratelimit-remaining", 4);
        world.ci.replies("/run", [few.header("x-ratelimit-reset", 3_000)]);
        let read = world.get("/run").observe::<Run>().unwrap();
        world.shows(&read, "running", SECOND).await;
        world.ci.kill();
        if dark {
            world.net.silence("ci.example");
        }
        // The next request is due after a quarter of an hour or so. Then it is an outage.
        let away = |cause: &Cause| matches!(cause, Cause::Unreachable { .. } | Cause::Stalled { .. });
        doubted(&world.env, &read, HOUR, away).await;
        world.pass(MINUTE).await;
        world.net.heal("ci.example");
        world.ci.replies("/run", [run("success")]);
        world.ci.revive();
        world.shows(&read, "success", 10 * SECOND).await;
        assert_eq!(world.ci.total(), 2);
    }
}

/// R8: and they are not sent closer together than the budget permits, however many there are.
#[tokio::test(start_paused = true)]
async fn r8_requests_of_one_budget_keep_their_distance() {
    let world = World::new();
    world.ci.replies("/run", [run("running")]);
    let reads: Vec<_> = (0..20).map(|_| world.get("/run").observe::<Run>().unwrap()).collect();
    for read in &reads {
        world.shows(read, "running", 10 * SECOND).await;
    }
    world.pass(10 * SECOND).await;
    let asked = world.ci.asked("/run");
    assert!(asked.windows(2).all(|two| two[1].at - two[0].at >= 199 * MILLI));
}

/// R9: a budget that holds a read is shown as the cause, and the read goes on by itself.
#[tokio::test(start_paused = true)]
async fn r9_a_read_that_is_held_says_why() {
    let world = World::new();
    world.ci.replies("/a", [Reply::status(429).header("retry-after", 120)]);
    world.ci.replies("/b", [run("running"), run("success")]);
    let b = world.get("/b").pace(Pace::every(10 * SECOND)).observe::<Run>().unwrap();
    world.shows(&b, "running", SECOND).await;
    let _a = world.get("/a").observe::<Run>().unwrap();
    doubted(&world.env, &b, 12 * SECOND, |cause| matches!(cause, Cause::RateLimited { .. })).await;
    world.shows(&b, "success", 125 * SECOND).await;
}

/// What the service states as the least interval is kept: `Cache-Control` up to the read's longest interval, and
/// `X-Poll-Interval` in any case.
#[tokio::test(start_paused = true)]
async fn intervals_that_the_service_states_are_floors() {
    for (name, value, pace, least, most) in [
        ("cache-control", "private, max-age=20", Pace::between(SECOND, 30 * SECOND), 20, 21),
        ("cache-control", "max-age=86400", Pace::between(SECOND, 30 * SECOND), 30, 31),
        ("cache-control", "no-cache", Pace::every(SECOND), 0, 2),
        ("x-poll-interval", "45", Pace::between(SECOND, 30 * SECOND), 45, 46),
        ("retry-after", "25", Pace::every(SECOND), 25, 26),
    ] {
        let world = World::new();
        world.ci.replies("/run", [run("running").header(name, value).header("etag", "\"1\"")]);
        let read = world.get("/run").pace(pace).observe::<Run>().unwrap();
        world.ci.until("/run", 4).await;
        let asked = world.ci.asked("/run");
        for two in asked.windows(2) {
            let gap = two[1].at - two[0].at;
            assert!((least * SECOND..most * SECOND).contains(&gap), "{name}: {value}: {gap:?}");
        }
        assert!(read.latest().is_fresh(), "a floor is no fault");
    }
}
