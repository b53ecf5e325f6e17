//! Services that no profile is shipped for, each with a habit that a naive loop falls for.

use outlast::http::Get;
use outlast::profile::{Profile, WorkState};
use outlast::testing::Reply;
use outlast::End;
use serde_json::json;

use crate::rig::{Rig, Watched, pass, seconds};

fn watch(profile: &str, get: Get) -> Watched {
    Watched::of(&Profile::parse(profile).unwrap(), get)
}

/// As a Kubernetes Job: some time after it is over, a controller removes it.
const FORGETS: &str = r#"
    name = "forgets"
    [[stage]]
    name = "job"
    path = "/namespaces/{namespace}/jobs/{job}"
    vanishes_after = "20s"
    status = [{ at = "/phase", running = ["Active"], ok = ["Complete"], failed = ["Failed"] }]
"#;

const JOB: &str = "/namespaces/ci/jobs/a";

fn phase(phase: &str) -> Reply {
    Reply::json(json!({ "phase": phase }))
}

/// R10: success that turns into a 404 is success, for whoever waited and for whoever comes later. A job that runs for long is looked
/// at so often that its end is not missed.
#[tokio::test(start_paused = true)]
async fn r10_what_is_forgotten_once_it_is_over_stays_over() {
    for forgotten in [Reply::status(404), Reply::status(410)] {
        let rig = Rig::new();
        rig.ci.replies(JOB, [phase("Active")]);
        let watched = watch(FORGETS, rig.get(JOB));
        pass(seconds(1800)).await;
        let asked = rig.ci.asked(JOB);
        let longest = asked.windows(2).map(|pair| pair[1].at - pair[0].at).max().unwrap();
        assert!(longest <= seconds(10), "{longest:?}");

        rig.ci.replies(JOB, [phase("Complete")]);
        watched.ends_once(WorkState::Succeeded).await;
        rig.ci.replies(JOB, [forgotten]);
        pass(seconds(3600)).await;
        let late = watched.over().await;
        assert_eq!((late.state, watched.has_ended()), (WorkState::Succeeded, false));
        assert_eq!(watched.seen(), ["loading ()", "Active", "Complete"]);
    }
}

/// R3, R10: what was not over when it was seen last is gone, and nothing is said of how it ended.
#[tokio::test(start_paused = true)]
async fn r3_what_is_forgotten_while_nobody_could_look_is_gone() {
    let rig = Rig::new();
    rig.ci.replies(JOB, [phase("Active")]);
    let watched = watch(FORGETS, rig.get(JOB));
    watched.state(|_| true).await;
    rig.ci.kill();
    pass(seconds(600)).await;
    assert!(!watched.has_ended());
    rig.ci.replies(JOB, [Reply::status(404)]);
    rig.ci.revive();
    let e = watched.work.until(|work| work.state.is_terminal()).await.unwrap_err();
    assert_eq!(e.end(), Some(End::Gone));
    assert_eq!(e.last().last().unwrap().state, WorkState::Running);
}
