//! A file is strict: what is not as expected is refused, by the path of its field.

use std::time::Duration;

use crate::profile::{Acknowledged, Dedupe, LogKind, Profile, Replies, Scheme, StreamKind};

const WHOLE: &str = r#"
name = "mine"
reopens = true
grace = "20s"

[[stage]]
name = "ticket"
path = "{base:any}/tickets/{ticket:number}"
bind = { shop = { at = "/shop", like = "{_:any}/shops/{shop}" } }
missing = "search"
vanishes_after = "5m"
[[stage.status]]
at = "/state"
queued = ["waiting"]
canceled = ["dropped"]
[[stage.next]]
stage = "job"
bind = { job = ["/job/id", "/job_id"] }

[[stage]]
name = "search"
path = "{base:any}/shops/{shop}/jobs"
find = { each = "", key = "/ticket", equals = "ticket" }
next = [{ stage = "job", bind = { job = "/id" } }]

[[stage]]
name = "job"
path = "{base:any}/jobs/{job}"
attempt = "/attempt"
order = { kind = "monotone", at = "/revision" }
[[stage.status]]
at = "/code"
when = { at = "/over", is = ["yes"] }
ok = [0]
failed = [1]
names = { 0 = "fine", 1 = "broken" }
[[stage.status]]
at = "/state"
running = ["busy"]
parked = ["asks"]

[[address]]
like = "shop.example/t/{ticket:number}"
stage = "ticket"
base = "/api"

[read]
headers = { Accept = "application/json" }
stream = [{ stage = "job", kind = "websocket", path = "/ws", first = "hello" }]

[pace]
least = "2s"
most = "1m"
share = 5

[log]
kind = "token"
stage = "job"
path = "/logs/{log}?after={from}"
token = "/next"
text = "/text"
source = [{ path = "/jobs/{job}/logs", each = "/logs", total = "/total", bind = { log = "/id" }, name = "/name" }]

[submit]
method = "PUT"
path = "/tickets"
stage = "ticket"
bind = { base = "/base", ticket = { header = "Location", like = "/tickets/{ticket:number}" } }
dedupe = { by = "token", at = "/token", window = "5m" }
correlate = { inject = "/note", path = "/jobs?since={since}", each = "", holds = "/note", bind = { base = "/base", job = "/id" } }

[[cancel]]
stage = "job"
path = "/jobs/{job}/stop"
acknowledged = "stopped"
force = { path = "/jobs/{job}", method = "DELETE" }

[webhook]
scheme = "timestamped-hmac-sha256"
header = "X-Signature"
delivery_id = "X-Delivery"
redelivers = true
replies = "status"
"#;

#[test]
fn a_whole_file_is_read() {
    let profile = Profile::parse(WHOLE).unwrap();
    assert_eq!(profile, profile.clone());
    assert_eq!((profile.grace, profile.reopens), (Duration::from_secs(20), true));
    assert_eq!(
        (profile.pace.least, profile.pace.most, profile.pace.share),
        (Duration::from_secs(2), Duration::from_secs(60), 5)
    );
    assert_eq!(profile.stages[0].vanishes_after, Some(Duration::from_secs(300)));
    assert_eq!(profile.read.headers.len(), 1);
    assert_eq!(profile.read.streams[0].kind, StreamKind::WebSocket);
    assert_eq!(profile.log.unwrap().kind, LogKind::Token);
    assert!(matches!(profile.submit.unwrap().dedupe, Dedupe::Token { window, .. } if window.as_secs() == 300));
    assert_eq!(profile.cancel[0].acknowledged, Acknowledged::Stopped);
    let webhook = profile.webhook.unwrap();
    assert_eq!((webhook.scheme, webhook.replies), (Scheme::TimestampedHmacSha256, Replies::Status));
}

/// Each with what is changed in the file, the path that the error names, and a word of what was expected.
#[test]
fn what_does_not_fit_is_refused_by_its_path() {
    let mut wrong = Vec::new();
    for (from, to, path, expected) in [
        // Missing.
        ("name = \"mine\"", "", "name", "a string"),
        ("path = \"{base:any}/jobs/{job}\"", "", "stage[2].path", "a path"),
        ("at = \"/code\"", "", "stage[2].status[0].at", "a JSON pointer"),
        ("is = [\"yes\"]", "", "stage[2].status[0].when.is", "a list of words"),
        ("bind = { job = [\"/job/id\", \"/job_id\"] }", "", "stage[0].next[0].bind", "at least one placeholder"),
        ("total = \"/total\", bind = { log = \"/id\" }, name", "name", "log.source[0].bind", "what tells one element"),
        ("header = \"X-Signature\"", "", "webhook.header", "the name of a header"),
        ("window = \"5m\"", "", "submit.dedupe.window", "a duration"),
        ("acknowledged = \"stopped\"", "", "cancel[0].acknowledged", "one of \"queued\", \"stopped\", \"nothing\""),
        // Of the wrong type.
        ("name = \"mine\"", "name = 1", "name", "a string, found an integer"),
        ("reopens = true", "reopens = \"yes\"", "reopens", "true or false"),
        ("grace = \"20s\"", "grace = 20", "grace", "a duration"),
        ("ok = [0]", "ok = 0", "stage[2].status[0].ok", "a list"),
        ("ok = [0]", "ok = [0.5]", "stage[2].status[0].ok", "a list"),
        ("ok = [0]", "ok = [\"0\"]", "stage[2].status[0].failed", "a string, as the words before"),
        ("share = 5", "share = 0", "pace.share", "above zero"),
        ("[pace]", "[[pace]]", "pace", "a table, found a list"),
        ("[[cancel]]", "[cancel]", "cancel", "a list of tables"),
        ("Accept = \"application/json\"", "Accept = 1", "read.headers.Accept", "a string"),
        // Malformed.
        ("grace = \"20s\"", "grace = \"20\"", "grace", "such as \"500ms\", \"90s\", \"10m\""),
        ("most = \"1m\"", "most = \"1min\"", "pace.most", "a duration"),
        ("vanishes_after = \"5m\"", "vanishes_after = \"soon\"", "stage[0].vanishes_after", "a duration"),
        ("attempt = \"/attempt\"", "attempt = \"attempt\"", "stage[2].attempt", "a JSON pointer"),
        ("total = \"/total\"", "total = \"total\"", "log.source[0].total", "a JSON pointer"),
        ("at = \"/revision\"", "at = \"/a~2\"", "stage[2].order.at", "a JSON pointer"),
        ("job = [\"/job/id\", \"/job_id\"]", "job = []", "stage[0].next[0].bind.job", "a JSON pointer"),
        ("job = [\"/job/id\", \"/job_id\"]", "job = [\"/id\", \"id\"]", "stage[0].next[0].bind.job", "a JSON pointer"),
        ("/jobs/{job}/stop", "/jobs/x{job}/stop", "cancel[0].path", "a whole segment"),
        (
            "/tickets/{ticket:number}\"\nbind",
            "/tickets/{ticket:digits}\"\nbind",
            "stage[0].path",
            "number, path or any",
        ),
        ("name = \"mine\"", "name = \"My Service\"", "name", "lower-case"),
        ("header = \"X-Signature\"", "header = \"X Signature\"", "webhook.header", "the name of a header"),
        // Not one of the words.
        (
            "kind = \"monotone\"",
            "kind = \"sorted\"",
            "stage[2].order.kind",
            "one of \"monotone\", \"coarse\", \"opaque\"",
        ),
        ("kind = \"token\"", "kind = \"tail\"", "log.kind", "one of \"bytes\""),
        ("replies = \"status\"", "replies = \"maybe\"", "webhook.replies", "one of \"status\", \"accept\""),
        ("method = \"PUT\"", "method = \"GET\"", "submit.method", "one of \"POST\""),
        ("by = \"token\"", "by = \"luck\"", "submit.dedupe.by", "one of \"name\", \"token\""),
        // Contradictory.
        ("failed = [1]", "failed = [1, 0]", "stage[2].status[0].failed", "no \"0\", which ok has already"),
        ("running = [\"busy\"]", "running = [\"busy\", \"busy\"]", "stage[2].status[1].running", "no \"busy\""),
        ("ok = [0]", "ok = []", "stage[2].status[0].ok", "at least one word"),
        ("ok = [0]\n", "", "stage[2].status[0].names.0", "a word of one of the lists"),
        (
            "ok = [0]\nfailed = [1]\nnames = { 0 = \"fine\", 1 = \"broken\" }",
            "ok = [0]",
            "stage[2].status",
            "for failed",
        ),
        (
            "ok = [0]\nfailed = [1]\nnames = { 0 = \"fine\", 1 = \"broken\" }",
            "failed = [1]",
            "stage[2].status",
            "for ok",
        ),
        (
            "ok = [0]\nfailed = [1]\nnames = { 0 = \"fine\", 1 = \"broken\" }",
            "",
            "stage[2].status[0]",
            "words of at least one",
        ),
        ("when = { at = \"/over\", is = [\"yes\"] }", "", "stage[2].status[0].when", "when it applies"),
        ("name = \"search\"", "name = \"ticket\"", "stage[1].name", "a name that no stage before has"),
        ("stage = \"job\"\nbind", "stage = \"jobs\"\nbind", "stage[0].next[0].stage", "ticket, search, job"),
        ("missing = \"search\"", "missing = \"ticket\"", "stage[0].missing", "another stage"),
        ("missing = \"search\"", "missing = \"sea\"", "stage[0].missing", "the name of a stage"),
        ("path = \"{base:any}/jobs/{job}\"", "path = \"host/jobs/{job}\"", "stage[2].path", "a path"),
        ("least = \"2s\"", "least = \"0s\"", "pace.least", "more than nothing"),
        ("most = \"1m\"", "most = \"1s\"", "pace.most", "at least 2s"),
        ("path = \"/logs/{log}?after={from}\"", "path = \"/logs/{log}\"", "log.path", "{from}"),
        ("kind = \"token\"", "kind = \"whole\"", "log.path", "no {from}"),
        ("token = \"/next\"", "", "log.token", "the token to continue with"),
        ("kind = \"token\"", "kind = \"bytes\"", "log.size", "the header"),
        ("kind = \"token\"", "kind = \"lines\"", "log.path", "{limit}"),
        (
            "?after={from}",
            "?after={from}\"\nabout = { path = \"/logs/{lag}\", lines = \"/n\", complete = \"/c\" }\n#",
            "log.about.path",
            "gives {lag}",
        ),
        ("kind = \"websocket\", path = \"/ws\"", "kind = \"sse\", path = \"/ws\"", "read.stream[0].first", "nothing"),
        // What nobody reads.
        ("token = \"/next\"", "token = \"/next\"\nsize = \"X-Size\"", "log.size", "nothing"),
        ("token = \"/next\"", "token = \"/next\"\nexact = false", "log.exact", "nothing"),
        ("token = \"/next\"", "token = \"/next\"\nfirst = \"/first\"", "log.first", "nothing"),
        ("after={from}", "after={from}&most={limit}", "log.path", "no {limit}"),
        ("/logs/{log}?after={from}", "/logs/{log}/{from}", "log.path", "{from} as a value of its query"),
        ("after={from}", "after=x{from}", "log.path", "{from} as a value of its query"),
        (
            "kind = \"token\"\nstage = \"job\"\npath = \"/logs/{log}?after={from}\"\ntoken = \"/next\"",
            "kind = \"whole\"\nstage = \"job\"\npath = \"/logs/{log}\"",
            "log.text",
            "nothing, for a log of that kind",
        ),
        ("vanishes_after = \"5m\"", "vanishes_after = \"0s\"", "stage[0].vanishes_after", "at least 4s"),
        ("vanishes_after = \"5m\"", "vanishes_after = \"3s\"", "stage[0].vanishes_after", "twice pace.least"),
        // A placeholder that nobody binds.
        (
            "path = \"{base:any}/jobs/{job}\"",
            "path = \"{base:any}/{hall}/jobs/{job}\"",
            "stage[0].next[0].bind",
            "gives {hall}",
        ),
        (
            "bind = { shop = { at = \"/shop\", like = \"{_:any}/shops/{shop}\" } }",
            "",
            "stage[0].missing",
            "gives {shop}",
        ),
        ("equals = \"ticket\"", "equals = \"tocket\"", "stage[0].missing", "gives {tocket}"),
        ("like = \"{_:any}/shops/{shop}\"", "like = \"{_:any}/shops/{_}\"", "stage[0].bind.shop.like", "{shop}"),
        ("/t/{ticket:number}", "/t/{tocket:number}", "address[0].like", "gives {ticket}"),
        ("/jobs/{job}/stop", "/jobs/{jab}/stop", "cancel[0].path", "gives {jab}"),
        ("/jobs/{job}/logs", "/jobs/{jab}/logs", "log.source[0].path", "gives {jab}"),
        ("/logs/{log}?", "/logs/{lag}?", "log.path", "gives {lag}"),
        ("path = \"/ws\"", "path = \"/ws/{jab}\"", "read.stream[0].path", "gives {jab}"),
        ("path = \"/jobs?since={since}\"", "path = \"/jobs?since={then}\"", "submit.correlate.path", "gives {then}"),
        ("bind = { base = \"/base\", ticket", "bind = { ticket", "submit.bind", "gives {base}"),
        // Not known.
        // What a read does in any case, and what none does, are no fields.
        ("[read]", "[read]\netag = true", "read.etag", "no such field; the fields here are headers, stream"),
        ("[read]", "[read]\nbatch = 100", "read.batch", "no such field"),
        ("reopens = true", "reopen = true", "reopen", "no such field"),
        ("parked = [\"asks\"]", "parkd = [\"asks\"]", "stage[2].status[1].parkd", "no such field"),
        ("holds = \"/note\"", "holds = \"/note\", match = 1", "submit.correlate.match", "no such field"),
    ] {
        assert!(WHOLE.contains(from), "not in the file: {from}");
        let said = match Profile::parse(&WHOLE.replacen(from, to, 1)) {
            Ok(_) => "accepted".to_owned(),
            Err(e) => e.to_string(),
        };
        if !said.starts_with(&format!("{path}: expected ")) || !said.contains(expected) {
            wrong.push(format!("{from} -> {to}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each key that a file may have is in the manual, beside what acts upon it.
#[test]
fn the_manual_has_every_key() {
    let manual = include_str!("../../manual/polling.md");
    let (_, section) = manual.split_once("## A profile as a file").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let mut table = "";
    let mut told = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        table = if cells[1].is_empty() { table } else { cells[1].trim_matches('`') };
        told.extend(cells[2].split(", ").map(|key| (table, key.trim_matches('`'))));
        assert!(!cells[3].is_empty(), "{row}");
    }
    let mut known = 0;
    for (table, anchor) in [
        ("the file", "name = \"mine\""),
        ("stage", "path = \"{base:any}/jobs/{job}\""),
        ("stage.status", "at = \"/code\""),
        ("stage.status.when", "when = { at = \"/over\""),
        ("stage.order", "kind = \"monotone\""),
        ("stage.find", "find = { each = \"\""),
        ("stage.next", "next = [{ stage = \"job\""),
        ("bind", "like = \"{_:any}/shops/{shop}\""),
        ("address", "like = \"shop.example/t/{ticket:number}\""),
        ("read", "[read]"),
        ("read.stream", "kind = \"websocket\""),
        ("pace", "least = \"2s\""),
        ("log", "kind = \"token\""),
        ("log.source", "total = \"/total\""),
        ("submit", "method = \"PUT\""),
        ("submit.bind", "header = \"Location\""),
        ("submit.dedupe", "by = \"token\""),
        ("submit.correlate", "inject = \"/note\""),
        ("cancel", "acknowledged = \"stopped\""),
        ("cancel.force", "method = \"DELETE\""),
        ("webhook", "header = \"X-Signature\""),
    ] {
        let is_inline = !WHOLE.lines().any(|line| line == anchor);
        let text = WHOLE.replacen(anchor, &format!("{anchor}{}zzz = 1", if is_inline { ", " } else { "\n" }), 1);
        let said = Profile::parse(&text).unwrap_err().to_string();
        let (_, keys) = said.split_once("zzz: expected no such field; the fields here are ").expect(&said);
        for key in keys.split(", ") {
            known += 1;
            assert!(told.contains(&(table, key)), "{table}: {key}");
        }
    }
    // Those of logs of lines are not in the file above.
    let others = [("log.about", "path"), ("log.about", "lines"), ("log.about", "complete")];
    assert!(others.iter().all(|other| told.contains(other)));
    assert_eq!(told.len(), known + others.len(), "a key in the manual that no file has");
}

/// What a service forgets is looked at at least twice before, also beside a stream; it is never looked at sooner than the
/// pace says.
#[test]
fn what_vanishes_is_looked_at_in_time() {
    let seconds = Duration::from_secs;
    for (vanishes, most, reread) in [("5m", 60, 60), ("90s", 45, 45), ("10s", 5, 5), ("4s", 2, 2)] {
        let profile =
            Profile::parse(&WHOLE.replace("vanishes_after = \"5m\"", &format!("vanishes_after = \"{vanishes}\"")));
        let settings = profile.unwrap().settings();
        assert_eq!(
            (settings.pace.least, settings.pace.most, settings.reread),
            (seconds(2), seconds(most), seconds(reread)),
            "{vanishes}"
        );
    }
}

/// A file may come with a repository: it names no credential, and nothing that one is sent to.
#[test]
fn a_file_says_nothing_of_credentials() {
    for (from, to, path) in [
        ("reopens = true", "token = \"t0psecret\"", "token"),
        ("reopens = true", "token_cmd = \"cat /etc/t0psecret\"", "token_cmd"),
        ("reopens = true", "token_origins = [\"https://t0psecret.example\"]", "token_origins"),
        ("[read]", "[read]\ncredential = { file = \"t0psecret\" }", "read.credential"),
        ("Accept = \"application/json\"", "Authorization = \"Bearer t0psecret\"", "read.headers.Authorization"),
        ("Accept = \"application/json\"", "PRIVATE-TOKEN = \"t0psecret\"", "read.headers.PRIVATE-TOKEN"),
        ("Accept = \"application/json\"", "Cookie = \"a=t0psecret\"", "read.headers.Cookie"),
        ("Accept = \"application/json\"", "Proxy-Authorization = \"t0psecret\"", "read.headers.Proxy-Authorization"),
        ("Accept = \"application/json\"", "Content-Length = \"t0psecret\"", "read.headers.Content-Length"),
        ("Accept = \"application/json\"", "Transfer-Encoding = \"t0psecret\"", "read.headers.Transfer-Encoding"),
        ("Accept = \"application/json\"", "Host = \"t0psecret.example\"", "read.headers.Host"),
        ("Accept = \"application/json\"", "Range = \"bytes=t0psecret\"", "read.headers.Range"),
        ("Accept = \"application/json\"", "If-None-Match = \"t0psecret\"", "read.headers.If-None-Match"),
        ("base = \"/api\"", "base = \"/api\"\nhost = \"t0psecret.example\"", "address[0].host"),
    ] {
        let e = Profile::parse(&WHOLE.replacen(from, to, 1)).expect_err(path);
        let said = format!("{e} {e:?}");
        assert!(e.to_string().starts_with(&format!("{path}: expected no")), "{e}");
        assert!(!said.contains("t0psecret"), "{said}");
    }
}

/// The shipped ones may lead to another host, and only as what they are: as a file the same text is refused.
#[test]
fn a_copy_of_a_shipped_profile_leads_to_no_other_host() {
    let text = Profile::text("github-actions").unwrap();
    assert!(Profile::parse(text).unwrap_err().to_string().starts_with("address[0].host: "));
    for name in ["buildbot", "gitlab", "jenkins"] {
        assert_eq!(Profile::parse(Profile::text(name).unwrap()).unwrap(), Profile::named(name).unwrap());
    }
}

#[test]
fn what_is_no_toml_is_refused_by_its_line_without_its_text() {
    let e = Profile::parse("name = \"x\"\nsecret = \"t0psecret\" [stage").unwrap_err();
    assert!(e.is_invalid() && e.to_string().contains("line 2"), "{e}");
    assert!(!format!("{e} {e:?}").contains("t0psecret"));
}

/// What code puts together is checked, too.
#[test]
fn a_profile_made_by_code_can_be_checked() {
    let mut profile = Profile::parse(WHOLE).unwrap();
    profile.check().unwrap();
    profile.stages[2].status[0].ok.clear();
    assert!(profile.check().unwrap_err().to_string().starts_with("stage[2].status: expected"));
    assert!(Profile::new("empty", Vec::new()).check().unwrap_err().to_string().starts_with("stage: expected"));
}
