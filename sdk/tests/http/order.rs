//! What is shown never goes backwards (R4), and what is over stays over (R10).

use outlast::http::poll::Marks;
use outlast::testing::Reply;
use outlast::{Cause, Observable};
use serde::Deserialize;
use serde_json::json;

use crate::world::{MINUTE, Record, SECOND, World};

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Job {
    status: String,
    attempt: u64,
    version: u64,
}

fn job(status: &str, attempt: u64, version: u64) -> Reply {
    Reply::json(json!({ "status": status, "attempt": attempt, "version": version }))
}

fn read(world: &World) -> Observable<Job> {
    let marks = |job: &Job| Marks::terminal(job.status == "success").of_attempt(job.attempt).at_version(job.version);
    world.get("/job").json::<Job>().marks(marks).observe().unwrap()
}

fn shown(seen: &Record<Job>) -> Vec<(String, u64, u64)> {
    seen.values().into_iter().map(|job| (job.status, job.attempt, job.version)).collect()
}

/// FC-88, R4: an answer that was sampled before the terminal state, by a replica that lags, and comes after it leaves the
/// state terminal; a higher attempt may leave it.
#[tokio::test(start_paused = true)]
async fn fc_88_an_answer_older_than_the_terminal_one_is_not_shown() {
    let world = World::new();
    world.ci.replies(
        "/job",
        [
            job("running", 1, 3),
            job("success", 1, 5),
            job("running", 1, 4),
            job("running", 1, 5),
            job("running", 1, 6),
            job("success", 1, 5),
            job("running", 2, 1),
        ],
    );
    let read = read(&world);
    let seen = Record::of(&read);
    world.ci.until("/job", 3).await;
    read.until(|job| job.attempt == 2).within(MINUTE).await.unwrap();
    let expected = [("running", 1, 3), ("success", 1, 5), ("running", 2, 1)];
    assert_eq!(shown(&seen), expected.map(|(status, attempt, version)| (status.to_owned(), attempt, version)));
    assert!(seen.causes().iter().all(|cause| *cause == Cause::Behind), "{:?}", seen.causes());
    assert!(!seen.causes().is_empty(), "what contradicts is visible");
}

/// R4: a lower attempt and a lower version are behind; each is asked for again soon, and neither is shown.
#[tokio::test(start_paused = true)]
async fn r4_a_lower_attempt_or_version_is_not_shown() {
    let world = World::new();
    world.ci.replies(
        "/job",
        [job("running", 2, 7), job("running", 1, 9), job("running", 2, 6), job("queued", 1, 1), job("running", 2, 8)],
    );
    let read = read(&world);
    let seen = Record::of(&read);
    read.until(|job| job.version == 8).within(4 * SECOND).await.unwrap();
    assert_eq!(shown(&seen), [("running".to_owned(), 2, 7), ("running".to_owned(), 2, 8)]);
}

/// R4: while the service stays behind, what was shown stays, as stale, for however long.
#[tokio::test(start_paused = true)]
async fn r4_a_service_that_stays_behind_is_stale() {
    let world = World::new();
    world.ci.replies("/job", [job("success", 1, 5), job("running", 1, 4)]);
    let read = read(&world);
    let seen = Record::of(&read);
    world.pass(10 * MINUTE).await;
    assert_eq!(shown(&seen), [("success".to_owned(), 1, 5)]);
    assert_eq!(read.latest().cause(), Some(&Cause::Behind));
    let asked = world.ci.total();
    world.pass(MINUTE).await;
    assert!(world.ci.total() - asked <= 60, "{} in a minute", world.ci.total() - asked);
}

/// FC-21: the service restarts, its counter in memory begins at 1 again, and the work has ended meanwhile: the verdict is
/// seen without another change.
#[tokio::test(start_paused = true)]
async fn fc_21_a_counter_that_begins_anew_with_its_service_hides_no_verdict() {
    #[derive(Deserialize)]
    struct Counted {
        status: String,
        count: u64,
    }
    let answer = |status: &str, count: u64| Reply::json(json!({ "status": status, "count": count }));
    let world = World::new();
    world.ci.on("/run", move |_| answer("running", 100));
    let marks = |it: &Counted| Marks::terminal(it.status == "success").at_version(it.count);
    let read = world.get("/run").json::<Counted>().marks(marks).observe().unwrap();
    world.pass(MINUTE).await;
    world.ci.kill();
    world.pass(10 * SECOND).await;
    world.ci.on("/run", move |_| answer("success", 2));
    world.ci.revive();
    assert!(read.until(|it| it.status == "success").within(MINUTE).await.is_ok(), "{:?}", read.latest().cause());
}
