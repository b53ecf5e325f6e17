//! No secret in anything that can be printed.

use std::fmt::Write as _;

use outlast::http::Get;
use outlast::testing::{Reply, Script};
use outlast::{Credential, Observable};

use crate::world::{MINUTE, Record, Run, SECOND, World, run};

const SECRETS: [&str; 5] = ["hunter2", "tok3n", "k3y", "cook1e", "signed0bject"];

fn read_of(world: &World) -> (Get, Observable<Run>) {
    let get =
        world.get("/run?token=hunter2").header("x-api-key", "k3y").credential(Credential::bearer("tok3n").unwrap());
    (get.clone(), get.observe().unwrap())
}

fn check(what: &str, printed: &str) {
    for secret in SECRETS {
        assert!(!printed.contains(secret), "{what}: {secret} in {printed}");
    }
}

/// Query, token and headers stand in no reading, cause, wait or setup, whatever fails.
#[tokio::test(start_paused = true)]
async fn nothing_that_is_printed_has_a_secret_in_it() {
    let redirect = |to: &str| Reply::status(302).header("location", to);
    let replies = || {
        vec![
            Reply::status(500).body("token=hunter2"),
            Reply::status(422).body("tok3n"),
            Reply::status(401).header("www-authenticate", "Bearer error=\"tok3n\""),
            Reply::status(429).header("retry-after", 3),
            Reply::close(),
            Reply::raw("tok3n"),
            Reply::json("hunter2"),
            Reply::json(["tok3n", "hunter2"]),
            Reply::json(serde_json::json!({ "status": 5, "token": "tok3n" })),
            Reply::text("tok3n hunter2"),
            Reply::text("tok3n").header("set-cookie", "session=cook1e"),
            run("running").cut(3),
            redirect("http://store.example/signed0bject?signature=hunter2"),
            redirect("ftp://u:tok3n@store.example/signed0bject?token=hunter2"),
            redirect("/run?token=hunter2"),
            redirect("http://nowhere.example/signed0bject?token=hunter2"),
            redirect("http://[tok3n"),
            Reply::hang(),
            run("running").stalls(3),
        ]
    };
    for reply in replies() {
        let world = World::new();
        world.net.name("nowhere.example", []);
        let store = Script::serve(&world.net, "store.example");
        store.replies("/signed0bject", [Reply::status(403).body("hunter2")]);
        world.ci.replies("/run", [reply.clone(), reply]);
        let (get, read) = read_of(&world);
        let seen = Record::of(&read);
        let wait = read.until(Run::is_over).within(2 * MINUTE).await.unwrap_err();
        assert!(!seen.causes().is_empty());
        let mut printed = format!("{get:?} {read:?} {wait} {wait:?} {:?}", get.clone().json::<Run>());
        for reading in seen.all() {
            write!(printed, "{reading:?}").unwrap();
        }
        for cause in seen.causes() {
            write!(printed, "{cause} {cause:?}").unwrap();
        }
        check("a reply", &printed);
    }
}

/// The same for a service that cannot be reached.
#[tokio::test(start_paused = true)]
async fn a_service_out_of_reach_has_no_secret_in_its_cause() {
    let world = World::new();
    world.ci.kill();
    let (_, read) = read_of(&world);
    let seen = Record::of(&read);
    world.pass(10 * SECOND).await;
    world.net.name("ci.example", []);
    world.pass(10 * SECOND).await;
    assert!(seen.causes().len() >= 2, "{:?}", seen.causes());
    check(
        "out of reach",
        &format!("{:?} {}", seen.causes(), seen.causes().iter().map(ToString::to_string).collect::<String>()),
    );
}

/// And for what is refused at once.
#[tokio::test(start_paused = true)]
async fn an_error_has_no_secret_in_it() {
    let world = World::new();
    for get in [
        world.agent.get("http://user:hunter2@ci.example/"),
        world.agent.get("ci.example/run?token=hunter2"),
        world.agent.get("http://ci.example:hunter2/"),
        world.get("/run").header("x-api-key", "hunter2\r\n"),
        world.get("/run").header("hunter2 k3y", "value"),
    ] {
        let error = get.clone().observe::<Run>().unwrap_err();
        let source = std::error::Error::source(&error).map(|e| format!("{e} {e:?}"));
        check("an error", &format!("{error} {error:?} {source:?} {get:?}"));
    }
}
