//! A table for each shipped profile: documented bodies, and what they mean.

use serde_json::{Value, json};

use super::{read, said, unreadable};
use crate::error::Cause;
use crate::http::poll::{Answer, Marks};
use crate::profile::WorkState::{Canceled, Failed, Parked, Queued, Running, Succeeded};
use crate::profile::{Order, Profile, Unread};

fn shipped(name: &str) -> Profile {
    Profile::named(name).unwrap()
}

#[test]
fn every_shipped_profile_is_one() {
    for name in Profile::names() {
        let profile = shipped(name);
        assert_eq!(&*profile.name, name);
        assert!(profile.log.is_some() && profile.submit.is_some() && !profile.cancel.is_empty(), "{name}");
        let settings = profile.settings();
        assert_eq!((settings.grace, settings.reopens), (profile.grace, name == "gitlab"), "{name}");
    }
    assert!(Profile::named("hudson").unwrap_err().to_string().contains("buildbot, github-actions, gitlab, jenkins"));
}

// Buildbot

fn request(complete: Value, claimed: bool, results: Value) -> Value {
    json!({
        "buildrequests": [{
            "buildrequestid": 12, "builderid": 1, "buildsetid": 9, "claimed": claimed, "claimed_at": null,
            "claimed_by_masterid": null, "complete": complete, "complete_at": null, "priority": 0, "properties": {},
            "results": results, "submitted_at": 1451001600, "waited_for": false,
        }],
        "meta": {},
    })
}

/// The verdict is that of the build request (R10); a request that was collapsed never ran, and is no success.
#[test]
fn buildbot_requests() {
    let buildbot = shipped("buildbot");
    for (complete, claimed, results, expected) in [
        (false, false, -1, (Queued, "unclaimed")),
        (false, true, -1, (Running, "claimed")),
        // Whatever the result reads before the end.
        (false, true, 0, (Running, "claimed")),
        (false, false, 2, (Queued, "unclaimed")),
        (true, true, 0, (Succeeded, "success")),
        (true, true, 1, (Succeeded, "warnings")),
        (true, true, 2, (Failed, "failure")),
        (true, true, 3, (Canceled, "skipped")),
        (true, true, 4, (Failed, "exception")),
        (true, true, 5, (Running, "retry")),
        (true, false, 6, (Canceled, "cancelled")),
    ] {
        let body = request(json!(complete), claimed, json!(results));
        assert_eq!(said(&buildbot, "request", &body), (expected.0, expected.1.to_owned(), 0), "{body}");
    }
    assert_eq!(said(&buildbot, "request", &request(json!(true), true, json!(7))), (Running, "7".to_owned(), 1));
    for body in [
        json!({"buildrequests": [], "meta": {"total": 0}}),
        json!({"error": "not found"}),
        request(json!(true), true, json!(null)),
        request(json!(true), true, json!("0")),
        request(json!(true), true, json!(0.5)),
        request(json!(null), true, json!(0)),
        request(json!("true"), true, json!(0)),
    ] {
        unreadable(&buildbot, "request", &body);
    }
}

/// A build leads to its request, whatever its own result is; one without a request decides for itself.
#[test]
fn buildbot_builds_lead_to_their_request() {
    let buildbot = shipped("buildbot");
    let build = |request: Value, complete: bool, results: Value| {
        json!({"builds": [{
            "buildid": 100, "number": 1, "builderid": 10, "buildrequestid": request, "workerid": 20, "masterid": 824,
            "complete": complete, "complete_at": null, "results": results, "started_at": 1451001600, "state_string": "created",
        }], "meta": {}})
    };
    for results in [json!(0), json!(5)] {
        let work = read(&buildbot, "build", &build(json!(12), true, results));
        let next = work.next.clone().unwrap();
        assert_eq!((&*next.stage, next.bound.get("request").as_deref()), ("request", Some("12")));
        assert!(!work.marks().terminal);
    }
    let alone = read(&buildbot, "build", &build(json!(null), true, json!(0)));
    assert!(alone.next.is_none() && alone.marks().terminal);
    assert_eq!(said(&buildbot, "build", &build(json!(null), false, json!(null))), (Running, "building".to_owned(), 0));
    assert!(unreadable(&buildbot, "build", &build(json!({}), true, json!(0))).contains("/builds/0/buildrequestid"));
}

#[test]
fn buildbot_buildsets() {
    let buildbot = shipped("buildbot");
    let set = |complete, results| json!({"buildsets": [{"bsid": 9, "complete": complete, "results": results}]});
    assert_eq!(said(&buildbot, "buildset", &set(false, -1)), (Running, "incomplete".to_owned(), 0));
    assert_eq!(said(&buildbot, "buildset", &set(true, 0)), (Succeeded, "success".to_owned(), 0));
    assert_eq!(said(&buildbot, "buildset", &set(true, 4)), (Failed, "exception".to_owned(), 0));
}

// GitHub Actions

fn run(status: Value, conclusion: Value) -> Value {
    json!({
        "id": 30433642, "name": "Build", "node_id": "MDEyOldvcmtmbG93IFJ1bjI2OTI4OQ==", "run_number": 562, "event": "push",
        "run_attempt": 2, "status": status, "conclusion": conclusion, "workflow_id": 159038,
        "url": "https://api.github.com/repos/octo-org/octo-repo/actions/runs/30433642",
        "created_at": "2020-01-22T19:33:08Z", "updated_at": "2020-01-22T19:33:08Z",
    })
}

/// Waiting for a reviewer, and a fork's run that nobody has approved, are parked and not over (R10).
#[test]
fn github_runs() {
    let github = shipped("github-actions");
    for (status, conclusion, state) in [
        ("queued", None, Queued),
        ("requested", None, Queued),
        ("pending", None, Queued),
        ("in_progress", None, Running),
        // A conclusion counts only once the run is completed.
        ("in_progress", Some("success"), Running),
        ("queued", Some("failure"), Queued),
        ("waiting", None, Parked),
        ("completed", Some("success"), Succeeded),
        ("completed", Some("neutral"), Succeeded),
        ("completed", Some("skipped"), Succeeded),
        ("completed", Some("failure"), Failed),
        ("completed", Some("timed_out"), Failed),
        ("completed", Some("startup_failure"), Failed),
        ("completed", Some("stale"), Failed),
        ("completed", Some("cancelled"), Canceled),
        ("completed", Some("action_required"), Parked),
    ] {
        let work = read(&github, "run", &run(json!(status), json!(conclusion)));
        assert_eq!((work.state, work.warning.is_some()), (state, false), "{status} {conclusion:?}");
        // One second, in milliseconds.
        let marks = Marks::terminal(state.is_terminal()).of_attempt(2).at_version(1_579_721_588_000);
        assert_eq!(work.marks(), marks);
    }
    assert_eq!(said(&github, "run", &run(json!("completed"), json!("cancelled"))).1, "cancelled");
}

/// R3, R10: an unknown word is running, with a warning; null, nothing or another type is unreadable. None is an end.
#[test]
fn github_misbehaves() {
    let github = shipped("github-actions");
    for body in [run(json!("dreaming"), json!("success")), run(json!("completed"), json!("exploded"))] {
        let work = read(&github, "run", &body);
        assert_eq!((work.state, work.marks().terminal), (Running, false));
        assert!(work.warning.unwrap().contains("taken for running"));
    }
    let mut without = run(json!("completed"), json!("success"));
    without.as_object_mut().unwrap().remove("status");
    let mut odd = run(json!("completed"), json!("success"));
    odd["run_attempt"] = json!("2");
    for body in [
        run(json!("completed"), json!(null)),
        run(json!("completed"), json!(true)),
        run(json!("completed"), json!(["success"])),
        run(json!(null), json!("success")),
        run(json!(1), json!("success")),
        without,
        odd,
        json!({"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": null}),
        json!("completed"),
        json!(null),
    ] {
        let said = github.read("run", &body).unwrap_err();
        assert!(matches!(said.answer(), Answer::Unserved(Cause::Undecodable { .. })), "{body}");
    }
    // The error that GitHub itself writes has a status, too: a word that no run has.
    let error = json!({"message": "Not Found", "documentation_url": "..", "status": "404"});
    assert_eq!(said(&github, "run", &error), (Running, "404".to_owned(), 1));
}

// GitLab

#[test]
fn gitlab_pipelines_and_jobs() {
    let gitlab = shipped("gitlab");
    for (status, state) in [
        ("created", Queued),
        ("waiting_for_resource", Queued),
        ("waiting_for_callback", Queued),
        ("preparing", Queued),
        ("pending", Queued),
        ("scheduled", Queued),
        ("running", Running),
        ("canceling", Running),
        ("manual", Parked),
        ("success", Succeeded),
        ("failed", Failed),
        ("canceled", Canceled),
        ("skipped", Canceled),
    ] {
        let body = json!({
            "id": 287, "iid": 144, "project_id": 21, "status": status, "ref": "main",
            "created_at": "2022-09-21T01:05:07.200Z", "updated_at": "2022-09-21T01:05:50.185Z",
            "detailed_status": {"text": "passed", "group": "success"},
        });
        let work = read(&gitlab, "pipeline", &body);
        assert_eq!((work.state, work.attempt, work.version), (state, None, Some(1_663_722_350_185)), "{status}");
        assert_eq!(said(&gitlab, "job", &body), (state, status.to_owned(), 0));
    }
    let error = json!({"message": "404 Project Not Found"});
    unreadable(&gitlab, "pipeline", &error);
    assert!(gitlab.reopens);
}

// Jenkins

/// A pipeline sets `result` while it still runs: that counts only once it does not (R10).
#[test]
fn jenkins_builds() {
    let jenkins = shipped("jenkins");
    let build = |in_progress: Value, result: Value| {
        json!({"_class": "org.jenkinsci.plugins.workflow.job.WorkflowRun", "building": true, "inProgress": in_progress,
               "result": result, "number": 7, "queueId": 41, "url": "http://ci.example/job/a/7/"})
    };
    for (in_progress, result, state) in [
        (true, None, Running),
        (true, Some("FAILURE"), Running),
        (true, Some("SUCCESS"), Running),
        (false, Some("SUCCESS"), Succeeded),
        (false, Some("UNSTABLE"), Failed),
        (false, Some("FAILURE"), Failed),
        (false, Some("NOT_BUILT"), Canceled),
        (false, Some("ABORTED"), Canceled),
    ] {
        let body = build(json!(in_progress), json!(result));
        assert_eq!(read(&jenkins, "build", &body).state, state, "{body}");
    }
    // Older ones know only `building`.
    assert_eq!(read(&jenkins, "build", &json!({"building": true, "result": null})).state, Running);
    assert_eq!(read(&jenkins, "build", &json!({"building": false, "result": "SUCCESS"})).state, Succeeded);
    assert_eq!(said(&jenkins, "build", &build(json!(false), json!("MELTED"))), (Running, "MELTED".to_owned(), 1));
    for body in [
        build(json!(false), json!(null)),
        build(json!(false), json!(0)),
        build(json!("false"), json!("SUCCESS")),
        json!({"result": "SUCCESS"}),
    ] {
        unreadable(&jenkins, "build", &body);
    }
}

#[test]
fn jenkins_items() {
    let jenkins = shipped("jenkins");
    let item = |class: &str, cancelled: Value, executable: Value| {
        json!({"_class": format!("hudson.model.Queue${class}"), "id": 41, "blocked": false, "buildable": false,
               "stuck": false, "inQueueSince": 1, "params": "", "why": null, "url": "queue/item/41/",
               "task": {"name": "b", "url": "http://localhost:8080/ci/job/a/job/b/"},
               "cancelled": cancelled, "executable": executable})
    };
    for (class, cancelled, state, status) in [
        ("WaitingItem", json!(null), Queued, "waiting"),
        ("BlockedItem", json!(null), Queued, "blocked"),
        ("BuildableItem", json!(null), Queued, "buildable"),
        ("LeftItem", json!(false), Running, "left the queue"),
        ("LeftItem", json!(true), Canceled, "cancelled"),
    ] {
        let work = read(&jenkins, "item", &item(class, cancelled, json!(null)));
        assert_eq!((work.state, &*work.status, work.next.is_none()), (state, status, true));
        assert_eq!(work.bound.get("job").as_deref(), Some("a/job/b"));
    }
    let executable = json!({"number": 7, "url": "http://localhost:8080/ci/job/a/job/b/7/"});
    let work = read(&jenkins, "item", &item("LeftItem", json!(false), executable));
    let next = work.next.unwrap();
    assert_eq!((next.bound.get("job").unwrap(), next.bound.get("number").unwrap()), ("a/job/b".into(), "7".into()));
    unreadable(&jenkins, "item", &json!({"id": 41}));
    let odd = item("LeftItem", json!(false), json!({"number": 7, "url": "http://localhost:8080/../../admin"}));
    unreadable(&jenkins, "item", &odd);
}

// What a profile of one's own can say

/// Buildkite shows a blocked build as passed: only the first question that applies counts.
#[test]
fn a_blocked_build_that_reads_passed_is_parked() {
    let buildkite = Profile::parse(
        r#"
        name = "buildkite"
        [[stage]]
        name = "build"
        path = "/v2/organizations/{org}/pipelines/{pipeline}/builds/{build:number}"
        [[stage.status]]
        when = { at = "/blocked", is = [true] }
        at = "/state"
        parked = ["passed", "blocked"]
        failed = ["failed"]
        canceled = ["canceled"]
        running = ["running", "scheduled", "creating", "failing", "canceling"]
        [[stage.status]]
        at = "/state"
        ok = ["passed"]
        failed = ["failed"]
        canceled = ["canceled", "skipped", "not_run"]
        queued = ["creating", "scheduled"]
        running = ["running", "failing", "canceling"]
        parked = ["blocked"]
        "#,
    )
    .unwrap();
    let state = |state: &str, blocked| read(&buildkite, "build", &json!({"state": state, "blocked": blocked})).state;
    assert_eq!(state("passed", json!(true)), Parked);
    assert_eq!(state("passed", json!(false)), Succeeded);
    assert_eq!(state("failed", json!(true)), Failed);
    assert_eq!(state("scheduled", json!(false)), Queued);
    assert!(!Parked.is_terminal());
}

/// R4: a counter and a time order values, an opaque version does not.
#[test]
fn orders_are_monotone_coarse_or_opaque() {
    let with = |order: &str| {
        let text = format!(
            "name = 'x'\n[[stage]]\nname = 's'\npath = '/s'\n{order}\n[[stage.status]]\nat = '/st'\nok = ['y']\nfailed = ['n']"
        );
        Profile::parse(&text).unwrap()
    };
    let version = |order: &str, v: Value| read(&with(order), "s", &json!({"st": "y", "v": v})).version;
    let monotone = "order = { kind = 'monotone', at = '/v' }";
    let coarse = "order = { kind = 'coarse', at = '/v' }";
    assert_eq!(version(monotone, json!(7)), Some(7));
    assert_eq!(version(monotone, json!("7")), None);
    assert_eq!(version(coarse, json!("2022-09-21T01:05:50Z")), Some(1_663_722_350_000));
    assert_eq!(version(coarse, json!(1_663_722_350)), Some(1_663_722_350));
    assert_eq!(version(coarse, json!("yesterday")), None);
    assert_eq!(version(coarse, json!(null)), None);
    for opaque in ["", "order = { kind = 'opaque' }"] {
        assert_eq!(version(opaque, json!(7)), None);
        assert_eq!(with(opaque).stages[0].order, Order::Opaque);
    }
}

#[test]
fn a_list_without_the_element_is_absent() {
    let jenkins = shipped("jenkins");
    assert_eq!(jenkins.read("search", &json!({"builds": []})), Err(Unread::Absent));
    assert_eq!(Unread::Absent.answer(), Answer::Absent);
    unreadable(&jenkins, "search", &json!({"builds": null}));
    unreadable(&jenkins, "no-such-stage", &json!({}));
}

/// A warning shows the word, and not a whole page.
#[test]
fn a_long_word_is_cut_in_a_warning() {
    let work = read(&shipped("gitlab"), "pipeline", &json!({"status": "x".repeat(10_000)}));
    assert!(work.warning.unwrap().len() < 200);
}
