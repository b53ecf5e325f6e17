//! How often a service is asked, and how it says so itself.

use std::collections::VecDeque;
use std::time::Duration;

use outlast::http::poll::Pace;
use outlast::testing::{Asked, Reply};
use outlast::{Cause, Credential};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::world::{HOUR, MILLI, MINUTE, Record, Run, SECOND, World, run};

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

/// R8: forty reads that are refused for ever, told no time or told "at once", are no storm, and go on.
#[tokio::test(start_paused = true)]
async fn r8_reads_that_are_refused_for_ever_are_no_storm() {
    for (refusal, most) in [(Reply::status(429), 60), (Reply::status(429).header("retry-after", 0), 700)] {
        let world = World::new();
        world.ci.on("/run", move |_| refusal.clone());
        let _reads: Vec<_> = (0..40).map(|n| world.get(&format!("/run?{n}")).observe::<Run>().unwrap()).collect();
        world.pass(10 * MINUTE).await;
        let asked = world.asked_in(10 * MINUTE).await;
        assert!((1..=most).contains(&asked), "{asked} in ten minutes, while everything is refused");
    }
}
