//! Answers that look like values and are none (R3).

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use outlast::testing::{Reply, Script};
use outlast::{Cause, Credential};

use crate::world::{MINUTE, Record, Run, SECOND, World, doubted, run};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zipped(bytes: Vec<u8>) -> Reply {
    Reply::bytes(bytes).header("content-type", "application/json").header("content-encoding", "gzip")
}

fn html(text: &str) -> Reply {
    Reply::bytes(text.to_owned()).header("content-type", "text/html; charset=utf-8")
}

fn utf16() -> Reply {
    let text = "\u{feff}{\"status\":\"success\"}";
    Reply::bytes(text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>())
}

/// An answer, byte for byte.
fn raw(headers: &str, body: &str) -> Reply {
    Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}\r\n{body}"))
}

/// R3: none of these is a value or an end; the value of before stays, as stale, and the read recovers.
#[tokio::test(start_paused = true)]
async fn r3_what_only_looks_like_a_value_is_none() {
    let value = b"{\"status\":\"success\"}";
    let whole = gzip(value);
    for (what, reply) in [
        ("a login page", html("<form action=/login>")),
        ("a login page that is JSON inside", html("{\"status\":\"success\"}")),
        ("a value that a proxy has changed", run("success").with_status(203)),
        ("a value that is not ready", run("success").with_status(202)),
        ("a part of a value", run("success").with_status(206)),
        ("a value that is cut", run("success").cut(19)),
        ("a value shorter than announced", run("success").length(100)),
        ("a value longer than announced", Reply::json(()).body("{\"status\":\"success\"} ").length(10)),
        ("two values", Reply::json(()).body("{\"status\":\"success\"}{\"status\":\"success\"}")),
        ("another value", Reply::json(serde_json::json!({ "state": "success" }))),
        ("a zipped value that is cut", zipped(whole[..whole.len() - 4].to_vec())),
        ("a value that is not zipped", zipped(value.to_vec())),
        ("a value in an unknown coding", run("success").header("content-encoding", "x-secret")),
        ("a value in another character set", run("success").header("content-type", "application/json; charset=utf-16")),
        ("an error that is a value", run("success").with_status(500)),
        ("a refusal that is a value", run("success").with_status(422)),
        ("a value whose status has none", run("success").with_status(205)),
        ("nothing, to whom did not ask to be held", Reply::status(204)),
        ("unchanged, to whom named nothing", Reply::status(304)),
        ("an empty body", Reply::json(()).body("")),
        ("half of it that ends well", Reply::chunked(["{\"status\":\"succ"]).ends()),
        ("null in place of a word", Reply::json(serde_json::json!({ "status": null }))),
        ("a list of it", Reply::json(serde_json::json!([{ "status": "success" }]))),
        ("UTF-16 that says so", utf16().header("content-type", "application/json; charset=utf-16")),
        ("UTF-16 that does not", utf16().header("content-type", "application/json")),
        ("a value in brotli that is none", run("success").header("content-encoding", "br")),
        ("a value far longer than announced", run("success").length(5)),
        ("what is not HTTP", Reply::raw("SSH-2.0-OpenSSH_9.9\r\n")),
        ("two lengths", raw("Content-Length: 20\r\nContent-Length: 21\r\n", "{\"status\":\"success\"}")),
        ("a chunk that is cut", raw("Transfer-Encoding: chunked\r\n", "14;a=\"b\"\r\n{\"status\":\"success\"\r\n")),
        ("a head without measure", raw(&format!("X: {}\r\n", "y".repeat(2 << 20)), "{\"status\":\"success\"}")),
    ] {
        let world = World::new();
        world.ci.replies("/run", [run("running"), reply]);
        let read = world.get("/run").observe::<Run>().unwrap();
        let seen = Record::of(&read);
        world.pass(MINUTE).await;
        assert_eq!((seen.statuses(), seen.end()), (vec!["running".to_owned()], None), "{what}");
        assert!(read.latest().cause().is_some(), "{what} is fresh");
        let asked = world.ci.total();
        assert!((6..=130).contains(&asked), "{what}: {asked} requests in a minute");
        world.ci.replies("/run", [run("success")]);
        world.shows(&read, "success", 8 * SECOND).await;
    }
}

/// R3: a redirect to a login page on another host is no value, nor is what that host says of the resource an end; the
/// token does not go there.
#[tokio::test(start_paused = true)]
async fn r3_a_redirect_to_a_login_host_is_no_value() {
    for there in [
        html("<form>"),
        Reply::status(404),
        Reply::status(410),
        Reply::status(401),
        Reply::status(403),
        Reply::text("log in").header("content-type", "application/problem+xml"),
    ] {
        let world = World::new();
        let login = Script::serve(&world.net, "login.example");
        login.replies("/", [there]);
        let redirect = Reply::status(302).header("location", "http://login.example/?return=run");
        world.ci.replies("/run", [run("running"), redirect]);
        let get = world.get("/run").credential(Credential::bearer("token").unwrap());
        let read = get.observe::<Run>().unwrap();
        let seen = Record::of(&read);
        login.until("/", 20).await;
        assert_eq!((seen.statuses(), seen.end()), (vec!["running".to_owned()], None));
        assert!(read.latest().cause().is_some());
        assert!(login.asked("/").iter().all(|asked| asked.header("authorization").is_none()));
        world.ci.replies("/run", [run("success")]);
        world.shows(&read, "success", 8 * SECOND).await;
    }
}

/// A redirect in a circle, without an end, or to another scheme is stale, and costs a bounded number of requests.
#[tokio::test(start_paused = true)]
async fn a_redirect_that_leads_nowhere_is_stale() {
    for location in ["/run", "ftp://ci.example/run", "", "http://"] {
        let world = World::new();
        world.ci.replies("/run", [run("running"), Reply::status(302).header("location", location)]);
        let read = world.get("/run").observe::<Run>().unwrap();
        doubted(&world.env, &read, 3 * SECOND, |cause| matches!(cause, Cause::Misdirected { .. })).await;
        world.ci.replies("/run", [run("success")]);
        world.shows(&read, "success", 3 * SECOND).await;
    }
}

/// A body in gzip is decoded, and asked for.
#[tokio::test(start_paused = true)]
async fn a_zipped_value_is_a_value() {
    let world = World::new();
    world.ci.replies("/run", [zipped(gzip(b"{\"status\":\"success\"}"))]);
    let read = world.get("/run").observe::<Run>().unwrap();
    world.shows(&read, "success", SECOND).await;
    assert!(world.ci.asked("/run")[0].header("accept-encoding").unwrap().contains("gzip"));
}

/// Bodies are bounded by 16 MiB, before and after their coding is undone; one of that size is read.
#[tokio::test(start_paused = true)]
async fn a_body_is_bounded() {
    const MOST: usize = 16 << 20;
    let world = World::new();
    let large = vec![b'x'; MOST];
    let larger = vec![b'x'; MOST + 1];
    world.ci.replies("/exact", [Reply::bytes(large)]);
    world.ci.replies("/announced", [Reply::bytes(larger.clone())]);
    world.ci.replies("/chunked", [Reply::chunked([larger.clone()]).ends()]);
    world.ci.replies("/zipped", [Reply::bytes(gzip(&larger)).header("content-encoding", "gzip")]);
    let exact = world.get("/exact").text().observe().unwrap();
    assert_eq!(exact.until(|text| !text.is_empty()).within(SECOND).await.unwrap().len(), MOST);
    drop(exact);
    for path in ["/announced", "/chunked", "/zipped"] {
        let read = world.get(path).text().observe().unwrap();
        doubted(&world.env, &read, 3 * SECOND, |cause| matches!(cause, Cause::Undecodable { .. })).await;
        assert!(read.latest().last().is_none());
    }
}

/// A body that announces no length ends with its connection, and counts as whole (RFC 9112, 8). That it was cut only its
/// decoder can tell: R3 holds for JSON, not for text.
#[tokio::test(start_paused = true)]
async fn r3_a_body_without_a_length_is_as_whole_as_its_decoder_says() {
    let world = World::new();
    let half = |version: &str| Reply::raw(format!("{version} 200 OK\r\n\r\n{{\"status\":\"succ"));
    for version in ["HTTP/1.0", "HTTP/1.1"] {
        world.ci.replies("/run", [half(version)]);
        let (text, value) = (world.get("/run").text().observe().unwrap(), world.get("/run").observe::<Run>().unwrap());
        let known = text.until(|_| true).within(SECOND).await.unwrap();
        assert_eq!(&*known, "{\"status\":\"succ");
        doubted(&world.env, &value, SECOND, |cause| matches!(cause, Cause::Undecodable { .. })).await;
        assert!(value.latest().last().is_none());
    }
}
