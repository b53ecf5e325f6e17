//! Code of the user that panics: projections, callbacks and observers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast::Reading;
use outlast::call::{Args, Method, Params};
use outlast::log::{Entry, Prefix, Subject};
use outlast::server::{Cells, Changes, Events, Projection, Routes, RpcScope, Server};
use outlast::testing::Life;
use outlast_tests::{JobsClient, World};
use tokio::time::{sleep, timeout};

struct Brittle {
    cells: Cells<String, u64>,
    count: u64,
}

impl Projection for Brittle {
    fn prefix(&self) -> Prefix {
        Prefix::of(["n"])
    }

    fn apply(&mut self, entry: &Entry, changes: &mut Changes<'_>) {
        self.count += 1;
        assert!(self.count != 2, "a bug of the projection");
        changes.set(&self.cells, entry.subject.tokens().last().unwrap(), self.count);
    }
}

const NUMBER: Method = Method::new("numbers.v1/number");
const ADD: Method = Method::new("numbers.v1/add");

/// R5: a projection that has died leaves its reads behind the log; they must not go on reading as fresh for ever.
#[tokio::test(start_paused = true)]
async fn r5_a_dead_projection_is_not_fresh_for_ever() {
    let world = World::new(3);
    let cells: Cells<String, u64> = Cells::new();
    let live = cells.clone();
    let routes = Routes::new("numbers", 1)
        .read(&NUMBER, move |_: &RpcScope, mut args: Args| Ok(live.live(&args.take("id")?)))
        .command(&ADD, |_: RpcScope, mut args: Args| async move {
            Ok(Events::on(Subject::of(["n", &args.take::<String>("id")?])).push(&1))
        });
    let server = Server::builder(world.log.clone())
        .env(world.env(1))
        .project(Brittle { cells, count: 0 })
        .service(routes)
        .start()
        .await
        .unwrap();
    let _life = Life::serve(&world.net, "numbers", server.router());
    let client = world.client("ws://numbers/").open().unwrap();
    let caller = client.caller();
    let add = || caller.call(&ADD, Params::new().with("id", "a"));
    add().await.unwrap();
    let number = caller.read::<u64>(&NUMBER, Params::new().with("id", "a"));
    assert_eq!(*number.until(|_| true).await.unwrap(), 1);
    add().detach(); // the projection dies of this one
    sleep(Duration::from_secs(60)).await;
    server.stopped().await;
    assert!(
        !matches!(number.latest(), Reading::Fresh { .. }),
        "two effects behind after a minute: {:?}",
        number.latest()
    );
}

/// A caller's code that panics: in discovery, the credential, a map. The client goes on.
#[tokio::test(start_paused = true)]
async fn panics_of_the_callers_code() {
    let world = World::new(20);
    let _life = world.serve("jobs").await;
    let first = Arc::new(AtomicBool::new(true));
    let once = Arc::clone(&first);
    let client = world
        .client(move || {
            assert!(!once.swap(false, Ordering::Relaxed), "a bug of the caller");
            async { Ok(vec!["ws://jobs/".to_owned()]) }
        })
        .open()
        .unwrap();
    let jobs = JobsClient::new(&client);
    timeout(Duration::from_secs(60), jobs.bump("a".into())).await.expect("goes on").unwrap();
}

/// A caller's map and predicate that panic hurt only who called them.
#[tokio::test(start_paused = true)]
async fn panics_of_observers() {
    let world = World::new(45);
    let _life = world.serve("jobs").await;
    let client = world.client("ws://jobs/").open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    let job = jobs.job("a".into());
    let waited = tokio::spawn(job.until(|_| panic!("a bug of the caller"))).await;
    assert!(waited.is_err());
    let mapped = job.map(|_| -> u64 { panic!("a bug of the caller") });
    let waited = tokio::spawn(mapped.until(|_| true)).await;
    assert!(waited.is_err());
    jobs.bump("a".into()).await.unwrap();
    assert!(timeout(Duration::from_secs(5), job.until(|job| job.bumps == 2)).await.expect("goes on").is_ok());
}
