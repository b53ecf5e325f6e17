//! Streams beside a read that lie, come late or fall over: the read stays right, and asks no more for it.

use outlast::http::push::Push;
use outlast::testing::Reply;

use crate::world::{MINUTE, Record, Run, SECOND, World, run};

/// FC-88, R4: an event that was made before the value shown, and comes late, shows nothing older.
#[tokio::test(start_paused = true)]
async fn fc_88_a_late_event_shows_nothing_older() {
    let world = World::new();
    world.ci.replies("/run", [run("running"), run("success")]);
    let (stream, handle) = Reply::stream();
    world.ci.replies("/events", [stream.header("content-type", "text/event-stream")]);
    let read = world.get("/run").push(Push::events("http://ci.example/events").values()).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.shows(&read, "success", 5 * SECOND).await;
    assert_eq!(handle.readers(), 1);
    for _ in 0..2 {
        handle.send("data: {\"status\":\"running\"}\n\n");
        world.pass(3 * SECOND).await;
    }
    assert_eq!(seen.statuses(), ["running", "success"], "a late event of an old state was shown");
}

/// FC-49: a stream that says something and ends at once, over and over, is opened less and less often, and makes no loop of
/// looks.
#[tokio::test(start_paused = true)]
async fn fc_49_a_stream_that_flaps_is_no_loop() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    world.ci.on("/events", |_| Reply::chunked(["data: x\n\n"]).ends().header("content-type", "text/event-stream"));
    let read = world.get("/run").push(Push::events("http://ci.example/events")).observe::<Run>().unwrap();
    world.pass(4 * MINUTE).await;
    let (opened, looks) = (world.ci.asked("/events").len(), world.ci.asked("/run").len());
    world.pass(MINUTE).await;
    let (opened, looks) = (world.ci.asked("/events").len() - opened, world.ci.asked("/run").len() - looks);
    assert!((1..=15).contains(&opened), "{opened} streams in the fifth minute");
    // 63 in their turn: each second, less up to a tenth at random.
    assert!(looks <= 63 + opened, "{looks} looks in the fifth minute for {opened} streams");
    assert!(read.latest().is_fresh());
}
