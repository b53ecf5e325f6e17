//! Events of an event stream over HTTP, against what splits the same stream by hand and against `eventsource-stream`.
//!
//! All sides read the body of an answer of their own as reqwest gives it, on one runtime thread; their services have
//! encoded each round before. The stream is one event of about 200 bytes after the other: an id, a type, one line of
//! data. The splitter by hand goes from line to line, takes the one of data at each empty one, and checks that it is UTF-8; it keeps
//! neither ids nor types, joins no lines, knows no other line ends, no bound and no byte order mark. `events/feed` puts
//! the whole feed in the parser's place: permission, redirects, bounds, gaps, a channel to its consumer, and events that
//! are owned. `events/pieces` is the parser without a network: pieces of 16 KiB that are there already.

use std::convert::Infallible;
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eventsource_stream::{EventStream, Eventsource};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use memchr::memchr;
use outlast::http::feed::{Feed, FeedItem};
use outlast::http::sse::{Event, Parser};
use outlast::http::{Agent, Pool};
use tokio::runtime::{Builder, Runtime};

use crate::harness::{Bench, Sample, Side};
use crate::service;

/// The size of the pieces that are there already.
const PIECE: usize = 16 << 10;

/// The body of an answer. No error: a benchmark ends with it.
type Pieces = BoxStream<'static, Result<Bytes, Infallible>>;

/// Runs every case.
pub(crate) fn run(bench: &Bench) {
    let count = bench.size(50_000, 10);
    if bench.wants("events/pieces") {
        without_network(bench, count);
    }
    for (name, whole) in [("events/stream", false), ("events/feed", true)] {
        if bench.wants(name) {
            compare(bench, name, count, whole);
        }
    }
}

fn without_network(bench: &Bench, count: usize) {
    let mut encoded = Vec::new();
    (1..=count as u64).for_each(|number| encode(number, &mut encoded));
    let pieces: Vec<Bytes> = encoded.chunks(PIECE).map(Bytes::copy_from_slice).collect();
    let round = |open: fn(Pieces) -> Box<dyn Consumer>| {
        let pieces = pieces.clone();
        move || {
            let mut consumer = open(stream::iter(pieces.clone()).map(Ok).boxed());
            let start = Instant::now();
            futures::executor::block_on(consumer.take(count));
            Sample { items: count, elapsed: start.elapsed() }
        }
    };
    let sides = vec![
        Side::new("sse::Parser", round(parser)),
        Side::new("split by hand", round(splitter)),
        Side::new("eventsource-stream", round(peer)),
    ];
    bench.compare("events/pieces", "events", Duration::from_secs(6), sides);
}

fn compare(bench: &Bench, name: &str, count: usize, whole: bool) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let round = |open: fn(&Runtime, &str) -> Box<dyn Consumer>| {
        let mut service = Service::start();
        let mut consumer = Some(open(&runtime, &service.url()));
        let runtime = &runtime;
        move || {
            service.prepare(count);
            let mut taking = consumer.take().expect("it is back after each round");
            let elapsed = service.timed(|| {
                let task = runtime.spawn(async move {
                    taking.take(count).await;
                    taking
                });
                consumer = Some(runtime.block_on(task).expect("a round"));
            });
            Sample { items: count, elapsed }
        }
    };
    let mut sides = vec![
        Side::new("reqwest -> sse::Parser", round(|runtime, url| parser(runtime.block_on(body(url))))),
        Side::new("reqwest -> split by hand", round(|runtime, url| splitter(runtime.block_on(body(url))))),
        Side::new("reqwest -> eventsource-stream", round(|runtime, url| peer(runtime.block_on(body(url))))),
    ];
    if whole {
        sides.insert(0, Side::new("Feed<Event>", round(|runtime, url| runtime.block_on(async { feed(url) }))));
    }
    bench.compare(name, "events", Duration::from_secs(12), sides);
}

/// Whoever takes events.
trait Consumer: Send {
    /// Takes the next `count` events.
    fn take(&mut self, count: usize) -> BoxFuture<'_, ()>;
}

fn parser(pieces: Pieces) -> Box<dyn Consumer> {
    Box::new(Parsing { pieces, parser: Parser::new() })
}

fn splitter(pieces: Pieces) -> Box<dyn Consumer> {
    Box::new(Splitting { pieces, buffer: Vec::new() })
}

fn peer(pieces: Pieces) -> Box<dyn Consumer> {
    Box::new(pieces.eventsource())
}

fn feed(url: &str) -> Box<dyn Consumer> {
    let pool = Pool::builder().no_proxy().build().expect("a pool");
    let agent = Agent::builder().exchange(pool).build().expect("an agent");
    Box::new(agent.get(url).events().expect("a feed"))
}

struct Parsing {
    pieces: Pieces,
    parser: Parser,
}

impl Consumer for Parsing {
    fn take(&mut self, count: usize) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut taken = 0;
            while taken < count {
                let Some(Ok(piece)) = self.pieces.next().await else { return };
                self.parser.push(&piece);
                while let Some(event) = self.parser.next_event().expect("small events") {
                    black_box(event);
                    taken += 1;
                }
            }
            assert_eq!(taken, count);
        })
    }
}

struct Splitting {
    pieces: Pieces,
    buffer: Vec<u8>,
}

impl Consumer for Splitting {
    fn take(&mut self, count: usize) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut taken = 0;
            while taken < count {
                let Some(Ok(piece)) = self.pieces.next().await else { return };
                self.buffer.extend_from_slice(&piece);
                let (mut event, mut line, mut data) = (0, 0, 0..0);
                while let Some(found) = memchr(b'\n', &self.buffer[line..]) {
                    let end = line + found;
                    if found == 0 {
                        black_box(std::str::from_utf8(&self.buffer[data.clone()]).expect("UTF-8"));
                        taken += 1;
                        event = end + 1;
                    } else if self.buffer[line..end].starts_with(b"data: ") {
                        data = line + 6..end;
                    }
                    line = end + 1;
                }
                self.buffer.drain(..event);
            }
            assert_eq!(taken, count);
        })
    }
}

impl Consumer for EventStream<Pieces> {
    fn take(&mut self, count: usize) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for _ in 0..count {
                black_box(self.next().await.expect("an event").expect("an event"));
            }
        })
    }
}

impl Consumer for Feed<Event> {
    fn take(&mut self, count: usize) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for _ in 0..count {
                let Some(FeedItem::Item(event)) = self.next().await else { panic!("expected an event") };
                black_box(event);
            }
        })
    }
}

/// The body of the answer, as reqwest gives it.
async fn body(url: &str) -> Pieces {
    let client = service::client();
    let response = client.get(url).send().await.expect("an answer");
    stream::unfold(response, |mut response| async move {
        let piece = response.chunk().await.expect("a stream without end")?;
        Some((Ok(piece), response))
    })
    .boxed()
}

/// A service of one stream.
struct Service {
    address: SocketAddr,
    orders: Sender<Order>,
    ready: Receiver<()>,
    last: u64,
}

enum Order {
    /// Encode the events from this one to that one.
    Encode(u64, u64),
    /// Write what is encoded.
    Write,
}

impl Service {
    fn start() -> Self {
        let (orders, ordered) = mpsc::channel();
        let (tell, ready) = mpsc::channel();
        // Whichever connection is there: one client has one.
        let course = Arc::new(Mutex::new((ordered, tell)));
        let address = service::start(move |mut connection| {
            let course = course.lock().unwrap_or_else(PoisonError::into_inner);
            let (ordered, tell) = &*course;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            if connection.asked().is_none() || connection.answer(head.as_bytes()).is_err() {
                return;
            }
            let mut encoded = Vec::new();
            while let Ok(order) = ordered.recv() {
                let done = match order {
                    Order::Encode(first, last) => {
                        encoded.clear();
                        (first..=last).for_each(|number| encode(number, &mut encoded));
                        tell.send(()).is_ok()
                    }
                    Order::Write => connection.answer(&encoded).is_ok(),
                };
                if !done {
                    return;
                }
            }
        });
        Self { address, orders, ready, last: 0 }
    }

    fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    /// Has the next `count` events encoded.
    fn prepare(&mut self, count: usize) {
        let first = self.last + 1;
        self.last += count as u64;
        self.orders.send(Order::Encode(first, self.last)).expect("a service");
        self.ready.recv().expect("a service");
    }

    /// How long `received` takes from the first byte written.
    fn timed(&self, received: impl FnOnce()) -> Duration {
        let start = Instant::now();
        self.orders.send(Order::Write).expect("a service");
        received();
        start.elapsed()
    }
}

/// Adds one event.
fn encode(number: u64, encoded: &mut Vec<u8>) {
    let event = format!(
        "id: {number}\nevent: progress\ndata: {{\"id\":\"01KB3X7Q4YVJ5N9ZC2D8E6F0GH\",\"commit\":\"6c227ceb9f1d3a5e7c8b0a2d4f6e8091a3b5c7d9\",\"status\":\"running\",\"step\":\"compile outlast-tests\",\"line\":{number}}}\n\n"
    );
    encoded.extend_from_slice(event.as_bytes());
}
