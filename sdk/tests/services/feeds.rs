//! Feeds through an agent: the credential, the budget, and streams of events.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use outlast::http::Get;
use outlast::http::feed::reader::{Ask, Growth, Head, Out, Reached, Reader, Then, Trouble};
use outlast::http::feed::{self, FeedEnd, FeedItem, LogKind, Offsets, Position, Replay};
use outlast::http::poll::{Bounds, Pace};
use outlast::testing::{Asked, Reply};
use outlast::{Cause, Credential};
use url::Url;

use crate::rig::{Rig, all, item, now, pass, seconds};

const LOG: &str = "/log";
const EVENTS: &str = "/events";

fn settings() -> feed::Settings {
    feed::Settings::default()
}

fn page() -> Reply {
    Reply::bytes("<html>Sign in</html>").header("content-type", "text/html")
}

fn is_stale(state: &feed::FeedState, accept: impl Fn(&Cause) -> bool) -> bool {
    matches!(state, feed::FeedState::Stale { cause, .. } if accept(cause))
}

/// R3: a login page is no piece of a log, first or later.
#[tokio::test(start_paused = true)]
async fn r3_a_login_page_is_no_log() {
    for kind in [LogKind::Whole, LogKind::AtEnd, LogKind::Bytes(Offsets::Range)] {
        let rig = Rig::new();
        rig.ci.replies(LOG, [page(), page(), Reply::text("one\n")]);
        let mut log = rig.get(LOG).log(kind).unwrap();
        let state = log.state();
        state.until(|state| is_stale(state, |cause| matches!(cause, Cause::Undecodable { .. }))).await.unwrap();
        assert_eq!(item(&mut log).await, "one\n");
        log.finish();
        let (rest, gaps, end) = all(&mut log).await;
        assert!(rest.is_empty() && gaps == 0 && end.is_complete(), "{end}");
    }
}

/// R3: a token that is replaced behind the program is asked for again after the first refusal; a revoked one ends the
/// feed as denied after the second.
#[tokio::test(start_paused = true)]
async fn r3_a_token_is_rotated_and_revoked() {
    let rig = Rig::new();
    let rotated = Arc::new(AtomicBool::new(false));
    let (is_rotated, gives_rotated) = (Arc::clone(&rotated), Arc::clone(&rotated));
    rig.ci.on(LOG, move |asked| {
        let now = if is_rotated.load(Ordering::Relaxed) { "Bearer new" } else { "Bearer old" };
        if asked.header("authorization") == Some(now) { Reply::text("one\n") } else { Reply::status(401) }
    });
    let source = move || {
        let token = if gives_rotated.load(Ordering::Relaxed) { "new" } else { "old" };
        async move { Credential::bearer(token) }
    };
    let mut log = rig.get(LOG).credential(source).log(LogKind::Whole).unwrap();
    assert_eq!(item(&mut log).await, "one\n");
    rotated.store(true, Ordering::Relaxed);
    pass(seconds(60)).await;
    let asked = rig.ci.asked(LOG).pop().unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer new"));
    rig.ci.replies(LOG, [Reply::status(401)]);
    let before = rig.ci.total();
    let (_, _, end) = all(&mut log).await;
    assert!(matches!(end, FeedEnd::Denied { .. }), "{end}");
    assert_eq!(rig.ci.total() - before, 2);
}

/// R8, FC-55: a log is not asked for sooner than the service wants.
#[tokio::test(start_paused = true)]
async fn fc_55_a_log_keeps_to_retry_after() {
    let rig = Rig::new();
    rig.ci.replies(LOG, [Reply::status(429).header("retry-after", 70), Reply::text("one\n")]);
    let start = now();
    let mut log = rig.get(LOG).log(LogKind::Whole).unwrap();
    assert_eq!(item(&mut log).await, "one\n");
    assert!(start.elapsed() >= seconds(70), "{:?}", start.elapsed());
}

/// R7: an answer that stops in its middle is asked for anew, and each byte comes once.
#[tokio::test(start_paused = true)]
async fn r7_a_log_that_stalls_in_its_middle() {
    let rig = Rig::new();
    let whole = || Reply::text("one\ntwo\n");
    rig.ci.replies(LOG, [Reply::hang(), whole().stalls(5), whole().cut(6), whole()]);
    let mut log = rig.get(LOG).log(LogKind::AtEnd).unwrap();
    let (text, gaps, end) = all(&mut log).await;
    assert_eq!((&*text, gaps), ("one\ntwo\n", 0));
    assert!(end.is_complete(), "{end}");
}

fn events() -> Reply {
    Reply::chunked(Vec::<&str>::new()).header("content-type", "text/event-stream")
}

/// R6, FC-23: a stream that is cut is resumed by the id of its last event.
#[tokio::test(start_paused = true)]
async fn fc_23_a_stream_of_events_is_resumed_by_id() {
    let rig = Rig::new();
    let served = |text: &'static str| Reply::chunked([text]).ends().header("content-type", "text/event-stream");
    rig.ci.on(EVENTS, move |asked| match asked.header("last-event-id") {
        None => served("id: 1\ndata: one\n\nid: 2\ndata: two\n\ndata: half"),
        Some("2") => served("id: 3\ndata: three\n\n"),
        Some("3") => events(),
        Some(other) => panic!("{other}"),
    });
    let mut feed = rig.get(EVENTS).events().unwrap();
    for data in ["one", "two", "three"] {
        assert_eq!(&*item(&mut feed).await.data, data);
    }
    rig.ci.until(EVENTS, 3).await;
    let asked = rig.ci.asked(EVENTS).pop().unwrap();
    assert_eq!(asked.header("accept"), Some("text/event-stream"));
}

/// R6: of a stream that repeats nothing, what was missed is a gap.
#[tokio::test(start_paused = true)]
async fn r6_a_stream_that_repeats_nothing_has_a_gap() {
    let rig = Rig::new();
    let served = |text: &'static str| Reply::chunked([text]).ends().header("content-type", "text/event-stream");
    rig.ci.replies(EVENTS, [served("data: one\n\n"), Reply::status(503), served("data: two\n\n"), events()]);
    let mut feed = rig.get(EVENTS).events_with(settings().with_replay(Replay::Nothing)).unwrap();
    assert_eq!(&*item(&mut feed).await.data, "one");
    let gap = feed.next().await.unwrap();
    assert!(matches!(gap, FeedItem::Gap { from: None, to: None }), "{gap:?}");
    assert_eq!(&*item(&mut feed).await.data, "two");
}

/// R7: a stream that is silent for longer than its bound is asked for anew.
#[tokio::test(start_paused = true)]
async fn r7_a_silent_stream_is_asked_for_anew() {
    let rig = Rig::new();
    let (reply, stream) = Reply::stream();
    rig.ci.replies(EVENTS, [reply.header("content-type", "text/event-stream")]);
    let mut feed = rig.get(EVENTS).events().unwrap();
    stream.send("id: a\ndata: one\n\n");
    assert_eq!(&*item(&mut feed).await.data, "one");
    let first = rig.ci.until(EVENTS, 1).await;
    let second = rig.ci.until(EVENTS, 2).await;
    assert!((seconds(60)..seconds(80)).contains(&(second.at - first.at)), "{:?}", second.at - first.at);
    assert_eq!(second.header("last-event-id"), Some("a"));
}

/// R3: only what calls itself a stream of events is one.
#[tokio::test(start_paused = true)]
async fn r3_a_login_page_is_no_stream_of_events() {
    let rig = Rig::new();
    let served = Reply::chunked(["data: one\n\n"]).header("content-type", "text/event-stream");
    rig.ci.replies(EVENTS, [page(), Reply::text("data: no\n\n"), served]);
    let mut feed = rig.get(EVENTS).events().unwrap();
    assert_eq!(&*item(&mut feed).await.data, "one");
}

/// R6: a log that starts anew by range is a gap at its byte.
#[tokio::test(start_paused = true)]
async fn r6_a_log_by_range_that_starts_anew() {
    let rig = Rig::new();
    let past = Reply::status(416).header("content-range", "bytes */4");
    rig.ci.on(LOG, move |asked| match asked.header("range") {
        None => Reply::text("an old log\n"),
        Some(_) => past.clone(),
    });
    let mut log = rig.get(LOG).log(LogKind::Bytes(Offsets::Range)).unwrap();
    assert_eq!(item(&mut log).await, "an old log\n");
    rig.ci.until(LOG, 3).await;
    rig.ci.replies(LOG, [Reply::text("new\n")]);
    let gap = log.next().await.unwrap();
    assert_eq!(gap, FeedItem::Gap { from: Some(Position::Byte(11)), to: Some(Position::Byte(0)) });
    assert_eq!(item(&mut log).await, "new\n");
}

/// R6: a log by the service's own offsets that was lost with the service, and has grown past what was read by the time it
/// is read again, is a gap. It begins as the lost one did.
#[tokio::test(start_paused = true)]
async fn r6_a_log_by_offsets_that_started_anew_and_has_grown() {
    let rig = Rig::new();
    let (begins, same) = ("Started by timer\n", "waiting for a runner\n".repeat(10));
    for (lost, anew) in [
        // What was read last is another text now; or is the same, and something before it is another.
        (format!("{begins}one\n"), format!("{begins}another one, and this is a longer one\n")),
        (format!("{begins}first life\n{same}"), format!("{begins}later life\n{same}done\n")),
    ] {
        let log = Arc::new(Mutex::new((lost.clone(), true)));
        let served = Arc::clone(&log);
        rig.ci.on(LOG, move |asked| {
            let (text, more) = served.lock().unwrap().clone();
            let start: usize = asked.target.split_once("start=").unwrap().1.parse().unwrap();
            let reply = Reply::text(&text[start..]).header("x-text-size", text.len());
            if more { reply.header("x-more-data", "true") } else { reply }
        });
        let mut feed = rig.get(LOG).log(LogKind::jenkins()).unwrap();
        assert_eq!(item(&mut feed).await, lost);
        rig.ci.kill();
        pass(seconds(20)).await;
        log.lock().unwrap().0.clone_from(&anew);
        rig.ci.revive();
        pass(seconds(60)).await;
        log.lock().unwrap().1 = false;
        let mut text = String::new();
        let end = loop {
            match feed.next().await.unwrap() {
                FeedItem::Item(bytes) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                FeedItem::Gap { to, .. } => {
                    assert_eq!(to, Some(Position::Byte(0)));
                    text.clear();
                }
                FeedItem::Ended(end) => break end,
            }
        };
        assert_eq!(text, anew);
        assert!(matches!(end, FeedEnd::Complete { gaps: 1, .. }), "{end}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// `log` from the byte on that was asked for.
fn from_byte(log: &[u8], asked: &Asked) -> Reply {
    let first = asked.header("range").map(|range| range["bytes=".len()..range.len() - 1].parse::<usize>().unwrap());
    match first {
        None => Reply::bytes(log.to_vec()),
        Some(first) if first >= log.len() => {
            Reply::status(416).header("content-range", format!("bytes */{}", log.len()))
        }
        Some(first) => {
            let range = format!("bytes {first}-{}/{}", log.len() - 1, log.len());
            Reply::bytes(log[first..].to_vec()).with_status(206).header("content-range", range)
        }
    }
}

/// R6: a log that is sent encoded although it was asked for as it is, by ranges of what is encoded, is read as a whole:
/// from the beginning, or from when on it is.
#[tokio::test(start_paused = true)]
async fn r6_a_log_that_is_encoded_unasked_is_read_whole() {
    // Encoded always; above that size; and there also where it says that it has no such range.
    for (least, tells) in [(0, true), (200, true), (200, false)] {
        let rig = Rig::new();
        let log = Arc::new(Mutex::new("one\ntwo\n".to_owned()));
        let served = Arc::clone(&log);
        rig.ci.on(LOG, move |asked| {
            let text = served.lock().unwrap().clone();
            assert_eq!(asked.header("accept-encoding"), Some("identity"));
            if text.len() < least {
                return from_byte(text.as_bytes(), asked);
            }
            let reply = from_byte(&gzip(text.as_bytes()), asked);
            if tells || asked.header("range").is_none() { reply.header("content-encoding", "gzip") } else { reply }
        });
        let mut feed = rig.get(LOG).log(LogKind::Bytes(Offsets::Range)).unwrap();
        assert_eq!(item(&mut feed).await, "one\ntwo\n");
        let mut read = "one\ntwo\n".to_owned();
        for round in 0..5 {
            let more = format!("round {round}\n").repeat(60);
            log.lock().unwrap().push_str(&more);
            while read.len() < log.lock().unwrap().len() {
                read.push_str(std::str::from_utf8(&item(&mut feed).await).unwrap());
            }
        }
        log.lock().unwrap().push_str("three\n");
        feed.finish();
        let (rest, gaps, end) = all(&mut feed).await;
        assert_eq!((read + &rest, gaps), (log.lock().unwrap().clone(), 0), "from {least} bytes on");
        assert!(end.is_complete(), "{end}");
    }
}

/// What is set on the read holds for its feed, also where it is what a read has by default; what is not set there is the
/// feed's own.
#[tokio::test(start_paused = true)]
async fn what_is_set_on_the_read_holds_for_its_feed() {
    let every = |n| Pace::every(seconds(n));
    let own = settings().with_pace(every(5));
    type Set = fn(Get) -> Get;
    let cases: [(Set, std::ops::RangeInclusive<usize>); 3] = [
        (|get| get, 10..=14),
        (|get| get.pace(Pace::every(seconds(20))), 3..=5),
        (|get| get.pace(Pace::default()), 15..=40),
    ];
    for (set, expected) in cases {
        let rig = Rig::new();
        rig.ci.replies(LOG, [Reply::text("one\n")]);
        let mut log = set(rig.get(LOG)).log_with(LogKind::Whole, own.clone()).unwrap();
        assert_eq!(item(&mut log).await, "one\n");
        pass(seconds(60)).await;
        let asked = rig.ci.asked(LOG).len();
        assert!(expected.contains(&asked), "{asked} requests, expected {expected:?}");
    }
    let rig = Rig::new();
    rig.ci.replies(LOG, [Reply::hang()]);
    let get = rig.get(LOG).bounds(Bounds::default().with_first_byte(seconds(2))).give_up_after(seconds(20));
    let (start, mut log) = (now(), get.log(LogKind::Whole).unwrap());
    assert_eq!(all(&mut log).await.2, FeedEnd::Closed);
    assert!((seconds(15)..seconds(30)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// Reads what is there once, and never more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Once(Url);

impl Reader for Once {
    type Item = bytes::Bytes;

    fn ask(&mut self, _: Growth) -> Ask {
        Ask::log(self.0.clone())
    }

    fn head(&mut self, head: &Head<'_>, _: &mut Out<Self::Item>) -> Result<Then, Trouble> {
        if head.status == 200 { Ok(Then::Read) } else { Err(head.unserved(false)) }
    }

    fn piece(&mut self, piece: bytes::Bytes, out: &mut Out<Self::Item>) -> Result<(), Trouble> {
        out.item(piece);
        Ok(())
    }

    fn end(&mut self, _: &mut Out<Self::Item>) -> Result<Reached, Trouble> {
        Ok(Reached::Complete)
    }

    fn restart(&mut self, out: &mut Out<Self::Item>) {
        out.gap(None, None);
    }

    fn size(item: &Self::Item) -> usize {
        item.len()
    }
}

/// A reader of one's own is run as those that are there are. The credential stays at the origin that was named.
#[tokio::test(start_paused = true)]
async fn r3_a_reader_is_run_at_one_origin() {
    let rig = Rig::new();
    let token = || Credential::bearer("t").unwrap();
    rig.ci.replies(LOG, [Reply::status(404), Reply::text("one\n")]);
    let once = |url: &str| Once(url.parse().unwrap());
    let mut log = rig.get(LOG).credential(token()).follow(once("http://ci.example/log")).unwrap();
    let (text, gaps, end) = all(&mut log).await;
    assert_eq!((&*text, gaps, end.to_string()), ("one\n", 0, "complete: 4 bytes".into()));
    let asked = rig.ci.until(LOG, 1).await;
    assert_eq!(asked.header("authorization"), Some("Bearer t"));
    assert_eq!(
        (asked.header("accept"), asked.header("accept-encoding")),
        (Some("text/plain, */*;q=0.5"), Some("identity"))
    );

    let elsewhere = outlast::testing::Script::serve(&rig.net, "elsewhere.example");
    elsewhere.replies(LOG, [Reply::text("one\n")]);
    let log = rig.get(LOG).credential(token()).follow(once("http://elsewhere.example/log")).unwrap();
    pass(seconds(60)).await;
    assert_eq!(elsewhere.total(), 0);
    assert!(is_stale(log.state().latest().last().unwrap(), |cause| matches!(cause, Cause::Undecodable { .. })));
}

/// Outside a tokio runtime, and of one that is over, a feed is an error or has ended. Nothing panics.
#[test]
fn a_feed_outside_a_runtime() {
    let e = outlast::http::get("http://ci.example/log").log(LogKind::Whole).unwrap_err();
    assert!(e.to_string().starts_with("runtime:"), "{e}");
    assert!(outlast::http::get("http://ci.example/events").events().is_err());

    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let first = runtime();
    let rig = first.block_on(async { Rig::new() });
    rig.ci.replies(LOG, [Reply::text("one\n")]);
    // Not inside, though it runs: with an agent that is enough.
    let mut log = rig.get(LOG).log(LogKind::Whole).unwrap();
    let (told, over) = tokio::sync::oneshot::channel::<()>();
    log.finish_when(async move { drop(over.await) });
    drop(told);
    let (text, ..) = first.block_on(all(&mut log));
    assert_eq!(text, "one\n");

    drop(first);
    let mut log = rig.get(LOG).log(LogKind::Whole).unwrap();
    log.finish_when(std::future::pending());
    assert_eq!(runtime().block_on(log.next()), Some(FeedItem::Ended(FeedEnd::Closed)));
}
