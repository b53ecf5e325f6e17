//! Many reads and random faults: each ends with its own verdict.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::http::poll::Pace;
use outlast::testing::{Reply, env};
use outlast::{Credential, Error};
use tokio::task::JoinSet;

use crate::world::{HOUR, MILLI, MINUTE, Record, Run, SECOND, World, run};

/// Something that goes wrong, or does not.
fn fault(draw: u64, value: Reply, tag: &str) -> Reply {
    match draw % 24 {
        0 => Reply::status(500 + u16::try_from(draw / 24 % 5).unwrap()),
        1 => Reply::close(),
        2 => Reply::hang(),
        3 => value.cut(3),
        4 => value.stalls(3),
        5 => Reply::status(429),
        6 => Reply::status(503).header("retry-after", 2),
        7 => Reply::bytes("<html>").header("content-type", "text/html"),
        8 => Reply::status(200),
        9 => value.with_status(203),
        10 => Reply::status(404),
        11 => Reply::raw("garbage"),
        12 => value.after(3 * SECOND),
        13 => Reply::status(302).header("location", "http://login.example/"),
        14 => value.closes(),
        15 => Reply::json("another value"),
        _ => value.header("etag", tag),
    }
}

/// R1, R3, R8: two hundred reads of a service that fails in every way, dies three times and loses its path once all end
/// with their own verdict, and none with an error.
#[tokio::test(start_paused = true)]
async fn two_hundred_reads_end_with_their_own_verdict() {
    for seed in 1..=3 {
        let world = World::spaced(5 * MILLI);
        let draws = env(seed);
        let begin = world.env.instant();
        let mut waits = JoinSet::new();
        for n in 0..200_u64 {
            let (draws, time) = (draws.clone(), world.env.clone());
            let over_at = Duration::from_secs(60 + n);
            let last = Mutex::new(false);
            world.ci.on(&format!("/run/{n}"), move |asked| {
                let over = time.instant().since(begin) >= over_at;
                let (status, tag) = if over { (format!("verdict-{n}"), "\"2\"") } else { ("running".into(), "\"1\"") };
                if asked.header("if-none-match") == Some(tag) {
                    return Reply::status(304);
                }
                // Two 404 in a row would be an end, and rightly so.
                let mut missing = last.lock().unwrap();
                let draw = draws.draw();
                let draw = if *missing && draw % 24 == 10 { 23 } else { draw };
                *missing = draw % 24 == 10;
                fault(draw, run(&status), tag)
            });
            let get = world.get(&format!("/run/{n}")).pace(Pace::between(SECOND, 10 * SECOND)).wait(5 * SECOND);
            let calls = Arc::new(Mutex::new(0_u64));
            let get = get.credential(move || {
                let mut calls = calls.lock().unwrap();
                *calls += 1;
                // One question in three comes to nothing.
                let fails = (*calls + n).is_multiple_of(3);
                async move {
                    if fails {
                        Err(Error::unavailable("sealed"))
                    } else {
                        Ok(Credential::bearer("shared")?.lasting(MINUTE))
                    }
                }
            });
            let read = get.observe::<Run>().unwrap();
            let seen = Record::of(&read);
            waits.spawn(async move {
                let known = read.until(Run::is_over).within(2 * HOUR).await;
                let known = known.map(|known| known.status.clone()).map_err(|e| format!("{e} {:?}", e.last()));
                (n, known, seen.end(), seen.statuses())
            });
        }
        for _ in 0..3 {
            world.pass(25 * SECOND).await;
            world.ci.kill();
            world.pass(8 * SECOND).await;
            world.ci.revive();
        }
        world.net.silence("ci.example");
        world.pass(20 * SECOND).await;
        world.net.heal("ci.example");
        let mut ended = 0;
        while let Some(wait) = waits.join_next().await {
            let (n, known, end, statuses) = wait.unwrap();
            assert_eq!((known, end), (Ok(format!("verdict-{n}")), None), "read {n} of seed {seed}");
            assert!(statuses.iter().all(|status| *status == "running" || *status == format!("verdict-{n}")));
            ended += 1;
        }
        assert_eq!(ended, 200);
    }
}
