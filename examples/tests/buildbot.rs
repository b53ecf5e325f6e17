//! The program watches builds of a real Buildbot by hand, and its exit code is the build's own verdict.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../tests/tests/buildbot/master.rs"]
#[expect(dead_code, unreachable_pub, reason = "it is shared with the test of the reads, which uses all of it")]
mod master;

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use master::Buildbot;

/// The program, watching a build request by the page that a person has at hand.
struct Poller {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Poller {
    fn watch(buildbot: &Buildbot, request: u64) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_build_poller"))
            .args(["--url", &buildbot.url(&format!("/#/buildrequests/{request}"))])
            .args(["--profile", "buildbot", "--timeout", "90s", "--json"])
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Reads on until a reading of that kind and state.
    async fn shows(&mut self, reading: &str, state: &str) -> Value {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["reading"] == reading && line["state"] == state {
                return line;
            }
        }
        panic!("it ended before it was {reading}, {state}");
    }

    /// Its last line and its exit code.
    async fn ends(mut self) -> (Value, Option<i32>) {
        let mut last = String::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            last = line;
        }
        let status = self.process.wait().await.unwrap();
        (serde_json::from_str(&last).unwrap(), status.code())
    }
}

/// R1, R8, FC-09: 1 for a build that failed; 0 for one that succeeded, whose master was killed in mid-build.
#[tokio::test]
async fn the_exit_code_is_the_verdict_of_a_real_build() {
    let Some(bin) = master::installed() else { return };
    let mut buildbot = Buildbot::start(bin).await;
    buildbot.hold();
    let (broken, long) = (buildbot.force("broken").await, buildbot.force("long").await);
    let (failed, mut watched) = (Poller::watch(&buildbot, broken), Poller::watch(&buildbot, long));

    let (last, code) = failed.ends().await;
    assert_eq!((code, &last["status"]), (Some(1), &"failure".into()), "{last}");
    assert_eq!(last["body"], buildbot.get(&format!("/api/v2/buildrequests/{broken}")).await);

    watched.shows("fresh", "running").await;
    buildbot.kill_master();
    let stale = watched.shows("stale", "running").await;
    assert!(stale["cause"].is_string(), "{stale}");
    buildbot.restart_master().await;
    let (last, code) = watched.ends().await;
    assert_eq!((code, &last["status"]), (Some(0), &"success".into()), "{last}");
    assert_eq!(last["body"], buildbot.get(&format!("/api/v2/buildrequests/{long}")).await);
    assert_eq!(buildbot.builds(long).await.len(), 2, "it was killed in mid-build");
}
