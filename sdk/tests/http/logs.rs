//! Logs of services that cut, start anew, or send a little that unfolds to a lot.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use outlast::http::feed::{Feed, FeedEnd, FeedItem, LogKind, Offsets};
use outlast::testing::{Asked, Reply};

use crate::world::{MINUTE, SECOND, World};

/// What a consumer has: it begins anew after a gap.
#[derive(Default)]
struct Delivered {
    text: Vec<u8>,
    gaps: usize,
    end: Option<FeedEnd>,
}

impl Delivered {
    /// Takes what comes until the end, or within that time.
    async fn take(&mut self, world: &World, feed: &mut Feed<Bytes>, time: Duration) {
        let all = async {
            while let Some(item) = feed.next().await {
                match item {
                    FeedItem::Item(bytes) => self.text.extend_from_slice(&bytes),
                    FeedItem::Gap { .. } => {
                        self.gaps += 1;
                        self.text.clear();
                    }
                    FeedItem::Ended(end) => self.end = Some(end),
                }
            }
        };
        world.within(time, all).await;
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }
}

/// A log that is served by range, with a tag (RFC 9110, 14.2 and 13.1.5).
fn ranged(log: &[u8], asked: &Asked, etag: &str) -> Reply {
    let part = |bytes: &[u8]| Reply::bytes(bytes.to_vec()).header("etag", etag).header("content-type", "text/plain");
    let first = asked.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    match first {
        Some(_) if asked.header("if-range").is_some_and(|tag| tag != etag) => part(log),
        Some(first) if first >= log.len() => {
            Reply::status(416).header("content-range", format!("bytes */{}", log.len()))
        }
        Some(first) => {
            let range = format!("bytes {first}-{}/{}", log.len() - 1, log.len());
            part(&log[first..]).with_status(206).header("content-range", range)
        }
        None => part(log),
    }
}

/// R6: a log that started anew, and looks the same where it is asked for again, is another one. Its tag says so to
/// `If-Range`, and where the service does not know that, beside the part that it sends.
#[tokio::test(start_paused = true)]
async fn r6_a_log_that_started_anew_with_the_same_lines_is_noticed() {
    for knows_if_range in [true, false] {
        let world = World::new();
        let before = format!("attempt 1\n{}", "waiting for a runner\n".repeat(10));
        let log = Arc::new(Mutex::new((before.clone(), "\"a\"")));
        let served = Arc::clone(&log);
        world.ci.on("/log", move |asked| {
            let (text, etag) = served.lock().unwrap().clone();
            let mut asked = asked.clone();
            if !knows_if_range {
                asked.headers.remove("if-range");
            }
            ranged(text.as_bytes(), &asked, etag)
        });
        let mut feed = world.get("/log").log(LogKind::Bytes(Offsets::Range)).unwrap();
        let mut had = Delivered::default();
        had.take(&world, &mut feed, 5 * SECOND).await;
        assert_eq!(had.text(), before);
        // Another log now, and a longer one.
        let anew = format!("attempt 2\n{}done\n", "waiting for a runner\n".repeat(20));
        *log.lock().unwrap() = (anew.clone(), "\"b\"");
        let asked = world.ci.total();
        world.pass(30 * SECOND).await;
        assert_eq!(world.ci.asked("/log")[asked].header("if-range"), Some("\"a\""));
        feed.finish();
        had.take(&world, &mut feed, 5 * MINUTE).await;
        assert_eq!((had.text(), had.gaps), (anew, 1), "part of one log and part of another passed for whole");
        assert!(matches!(had.end, Some(FeedEnd::Complete { gaps: 1, .. })), "{:?}", had.end);
    }
}

/// FC-21: after an outage a tag may be of another life of the service, which counts from 1 again.
#[tokio::test(start_paused = true)]
async fn fc_21_a_tag_of_a_log_is_not_trusted_over_a_restart() {
    let world = World::new();
    let log = Arc::new(Mutex::new("first life\n"));
    let served = Arc::clone(&log);
    world.ci.on("/log", move |asked| match asked.header("if-none-match") {
        Some("\"1\"") => Reply::status(304),
        _ => Reply::text(*served.lock().unwrap()).header("etag", "\"1\""),
    });
    let mut feed = world.get("/log").log(LogKind::Whole).unwrap();
    let mut had = Delivered::default();
    had.take(&world, &mut feed, 5 * SECOND).await;
    world.ci.kill();
    had.take(&world, &mut feed, 20 * SECOND).await;
    assert_eq!(had.text(), "first life\n");
    *log.lock().unwrap() = "second life, and longer\n";
    world.ci.revive();
    had.take(&world, &mut feed, MINUTE).await;
    feed.finish();
    had.take(&world, &mut feed, 5 * MINUTE).await;
    assert_eq!((&*had.text(), had.gaps), ("second life, and longer\n", 1), "{:?}", had.end);
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// R6: a few kilobytes that unfold into megabytes come in pieces of a bounded size, and whole.
#[tokio::test(start_paused = true)]
async fn r6_a_log_that_unfolds_comes_in_pieces() {
    const SIZE: usize = 24 << 20;
    let world = World::new();
    let twice = gzip(&gzip(&vec![b'x'; SIZE]));
    assert!(twice.len() < 4096, "{}", twice.len());
    world.ci.on("/log", move |_| Reply::bytes(twice.clone()).header("content-encoding", "gzip, gzip"));
    let mut feed = world.get("/log").log(LogKind::AtEnd).unwrap();
    let (mut most, mut total) = (0, 0);
    let all = async {
        while let Some(item) = feed.next().await {
            if let FeedItem::Item(bytes) = item {
                most = most.max(bytes.len());
                total += bytes.len();
            }
        }
    };
    world.within(20 * SECOND, all).await;
    assert_eq!(total, SIZE);
    assert!(most <= 1 << 20, "a piece of {most} bytes in memory");
}

/// R6: however often the connection is cut, and wherever, each kind is equal byte for byte at its end.
#[tokio::test(start_paused = true)]
async fn r6_a_log_whose_connection_is_cut_at_every_byte_is_byte_equal() {
    let text = "eins\r\nzwei \u{20ac}\nd\u{1F600}rei\n\n\u{feff}vier";
    for kind in [LogKind::Bytes(Offsets::Range), LogKind::Whole, LogKind::AtEnd] {
        for cut in 0..text.len() {
            let world = World::new();
            let n = AtomicUsize::new(0);
            world.ci.on("/log", move |asked| {
                let reply = ranged(text.as_bytes(), asked, "\"1\"");
                if n.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { reply.cut(cut) } else { reply }
            });
            let mut feed = world.get("/log").log(kind.clone()).unwrap();
            feed.finish();
            let mut had = Delivered::default();
            had.take(&world, &mut feed, 5 * MINUTE).await;
            assert_eq!((&*had.text(), had.gaps), (text, 0), "{kind:?} cut at {cut}");
            assert!(had.end.is_some_and(|end| end.is_complete()), "{kind:?} cut at {cut}");
        }
    }
}
