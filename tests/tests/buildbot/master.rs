//! A real Buildbot master with one worker, on loopback.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What the builder `long` runs: thirty lines, all of them beyond ASCII, in about six seconds. It stays in mid-build while
/// it is held, for a minute at most.
const LONG: &str = "for i in $(seq 1 30); do echo \"line $i: é → ✓\"; sleep 0.2; \
    n=0; while [ $i = 10 -a -e \"$TMPDIR/hold\" -a $n -lt 600 ]; do n=$((n + 1)); sleep 0.1; done; done";

/// What the builder `broken` runs: its log ends in good order, and its verdict is that it failed.
const BROKEN: &str = "echo compiling; sleep 1; echo \"é: no such file\" >&2; echo done; exit 1";

/// Ends a process with the test, however the test ends: the other end of its standard input closes.
const TIED: &str = "
import os, signal, sys, threading
def end_with_the_test():
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=end_with_the_test, daemon=True).start()
";

/// How long anything may take that Buildbot does by itself; what ends a wait is Buildbot's own answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where Buildbot is installed: the `bin` of a virtual environment. `tests/run` sets it up.
///
/// Without it the test has nothing to test. That is said aloud, and is an error in CI.
pub fn installed() -> Option<PathBuf> {
    let bin = std::env::var_os("OUTLAST_BUILDBOT").filter(|bin| !bin.is_empty()).map(PathBuf::from);
    if bin.is_none() {
        let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(!ci, "OUTLAST_BUILDBOT is not set: CI tests a real Buildbot. tests/run sets it up");
        // Past the harness, which keeps what a passing test prints.
        let _ = writeln!(
            io::stderr(),
            "\n== SKIPPED: no real Buildbot was tested, OUTLAST_BUILDBOT is not set. tests/run sets it up.\n"
        );
    }
    bin
}

/// A master and its worker. Dropping it ends both, and whatever they run.
pub struct Buildbot {
    bin: PathBuf,
    directory: tempfile::TempDir,
    ports: Ports,
    master: Option<Child>,
    worker: Option<Child>,
}

/// Where the master listens.
#[derive(Clone, Copy)]
struct Ports {
    web: u16,
    workers: u16,
}

impl Buildbot {
    /// Makes both and starts them; ready once the worker is connected.
    pub async fn start(bin: PathBuf) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ports = Ports { web: 0, workers: 0 };
        let mut this = Self { bin, directory, ports, master: None, worker: None };
        this.run(&["buildbot", "create-master", "-q", "master"]);
        // Another process may take a port before the master does: then others are looked for.
        for _ in 0..5 {
            this.ports = Ports::free();
            this.write("master/master.cfg", &configuration(this.ports));
            this.start_master();
            if this.master_answers().await {
                this.start_worker();
                this.connected().await;
                return this;
            }
            this.kill_master();
        }
        panic!("the master does not start:\n{}", this.said("master"));
    }

    /// The URL of a path of its interface.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports.web)
    }

    /// Holds the builds of `long` in mid-build, those that have begun too, until the master is killed.
    pub fn hold(&self) {
        self.write("hold", "");
    }

    /// Ends the master between two instructions.
    pub fn kill_master(&mut self) {
        let _ = std::fs::remove_file(self.directory.path().join("hold"));
        end(&mut self.master); // SIGKILL
    }

    /// Starts the master again, on the same ports and database. Returns when it first answered again.
    pub async fn restart_master(&mut self) -> Instant {
        self.start_master();
        assert!(self.master_answers().await, "the master does not start again:\n{}", self.said("master"));
        Instant::now()
    }

    /// Forces a build, and returns its build request.
    pub async fn force(&self, builder: &str) -> u64 {
        let builders = self.get(&format!("/api/v2/builders?name={builder}")).await;
        let call = json!({
            "jsonrpc": "2.0", "method": "force", "id": 1,
            "params": { "builderid": builders["builders"][0]["builderid"] },
        });
        let (_, answer) = self.ask("POST", "/api/v2/forceschedulers/force", &call.to_string()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let requests = answer["result"][1].as_object().unwrap_or_else(|| panic!("{answer}"));
        requests.values().next().unwrap().as_u64().unwrap()
    }

    /// The builds of a request, the first one first.
    pub async fn builds(&self, request: u64) -> Vec<Value> {
        self.try_builds(request).await.unwrap()
    }

    /// The id of the n-th build of a request, once it has begun and has `lines` lines in its log, and the id of that log.
    pub async fn log_of(&self, request: u64, n: usize, lines: u64) -> (u64, u64) {
        let begun = async || {
            let build = self.try_builds(request).await?.get(n)?["buildid"].as_u64()?;
            let steps = self.try_get(&format!("/api/v2/builds/{build}/steps")).await?;
            // Before the step of the factory comes one of the worker's own.
            let steps = steps["steps"].as_array()?;
            let step = steps.iter().find(|step| step["name"] == "build")?["stepid"].as_u64()?;
            let logs = self.try_get(&format!("/api/v2/steps/{step}/logs")).await?;
            let log = &logs["logs"][0];
            (log["num_lines"].as_u64()? >= lines).then_some((build, log["logid"].as_u64()?))
        };
        self.patient(&format!("build {n} of request {request}"), begun).await
    }

    /// What a path of its interface answers.
    pub async fn get(&self, path: &str) -> Value {
        self.try_get(path).await.unwrap_or_else(|| panic!("{path}: no answer"))
    }

    /// The bytes that a path answers.
    pub async fn bytes(&self, path: &str) -> Vec<u8> {
        let (status, body) = self.ask("GET", path, "").await.unwrap();
        assert_eq!(status, "200", "{path}");
        body
    }

    /// How many requests of a user agent to its interface the master has logged; a stream is none.
    pub fn requests_of(&self, agent: &str) -> usize {
        let log = std::fs::read_to_string(self.directory.path().join("master/http.log")).unwrap();
        let agent = format!("\"{agent}\"");
        log.lines().filter(|line| line.contains("\"GET /api/v2/") && line.contains(&agent)).count()
    }

    async fn try_builds(&self, request: u64) -> Option<Vec<Value>> {
        let answer = self.try_get(&format!("/api/v2/builds?buildrequestid={request}&order=buildid")).await?;
        answer["builds"].as_array().cloned()
    }

    async fn try_get(&self, path: &str) -> Option<Value> {
        let (_, body) = self.ask("GET", path, "").await.ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// A request by itself: HTTP/1.0, whose answer ends with its connection.
    async fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<(String, Vec<u8>)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports.web)).await?;
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let body = answer.split_off(end + 4);
        let head = String::from_utf8_lossy(&answer);
        Ok((head.split(' ').nth(1).unwrap_or_default().to_owned(), body))
    }

    fn start_master(&mut self) {
        self.master = Some(self.process("master"));
    }

    fn start_worker(&mut self) {
        let address = format!("127.0.0.1:{}", self.ports.workers);
        self.run(&["buildbot-worker", "create-worker", "-q", "worker", &address, "w1", "pw"]);
        self.worker = Some(self.process("worker"));
    }

    /// Waits for the first answer; `false` if the master ended, as it does where its port is taken.
    async fn master_answers(&mut self) -> bool {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            // Only this master knows this database.
            if self.try_get("/api/v2/workers").await.is_some_and(|answer| answer["workers"].is_array()) {
                return true;
            }
            if self.master.as_mut().is_none_or(|master| master.try_wait().unwrap().is_some()) {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    async fn connected(&self) {
        let connected = async || {
            let workers = self.try_get("/api/v2/workers").await?;
            workers["workers"][0]["connected_to"].as_array().filter(|to| !to.is_empty()).map(|_| ())
        };
        self.patient("the worker", connected).await;
    }

    /// Asks again until there is an answer: Buildbot says nowhere that it is ready.
    async fn patient<T>(&self, what: &str, answer: impl AsyncFn() -> Option<T>) -> T {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(answer) = answer().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}: nothing after {PATIENCE:?}\n{}\n{}", self.said("master"), self.said("worker"));
    }

    fn run(&self, args: &[&str]) {
        let program = self.bin.join(args[0]);
        let out = Command::new(&program).args(&args[1..]).current_dir(self.directory.path()).output();
        let out = out.unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        let made = self.directory.path().join(args[3]).join("buildbot.tac");
        let tac = std::fs::read_to_string(&made).unwrap();
        std::fs::write(made, tac + TIED).unwrap();
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.directory.path().join(file), text).unwrap();
    }

    fn process(&self, what: &str) -> Child {
        let directory = self.directory.path().join(what);
        let log = std::fs::File::create(directory.join("out.log")).unwrap();
        Command::new(self.bin.join("twistd"))
            .args(["--nodaemon", "--pidfile=", "-y", "buildbot.tac"])
            .current_dir(&directory)
            // By this `Drop` knows what the worker runs.
            .env("TMPDIR", self.directory.path())
            .stdin(Stdio::piped())
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
        end(&mut self.worker);
        end(&mut self.master);
        for pid in processes(self.directory.path()) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The processes that have `marker` in their environment.
fn processes(marker: &Path) -> HashSet<Pid> {
    let marker = [b"TMPDIR=", marker.as_os_str().as_encoded_bytes(), b"\0"].concat();
    let marked = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environment| environment.windows(marker.len()).any(|window| window == marker))
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(marked).filter_map(Pid::from_raw).collect()
}

impl Ports {
    /// Two that were free a moment ago; a configuration file has to name them. They are below those that outgoing
    /// connections get, so that none of these takes one while the master is down.
    fn free() -> Self {
        let random = RandomState::new();
        let mut free = (0..1000).filter_map(|n: u32| {
            let port = u16::try_from(20_000 + random.hash_one(n) % 10_000).unwrap();
            TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
        });
        let web = free.next().unwrap();
        Self { web, workers: free.find(|port| *port != web).unwrap() }
    }
}

fn configuration(Ports { web, workers }: Ports) -> String {
    format!(
        "# -*- coding: utf-8 -*-
from buildbot.plugins import *
c = BuildmasterConfig = {{}}
c['workers'] = [worker.Worker('w1', 'pw')]
c['protocols'] = {{'pb': {{'port': 'tcp:{workers}:interface=127.0.0.1'}}}}
def builder(name, script):
    step = steps.ShellCommand(name='build', command=['sh', '-c', script])
    return util.BuilderConfig(name=name, workernames=['w1'], factory=util.BuildFactory([step]))
c['builders'] = [builder('long', r'''{LONG}'''), builder('broken', r'''{BROKEN}''')]
c['schedulers'] = [schedulers.ForceScheduler(name='force', builderNames=['long', 'broken'])]
c['www'] = {{'port': 'tcp:{web}:interface=127.0.0.1', 'plugins': {{}}}}
c['db'] = {{'db_url': 'sqlite:///state.sqlite'}}
c['buildbotURL'] = 'http://127.0.0.1:{web}/'
c['buildbotNetUsageData'] = None
"
    )
}
