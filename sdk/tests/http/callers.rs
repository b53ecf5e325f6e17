//! What a caller gives to a read (code, values, settings) breaks no promise to the others: it ends nothing (R1, R3).

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use outlast::Cause;
use outlast::http::feed::{self, LogKind};
use outlast::http::poll::Pace;
use outlast::http::push::Push;
use outlast::testing::Reply;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use crate::world::{MINUTE, Record, Run, SECOND, World, run};

/// R1: a decoder that panics is the caller's mistake, and no verdict of the service.
#[tokio::test(start_paused = true)]
async fn r1_a_decoder_that_panics_ends_nothing() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), run("odd"), run("success")]);
    let read = world.get("/run").decoded(|body| {
        let run: Run = serde_json::from_slice(body).map_err(|e| e.to_string())?;
        assert_ne!(run.status, "odd");
        Ok(run)
    });
    let read = read.observe().unwrap();
    let seen = Record::of(&read);
    world.shows(&read, "success", 5 * SECOND).await;
    assert_eq!(seen.statuses(), ["running", "success"]);
    assert!(seen.causes().iter().any(|cause| matches!(cause, Cause::Undecodable { .. })), "{:?}", seen.causes());
}

/// R1, R3: so is code that panics over marks or over pages.
#[tokio::test(start_paused = true)]
async fn r1_marks_and_pages_that_panic_end_nothing() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    let marks = world.get("/run").json::<Run>().marks(|_| panic!("marks")).observe().unwrap();
    let pages = world.get("/run").json::<Run>().pages(|_, _| panic!("pages")).observe().unwrap();
    world.pass(MINUTE).await;
    for read in [&marks, &pages] {
        let latest = read.latest();
        assert!(matches!(latest.cause(), Some(Cause::Undecodable { .. })) && !latest.is_ended(), "{latest:?}");
    }
    assert!(world.asked_in(MINUTE).await > 5, "the reads have stopped");
}

struct Bomb(String);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a value that does not want to go");
    }
}

/// R1, R3: a value that panics when it is dropped ends nothing, and the next one is shown.
#[tokio::test(start_paused = true)]
async fn r1_a_value_whose_drop_panics_ends_nothing() {
    let world = World::new();
    world.ci.replies("/run", (1..=20).map(|n| Reply::bytes(format!("{n}"))));
    let read =
        world.get("/run").decoded(|body| Ok(Bomb(String::from_utf8_lossy(body).into_owned()))).observe().unwrap();
    world.pass(MINUTE).await;
    let latest = read.latest();
    let (fresh, shown) = (latest.is_fresh(), latest.last().map(|bomb| bomb.0.clone()));
    // They must not go in this task.
    std::mem::forget((latest, read));
    assert_eq!((fresh, shown.as_deref()), (true, Some("20")));
}

/// A service that takes each WebSocket and says two things.
fn talks(world: &World) -> JoinSet<()> {
    let mut listener = world.net.listen("push.example");
    let mut life = JoinSet::new();
    life.spawn(async move {
        let mut sockets = JoinSet::new();
        while let Some(io) = listener.accept().await {
            sockets.spawn(async move {
                let Ok(mut socket) = tokio_tungstenite::accept_async(io).await else { return };
                for text in ["one", "two"] {
                    let _ = socket.send(Message::text(text)).await;
                }
                while let Some(Ok(_)) = socket.next().await {}
            });
        }
    });
    life
}

/// R1, R3: code that panics over what a stream says ends nothing; the read goes on without it.
#[tokio::test(start_paused = true)]
async fn r1_code_that_panics_over_a_stream_ends_nothing() {
    let push = || Push::websocket("ws://push.example/ws");
    for (what, push) in [
        ("a value", push().values(|_| panic!("the caller's code"))),
        ("the confirmation", push().confirmed_by(|_| panic!("the caller's code"))),
    ] {
        let world = World::new();
        world.ci.replies("/run", [run("running")]);
        let _service = talks(&world);
        let read = world.get("/run").push(push).observe::<Run>().unwrap();
        let seen = Record::of(&read);
        world.pass(MINUTE).await;
        assert_eq!(seen.end(), None, "{what}");
        world.ci.replies("/run", [run("success")]);
        world.shows(&read, "success", MINUTE).await;
    }
}

/// The largest settings that there are end nothing, and are no overflow.
#[tokio::test(start_paused = true)]
async fn the_largest_durations_end_nothing() {
    const MAX: Duration = Duration::MAX;
    let world = World::new();
    let run = || run("running").header("etag", "\"1\"").header("cache-control", "max-age=99999999999999999999");
    for (path, reply) in [("/run", run()), ("/absent", Reply::status(404)), ("/bad", Reply::status(500))] {
        world.ci.replies(path, [reply]);
        let get = world.get(path).pace(Pace::between(MAX, MAX)).wait(MAX).grace(MAX).give_up_after(MAX);
        let read = get.observe::<Run>().unwrap();
        assert!(world.within(MINUTE, read.until(Run::is_over).within(MAX)).await.is_none(), "{path}");
        assert!(!read.latest().is_ended(), "{path}: {:?}", read.latest());
        let settings = feed::Settings::default().with_pace(Pace::between(MAX, MAX)).with_quiet(MAX);
        let settings = settings.with_settle(MAX).with_finish_within(MAX).with_give_up(MAX);
        let mut log = world.get(path).log_with(LogKind::Whole, settings).unwrap();
        log.finish();
        let ended = world.within(MINUTE, async { while log.next().await.is_some() {} }).await;
        assert!(ended.is_none(), "{path}: {:?}", log.state().latest());
        assert!(world.ci.asked(path).len() >= 2, "{path}: one of the two asks nothing");
    }
    assert_eq!(world.asked_in(SECOND).await, 0);
}
