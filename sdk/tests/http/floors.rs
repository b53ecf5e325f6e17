//! When the service says for how long it does not want to be asked, that is the least (R8, FC-55).

use std::time::{Duration, UNIX_EPOCH};

use outlast::env::WallClock as _;
use outlast::http::feed::LogKind;
use outlast::http::poll::{Marks, Pace};
use outlast::http::push::Push;
use outlast::testing::{Reply, Script};
use outlast::{Cause, Credential};

use crate::world::{HOUR, MINUTE, Record, Run, SECOND, World, run};

impl World {
    /// A date that long from now, as headers have it.
    fn date(&self, ahead: Duration) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + self.clock.now().since_epoch() + ahead)
    }
}

/// Watches for a while: it is asked again and again, and each time at least `floor` after the time before.
async fn keeps_to(world: &World, service: &Script, target: &str, floor: Duration) {
    world.pass(4 * floor).await;
    let asked = service.asked(target);
    let gaps: Vec<_> = asked.windows(2).map(|two| two[1].at - two[0].at).collect();
    assert!(gaps.len() >= 2 && gaps.iter().all(|gap| *gap >= floor), "{target}, not before {floor:?}: {gaps:?}");
}

/// R8: the events of a stream ask for looks, which come no sooner for that.
#[tokio::test(start_paused = true)]
async fn r8_a_stream_hurries_no_floor() {
    let world = World::new();
    world.ci.on("/run", |_| run("running").header("x-poll-interval", 60));
    let (stream, handle) = Reply::stream();
    world.ci.replies("/events", [stream.header("content-type", "text/event-stream")]);
    let read = world.get("/run").push(Push::events("http://ci.example/events")).observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    let hints = async {
        loop {
            handle.send("data: x\n\n");
            world.pass(SECOND).await;
        }
    };
    tokio::select! {
        () = keeps_to(&world, &world.ci, "/run", MINUTE) => {}
        () = hints => {}
    }
}

/// R8: it counts whatever else the answer is, and whatever becomes of its body. With a redirect it is the least time before
/// the next step, too (RFC 9110, 10.2.3).
#[tokio::test(start_paused = true)]
async fn r8_a_floor_counts_whatever_else_the_answer_is() {
    let error = Reply::status(500).body("long text of an error");
    for (what, reply, floor) in [
        ("what is not there yet", Reply::status(404).header("x-poll-interval", 60), 60),
        ("a redirect", Reply::status(302).header("location", "/there").header("retry-after", 60), 60),
        ("a redirect without a place", Reply::status(302).header("retry-after", 60), 60),
        ("a redirect to what ends", Reply::status(302).header("location", "/ends").header("retry-after", 60), 60),
        ("a value that is cut", run("running").header("retry-after", 60).cut(3), 60),
        ("an error that stalls", error.header("retry-after", 300).stalls(3), 300),
    ] {
        println!("{what}");
        let world = World::new();
        world.ci.replies("/run", [reply]);
        world.ci.on("/there", |_| run("running"));
        world.ci.on("/ends", |_| Reply::close());
        let _read = world.get("/run").grace(24 * HOUR).observe::<Run>().unwrap();
        keeps_to(&world, &world.ci, "/run", floor * SECOND).await;
    }
}

/// R4, R8: the same for a value that is older than the one shown.
#[tokio::test(start_paused = true)]
async fn r8_a_floor_counts_with_a_value_that_is_behind() {
    let world = World::new();
    let version = |n: &str| run(n).header("x-poll-interval", 60);
    world.ci.replies("/run", [version("9"), version("5")]);
    let read = world.get("/run").json::<Run>().marks(|run| Marks::default().at_version(run.status.parse().unwrap()));
    let read = read.observe().unwrap();
    keeps_to(&world, &world.ci, "/run", MINUTE).await;
    assert_eq!(read.latest().cause(), Some(&Cause::Behind));
}

/// R8: the same for a log.
#[tokio::test(start_paused = true)]
async fn r8_a_floor_counts_whatever_becomes_of_a_log() {
    for (what, reply) in [
        ("cut", Reply::text("0123456789").cut(3)),
        ("stalled", Reply::text("0123456789").stalls(3)),
        ("not there yet", Reply::status(404)),
        ("a redirect to what ends", Reply::status(302).header("location", "/ends")),
    ] {
        println!("{what}");
        let world = World::new();
        world.ci.replies("/log", [reply.header("retry-after", 60)]);
        world.ci.on("/ends", |_| Reply::close());
        let _log = world.get("/log").log(LogKind::Whole).unwrap();
        keeps_to(&world, &world.ci, "/log", MINUTE).await;
    }
}

/// R8, FC-55: `Retry-After` of a stream that is refused, of events as of WebSockets: for the rate, and for what its budget
/// knows nothing of.
#[tokio::test(start_paused = true)]
async fn fc_55_a_stream_is_not_opened_before_the_time_that_the_service_states() {
    for status in [503, 500] {
        for (path, push) in [
            ("/events", Push::events("http://push.example/events").into()),
            ("/ws", Push::from(Push::websocket("ws://push.example/ws"))),
        ] {
            println!("{status} {path}");
            let world = World::new();
            world.ci.replies("/run", [run("running")]);
            let service = Script::serve(&world.net, "push.example");
            service.replies(path, [Reply::status(status).header("retry-after", 120)]);
            let _read = world.get("/run").push(push).observe::<Run>().unwrap();
            keeps_to(&world, &service, path, 2 * MINUTE).await;
        }
    }
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
