//! A wall clock that jumps: a machine that slept, or whose time was set (R7).

use std::time::Duration;

use outlast::http::poll::Pace;
use outlast::testing::Reply;

use crate::world::{HOUR, MILLI, MINUTE, Run, SECOND, World, run};

impl World {
    /// Sets the wall clock an hour ahead and back in turns, each time for so long.
    async fn flaps(&self, times: u32, each: Duration) {
        for n in 0..times {
            if n % 2 == 0 {
                self.clock.advance(HOUR);
            } else {
                self.clock.set_back(HOUR);
            }
            self.pass(each).await;
        }
    }
}

/// R7: a machine that slept, or whose clock was set, looks at once, on another connection; a `Retry-After` is kept.
#[tokio::test(start_paused = true)]
async fn r7_a_jump_of_the_clock_forces_a_look() {
    for back in [false, true] {
        let world = World::new();
        world.ci.replies("/run", [run("running"), run("success")]);
        let read = world.get("/run").pace(Pace::every(HOUR)).observe::<Run>().unwrap();
        world.shows(&read, "running", SECOND).await;
        world.pass(MINUTE).await;
        assert_eq!(world.ci.total(), 1);
        if back {
            world.clock.set_back(2 * HOUR);
        } else {
            world.clock.advance(2 * HOUR);
        }
        world.shows(&read, "success", 1_200 * MILLI).await;
        assert_eq!(world.ci.asked("/run")[1].connection, 2, "what was open before the sleep is not trusted");
    }
}

/// R7: the same in the middle of a long poll, whose connection the sleep has killed without a word.
#[tokio::test(start_paused = true)]
async fn r7_a_jump_of_the_clock_abandons_a_long_poll() {
    let world = World::new();
    world.ci.replies("/run", [run("running").header("etag", "\"1\""), Reply::hang(), run("success")]);
    let read = world.get("/run").wait(4 * HOUR).observe::<Run>().unwrap();
    world.ci.until("/run", 2).await;
    world.pass(MINUTE).await;
    world.net.silence("ci.example");
    world.net.heal("ci.example");
    world.clock.advance(2 * HOUR);
    world.shows(&read, "success", 1_500 * MILLI).await;
    let asked = world.ci.asked("/run");
    assert_eq!((asked.len(), asked[2].header("if-none-match")), (3, None), "the whole state, at once");
}

/// R7, FC-55: a jump is no licence to ask before the service wants it, whether it refused or only asked for time.
#[tokio::test(start_paused = true)]
async fn r7_a_jump_of_the_clock_breaks_no_promise_to_wait() {
    for status in [429, 200] {
        let world = World::new();
        let first = run("running").with_status(status).header("retry-after", 600);
        world.ci.replies("/run", [first, run("success")]);
        let read = world.get("/run").observe::<Run>().unwrap();
        world.ci.until("/run", 1).await;
        world.pass(SECOND).await;
        world.clock.advance(2 * HOUR);
        world.pass(10 * SECOND).await;
        assert_eq!(world.ci.total(), 1, "{status}");
        world.shows(&read, "success", 600 * SECOND).await;
    }
}

/// R7, FC-55: nor are many jumps, both ways.
#[tokio::test(start_paused = true)]
async fn fc_55_a_clock_that_flaps_shortens_no_retry_after() {
    for status in [429, 200] {
        let world = World::new();
        let later = run("running").with_status(status).header("retry-after", 600);
        world.ci.replies("/run", [run("running"), later]);
        let _read = world.get("/run").observe::<Run>().unwrap();
        world.pass(5 * SECOND).await;
        assert_eq!(world.ci.total(), 2, "{status}");
        world.flaps(50, 10 * SECOND).await;
        assert_eq!(world.ci.total(), 2, "{status}: asked within Retry-After");
        world.ci.until("/run", 3).await;
    }
}

/// R7: a clock that flaps each second, while all is well, makes no loop of looks.
#[tokio::test(start_paused = true)]
async fn r7_a_clock_that_flaps_is_no_loop() {
    let world = World::new();
    world.ci.on("/run", |_| run("running"));
    let read = world.get("/run").pace(Pace::every(30 * SECOND)).observe::<Run>().unwrap();
    world.pass(5 * SECOND).await;
    world.flaps(300, SECOND).await;
    let asked = world.ci.total();
    assert!((11..=75).contains(&asked), "{asked} requests in 5 minutes");
    assert!(read.latest().is_fresh());
}
