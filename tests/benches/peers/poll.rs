//! One poll after another of one resource, against the same requests by reqwest.
//!
//! `poll/304`: the service says that the value held is the current one. `poll/200`: it answers with another 1 KiB of
//! JSON, which is decoded. Each side has a service of its own, one kept connection and one runtime thread; the read
//! has no pause between polls, and somebody waits for its end as somebody would. The service counts: a round begins
//! when it answers a request that was waiting for it and ends when the last of the round's next requests has come, so
//! it holds whole turns of the client and of the loopback interface. The cases with `-processor` count what the
//! client's thread used of a processor in that time, where the system says it (Linux): what a poll costs without its way.
//!
//! Where there are few processors, on which of them a client and its service happen to be decides more than what the client
//! does, and stays like that for a run: `taskset -c 0 cargo bench -p outlast-tests -- poll` puts all of them on one.

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlast::http::pacing::Limits;
use outlast::http::poll::Pace;
use outlast::http::{Agent, Pool};
use reqwest::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use reqwest::{StatusCode, Url};
use tokio::runtime::{Builder, Runtime};

use crate::harness::{Bench, Sample, Side};
use crate::service::{self, Connection, Run, TAG};

/// No round takes so long: a client that has failed is found.
const LONG: Duration = Duration::from_secs(60);

/// Runs every case.
pub(crate) fn run(bench: &Bench) {
    for (kind, clock, name) in [
        (Kind::Unchanged, Clock::Wall, "poll/304"),
        (Kind::Unchanged, Clock::Processor, "poll/304-processor"),
        (Kind::Another, Clock::Wall, "poll/200"),
        (Kind::Another, Clock::Processor, "poll/200-processor"),
    ] {
        if bench.wants(name) {
            compare(bench, name, kind, clock);
        }
    }
}

/// What the service answers.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Unchanged,
    Another,
}

/// Which time is counted.
#[derive(Clone, Copy, Debug)]
enum Clock {
    Wall,
    Processor,
}

fn compare(bench: &Bench, name: &str, kind: Kind, clock: Clock) {
    let polls = bench.size(2_000, 5);
    let ours = Turns::start(kind, |url| async move {
        let limits = Limits::default().with_spacing(Duration::ZERO);
        let pool = Pool::builder().no_proxy().build().expect("a pool");
        let agent = Agent::builder().exchange(pool).limits(limits).build().expect("an agent");
        let run = agent.get(&url).pace(Pace::every(Duration::ZERO)).observe::<Run>().expect("a read");
        drop(run.until(Run::is_completed).await);
    });
    let raw = Turns::start(kind, |url| poll_by_hand(kind, url));
    if matches!(clock, Clock::Processor) && ours.used().is_none() {
        return println!("{name}: the system does not say what a thread used");
    }
    let sides = vec![
        Side::new("http::get(..).observe()", || ours.round(polls, clock)),
        Side::new(
            match kind {
                Kind::Unchanged => "reqwest, If-None-Match",
                Kind::Another => "reqwest and serde_json",
            },
            || raw.round(polls, clock),
        ),
    ];
    bench.compare(name, "polls", Duration::from_secs(10), sides);
}

/// What a bare loop does, and no more than that: no bound, no pause, no care for failures.
async fn poll_by_hand(kind: Kind, url: String) {
    let client = service::client();
    let url = Url::parse(&url).expect("a URL");
    let mut tag: Option<HeaderValue> = None;
    let mut run: Option<Run> = None;
    while run.as_ref().is_none_or(|run| !run.is_completed()) {
        let mut request = client.get(url.clone());
        if let Some(tag) = &tag {
            request = request.header(IF_NONE_MATCH, tag.clone());
        }
        let response = request.send().await.expect("an answer");
        match kind {
            Kind::Unchanged if response.status() == StatusCode::NOT_MODIFIED => continue,
            Kind::Unchanged | Kind::Another => assert_eq!(response.status(), StatusCode::OK),
        }
        tag = response.headers().get(ETAG).cloned();
        let body = response.bytes().await.expect("a body");
        run = Some(black_box(serde_json::from_slice(&body).expect("a run")));
    }
}

/// A client that polls without end, and its service that lets it.
struct Turns {
    runtime: Runtime,
    /// Where the system says how much of a processor the runtime's thread used.
    usage: String,
    orders: Sender<usize>,
    done: Receiver<Duration>,
}

impl Turns {
    fn start<F: Future<Output = ()> + Send + 'static>(kind: Kind, client: impl FnOnce(String) -> F) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let thread = async { std::fs::read_link("/proc/thread-self").unwrap_or_default() };
        let thread = runtime.block_on(runtime.spawn(thread)).expect("a thread");
        let usage = format!("/proc/{}/schedstat", thread.display());
        let (orders, ordered) = mpsc::channel();
        let (tell, done) = mpsc::channel();
        let address = serve(kind, ordered, tell);
        drop(runtime.spawn(client(format!("http://{address}/run/1"))));
        done.recv_timeout(LONG).expect("a client that has begun");
        Self { runtime, usage, orders, done }
    }

    /// So much more of a processor is used at each call.
    fn used(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(&self.usage).ok()?;
        stat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }

    fn round(&self, polls: usize, clock: Clock) -> Sample {
        let before = self.used();
        self.orders.send(polls).expect("a service");
        let elapsed = self.done.recv_timeout(LONG).expect("a client that goes on");
        let elapsed = match clock {
            Clock::Wall => elapsed,
            Clock::Processor => {
                self.rest();
                self.used().zip(before).map_or(elapsed, |(now, then)| now.saturating_sub(then))
            }
        };
        Sample { items: polls, elapsed }
    }

    /// Until the runtime's thread has nothing more to do: what it used is counted when it goes to sleep.
    fn rest(&self) {
        drop(self.runtime.block_on(self.runtime.spawn(async {})));
        let mut used = None;
        while used != self.used() {
            used = self.used();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Answers the first request with a value, and then so many as it is ordered to, in turn. One that is not answered yet
/// waits: then the client rests.
fn serve(kind: Kind, ordered: Receiver<usize>, tell: Sender<Duration>) -> SocketAddr {
    // Whichever connection is there: one client has one.
    let course = Arc::new(Mutex::new((ordered, tell, 0_u64)));
    service::start(move |mut connection| {
        let mut course = course.lock().unwrap_or_else(PoisonError::into_inner);
        let (ordered, tell, line) = &mut *course;
        let _ = turns(kind, &mut connection, ordered, tell, line);
    })
}

fn turns(
    kind: Kind,
    connection: &mut Connection,
    ordered: &Receiver<usize>,
    tell: &Sender<Duration>,
    line: &mut u64,
) -> Option<()> {
    connection.asked()?;
    let first = service::ok(&Run::at(*line), matches!(kind, Kind::Unchanged).then_some(TAG));
    connection.answer(&first).ok()?;
    let mut answer = match kind {
        Kind::Unchanged => service::not_modified(),
        Kind::Another => first,
    };
    let at = answer.windows(8).position(|at| at == b"\"line\":1").map(|at| at + 7);
    let mut asked = connection.asked()?;
    tell.send(Duration::ZERO).ok()?;
    while let Ok(polls) = ordered.recv() {
        let start = Instant::now();
        for _ in 0..polls {
            assert_eq!(asked.conditional, matches!(kind, Kind::Unchanged), "the request is the expected one");
            if let Some(at) = at {
                *line += 1;
                answer[at..at + 10].copy_from_slice((1_000_000_000 + *line).to_string().as_bytes());
            }
            connection.answer(&answer).ok()?;
            asked = connection.asked()?;
        }
        tell.send(start.elapsed()).ok()?;
    }
    Some(())
}
