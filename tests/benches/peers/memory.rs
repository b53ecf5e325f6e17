//! How much memory one polled read takes while it waits for its next look, against a bare loop that does.
//!
//! Each number is of a process of its own, this program started again, so that nothing else has touched its memory:
//! the growth of what is resident (`/proc/self/status`, so Linux only) from the time when 64 reads wait to the time when
//! so many more do, shared among these. Everybody starts 64 at a time and goes on once they have their first value: so
//! no side has more than 64 connections, and none counts. Both sides hold the value, 1 KiB of JSON decoded, and its tag.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use outlast::Observable;
use outlast::http::pacing::Limits;
use outlast::http::poll::Pace;
use outlast::http::{Agent, Pool};
use reqwest::header::{ETAG, IF_NONE_MATCH};
use reqwest::{Client, StatusCode};
use tokio::runtime::Builder;
use tokio::sync::mpsc;

use crate::harness::Bench;
use crate::service::{self, Run, TAG};

/// What the first argument of a process is that is measured.
pub(crate) const CHILD: &str = "--memory-of";

/// How many reads start at once, and how many there are before any is counted.
const AT_ONCE: usize = 64;

/// How often each side is measured.
const TIMES: usize = 3;

/// So that nobody looks again while it is measured.
const IDLE: Duration = Duration::from_secs(3600);

const SIDES: [(&str, &str); 2] = [("reads", "http::get(..).observe()"), ("loops", "a task with a reqwest loop")];

/// Runs every case.
pub(crate) fn run(bench: &Bench) {
    for (count, name) in [(1_000, "memory/1000"), (10_000, "memory/10000")] {
        if bench.wants(name) {
            compare(bench, name, bench.size(count, 3), bench.size(TIMES, 1));
        }
    }
}

fn compare(bench: &Bench, name: &str, count: usize, times: usize) {
    if resident().is_none() {
        return println!("{name}: the system does not say what is resident");
    }
    let answers = [service::ok(&Run::at(1), Some(TAG)), service::not_modified()];
    let address = service::start(move |mut connection| {
        while let Some(asked) = connection.asked() {
            if connection.answer(&answers[usize::from(asked.conditional)]).is_err() {
                return;
            }
        }
    });
    let mut grown = SIDES.map(|_| Vec::new());
    for _ in 0..times {
        for ((side, _), grown) in SIDES.iter().zip(&mut grown) {
            grown.push(in_a_process(side, address, count));
        }
    }
    if bench.size(1, 0) == 0 {
        return println!("{name}: ran");
    }
    println!("\n{name}: resident bytes of each of {count} that wait for their next look, {times} processes each");
    println!("  {:<44} {:>11} {:>11} {:>11}   ratio of the medians", "", "median", "min", "max");
    let median = |grown: &[f64]| grown[grown.len() / 2];
    grown.iter_mut().for_each(|grown| grown.sort_by(f64::total_cmp));
    for ((_, side), these) in SIDES.iter().zip(&grown) {
        print!("  {side:<44} {:>11.0} {:>11.0} {:>11.0}", median(these), these[0], these[these.len() - 1]);
        println!("   {:.3}", median(&grown[0]) / median(these));
    }
    println!("  a ratio is how much the first row takes beside this one: 1 is equal, less is less memory");
}

/// What each of `count` took in a new process, in bytes.
fn in_a_process(side: &str, address: SocketAddr, count: usize) -> f64 {
    let program = std::env::current_exe().expect("this program");
    let arguments = [CHILD, side, &address.to_string(), &count.to_string()];
    let output = Command::new(program).args(arguments).output().expect("a process");
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = || panic!("expected a number of bytes, got {said:?} and {}", String::from_utf8_lossy(&output.stderr));
    said.trim().parse().unwrap_or_else(|_| failed())
}

/// What such a process does.
pub(crate) fn child(mut arguments: impl Iterator<Item = String>) {
    let mut next = || arguments.next().expect("an argument");
    let (side, address, count) = (next(), next(), next().parse().expect("a number"));
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let grown = runtime.block_on(async {
        match side.as_str() {
            "reads" => by_reads(&address, count).await,
            _ => by_loops(&address, count).await,
        }
    });
    println!("{}", grown as f64 / count as f64);
}

async fn by_reads(address: &str, count: usize) -> usize {
    let limits = Limits::default().with_spacing(Duration::ZERO);
    let pool = Pool::builder().no_proxy().build().expect("a pool");
    let agent = Agent::builder().exchange(pool).limits(limits).build().expect("an agent");
    let mut reads: Vec<Observable<Run>> = Vec::new();
    grown(address, count, async |urls| {
        let before = reads.len();
        let read = |url: String| agent.get(&url).pace(Pace::every(IDLE)).observe().expect("a read");
        reads.extend(urls.into_iter().map(read));
        for read in &reads[before..] {
            drop(read.until(|_| true).await.expect("a value"));
        }
    })
    .await
}

async fn by_loops(address: &str, count: usize) -> usize {
    let client = service::client();
    let (begun, mut begins) = mpsc::unbounded_channel();
    grown(address, count, async |urls| {
        let started = urls.len();
        for url in urls {
            drop(tokio::spawn(poll_by_hand(client.clone(), url, begun.clone())));
        }
        for _ in 0..started {
            begins.recv().await.expect("a loop");
        }
    })
    .await
}

async fn poll_by_hand(client: Client, url: String, begun: mpsc::UnboundedSender<()>) {
    // Its own text: a `HeaderValue` would keep the read buffer of its connection, 8 KiB for each loop.
    let mut tag: Option<String> = None;
    let mut run: Option<Run> = None;
    while run.as_ref().is_none_or(|run| !run.is_completed()) {
        let mut request = client.get(&url);
        if let Some(tag) = &tag {
            request = request.header(IF_NONE_MATCH, tag.as_str());
        }
        let response = request.send().await.expect("an answer");
        if response.status() == StatusCode::OK {
            tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
            let body = response.bytes().await.expect("a body");
            run = Some(serde_json::from_slice(&body).expect("a run"));
            begun.send(()).expect("somebody who waits");
        }
        tokio::time::sleep(IDLE).await;
    }
}

/// By how much the resident set grows while `count` more are started than there were; `start` has them begun.
async fn grown(address: &str, count: usize, mut start: impl AsyncFnMut(Vec<String>)) -> usize {
    let urls = |from: usize, to: usize| (from..to).map(|n| format!("http://{address}/run/{n}")).collect::<Vec<_>>();
    start(urls(0, AT_ONCE)).await;
    let before = resident().expect("a size");
    let mut started = 0;
    while started < count {
        let next = (started + AT_ONCE).min(count);
        start(urls(AT_ONCE + started, AT_ONCE + next)).await;
        started = next;
    }
    resident().expect("a size").saturating_sub(before)
}

/// The resident set of this process, in bytes.
fn resident() -> Option<usize> {
    // In KiB there, whatever a page is.
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib << 10)
}
