//! A real Buildbot master with one worker, on loopback.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// What a build of it runs: thirty lines, some of them not ASCII, in about six seconds.
const SCRIPT: &str = "for i in $(seq 1 30); do echo \"line $i: é → ✓\"; sleep 0.2; done";

/// Where Buildbot is installed: the `bin` of a virtual environment. `tests/run` sets it up.
pub fn installed() -> Option<PathBuf> {
    std::env::var_os("OUTLAST_BUILDBOT").map(PathBuf::from)
}

/// A master and its worker. Dropping it ends both.
pub struct Buildbot {
    bin: PathBuf,
    directory: tempfile::TempDir,
    port: u16,
    master: Option<Child>,
    worker: Option<Child>,
    client: reqwest::Client,
}

impl Buildbot {
    /// Makes both and starts them; ready once the worker is connected.
    pub async fn start(bin: PathBuf) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (port, workers) = (free_port(), free_port());
        let run = |args: &[&str]| {
            let program = bin.join(args[0]);
            let out = Command::new(&program).args(&args[1..]).current_dir(directory.path()).output().unwrap();
            assert!(out.status.success(), "{program:?}: {}", String::from_utf8_lossy(&out.stderr));
        };
        run(&["buildbot", "create-master", "-q", "master"]);
        run(&["buildbot-worker", "create-worker", "-q", "worker", &format!("127.0.0.1:{workers}"), "w1", "pw"]);
        std::fs::write(directory.path().join("master/master.cfg"), configuration(port, workers)).unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut this = Self { bin, directory, port, master: None, worker: None, client };
        this.master = Some(this.process("master"));
        this.worker = Some(this.process("worker"));
        this.ready().await;
        this
    }

    /// The URL of a path of its interface.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Ends the master between two instructions.
    pub fn kill_master(&mut self) {
        let mut master = self.master.take().unwrap();
        master.kill().unwrap(); // SIGKILL
        master.wait().unwrap();
    }

    /// Starts the master again, on the same port and database.
    pub async fn restart_master(&mut self) {
        self.master = Some(self.process("master"));
        self.ready().await;
    }

    /// Forces a build, and returns its build request.
    pub async fn force(&self) -> u64 {
        let builder = self.get("/api/v2/builders").await["builders"][0]["builderid"].clone();
        let call = json!({ "jsonrpc": "2.0", "method": "force", "id": 1, "params": { "builderid": builder } });
        let sent = self
            .client
            .post(self.url("/api/v2/forceschedulers/force"))
            .header("content-type", "application/json")
            .body(call.to_string());
        let answer: Value = serde_json::from_slice(&sent.send().await.unwrap().bytes().await.unwrap()).unwrap();
        let requests = answer["result"][1].as_object().unwrap();
        requests.values().next().unwrap().as_u64().unwrap()
    }

    /// What a path of its interface answers.
    pub async fn get(&self, path: &str) -> Value {
        self.try_get(path).await.unwrap_or_else(|| panic!("{path}: no answer"))
    }

    /// The same, `None` while there is no answer.
    pub async fn try_get(&self, path: &str) -> Option<Value> {
        let sent = self.client.get(self.url(path)).header("accept", "application/json").send().await.ok()?;
        serde_json::from_slice(&sent.bytes().await.ok()?).ok()
    }

    /// The bytes that a path answers.
    pub async fn bytes(&self, path: &str) -> Vec<u8> {
        self.client.get(self.url(path)).send().await.unwrap().bytes().await.unwrap().to_vec()
    }

    /// Every request that the master has logged, as lines of its access log.
    pub fn access_log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("master/http.log")).unwrap_or_default()
    }

    async fn ready(&self) {
        // It says nowhere that it is ready; the bound is generous and what ends the wait is its own answer.
        for _ in 0..240 {
            let workers = self.try_get("/api/v2/workers").await.unwrap_or_default();
            if workers["workers"][0]["connected_to"].as_array().is_some_and(|to| !to.is_empty()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("Buildbot is not ready after a minute:\n{}", self.said("master"));
    }

    fn process(&self, what: &str) -> Child {
        let directory = self.directory.path().join(what);
        let log = std::fs::File::create(directory.join("out.log")).unwrap();
        Command::new(self.bin.join("twistd"))
            .args(["--nodaemon", "--pidfile=", "-y", "buildbot.tac"])
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn said(&self, what: &str) -> String {
        let read = |name: &str| std::fs::read_to_string(self.directory.path().join(what).join(name));
        [read("out.log"), read("twistd.log")].into_iter().flatten().collect()
    }
}

impl Drop for Buildbot {
    fn drop(&mut self) {
        for child in [&mut self.worker, &mut self.master].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that was free a moment ago; a configuration file has to name one.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn configuration(port: u16, workers: u16) -> String {
    let script = SCRIPT.replace('\\', "\\\\").replace('\'', "\\'");
    format!(
        "# -*- coding: utf-8 -*-
from buildbot.plugins import *
c = BuildmasterConfig = {{}}
c['workers'] = [worker.Worker('w1', 'pw')]
c['protocols'] = {{'pb': {{'port': 'tcp:{workers}:interface=127.0.0.1'}}}}
f = util.BuildFactory([steps.ShellCommand(name='build', command=['sh', '-c', '{script}'])])
c['builders'] = [util.BuilderConfig(name='b', workernames=['w1'], factory=f)]
c['schedulers'] = [schedulers.ForceScheduler(name='force', builderNames=['b'])]
c['www'] = {{'port': 'tcp:{port}:interface=127.0.0.1', 'plugins': {{}}}}
c['db'] = {{'db_url': 'sqlite:///state.sqlite'}}
c['buildbotURL'] = 'http://127.0.0.1:{port}/'
c['buildbotNetUsageData'] = None
"
    )
}

