//! From what people paste to the first read.

use serde_json::{Value, json};
use url::Url;

use crate::http::feed::{self, LinePages, LinesAbout, Marked, TokenPages};
use crate::profile::{Bindings, Listed, Location, LogKind, Profile, Template};

fn locate(profile: &str, url: &str) -> Result<Location, crate::Error> {
    Profile::named(profile).unwrap().locate(&Url::parse(url).unwrap())
}

#[track_caller]
fn leads(profile: &str, table: &[(&str, &str, &str)]) {
    for (url, stage, expected) in table {
        let location = locate(profile, url).unwrap_or_else(|e| panic!("{url}: {e}"));
        assert_eq!((location.url.as_str(), &*location.stage), (*expected, *stage), "{url}");
    }
}

#[test]
fn github() {
    let run = "https://api.github.com/repos/o/r/actions/runs/1";
    let attempt = "https://api.github.com/repos/o/r/actions/runs/1/attempts/2";
    let server = "https://ghe.example/api/v3/repos/o/r/actions/runs/1";
    leads(
        "github-actions",
        &[
            ("https://github.com/o/r/actions/runs/1", "run", run),
            ("https://github.com/o/r/actions/runs/1/", "run", run),
            ("https://github.com/o/r/actions/runs/1?pr=3#summary-1", "run", run),
            ("https://github.com/o/r/actions/runs/1/job/2#step:3:4", "run", run),
            ("https://github.com/o/r/actions/runs/1/attempts/2", "run", attempt),
            // Never without TLS to where a credential goes.
            ("http://github.com:8080/o/r/actions/runs/1", "run", run),
            ("https://www.github.com/o/r/actions/runs/1", "run", run),
            ("https://api.github.com/repos/o/r/actions/runs/1", "run", run),
            ("https://api.github.com/repos/o/r/actions/runs/1/attempts/2", "run", attempt),
            ("https://acme.ghe.com/o/r/actions/runs/1", "run", "https://api.acme.ghe.com/repos/o/r/actions/runs/1"),
            ("https://ghe.example/o/r/actions/runs/1", "run", server),
            ("https://ghe.example/api/v3/repos/o/r/actions/runs/1", "run", server),
        ],
    );
}

#[test]
fn gitlab() {
    let pipeline = "https://host/api/v4/projects/group%2Fproj/pipelines/9";
    leads(
        "gitlab",
        &[
            ("https://host/group/proj/-/pipelines/9", "pipeline", pipeline),
            ("https://host/group/proj/-/pipelines/9/test_report?x=1", "pipeline", pipeline),
            ("https://host/group/proj/pipelines/9", "pipeline", pipeline),
            ("https://host/api/v4/projects/group%2Fproj/pipelines/9", "pipeline", pipeline),
            ("https://host/a/b/c/-/pipelines/9", "pipeline", "https://host/api/v4/projects/a%2Fb%2Fc/pipelines/9"),
            ("https://host/api/v4/projects/21/pipelines/9", "pipeline", "https://host/api/v4/projects/21/pipelines/9"),
            ("https://host/git/api/v4/projects/21/jobs/9", "job", "https://host/git/api/v4/projects/21/jobs/9"),
            ("https://host/group/proj/-/jobs/9", "job", "https://host/api/v4/projects/group%2Fproj/jobs/9"),
        ],
    );
}

#[test]
fn jenkins() {
    let build = "https://host/job/a/job/b/7/api/json";
    leads(
        "jenkins",
        &[
            ("https://host/job/a/job/b/7/", "build", build),
            ("https://host/job/a/job/b/7", "build", build),
            ("https://host/job/a/job/b/7/console", "build", build),
            ("https://host/job/a/job/b/7/api/json?pretty=true", "build", build),
            ("https://host/job/7/12/", "build", "https://host/job/7/12/api/json"),
            (
                "http://h:8080/jenkins/job/m/job/f%252Fx/3/",
                "build",
                "http://h:8080/jenkins/job/m/job/f%252Fx/3/api/json",
            ),
            ("https://host/queue/item/41/", "item", "https://host/queue/item/41/api/json"),
            ("https://host/ci/queue/item/41/api/json", "item", "https://host/ci/queue/item/41/api/json"),
        ],
    );
}

#[test]
fn buildbot() {
    let request = "https://host/api/v2/buildrequests/12";
    leads(
        "buildbot",
        &[
            ("https://host/#/buildrequests/12", "request", request),
            ("https://host/#/buildrequests/12?redirect_to_build=true", "request", request),
            ("https://host/api/v2/buildrequests/12", "request", request),
            ("https://host/bb/#/buildrequests/12", "request", "https://host/bb/api/v2/buildrequests/12"),
            ("https://host/#/builders/1/builds/3", "build", "https://host/api/v2/builders/1/builds/3"),
            (
                "https://host/#/builders/1/builds/3/steps/2/logs/stdio",
                "build",
                "https://host/api/v2/builders/1/builds/3",
            ),
            (
                "https://host/api/v2/builders/runtests/builds/3",
                "build",
                "https://host/api/v2/builders/runtests/builds/3",
            ),
            ("https://host/api/v2/builds/3", "build", "https://host/api/v2/builds/3"),
            ("https://host/api/v2/buildsets/9", "buildset", "https://host/api/v2/buildsets/9"),
        ],
    );
}

#[test]
fn what_leads_nowhere_is_refused_and_says_what_would() {
    for (profile, url) in [
        ("github-actions", "https://github.com/o/r/actions"),
        ("github-actions", "https://github.com/o/r/actions/runs/latest"),
        ("gitlab", "https://host/group/proj"),
        // A list of builds is no build.
        ("jenkins", "https://host/job/a/api/json"),
        ("jenkins", "https://host/job/a/"),
        ("buildbot", "https://host/#/builders/1"),
        ("buildbot", "https://host/"),
        ("buildbot", "ftp://host/api/v2/builds/3"),
        ("buildbot", "https://host/api/v2/builds/%2e%2e"),
    ] {
        let e = locate(profile, url).unwrap_err();
        assert!(e.is_invalid() && e.to_string().starts_with("url: expected an"), "{url}: {e}");
    }
}

/// No secret is printed, and none is taken from an address.
#[test]
fn an_address_with_a_password_is_refused_without_showing_it() {
    let e = locate("buildbot", "https://me:hunter2@host/api/v2/builds/3").unwrap_err();
    assert!(e.is_invalid());
    assert!(!format!("{e} {e:?}").contains("hunter2"));
}

/// Logs and streams are read on the origin of the work.
#[test]
fn logs_and_streams_of_a_buildbot_request() {
    let buildbot = Profile::named("buildbot").unwrap();
    let request = locate("buildbot", "https://host/bb/#/buildrequests/12").unwrap();
    let log = buildbot.log.unwrap();
    let (mut known, mut last) = (Bindings::default(), json!(null));
    for (source, path, body, name) in [
        (0, "builds?buildrequestid=12&order=-number&limit=1", json!({"builds": [{"buildid": 3}]}), None),
        (
            1,
            "builds/3/steps?order=number&limit=100&offset=0",
            json!({"steps": [{"stepid": 4, "name": "shell"}]}),
            Some("shell"),
        ),
        (
            2,
            "steps/4/logs?order=logid&limit=100&offset=0",
            json!({"logs": [{"logid": 5, "slug": "stdio", "type": "s"}]}),
            Some("stdio"),
        ),
    ] {
        let source = &log.sources[source];
        assert_eq!(
            request.at(&source.path, &known.clone().with("from", "0")).unwrap().as_str(),
            format!("https://host/bb/api/v2/{path}")
        );
        let listed = source.list(&body).unwrap().remove(0);
        assert_eq!(listed.name.as_deref(), name);
        known.extend(&listed.bound);
        last = listed.body;
        assert!(source.list(&json!({"builds": [{}], "steps": [{}], "logs": [{}]})).is_err());
        assert!(source.list(&json!({})).is_err());
    }
    let known = known.with("from", "100").with("limit", "50");
    let contents = "https://host/bb/api/v2/logs/5/contents?offset=100&limit=50";
    assert_eq!(request.at(&log.path, &known).unwrap().as_str(), contents);
    assert!(request.at(&log.path, &Bindings::default()).unwrap_err().is_invalid());
    let tagged = log.tagged.unwrap();
    assert_eq!((tagged.holds(&last), tagged.holds(&json!({"type": "t"}))), (true, false));
    let stream = &buildbot.read.streams[0];
    let greeting = stream.greeting(&request.bound).unwrap();
    assert_eq!(greeting, r#"{"cmd":"startConsuming","path":"buildrequests/12/*","_id":1}"#);
    assert_eq!(request.at(&stream.path, &Bindings::default()).unwrap().as_str(), "https://host/bb/ws");
}

/// A profile says all that a feed needs.
#[test]
fn a_log_is_a_feed() {
    let feed = |name: &str, page: &str, listed: Bindings, body: Value| {
        let log = Profile::named(name).unwrap().log.unwrap();
        let (url, kind) = log.feed(&locate(name, page).unwrap(), &Listed { bound: listed, name: None, body }).unwrap();
        (url.to_string(), kind)
    };
    let jenkins = feed("jenkins", "https://host/ci/job/a/job/b/7/", Bindings::default(), json!(null));
    assert_eq!(jenkins, ("https://host/ci/job/a/job/b/7/logText/progressiveText".into(), feed::LogKind::jenkins()));

    for (kind, marked) in [("s", Marked::Always), ("t", Marked::Never)] {
        let log = Bindings::default().with("log", "5");
        let (url, kind) = feed("buildbot", "https://host/bb/#/buildrequests/12", log, json!({"type": kind}));
        assert_eq!(url, "https://host/bb/api/v2/logs/5/contents");
        let about = LinesAbout::new("https://host/bb/api/v2/logs/5", "/logs/0/num_lines", "/logs/0/complete");
        let mut pages = LinePages::buildbot();
        (pages.marked, pages.about) = (marked, Some(about));
        assert_eq!(kind, feed::LogKind::Lines(pages));
    }

    let job = || Bindings::default().with("job", "9");
    let github = feed("github-actions", "https://github.com/o/r/actions/runs/1", job(), json!(null));
    assert_eq!(github, ("https://api.github.com/repos/o/r/actions/jobs/9/logs".into(), feed::LogKind::AtEnd));
    let gitlab = feed("gitlab", "https://host/g/p/-/pipelines/3", job(), json!(null));
    assert_eq!(gitlab, ("https://host/api/v4/projects/g%2Fp/jobs/9/trace".into(), feed::LogKind::Whole));

    let mut log = Profile::named("jenkins").unwrap().log.unwrap();
    let here = locate("jenkins", "https://host/job/a/7/").unwrap();
    let listed = Listed { bound: Bindings::default(), name: None, body: json!(null) };
    log.kind = LogKind::Token;
    log.path = Template::new("/log/{number}?k=1&t={from}").unwrap();
    let (url, kind) = log.feed(&here, &listed).unwrap();
    assert_eq!(url.as_str(), "https://host/log/7?k=1");
    assert_eq!(kind, feed::LogKind::Token(TokenPages::new("t", "", "", "")));
    log.path = Template::new("/log/{from}").unwrap();
    assert!(log.feed(&here, &listed).unwrap_err().to_string().starts_with("log.path:"));
}
