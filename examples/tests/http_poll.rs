//! `build_poller --url`: a real process watches a scripted service on a real socket.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "http_poll/service.rs"]
mod service;
#[path = "http_poll/watch.rs"]
mod watch;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use service::{Asked, Reply, Service};
use watch::{Watch, program, watched};

/// Longer than any of the watches takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

const DONE: [&str; 4] = ["--done", r#".status == "completed""#, "--ok", r#".conclusion == "success""#];

const RUNNING: &str = r#"{"status":"in_progress","conclusion":null}"#;
const SUCCESS: &str = r#"{"status":"completed","conclusion":"success"}"#;
const FAILURE: &str = r#"{"status":"completed","conclusion":"failure"}"#;

/// The arguments of a quick watch with [`DONE`].
fn args<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--url", url, "--interval", "200ms"], &DONE[..], more].concat()
}

fn watch(service: &Service, more: &[&str]) -> Watch {
    Watch::start(&args(&service.url("/run"), more))
}

#[test]
fn the_build_s_own_verdict_is_the_exit_code() {
    for (last, code, word) in [(SUCCESS, 0, "succeeded"), (FAILURE, 1, "failed")] {
        let service = Service::replies([Reply::json(RUNNING), Reply::json(last)]);
        let ended = watch(&service, &[]).end().with(code);
        let (words, last) = (ended.words(), format!("ago: {last}"));
        assert_eq!(words[..4], ["looking", "running", word, &format!("ended: {word}")]);
        assert!(words[4].starts_with("last reading, confirmed 0.") && words[4].ends_with(&last), "{words:?}");
        assert_eq!(words.len(), 5);
    }
    let service = Service::replies([Reply::json(r#"{"over":true}"#)]);
    watched(&["--url", &service.url("/"), "--done", ".over"]).with(0);
}

#[test]
fn what_is_not_understood_ends_at_once_and_names_the_flag() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("profile.toml");
    let profile = "name = \"x\"\n[[stage]]\nname = \"build\"\npath = \"/builds/{id}\"\n[[stage.status]]\nat = 7\n";
    std::fs::write(&file, profile).unwrap();
    let file = file.to_str().unwrap();
    let url = "http://127.0.0.1:9/";
    let parentheses = format!("{}true{}", "(".repeat(20_000), ")".repeat(20_000));
    for (args, said) in [
        (&["--url", url, "--done", "]"][..], "--done: expected a jq expression"),
        (&["--url", url, "--done", "true", "--ok", "nosuch"], "--ok: expected a known filter, got `nosuch`"),
        (&["--url", url, "--done", "env.HOME"], "--done: expected a known filter, got `env`"),
        (&["--url", url, "--done", &parentheses], "--done: expected a jq expression"),
        (&["--url", "ftp://h/x", "--done", "true"], "--url: expected an http:// or https:// URL"),
        (&["--url", "nowhere", "--done", "true"], "--url: expected an absolute http:// or https:// URL"),
        (&["--url", "http://u:s3cret@h/", "--done", "true"], "--url: expected no user or password"),
        (&["--url", url, "--done", "true", "--insecure"], "--insecure: no such option"),
        (&["--url", url, "--done", "true", "--timeout", "soon"], "--timeout: expected a duration such as"),
        (
            &["--url", url, "--done", "true", "--token-env", "NO_SUCH_ONE"],
            "--token-env: expected a variable that is set",
        ),
        (
            &["--url", url, "--done", "true", "--token-cmd", "x", "--token-header", "a b"],
            "--token-header: expected the",
        ),
        (&["--url", url, "--done", "true", "--token-cmd", "x", "--user", "a:b"], "--user: expected no colon"),
        (
            &["--url", url, "--profile", "nosuch"],
            "--profile: expected one of buildbot, github-actions, gitlab, jenkins,",
        ),
        (&["--url", url, "--profile", "gitlab"], "--url: expected an address like one of"),
        (&["--url", url, "--profile", file], "stage[0].status[0].at: expected"),
        (&["--timeout", "1s"], "--url: expected the URL of a build"),
        (&["--url", url, "--done", "true", "--header", "s3cret"], "--header: expected `Name: value`"),
        (&["--url", url, "--done", "true", "--header", "a b: s3cret"], "--header: expected the name of a header"),
        (&["--url", url, "--done", "true", "--header", "Host: s3cret"], "--header: expected none that frames"),
        (
            &["--url", url, "--done", "true", "--header", "X-Api-Key: s3cret"],
            "--header: expected none that holds a credential: take --token-env",
        ),
        (&["--url", url, "--done", "true", "--ca-file", "/nosuch"], "--ca-file: expected a file with certificates"),
        (&["--url", url, "--done", "true", "--ca-file", "/dev/null"], "`/dev/null`: it is empty"),
        (&["--url", url, "--done", "true", "--ca-file", file], "--ca-file: expected at least one certificate in PEM"),
        (&["--url", url, "--done", "true", "--proxy", "ftp://p"], "--proxy: expected a URL such as"),
        (&["--url", url, "--done", "true", "--proxy", "u:s3cret@p:1"], "--proxy: expected no user or password"),
    ] {
        let ended = watched(args);
        assert_eq!((ended.code, ended.lines.len()), (Some(2), 0), "{said}: {ended:?}");
        assert!(ended.stderr.starts_with("build_poller: ") && ended.stderr.contains(said), "{said}: {ended:?}");
        assert!(!ended.stderr.contains("s3cret") && !ended.stderr.contains("panicked"), "{ended:?}");
    }
}

#[test]
fn help_shows_both_uses() {
    let ended = watched(&["--help"]).with(0);
    ended.says("Usage: build_poller [--json] [--fail]");
    ended.says("build_poller --url URL --done EXPR [--ok EXPR] [--timeout D]");
    ended.says("build_poller --url URL --profile PROFILE");
    let ended = watched(&["--url", "--help"]).with(0);
    for option in ["--done", "--ok", "--profile", "--timeout", "--give-up", "--on-parked", "--token-cmd", "--json"] {
        ended.says(option);
    }
    for option in ["--header", "--ca-file", "--proxy", "--no-proxy"] {
        ended.says(option);
    }
}

/// R9: a wait that runs out says so, and not that the build failed.
#[test]
fn r9_out_of_time_is_still_pending() {
    let service = Service::replies([Reply::json(RUNNING)]);
    let ended = watch(&service, &["--timeout", "3s"]).end().with(3);
    assert_eq!(ended.words()[..3], ["looking", "running", "ended: still pending"]);
    assert!(service.rest().len() > 2, "it looked again and again, and printed a line per change only");
}

/// R1: a service that is not there is no verdict, however long; the give-up limit says that it still pends.
#[test]
fn a_transport_fault_is_never_a_failure() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ended = watched(&args(&format!("http://{gone}/"), &["--timeout", "3s"])).with(3);
    ended.says("last reading: none");
    ended.says("cause: unreachable");
    let ended = watched(&args(&format!("http://{gone}/"), &["--give-up", "1s"])).with(3);
    ended.says("given up");
    ended.says("cause: unreachable");
    let mut first = true;
    let service = Service::start(move |_| if std::mem::take(&mut first) { Reply::json(RUNNING) } else { Reply::Close });
    let ended = watch(&service, &["--give-up", "1s"]).end().with(3);
    ended.says("stale, was running");
    ended.says(&format!("ago: {RUNNING}"));
    let words = ended.words();
    assert!(words.last().unwrap().starts_with("cause: "), "an end does not hide what was in the way: {words:?}");
    let service = Service::replies([Reply::Hang]);
    watch(&service, &["--timeout", "1s"]).end().with(3);
}

/// R9: what the service forbids for longer than the time left is not waited for.
#[test]
fn r9_a_retry_after_beyond_the_timeout_ends_at_once() {
    for status in [503, 429] {
        let later = || Reply::status(status).header("Retry-After", "3600");
        for replies in [vec![later()], vec![Reply::json(RUNNING), later()]] {
            let service = Service::replies(replies);
            let start = Instant::now();
            let ended = watch(&service, &["--timeout", "30m"]).end().with(3);
            assert!(start.elapsed() < PATIENCE / 2, "{ended:?}");
            ended.says("cause: ");
        }
    }
}

/// R3: only the service says that there is no such build.
#[test]
fn r3_gone_and_denied_are_the_service_s_word() {
    let service = Service::replies([Reply::json(RUNNING), Reply::status(410)]);
    let ended = watch(&service, &[]).end().with(4);
    ended.says(&format!("ago: {RUNNING}"));
    let service = Service::replies([Reply::json(RUNNING), Reply::status(404), Reply::status(404)]);
    watch(&service, &[]).end().with(4);
    let service = Service::replies([Reply::json(RUNNING), Reply::status(401)]);
    let ended = watch(&service, &[]).end().with(5);
    ended.says("denied: the service refused the credential");
    ended.says("cause: credential refused");
}

/// R3: neither null nor an error nor what is no boolean nor several of them ends it, and when nothing else came, that is
/// its own end.
#[test]
fn r3_what_is_neither_yes_nor_no_never_ends_it() {
    let watches = [
        (".nosuch", "--done: expected a boolean, got null"),
        (".status", "--done: expected a boolean, got a string"),
        (".status[0]", "--done: the expression failed"),
        ("empty", "--done: expected a boolean, got nothing"),
        ("true, true", "--done: expected one boolean, got several results"),
    ];
    let watches = watches.map(|(done, why)| {
        let service = Service::replies([Reply::json(RUNNING)]);
        (why, Watch::start(&["--url", &service.url("/"), "--done", done, "--timeout", "5s"]))
    });
    for (why, watch) in watches {
        let ended = watch.end().with(9);
        ended.says("unreadable (--done: ");
        ended.says(&format!("cause: {why}"));
        ended.says(&format!("ago: {RUNNING}"));
    }
    let service = Service::replies([Reply::json(SUCCESS)]);
    let ended = watched(&["--url", &service.url("/"), "--done", "true", "--ok", "null", "--timeout", "5s"]).with(9);
    ended.says("cause: --ok: expected a boolean, got null");
    let service = Service::replies([Reply::status(200).body("text/html", "<html>Please log in</html>")]);
    watch(&service, &["--give-up", "1s"]).end().with(9).says("cause: undecodable");
    // One answer that could be read was enough to know that the work goes on.
    let service = Service::replies([Reply::json(RUNNING), Reply::json("{}").header("X", "y"), Reply::json("7")]);
    watched(&["--url", &service.url("/"), "--interval", "200ms", "--done", ".status == \"x\"", "--timeout", "2s"])
        .with(3);
}

/// FC-01: 502s, resets, a login page and a cut answer in mid-build; the verdict is the build's.
#[test]
fn fc_01_faults_in_the_middle_are_lines_and_no_end() {
    let login = || Reply::status(200).body("text/html", "<html>Please log in</html>");
    let service = Service::replies([
        Reply::status(502),
        Reply::json(RUNNING),
        Reply::status(502).body("text/html", "<html>bad gateway</html>"),
        Reply::status(502),
        Reply::json(RUNNING),
        Reply::Close,
        Reply::Close,
        login(),
        Reply::json(&RUNNING[..10]),
        Reply::json(SUCCESS),
    ]);
    let ended = watch(&service, &["--timeout", "1m"]).end().with(0);
    ended.says("looking: HTTP status 502");
    ended.says("stale, was running: HTTP status 502");
    ended.says("stale, was running: undecodable");
    ended.says("ended: succeeded");
    assert!(!ended.printed().contains("failed"), "{ended:?}");
}

/// The fields of a line; the values are looked at where they mean something.
fn fields(line: &Value) -> Vec<&str> {
    let mut fields: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn json_is_one_object_per_line_with_fixed_fields() {
    let service = Service::replies([Reply::json(RUNNING), Reply::status(502), Reply::json(SUCCESS)]);
    let events = watch(&service, &["--json"]).end().with(0).events();
    let reading = ["after_ms", "cause", "event", "reading", "state", "status"];
    let end = [
        "after_ms",
        "age_ms",
        "body",
        "body_bytes",
        "cause",
        "ending",
        "event",
        "exit_code",
        "reading",
        "state",
        "status",
    ];
    let (last, rest) = events.split_last().unwrap();
    for line in rest {
        assert_eq!((fields(line), &line["event"]), (reading.to_vec(), &json!("reading")), "{line}");
    }
    assert_eq!(fields(last), end);
    let said: Vec<_> = events.iter().map(|line| (&line["reading"], &line["state"], &line["cause"])).collect();
    let (running, succeeded, null) = (json!("running"), json!("succeeded"), Value::Null);
    assert_eq!(said.first().unwrap(), &(&json!("loading"), &null, &null));
    assert!(said.contains(&(&json!("fresh"), &running, &null)), "{said:?}");
    assert!(said.contains(&(&json!("stale"), &running, &json!("HTTP status 502"))), "{said:?}");
    let mut end = last.clone();
    assert!(end["after_ms"].as_u64().unwrap() >= end["age_ms"].as_u64().unwrap());
    for varies in ["after_ms", "age_ms"] {
        end[varies] = json!(0);
    }
    let golden = json!({
        "event": "end", "after_ms": 0, "reading": "fresh", "state": succeeded, "status": null, "cause": null,
        "ending": "succeeded", "exit_code": 0, "age_ms": 0, "body_bytes": SUCCESS.len(),
        "body": {"status": "completed", "conclusion": "success"},
    });
    assert_eq!(end, golden);
    let service = Service::replies([Reply::status(502)]);
    let events = watch(&service, &["--json", "--give-up", "1s"]).end().with(3).events();
    let last = events.last().unwrap();
    assert_eq!((&last["cause"], &last["exit_code"], &last["body"]), (&json!("HTTP status 502"), &json!(3), &null));
    assert_eq!((&last["age_ms"], &last["body_bytes"]), (&null, &null));
}

#[test]
fn a_heartbeat_says_that_it_still_waits() {
    let service = Service::replies([Reply::json(RUNNING)]);
    let mut watch = Watch::start(&args(&service.url("/"), &["--heartbeat", "100ms"]));
    watch.line("still waiting: running");
    watch.line("still waiting: running");
    watch.signal(Signal::INT);
    watch.end().with(130);
    let mut watch = Watch::start(&args(&service.url("/"), &["--heartbeat", "100ms", "--json"]));
    let line: Value = serde_json::from_str(&watch.line("heartbeat")).unwrap();
    assert_eq!(fields(&line), ["after_ms", "cause", "event", "reading", "state", "status"]);
}

#[test]
fn a_signal_ends_it_with_the_last_reading() {
    for (signal, code, word) in
        [(Signal::INT, 130, "interrupted"), (Signal::TERM, 143, "terminated"), (Signal::HUP, 129, "hung up")]
    {
        let service = Service::replies([Reply::json(RUNNING)]);
        let mut watch = watch(&service, &[]);
        watch.line("running");
        watch.signal(signal);
        let ended = watch.end().with(code);
        ended.says(&format!("ended: {word}"));
        ended.says(&format!("ago: {RUNNING}"));
    }
    // While nothing has come yet.
    let service = Service::replies([Reply::Hang]);
    let mut watch = watch(&service, &[]);
    watch.line("looking");
    service.next();
    watch.signal(Signal::INT);
    watch.end().with(130).says("last reading: none");
}

/// What was started to outlive its terminal does.
#[cfg(target_os = "linux")]
#[test]
fn what_ignores_hangups_goes_on() {
    let service = Service::replies([Reply::json(RUNNING)]);
    let mut ignoring = Command::new("sh");
    ignoring.args(["-c", r#"trap "" HUP; exec "$0" "$@""#]).arg(program().get_program());
    ignoring.args(args(&service.url("/"), &["--heartbeat", "100ms"]));
    ignoring.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = Watch::spawn(&mut ignoring);
    watch.line("still waiting: running");
    watch.signal(Signal::HUP);
    watch.line("still waiting: running");
    watch.line("still waiting: running");
    watch.signal(Signal::TERM);
    watch.end().with(143);
}

/// Answers those who have the token.
fn guarded(header: &'static str, value: &'static str) -> Service {
    Service::start(
        move |asked: &Asked| {
            if asked.header(header) == Some(value) { Reply::json(SUCCESS) } else { Reply::status(401) }
        },
    )
}

#[test]
fn a_token_is_sent_and_never_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "s3cret\n").unwrap();
    let file = file.to_str().unwrap();
    for more in [
        &["--token-env", "THE_TOKEN"][..],
        &["--token-file", file],
        &["--token-cmd", "printf s3cret"],
        &["--token-env", "THE_TOKEN", "--json"],
    ] {
        let service = guarded("Authorization", "Bearer s3cret");
        let ended =
            Watch::spawn(program().args(args(&service.url("/"), more)).env("THE_TOKEN", "s3cret")).end().with(0);
        assert!(!ended.printed().contains("s3cret"), "{ended:?}");
    }
    let service = guarded("PRIVATE-TOKEN", "s3cret");
    watched(&args(&service.url("/"), &["--token-file", file, "--token-header", "PRIVATE-TOKEN"])).with(0);
    let service = guarded("Authorization", "Basic Y2k6czNjcmV0");
    watched(&args(&service.url("/"), &["--token-file", file, "--user", "ci"])).with(0);
    // One that is refused, and a command that fails and says it aloud.
    let service = Service::replies([Reply::status(401).body("text/plain", "no: Bearer s3cret")]);
    let ended = watched(&args(&service.url("/"), &["--token-file", file])).with(5);
    assert!(!ended.printed().contains("s3cret"), "{ended:?}");
    let ended =
        watched(&args(&service.url("/"), &["--token-cmd", "echo s3cret >&2; exit 7", "--give-up", "1s"])).with(3);
    assert!(ended.printed().contains("credential unavailable"), "{ended:?}");
    assert!(!ended.printed().replace("; exit 7", "").contains("s3cret"), "{ended:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_token_is_in_no_argument() {
    let service = Service::replies([Reply::json(RUNNING)]);
    let url = service.url("/");
    let mut watch = Watch::spawn(program().args(args(&url, &["--token-env", "THE_TOKEN"])).env("THE_TOKEN", "s3cret"));
    watch.line("running");
    assert_eq!(service.next().header("Authorization"), Some("Bearer s3cret"));
    let arguments = std::fs::read(format!("/proc/{}/cmdline", watch.id())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains("s3cret"));
}

/// FC-51: a token that is refused is asked for anew.
#[test]
fn fc_51_a_refused_token_is_asked_for_anew() {
    let directory = tempfile::tempdir().unwrap();
    let (mark, file) = (directory.path().join("mark"), directory.path().join("token"));
    let command = format!("if [ -e {0} ]; then echo two; else : > {0}; echo one; fi", mark.display());
    let renewed = file.clone();
    for more in [["--token-cmd", &command], ["--token-file", file.to_str().unwrap()]] {
        std::fs::write(&file, "one").unwrap();
        let (path, mut looks) = (renewed.clone(), 0);
        let service = Service::start(move |asked| {
            looks += 1;
            match (looks, asked.header("Authorization")) {
                // A while later the token expires, and another one is in its place.
                (3, Some("Bearer one")) => {
                    std::fs::write(&path, "two").unwrap();
                    Reply::status(401)
                }
                (..3, Some("Bearer one")) => Reply::json(RUNNING),
                (4.., Some("Bearer two")) => Reply::json(SUCCESS),
                _ => Reply::status(401),
            }
        });
        let ended = watch(&service, &more).end().with(0);
        ended.says("stale, was running: credential refused");
    }
}

#[test]
fn a_redirect_to_another_origin_goes_without_the_token() {
    let elsewhere = Service::replies([Reply::json(SUCCESS)]);
    let there = elsewhere.url("/run");
    let service = Service::start(move |_| Reply::status(302).header("Location", &there));
    let url = service.url("/");
    let command = &mut program();
    let command = command.args(args(&url, &["--token-env", "T", "--token-header", "X-Token"])).env("T", "s3cret");
    Watch::spawn(command).end().with(0);
    assert_eq!(service.next().header("X-Token"), Some("s3cret"));
    assert_eq!(elsewhere.next().header("X-Token"), None);
}

#[test]
fn headers_go_with_each_request_beside_the_token() {
    let service = Service::replies([Reply::json(RUNNING), Reply::json(SUCCESS)]);
    let more = ["--header", "X-One: a", "--header=X-Two: b=c: d", "--token-cmd", "echo t"];
    watch(&service, &more).end().with(0);
    for asked in service.rest() {
        let sent = ["X-One", "X-Two", "Authorization"].map(|name| asked.header(name).unwrap_or_default().to_owned());
        assert_eq!(sent, ["a", "b=c: d", "Bearer t"]);
    }
}

#[test]
fn a_proxy_is_the_one_that_was_named_or_none() {
    let (proxy, service) = (Service::replies([Reply::json(SUCCESS)]), Service::replies([Reply::json(FAILURE)]));
    let named = ["--url", "http://ci.invalid/run", "--done", ".status == \"completed\"", "--proxy", &proxy.origin];
    watched(&named).with(0);
    assert_eq!(proxy.next().target, "http://ci.invalid/run");
    let url = service.url("/run");
    let direct = args(&url, &["--no-proxy"]);
    Watch::spawn(program().args(&direct).env("http_proxy", &proxy.origin)).end().with(1);
    assert_eq!(service.next().target, "/run");
    assert!(proxy.rest().is_empty());
}

/// R10: each service's own idea of an end, of a cancel, and of waiting for a person.
#[test]
fn r10_each_profile_knows_its_service() {
    let build =
        |result: Value, going: bool| json!({ "number": 3, "result": result, "inProgress": going, "building": going });
    let request = |complete: bool, results: i64| json!({ "buildrequests": [{ "buildrequestid": 5, "complete": complete, "claimed": true, "results": results }] });
    let run = |status: &str, conclusion: Value| json!({ "id": 1, "run_attempt": 1, "status": status, "conclusion": conclusion, "updated_at": "2026-01-02T03:04:05Z" });
    let pipeline = |status: &str| json!({ "id": 9, "status": status, "updated_at": "2026-01-02T03:04:05.000Z" });
    let github = "/repos/o/r/actions/runs/1";
    let gitlab = "/api/v4/projects/2/pipelines/9";
    let watches = [
        ("buildbot", "/api/v2/buildrequests/5", request(true, 0), 0),
        ("buildbot", "/api/v2/buildrequests/5", request(true, 2), 1),
        ("buildbot", "/api/v2/buildrequests/5", request(true, 6), 6),
        ("buildbot", "/api/v2/buildrequests/5", request(true, 5), 3),
        ("github-actions", github, run("completed", json!("success")), 0),
        ("github-actions", github, run("completed", json!("failure")), 1),
        ("github-actions", github, run("completed", json!("cancelled")), 6),
        ("github-actions", github, run("waiting", Value::Null), 8),
        ("gitlab", gitlab, pipeline("success"), 0),
        ("gitlab", gitlab, pipeline("failed"), 1),
        ("gitlab", gitlab, pipeline("canceled"), 6),
        ("gitlab", gitlab, pipeline("manual"), 8),
        ("gitlab", gitlab, pipeline("brand_new"), 3),
        ("jenkins", "/job/j/3/api/json", build(json!("SUCCESS"), false), 0),
        ("jenkins", "/job/j/3/api/json", build(json!("UNSTABLE"), false), 1),
        ("jenkins", "/job/j/3/api/json", build(json!("ABORTED"), false), 6),
        ("jenkins", "/job/j/3/api/json", build(json!("SUCCESS"), true), 3),
    ];
    let watches = watches.map(|(profile, path, body, code)| {
        let service = Service::replies([Reply::json(&body)]);
        let args = ["--url", &service.url(path), "--profile", profile, "--on-parked=exit", "--timeout", "3s"];
        (format!("{profile} {body}"), Watch::start(&args), code)
    });
    for (what, watch, code) in watches {
        let ended = watch.end();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), ""), "{what}: {:#?}", ended.lines);
    }
    let service = Service::replies([Reply::json(pipeline("manual"))]);
    let mut watch = Watch::start(&["--url", &service.url(gitlab), "--profile", "gitlab"]);
    watch.line("parked (manual): waits for a person");
    watch.signal(Signal::INT);
    watch.end().with(130);
}

#[test]
fn a_profile_may_be_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("farm.toml");
    let profile = r#"
        name = "farm"
        [[stage]]
        name = "build"
        path = "/builds/{id}"
        [[stage.status]]
        at = "/phase"
        running = ["busy"]
        ok = ["good"]
        failed = ["bad"]
        [pace]
        least = "200ms"
        most = "200ms"
    "#;
    std::fs::write(&file, profile).unwrap();
    let service = Service::replies([Reply::json(r#"{"phase":"busy"}"#), Reply::json(r#"{"phase":"bad"}"#)]);
    let ended = watched(&["--url", &service.url("/builds/7"), "--profile", file.to_str().unwrap()]).with(1);
    ended.says("running (busy)");
    ended.says("failed (bad)");
    assert_eq!(service.next().target, "/builds/7");
}

/// Whatever is in an answer: no terminal and no runner takes it for a command, and what is huge is shortened.
#[test]
fn what_a_service_says_is_printed_harmless_and_short() {
    let evil = "\u{1b}[2J\u{9b}31m\n::error::pwned\r##[command]rm\u{202e}";
    let body = json!({ "status": evil, "done": true, "conclusion": "success" });
    let service = Service::replies([Reply::json(&body)]);
    let expressions = ["--done", ".done", "--ok", r#"error(.status)"#];
    for json in [false, true] {
        let url = service.url("/");
        let mut args = [&["--url", &url][..], &expressions].concat();
        args.extend(json.then_some("--json"));
        let mut watch = Watch::start(&args);
        watch.line("unreadable");
        watch.signal(Signal::INT);
        let ended = watch.end().with(130);
        for command in ["\u{1b}", "\u{9b}", "\r", "::", "##", "\u{202e}"] {
            assert!(!ended.printed().contains(command), "{command:?} in {ended:?}");
        }
        if json {
            assert_eq!(ended.events().last().unwrap()["body"], body);
        }
    }
    let ended = watched(&["--url", &service.url("/"), "--profile", "\u{1b}[2J\n::error::x"]);
    assert!(ended.code == Some(2) && !ended.stderr.contains('\u{1b}') && !ended.stderr.contains("::"), "{ended:?}");
    let huge = json!({ "status": "completed", "conclusion": "success", "log": "x".repeat(1 << 20) }).to_string();
    let service = Service::replies([Reply::json(&huge)]);
    let ended = watch(&service, &[]).end().with(0);
    assert!(ended.printed().len() < 4_000 && ended.printed().contains('…'), "{}", ended.printed().len());
    let ended = watch(&service, &["--json"]).end().with(0);
    let last = ended.events().pop().unwrap();
    assert_eq!((&last["body"], &last["body_bytes"]), (&Value::Null, &json!(huge.len())));
    assert!(ended.printed().len() < 4_000);
}

#[test]
fn a_closed_output_changes_nothing() {
    let service = Service::replies([Reply::json(RUNNING), Reply::json(RUNNING), Reply::json(FAILURE)]);
    let mut process = program().args(args(&service.url("/"), &[])).spawn().unwrap();
    drop(process.stdout.take());
    assert_eq!(process.wait_with_output().map(|out| (out.status.code(), out.stderr)).unwrap(), (Some(1), Vec::new()));
    for args in [&["--url", "--help"][..], &["--help"]] {
        let mut process = program().args(args).spawn().unwrap();
        drop(process.stdout.take());
        let out = process.wait_with_output().unwrap();
        assert!(out.status.code() == Some(0) && out.stderr.is_empty(), "{out:?}");
    }
    let mut process = program().args(["--url"]).spawn().unwrap();
    drop(process.stderr.take());
    assert_eq!(process.wait().unwrap().code(), Some(2));
}

/// What an expression computes holds nothing up: neither one without an end, nor one that wants all memory, nor one that
/// is too deep for any stack. Each makes the answer unreadable, and that is all.
#[test]
fn an_expression_can_neither_hang_nor_abort_the_watch() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let watches = [
        ("def f: f; f", "1", "took more than 5s"),
        ("def f: 1 + f; f", "1", "could not be computed"),
        ("(\"x\" * 2000000000) == 1", "1", "could not be computed"),
        (". == 1", &deep, "could not be computed"),
    ];
    let watches = watches.map(|(done, body, why)| {
        let service = Service::replies([Reply::json(body)]);
        let watch = Watch::start(&["--url", &service.url("/"), "--done", done]);
        (done, why, watch)
    });
    for (done, why, mut watch) in watches {
        let line = watch.line("unreadable");
        assert!(line.contains(why), "{done}: {line}");
        watch.signal(Signal::INT);
        watch.end().with(130);
    }
}

/// An answer that could not be judged is judged again at the next look, though it is the same.
#[test]
fn an_expression_that_could_not_be_asked_is_asked_again() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let done = format!("if now < {} then (def f: f; f) else true end", now.as_secs() + 3);
    let service = Service::replies([Reply::json("1")]);
    watched(&["--url", &service.url("/"), "--done", &done]).with(0);
}

/// R9: the time is over when it is over, whatever an expression computes. It has not come to be unreadable by then.
#[test]
fn r9_an_expression_does_not_outlast_the_timeout() {
    let service = Service::replies([Reply::json("1")]);
    watched(&["--url", &service.url("/"), "--done", "def f: f; f", "--timeout", "1s"]).with(3);
    // A value that is nested too deep to be built is still shown, and its end is read.
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let service = Service::replies([Reply::json(&deep)]);
    let ended = watched(&["--url", &service.url("/"), "--done", "type == \"array\"", "--json"]).with(0);
    assert_eq!(ended.events().last().unwrap()["body_bytes"], deep.len());
}
