//! From stage to stage, and from attempt to attempt.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

use crate::error::Cause;
use crate::http::poll::{Answer, Marks};
use crate::machine::{Machine as _, Monotonic, Now, Wall};
use crate::profile::{Action, Event, Profile, Stages, Unread};

struct Rig {
    stages: Stages,
    at: Duration,
}

impl Rig {
    fn named(profile: &str, url: &str) -> Self {
        Self::of(Profile::named(profile).unwrap(), url)
    }

    fn of(profile: Profile, url: &str) -> Self {
        let location = profile.locate(&Url::parse(url).unwrap()).unwrap();
        Self { stages: Stages::new(Arc::new(profile), location), at: Duration::ZERO }
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        let now = Now { instant: Monotonic::new(self.at), wall: Wall::default(), draw: 0 };
        self.stages.on_event(now, event)
    }

    /// What a driver does with a body, if the read shows whatever it is told.
    fn body(&mut self, body: &Value) -> Vec<Action> {
        let shown = self.stages.read(body).ok();
        let actions = self.unshown(body);
        let takes = |action: &Action| matches!(action, Action::Take(Answer::Value(_)));
        if let Some(work) = shown.filter(|_| actions.iter().any(takes)) {
            assert_eq!(self.on(Event::Shown(Arc::new(work))), []);
        }
        actions
    }

    /// The same, if the read does not show it.
    fn unshown(&mut self, body: &Value) -> Vec<Action> {
        match self.stages.read(body) {
            Ok(work) => self.on(Event::Read(Arc::new(work))),
            Err(Unread::Absent) => self.on(Event::Absent),
            Err(unread) => vec![Action::Take(unread.answer())],
        }
    }

    fn absent(&mut self) -> Vec<Action> {
        self.on(Event::Absent)
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.at += Duration::from_secs(seconds);
        self
    }

    fn url(&self) -> &str {
        self.stages.url().as_str()
    }
}

fn turn(stage: &str, url: &str, at_once: bool) -> Action {
    Action::Turn { stage: stage.into(), url: Url::parse(url).unwrap(), at_once }
}

fn value(marks: Marks) -> Action {
    Action::Take(Answer::Value(marks))
}

fn running() -> Action {
    value(Marks::terminal(false))
}

fn over() -> Action {
    value(Marks::terminal(true))
}

const NOTHING: Action = Action::Take(Answer::Nothing);
const NOT_YET: Action = Action::Take(Answer::Unserved(Cause::NotYetVisible));

fn item(class: &str, executable: Value) -> Value {
    json!({"_class": format!("hudson.model.Queue${class}"), "id": 41, "executable": executable,
           "task": {"url": "http://inside:8080/job/a/job/b/"}})
}

fn started() -> Value {
    item("LeftItem", json!({"number": 7, "url": "http://inside:8080/job/a/job/b/7/"}))
}

const ITEM: &str = "https://ci.example/jenkins/queue/item/41/api/json";
const BUILD: &str = "https://ci.example/jenkins/job/a/job/b/7/api/json";
const SEARCH: &str = "https://ci.example/jenkins/job/a/job/b/api/json?tree=builds%5Bnumber,queueId%5D%7B0,100%7D";

/// A queue item leads to its build, on the origin of the user's address: a credential goes there.
#[test]
fn jenkins_item_becomes_a_build() {
    let mut rig = Rig::named("jenkins", ITEM);
    assert_eq!(rig.body(&item("WaitingItem", json!(null))), [running()]);
    assert_eq!(rig.body(&item("LeftItem", json!(null))), [running()]);
    assert_eq!(rig.body(&started()), [running(), turn("build", BUILD, true)]);
    assert_eq!(rig.url(), BUILD);
    assert_eq!(rig.body(&json!({"inProgress": true, "result": null})), [running()]);
    assert_eq!(rig.body(&json!({"inProgress": false, "result": "SUCCESS"})), [over()]);
}

#[test]
fn jenkins_item_canceled_in_the_queue_is_over() {
    let mut rig = Rig::named("jenkins", ITEM);
    let mut body = item("LeftItem", json!(null));
    body["cancelled"] = json!(true);
    assert_eq!(rig.body(&body), [over()]);
}

/// A queue item that was forgotten is no end (R3): the build is looked for by the item's id.
#[test]
fn jenkins_forgotten_item_is_looked_for_among_the_builds() {
    let mut rig = Rig::named("jenkins", ITEM);
    rig.body(&item("WaitingItem", json!(null)));
    assert_eq!(rig.after(301).absent(), [NOT_YET, turn("search", SEARCH, true)]);
    let builds = json!({"builds": [{"number": 8, "queueId": 44}, {"number": 7, "queueId": 41}]});
    assert_eq!(rig.body(&builds), [NOTHING, turn("build", BUILD, true)]);
    assert_eq!(rig.body(&json!({"inProgress": false, "result": "FAILURE"})), [over()]);
}

/// Only when neither the queue nor the job knows the work for the whole grace is it gone (R3, FC-14).
#[test]
fn jenkins_work_that_is_nowhere_for_the_grace_is_gone() {
    let mut rig = Rig::named("jenkins", ITEM);
    rig.body(&item("WaitingItem", json!(null)));
    rig.absent();
    let none = json!({"builds": []});
    assert_eq!(rig.body(&none), [NOT_YET, turn("item", ITEM, false)]);
    assert_eq!(rig.after(9).absent(), [NOT_YET, turn("search", SEARCH, true)]);
    assert_eq!(rig.body(&none), [NOT_YET, turn("item", ITEM, false)]);
    assert_eq!(rig.after(1).absent(), [NOT_YET, turn("search", SEARCH, true)]);
    assert_eq!(rig.body(&none), [Action::Take(Answer::Gone)]);
}

/// R3: absence counts in one piece. While the service cannot be asked, nobody says that the work is not there.
#[test]
fn an_outage_is_no_absence() {
    let mut rig = Rig::named("jenkins", ITEM);
    rig.body(&started());
    assert_eq!(rig.absent(), [NOT_YET]);
    assert_eq!(rig.after(60).on(Event::Unanswered), []);
    assert_eq!(rig.absent(), [NOT_YET]);
    assert_eq!(rig.after(9).absent(), [NOT_YET]);
    assert_eq!(rig.after(1).absent(), [Action::Take(Answer::Gone)]);
}

/// A 404 in between says nothing: once the item is there again, the grace begins anew.
#[test]
fn jenkins_item_that_is_there_again_goes_on() {
    let mut rig = Rig::named("jenkins", ITEM);
    rig.body(&item("WaitingItem", json!(null)));
    rig.absent();
    rig.body(&json!({"builds": []}));
    assert_eq!(rig.after(60).body(&item("WaitingItem", json!(null))), [running()]);
    rig.after(60).absent();
    assert_eq!(rig.body(&json!({"builds": []})), [NOT_YET, turn("item", ITEM, false)]);
    assert_eq!(rig.after(1).body(&started()), [running(), turn("build", BUILD, true)]);
}

/// R10: a service that forgets what is over takes no verdict away with it; what was not over is still gone (R3).
#[test]
fn what_is_forgotten_once_it_is_over_stays_over() {
    const SAME: Action = Action::Take(Answer::Same);
    let mut canceled = item("LeftItem", json!(null));
    canceled["cancelled"] = json!(true);
    let mut rig = Rig::named("jenkins", ITEM);
    assert_eq!(rig.body(&canceled), [over()]);
    assert_eq!(rig.after(400).absent(), [SAME]);
    assert_eq!(rig.on(Event::Gone), [SAME]);
    assert_eq!(rig.url(), ITEM);
    // There again, and not over: what is said last counts.
    assert_eq!(rig.body(&item("WaitingItem", json!(null))), [running()]);
    assert_eq!(rig.after(400).absent(), [NOT_YET, turn("search", SEARCH, true)]);

    let text = |vanishes: &str| {
        format!(
            "name = 'x'\n[[stage]]\nname = 'job'\npath = '/jobs/{{job}}'\nattempt = '/attempt'\n{vanishes}\n\
             status = [{{ at = '/state', running = ['busy'], ok = ['passed'], failed = ['failed'] }}]"
        )
    };
    let body = |state: &str, attempt: u64| json!({"state": state, "attempt": attempt});
    let absent = Action::Take(Answer::Absent);
    for (vanishes, once_over) in [("vanishes_after = '10m'", &SAME), ("", &absent)] {
        let mut rig = Rig::of(Profile::parse(&text(vanishes)).unwrap(), "https://host/jobs/a");
        rig.body(&body("passed", 1));
        assert_eq!(rig.absent(), std::slice::from_ref(once_over));
        // What a replica still says of the attempt before is no end of this one.
        rig.body(&body("busy", 2));
        rig.body(&body("passed", 1));
        assert_eq!(rig.absent(), std::slice::from_ref(&absent));
    }
}

/// R4, R10: an end that the read did not show, such as one of a replica that is behind, or one that a pushed value has
/// overtaken, confirms nothing; nor does what the read did not show take an end back. What was pushed counts as it is shown.
#[test]
fn only_an_end_that_is_shown_stays() {
    let text = "name = 'x'\n[[stage]]\nname = 'job'\npath = '/jobs/{job}'\nattempt = '/attempt'\nvanishes_after = '10m'\n\
                status = [{ at = '/state', running = ['busy'], ok = ['passed'], failed = ['failed'] }]";
    let body = |state: &str, attempt: u64| json!({"state": state, "attempt": attempt});
    let [same, absent] = [Answer::Same, Answer::Absent].map(|answer| [Action::Take(answer)]);
    let mut rig = Rig::of(Profile::parse(text).unwrap(), "https://host/jobs/a");
    rig.body(&body("busy", 1));
    rig.unshown(&body("passed", 1));
    assert_eq!(rig.absent(), absent);
    assert_eq!(rig.on(Event::Gone), [Action::Take(Answer::Gone)]);
    rig.body(&body("passed", 1));
    rig.unshown(&body("busy", 1));
    assert_eq!(rig.absent(), same);
    for (pushed, then) in [("busy", &absent), ("passed", &same)] {
        let work = rig.stages.read(&body(pushed, 2)).unwrap();
        rig.on(Event::Shown(Arc::new(work)));
        assert_eq!(rig.absent(), *then, "{pushed}");
    }
}

/// FC-14: the item named the build, so a 404 is "not yet visible" for the grace, though the read has seen the work.
#[test]
fn a_stage_that_was_just_named_may_be_invisible_for_the_grace() {
    let mut rig = Rig::named("jenkins", ITEM);
    rig.body(&started());
    let not_yet = [NOT_YET];
    assert_eq!(rig.absent(), not_yet);
    assert_eq!(rig.after(9).absent(), not_yet);
    assert_eq!(rig.clone_after(1), [Action::Take(Answer::Gone)]);
    assert_eq!(rig.body(&json!({"inProgress": true})), [running()]);
    // Once seen, absent means gone: the machine of the read knows that.
    assert_eq!(rig.absent(), [Action::Take(Answer::Absent)]);
}

impl Rig {
    fn clone_after(&self, seconds: u64) -> Vec<Action> {
        let mut other = Self { stages: self.stages.clone(), at: self.at };
        other.after(seconds).absent()
    }
}

#[test]
fn an_item_never_seen_is_left_to_the_machine_of_the_read() {
    // Its job is not known, so there is nowhere to look.
    let mut rig = Rig::named("jenkins", ITEM);
    assert_eq!(rig.absent(), [Action::Take(Answer::Absent)]);
    assert_eq!(rig.url(), ITEM);
}

/// 410 is an authority, but not about the build.
#[test]
fn gone_is_gone_unless_another_stage_may_know() {
    let mut rig = Rig::named("jenkins", ITEM);
    rig.body(&item("WaitingItem", json!(null)));
    assert_eq!(rig.on(Event::Gone), [NOT_YET, turn("search", SEARCH, true)]);
    let mut rig = Rig::named("gitlab", "https://host/g/p/-/pipelines/9");
    assert_eq!(rig.on(Event::Gone), [Action::Take(Answer::Gone)]);
}

/// What a master that was killed leaves behind: a build that is over with result 5, and a request that goes on (R10).
#[test]
fn buildbot_retry_goes_on_under_the_same_request() {
    let mut rig = Rig::named("buildbot", "https://host/#/builders/1/builds/1");
    let build = json!({"builds": [{"buildid": 1, "buildrequestid": 12, "complete": true, "results": 5}]});
    let request = "https://host/api/v2/buildrequests/12";
    assert_eq!(rig.body(&build), [running(), turn("request", request, true)]);
    let body = |complete, claimed, results| json!({"buildrequests": [{"buildrequestid": 12, "complete": complete, "claimed": claimed, "results": results}]});
    assert_eq!(rig.body(&body(false, false, -1)), [running()]);
    assert_eq!(rig.body(&body(false, true, -1)), [running()]);
    assert_eq!(rig.body(&body(true, true, 0)), [over()]);
}

/// GitHub runs the same id again: a terminal belongs to its attempt (R10).
#[test]
fn github_attempts_follow_each_other_under_one_id() {
    let mut rig = Rig::named("github-actions", "https://github.com/o/r/actions/runs/1");
    let run = |attempt: u64, status: &str, conclusion: Value| json!({"run_attempt": attempt, "status": status, "conclusion": conclusion});
    let url = rig.url().to_owned();
    assert_eq!(rig.body(&run(1, "completed", json!("failure"))), [value(Marks::terminal(true).of_attempt(1))]);
    let second = value(Marks::terminal(false).of_attempt(2));
    assert_eq!(rig.body(&run(2, "queued", json!(null))), [Action::Attempt(2), second.clone()]);
    // One that lags is told as it is: the machine of the read says that it is behind (R4).
    assert_eq!(rig.body(&run(1, "completed", json!("failure"))), [value(Marks::terminal(true).of_attempt(1))]);
    assert_eq!(rig.body(&run(2, "queued", json!(null))), [second]);
    assert_eq!(rig.url(), url);
}

const CHAIN: &str = r#"
    name = "chain"
    [[stage]]
    name = "job"
    path = "/jobs/{job}"
    order = { kind = "monotone", at = "/v" }
    status = [{ at = "/state", ok = ["passed"], failed = ["failed"] }]
    next = [{ stage = "job", attempt = true, bind = { job = "/retried_in" } }]
"#;

/// Where each attempt has an id of its own, a failure that was retried is no verdict, and attempts are counted.
#[test]
fn attempts_chain_to_other_ids() {
    let mut rig = Rig::of(Profile::parse(CHAIN).unwrap(), "https://host/jobs/a");
    let first = Marks::terminal(true).of_attempt(1).at_version(5);
    assert_eq!(rig.body(&json!({"state": "failed", "v": 5})), [value(first)]);
    let retried = json!({"state": "failed", "v": 6, "retried_in": "b"});
    assert_eq!(rig.body(&retried), [NOTHING, turn("job", "https://host/jobs/b", true)]);
    let second = Marks::terminal(true).of_attempt(2).at_version(1);
    assert_eq!(rig.body(&json!({"state": "passed", "v": 1})), [Action::Attempt(2), value(second)]);
}

/// R4: the versions of two stages say nothing of each other, so a later one is never behind an earlier one.
#[test]
fn versions_are_those_of_the_last_stage() {
    let text = r#"
        name = "two"
        [[stage]]
        name = "item"
        path = "/items/{item}"
        order = { kind = "monotone", at = "/v" }
        status = [{ at = "/state", queued = ["waiting"] }]
        next = [{ stage = "job", bind = { job = "/job" } }]
        [[stage]]
        name = "job"
        path = "/jobs/{job}"
        order = { kind = "monotone", at = "/v" }
        status = [{ at = "/state", ok = ["passed"], failed = ["failed"] }]
    "#;
    let mut rig = Rig::of(Profile::parse(text).unwrap(), "https://host/items/1");
    assert_eq!(rig.body(&json!({"state": "waiting", "v": 900})), [running()]);
    rig.body(&json!({"state": "waiting", "v": 901, "job": "a"}));
    assert_eq!(rig.body(&json!({"state": "passed", "v": 1})), [value(Marks::terminal(true).at_version(1))]);
}

/// A service that leads round in circles is asked no faster for it, and one that names itself decides nothing.
#[test]
fn a_circle_is_not_hurried() {
    let mut rig = Rig::of(Profile::parse(CHAIN).unwrap(), "https://host/jobs/a");
    let mut hurried = 0;
    for id in ["b", "a"].iter().cycle().take(20) {
        let actions = rig.body(&json!({"state": "failed", "retried_in": id}));
        hurried += actions.iter().filter(|a| matches!(a, Action::Turn { at_once: true, .. })).count();
    }
    assert_eq!(hurried, 4);
    let itself = rig.body(&json!({"state": "failed", "retried_in": "a"}));
    assert!(!matches!(itself[..], [Action::Take(Answer::Value(Marks { terminal: true, .. }))]), "{itself:?}");
    assert_eq!(itself.len(), 1);
}

/// R4: an answer to a request from before the last turn is of another stage.
#[test]
fn a_late_answer_of_the_stage_before_is_dropped() {
    let mut rig = Rig::named("jenkins", ITEM);
    let late = Arc::new(rig.stages.read(&item("WaitingItem", json!(null))).unwrap());
    rig.body(&started());
    assert_eq!(rig.on(Event::Read(late)), [NOTHING]);
    assert_eq!(rig.url(), BUILD);
}

/// An address in a body never leads to another origin, nor out of its place in the path.
#[test]
fn a_body_cannot_lead_a_credential_away() {
    let mut rig = Rig::named("jenkins", ITEM);
    let evil = item("LeftItem", json!({"number": 7, "url": "https://evil.example/job/x/7/"}));
    assert_eq!(rig.body(&evil)[1], turn("build", "https://ci.example/jenkins/job/x/7/api/json", true));
    let mut rig = Rig::of(Profile::parse(CHAIN).unwrap(), "https://host/jobs/a");
    assert_eq!(
        rig.body(&json!({"state": "failed", "retried_in": "//evil.example/x?y#z"}))[1],
        turn("job", "https://host/jobs/%2F%2Fevil.example%2Fx%3Fy%23z", true)
    );
    let up = rig.body(&json!({"state": "failed", "retried_in": ".."}));
    assert!(matches!(up[..], [Action::Take(Answer::Unserved(_))]), "{up:?}");
}
