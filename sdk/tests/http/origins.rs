//! What goes along to another origin: no credential, and no header of which nobody knows that it holds no secret.

use outlast::testing::{Reply, Script};
use outlast::{Cause, Credential};

use crate::world::{MINUTE, Record, Run, SECOND, World, doubted, run};

/// A redirect to another origin, host or port, is followed without the credential; what is refused there says nothing
/// about it (R3).
#[tokio::test(start_paused = true)]
async fn r3_a_redirect_to_another_origin_drops_the_credential() {
    for (there, path) in [("http://store.example/object", "/object"), ("http://ci.example:8080/object", "/object")] {
        let world = World::new();
        let store = Script::serve(&world.net, "store.example");
        world.ci.replies("/run", [Reply::status(302).header("location", there)]);
        for service in [&store, &world.ci] {
            service.on(path, |asked| match (asked.header("authorization"), asked.header("x-api-key")) {
                (None, None) => run("running"),
                _ => Reply::status(500),
            });
        }
        let get = world.get("/run").header("x-api-key", "secret").credential(Credential::bearer("t").unwrap());
        let read = get.observe::<Run>().unwrap();
        let seen = Record::of(&read);
        world.shows(&read, "running", SECOND).await;
        for status in [401, 403] {
            for service in [&store, &world.ci] {
                service.replies(path, [Reply::status(status)]);
            }
            doubted(&world.env, &read, 5 * SECOND, |cause| matches!(cause, Cause::Misdirected { .. })).await;
            world.pass(MINUTE).await;
        }
        assert_eq!(seen.end(), None, "{there}");
        assert!(world.ci.asked("/run").iter().all(|asked| asked.header("authorization") == Some("Bearer t")));
        let elsewhere = store.asked(path).into_iter().chain(world.ci.asked(path));
        assert!(elsewhere.into_iter().all(|asked| asked.header("authorization").is_none()));
    }
}

/// A redirect within the origin keeps it, and two that follow each other are followed.
#[tokio::test(start_paused = true)]
async fn a_redirect_within_the_origin_keeps_the_credential() {
    let world = World::new();
    world.ci.replies("/run", [Reply::text("moved").with_status(307).header("location", "next?a=b")]);
    world.ci.replies("/next", [Reply::status(308).header("location", "http://ci.example/last")]);
    world.ci.replies("/last", [run("running")]);
    let get = world.get("/run").credential(Credential::bearer("t").unwrap());
    let read = get.observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    assert_eq!(world.ci.asked("/last")[0].header("authorization"), Some("Bearer t"));
    assert_eq!(world.ci.connections(), 1, "a redirect's body is read, and its connection used again");
}

/// Nor do the caller's own headers, whatever their names are.
#[tokio::test(start_paused = true)]
async fn headers_of_the_caller_stay_at_their_origin() {
    let world = World::new();
    let store = Script::serve(&world.net, "store.example");
    world.ci.replies("/run", [Reply::status(302).header("location", "http://store.example/x")]);
    store.replies("/x", [run("running")]);
    let names = ["x-jwt-assertion", "x-pat", "x-access", "x-bearer", "x-pass", "x-sid"];
    let get = names.iter().fold(world.get("/run"), |get, name| get.header(name, "s3cret"));
    let read = get.header("accept-language", "de").observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    assert!(names.iter().all(|name| world.ci.asked("/run")[0].header(name) == Some("s3cret")));
    let there = &store.asked("/x")[0];
    let leaked: Vec<_> = there.headers.iter().filter(|(_, value)| *value == "s3cret").map(|(name, _)| name).collect();
    assert!(leaked.is_empty(), "went to another origin: {leaked:?}");
    assert_eq!(there.header("accept-language"), Some("de"));
}

/// What was left behind does not come back: the way to the first origin is one that another has chosen.
#[tokio::test(start_paused = true)]
async fn a_way_back_brings_no_credential() {
    let world = World::new();
    let other = Script::serve(&world.net, "other.example");
    world.ci.replies("/run", [Reply::status(307).header("location", "http://other.example/x")]);
    other.replies("/x", [Reply::status(307).header("location", "http://ci.example/back?next=http://ci.example/")]);
    world.ci.replies("/back", [run("running")]);
    let read = world.get("/run").credential(Credential::header("x-sid", "s3cret").unwrap()).observe::<Run>().unwrap();
    world.shows(&read, "running", SECOND).await;
    assert_eq!(world.ci.asked("/run")[0].header("x-sid"), Some("s3cret"));
    for asked in [&other.asked("/x")[0], &world.ci.asked("/back")[0]] {
        assert_eq!(asked.header("x-sid"), None, "{}", asked.target);
    }
}

/// Port, user, trailing dot, and the slashes that browsers take for the same: what looks like the origin is none.
#[tokio::test(start_paused = true)]
async fn an_origin_that_looks_alike_gets_no_credential() {
    for (location, host, path) in [
        ("http://ci.example:8080/x", "ci.example:8080", "/x"),
        ("http://ci.example./x", "ci.example.", "/x"),
        ("http://ci.example:pass@other.example/x", "other.example", "/x"),
        ("//other.example/x", "other.example", "/x"),
        ("http:\\\\other.example/x", "other.example", "/x"),
        ("http://other.example\\@ci.example/x", "other.example", "/@ci.example/x"),
        ("/\\other.example/x", "other.example", "/x"),
    ] {
        let world = World::new();
        let (dotted, other) = (Script::serve(&world.net, "ci.example."), Script::serve(&world.net, "other.example"));
        world.ci.replies("/run", [Reply::status(302).header("location", location)]);
        for service in [&world.ci, &dotted, &other] {
            service.replies(path, [run("running")]);
        }
        let read = world.get("/run").credential(Credential::bearer("s3cret").unwrap()).observe::<Run>().unwrap();
        world.shows(&read, "running", SECOND).await;
        let asked: Vec<_> = [&world.ci, &dotted, &other].iter().flat_map(|service| service.asked(path)).collect();
        let asked: Vec<_> = asked.iter().map(|asked| (asked.header("host"), asked.header("authorization"))).collect();
        assert_eq!(asked, [(Some(host), None)], "{location}");
    }
}
