//! Logs of bytes, and of lines with their time.

use std::sync::{Arc, Mutex};

use super::fake::Asked;
use super::*;
use crate::http::told::Told;

const LOG: &str = "2025-11-30T12:00:00.1Z one é\n2025-11-30T12:00:00.9Z two €\n2025-11-30T12:00:01Z three 𝄞\n2025-11-30T12:00:01Z three 𝄞\n2025-11-30T12:00:03.5Z f\n";

/// What each kind of service answers while its log has these bytes.
fn serve(kind: &str, log: &[u8], asked: &Asked) -> Reply {
    match kind {
        "range" => match asked.first() {
            None => Reply::bytes(log),
            Some(first) if first < log.len() => {
                let range = format!("bytes {first}-{}/{}", log.len() - 1, log.len());
                Reply::status(206).header("content-range", range).piece(&log[first..])
            }
            Some(_) => Reply::status(416).header("content-range", format!("bytes */{}", log.len())),
        },
        "no range" | "whole" | "at end" => Reply::bytes(log).header("content-length", log.len()),
        "whole with etag" => {
            let etag = format!("\"{}\"", log.len());
            if asked.header("if-none-match") == Some(&etag) {
                return Reply::status(304);
            }
            Reply::bytes(log).header("etag", etag)
        }
        "offset" | "jenkins" => {
            // A console note of three bytes before each line counts in the offset, and is left out.
            let note = if kind == "jenkins" { 3 } else { 0 };
            let mut size = 0;
            let offsets: Vec<usize> = log
                .iter()
                .map(|&b| {
                    let at = size;
                    size += if b == b'\n' { 1 + note } else { 1 };
                    at
                })
                .collect();
            let start: usize = asked.query("start").unwrap().parse().unwrap();
            let start = if start > size { 0 } else { start };
            let from = offsets.iter().position(|&at| at >= start).unwrap_or(log.len());
            Reply::bytes(&log[from..]).header("x-text-size", size)
        }
        "time" => {
            let since = asked.query("sinceTime").unwrap_or_default();
            let since = since.trim_end_matches('Z').to_owned();
            let text = std::str::from_utf8(log).unwrap();
            let from: String = text.split_inclusive('\n').filter(|line| line[..19] >= *since).collect();
            Reply::bytes(from)
        }
        other => panic!("{other}"),
    }
}

fn kind(name: &str) -> LogKind {
    match name {
        "range" | "no range" => range(),
        "whole" | "whole with etag" => LogKind::Whole,
        "at end" => LogKind::AtEnd,
        "offset" => LogKind::Bytes(Offsets::Parameter(OffsetParameter::new("start", "x-text-size"))),
        // Without the header for more, as an older one: the feed is told when it is over.
        "jenkins" => LogKind::Bytes(Offsets::Parameter(OffsetParameter { more: None, ..OffsetParameter::jenkins() })),
        "time" => LogKind::Time(Stamps::polled("sinceTime")),
        other => panic!("{other}"),
    }
}

const KINDS: [&str; 8] = ["range", "no range", "whole", "whole with etag", "at end", "offset", "jenkins", "time"];

fn complete(bytes: usize) -> FeedEnd {
    FeedEnd::Complete { bytes: bytes as u64, gaps: 0 }
}

/// R6: the first answer breaks off at every byte, the second and third right after, and every kind is byte-equal at its end.
#[tokio::test(start_paused = true)]
async fn r6_a_log_cut_at_every_byte_is_byte_equal() {
    for name in KINDS {
        for cut in 0..=LOG.len() {
            let fake = Fake::new(move |asked| {
                let reply = serve(name, LOG.as_bytes(), asked);
                if asked.n < 3 { reply.cut(cut + asked.n * 5) } else { reply }
            });
            let mut feed = log(&fake, kind(name));
            feed.finish();
            let (bytes, gaps, end) = all(&mut feed).await;
            assert_eq!(String::from_utf8_lossy(&bytes), LOG, "{name} cut at {cut}");
            assert_eq!((gaps.as_slice(), end), (&[][..], complete(LOG.len())), "{name} cut at {cut}");
            assert_eq!(fake.most_open(), 1);
        }
    }
}

/// R6: pieces that split characters at every byte give the same lines.
#[tokio::test(start_paused = true)]
async fn r6_lines_are_whole_however_utf_8_is_split() {
    let text = "é€𝄞\r\n\nx\u{fffd}é\n𝄞";
    for size in 1..text.len() {
        let fake = Fake::new(move |_| Reply::bytes(text).in_pieces(size));
        let mut lines = log(&fake, LogKind::AtEnd).lines();
        for line in ["é€𝄞", "", "x\u{fffd}é", "𝄞"] {
            assert_eq!(some(&mut lines).await, line, "in pieces of {size}");
        }
        assert_eq!(lines.next().await, Some(FeedItem::Ended(complete(text.len()))));
        assert_eq!(lines.next().await, None);
    }
    let fake = Fake::new(|_| Reply::bytes(b"a\xffb\xe2\x82\nc\xc3"));
    let mut lines = log(&fake, LogKind::AtEnd).lines();
    assert_eq!(some(&mut lines).await, "a\u{fffd}b\u{fffd}");
    assert_eq!(some(&mut lines).await, "c\u{fffd}");
}

/// R6: a log that grows byte by byte, each look at another length, is delivered once and whole, by every kind that can be followed.
#[tokio::test(start_paused = true)]
async fn r6_a_growing_log_is_delivered_once() {
    for name in KINDS.into_iter().filter(|name| *name != "at end") {
        let fake = Fake::new(move |asked| serve_grown(name, asked.n * 7, asked));
        let mut feed = log(&fake, kind(name));
        let mut bytes = Vec::new();
        while bytes.len() < LOG.len() {
            bytes.extend_from_slice(&some(&mut feed).await);
        }
        feed.finish();
        let (rest, gaps, end) = all(&mut feed).await;
        assert_eq!((String::from_utf8_lossy(&bytes), rest.len(), gaps.len()), (LOG.into(), 0, 0), "{name}");
        assert_eq!(end, complete(LOG.len()), "{name}");
    }
}

fn serve_grown(name: &str, length: usize, asked: &Asked) -> Reply {
    let log = &LOG.as_bytes()[..length.min(LOG.len())];
    match name {
        // Its lines are whole.
        "time" => serve(name, &log[..log.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1)], asked),
        _ => serve(name, log, asked),
    }
}

/// FC-05: ten minutes of silence, then a clean end of the connection while the job runs. The follower resumes at its last
/// byte, delivers the next line once, and does not take the end of the connection for the end of the log.
#[tokio::test(start_paused = true)]
async fn fc_05_a_quiet_log_whose_connection_is_cut_is_resumed_at_its_last_byte() {
    let lines = ["2025-11-30T12:00:00Z first\n", "2025-11-30T12:10:30Z second\n"];
    let env = env(2);
    let start = env.instant();
    let clock = env.clone();
    let fake = Fake::new(move |asked| {
        let now = clock.instant().since(start);
        let log = if now < seconds(630) { lines[0].to_owned() } else { lines.concat() };
        // It follows: says what there is, then nothing, and the connection is closed after 30 s.
        let reply = serve("time", log.as_bytes(), asked);
        if asked.ask.long { reply.waits(seconds(30)) } else { reply }
    });
    let mut feed = log(&fake, LogKind::Time(Stamps::kubernetes()));
    assert_eq!(some(&mut feed).await, lines[0]);
    assert_eq!(within(&mut feed, &env, seconds(600)).await, None, "neither an end nor a line again");
    assert!(fake.asked().iter().all(|asked| asked.ask.long && asked.query("follow").as_deref() == Some("true")));
    assert_eq!(fake.asked().last().unwrap().query("sinceTime").as_deref(), Some("2025-11-30T12:00:00Z"));
    assert_eq!(some(&mut feed).await, lines[1]);
    feed.finish();
    let (rest, gaps, end) = all(&mut feed).await;
    assert_eq!((rest.len(), gaps.len(), end), (0, 0, complete(lines.concat().len())));
    assert!(!fake.asked().last().unwrap().ask.long, "the last look is one that ends");
}

/// FC-05, by range: resumed at the last byte; and where it cannot be resumed the end is a typed error, never complete.
#[tokio::test(start_paused = true)]
async fn fc_05_a_log_that_cannot_be_resumed_does_not_end_well() {
    let fake = Fake::new(move |asked| match asked.n {
        0 => Reply::bytes("line 1\n").waits(seconds(5)),
        1 => serve("range", b"line 1\nline 2\n", asked),
        _ => Reply::status(404),
    });
    let env = env(3);
    let mut feed = log(&fake, range());
    assert_eq!(some(&mut feed).await, "line 1\n");
    assert_eq!(some(&mut feed).await, "line 2\n");
    // What it has is asked for again and compared.
    assert_eq!(fake.asked()[1].first(), Some(0));
    assert_eq!(within(&mut feed, &env, seconds(3600)).await, None, "it is tried again for as long as the work goes on");
    assert_eq!(state(&feed), stale(Cause::Status { code: 404 }));
    feed.finish();
    let cause = Cause::Status { code: 404 };
    assert_eq!(all(&mut feed).await.2, FeedEnd::Incomplete { bytes: 14, cause });
}

/// FC-09, the log's half: a log that ends normally ends nothing, and one that is refused says so on the feed, is tried
/// again, and never ends well. Neither says anything about the work.
#[tokio::test(start_paused = true)]
async fn fc_09_a_log_says_nothing_about_the_work() {
    let env = env(4);
    let ends = Fake::new(|asked| serve("range", b"BUILD FAILED\n", asked));
    let mut feed = log(&ends, range());
    assert_eq!(some(&mut feed).await, "BUILD FAILED\n");
    assert_eq!(within(&mut feed, &env, seconds(3600)).await, None, "the end of the log is no end of the work");
    assert_eq!(state(&feed), FeedState::Following);

    let refused = Fake::replies([Reply::status(403)]);
    let mut feed = log(&refused, range());
    assert_eq!(within(&mut feed, &env, seconds(600)).await, None);
    assert_eq!(state(&feed), stale(Cause::Status { code: 403 }));
    assert!(refused.asked().len() > 100, "and it is tried again");
    feed.finish();
    let end = FeedEnd::Incomplete { bytes: 0, cause: Cause::Status { code: 403 } };
    assert_eq!(all(&mut feed).await.2, end.clone());
    assert_eq!(state(&feed), FeedState::Ended(end));
}

/// R10: a log that is refused for a while is resumed, and nothing is lost.
#[tokio::test(start_paused = true)]
async fn r10_a_log_channel_that_fails_for_a_while_recovers() {
    let fake = Fake::new(|asked| match asked.n {
        0 => serve("range", b"one\n", asked),
        1..5 => Reply::status(403),
        5 => Reply::bytes("<html>log in</html>").header("content-type", "text/html; charset=utf-8"),
        6 => Reply::status(203).piece("from a proxy"),
        7 => Reply::error(FetchError::new(Cause::Dropped { code: None })),
        _ => serve("range", b"one\ntwo\n", asked),
    });
    let mut feed = log(&fake, range());
    assert_eq!(some(&mut feed).await, "one\n");
    assert_eq!(some(&mut feed).await, "two\n");
    assert_eq!(state(&feed), FeedState::Following);

    // A login page with status 200 is no first piece of a log either (R3).
    let page = Reply::bytes("<html>log in</html>").header("content-type", "Text/HTML; charset=utf-8");
    for kind in [range(), LogKind::Whole, LogKind::AtEnd] {
        let fake = Fake::replies([page.clone(), Reply::bytes("one\n").header("content-type", "text/plain")]);
        assert_eq!(some(&mut log(&fake, kind)).await, "one\n");
    }
}

/// 416 with the length that was delivered is nothing new; with less, the whole is read, and has restarted if it is less twice.
#[tokio::test(start_paused = true)]
async fn a_416_says_nothing_new_or_that_the_log_is_another() {
    let not = |total: u64| Reply::status(416).header("content-range", format!("bytes */{total}"));
    let fake = Fake::new(move |asked| match asked.n {
        0 => Reply::bytes("0123456789"),
        1..4 => not(10),
        4 => not(4),
        _ => serve("range", b"abcd", asked),
    });
    let mut feed = log(&fake, range());
    assert_eq!(some(&mut feed).await, "0123456789");
    assert_eq!(soon(&mut feed).await, Some(gap(Position::Byte(10), Position::Byte(0))));
    assert_eq!(fake.asked().len(), 8);
    assert_eq!(some(&mut feed).await, "abcd");
    feed.finish();
    assert_eq!(all(&mut feed).await.2, FeedEnd::Complete { bytes: 14, gaps: 1 });
    // One that does not say how long the log is: the whole is read, and compared.
    let fake = Fake::new(|asked| match asked.first() {
        Some(_) => Reply::status(416),
        None if asked.n == 0 => Reply::bytes("01234"),
        None => Reply::bytes("0123456789"),
    });
    let mut feed = log(&fake, range());
    assert_eq!(some(&mut feed).await, "01234");
    assert_eq!(some(&mut feed).await, "56789");
}

/// Parts that are not what was asked for are not taken.
#[tokio::test(start_paused = true)]
async fn a_206_is_checked() {
    let part = |range: &str, body: &str| Reply::status(206).header("content-range", range).piece(body);
    let log_now = "0123456789";
    for bad in [
        part("bytes 1-9/10", "123456789"),
        part("bytes 0-9/10", "01234567890"),
        part("bytes 0-9/10", "012345678"),
        part("bytes 0-9/9", log_now),
        part("lines 0-9/10", log_now),
        part("bytes 9-0/10", log_now),
        Reply::status(206).piece(log_now),
        part("bytes 0-9/10", log_now).header("content-encoding", "br"),
    ] {
        let what = format!("{bad:?}");
        let fake = Fake::new(move |asked| match asked.n {
            0 => Reply::bytes("01234"),
            1 => bad.clone(),
            _ => serve("range", log_now.as_bytes(), asked),
        });
        let mut feed = log(&fake, range());
        feed.finish();
        let (bytes, gaps, end) = all(&mut feed).await;
        assert_eq!((String::from_utf8_lossy(&bytes), gaps.len(), end), (log_now.into(), 0, complete(10)), "{what}");
        assert!(fake.asked().len() >= 3, "{what}");
    }
}

/// R6: a service that does not know `If-Range` and has another log there, which looks the same where it is asked again: its
/// tag says so, and the whole is compared. A log that has only grown is read on without a gap.
#[tokio::test(start_paused = true)]
async fn a_206_with_another_tag_is_compared_as_a_whole() {
    let same = "waiting for a runner\n".repeat(10);
    for (begins, gaps) in [("attempt 2\n", 1), ("attempt 1\n", 0)] {
        let old = format!("attempt 1\n{same}");
        let new = format!("{begins}{same}done\n");
        let (first, then) = (old.clone(), new.clone());
        let fake = Fake::new(move |asked| match asked.n {
            0 => serve("range", first.as_bytes(), asked).header("etag", "\"a\""),
            _ => serve("range", then.as_bytes(), asked).header("etag", "\"b\""),
        });
        let mut feed = log(&fake, range());
        assert_eq!(some(&mut feed).await, old);
        feed.finish();
        let (bytes, seen, end) = all(&mut feed).await;
        let rest = if gaps == 0 { "done\n".to_owned() } else { new.clone() };
        let delivered = (old.len() + rest.len()) as u64;
        assert_eq!((String::from_utf8_lossy(&bytes), seen.len()), (rest.into(), gaps), "{begins}");
        assert_eq!(end, FeedEnd::Complete { bytes: delivered, gaps: gaps as u64 }, "{begins}");
        assert_eq!(fake.asked()[1].header("if-range"), Some("\"a\""));
        assert_eq!(fake.asked()[2].header("range"), None);
    }
}

/// A service that gives less than the overlap at once is still read on.
#[tokio::test(start_paused = true)]
async fn small_parts_make_progress() {
    for most in 2..9 {
        let fake = Fake::new(move |asked| {
            let Some(first) = asked.first() else {
                return if asked.n == 0 { Reply::bytes(LOG).cut(40) } else { Reply::bytes(LOG) };
            };
            let part = &LOG.as_bytes()[first..LOG.len().min(first + most)];
            let range = format!("bytes {first}-{}/{}", first + part.len() - 1, LOG.len());
            Reply::status(206).header("content-range", range).piece(part)
        });
        let mut feed = log(&fake, range());
        feed.finish();
        let (bytes, _, end) = all(&mut feed).await;
        assert_eq!((String::from_utf8_lossy(&bytes), end), (LOG.into(), complete(LOG.len())), "{most}");
    }
}

/// Jenkins: a start past the end silently begins at 0 again. Never repeated or skipped in silence.
#[tokio::test(start_paused = true)]
async fn a_silent_restart_at_0_is_a_gap() {
    for name in ["range", "no range", "whole", "whole with etag", "offset", "jenkins", "time"] {
        let new = "2025-11-30T13:00:00Z anew\n";
        let fake = Fake::new(move |asked| match asked.n {
            0 => serve(name, LOG.as_bytes(), asked),
            _ => serve(name, new.as_bytes(), asked),
        });
        let mut feed = log(&fake, kind(name));
        assert_eq!(some(&mut feed).await, LOG, "{name}");
        let FeedItem::Gap { from: Some(from), to: Some(to) } = soon(&mut feed).await.unwrap() else { panic!("{name}") };
        match name {
            "time" => assert_eq!(from, Position::Time("2025-11-30T12:00:03Z".into())),
            _ => assert_eq!((from, to), (Position::Byte(LOG.len() as u64), Position::Byte(0)), "{name}"),
        }
        assert_eq!(some(&mut feed).await, new, "{name}");
        feed.finish();
        let end = FeedEnd::Complete { bytes: (LOG.len() + new.len()) as u64, gaps: 1 };
        assert_eq!(all(&mut feed).await, (Vec::new(), Vec::new(), end), "{name}");
    }
}

/// A log that restarted and has grown past what was delivered: its offsets fit, its bytes do not.
#[tokio::test(start_paused = true)]
async fn a_log_whose_prefix_changed_is_a_gap() {
    for name in ["range", "no range", "whole", "whole with etag", "offset", "jenkins"] {
        let new = LOG.replace("one", "eno").replace("three", "eerht") + "more\n";
        let served = new.clone();
        let fake = Fake::new(move |asked| match asked.n {
            0 => serve(name, LOG.as_bytes(), asked),
            _ => serve(name, served.as_bytes(), asked),
        });
        let mut feed = log(&fake, kind(name));
        assert_eq!(some(&mut feed).await, LOG, "{name}");
        let at = Position::Byte(LOG.len() as u64);
        assert_eq!(soon(&mut feed).await, Some(gap(at, Position::Byte(0))), "{name}");
        assert_eq!(some(&mut feed).await, new, "{name}");
    }
}

/// One answer that shows less, from a replica that lags or a proxy, is not believed (R4): nothing is repeated.
#[tokio::test(start_paused = true)]
async fn r4_one_answer_that_shows_less_is_no_restart() {
    for name in ["range", "no range", "whole", "offset", "jenkins", "time"] {
        let fake = Fake::new(move |asked| match asked.n {
            0 => serve(name, LOG.as_bytes(), asked).cut(LOG.find("2025-11-30T12:00:03").unwrap()),
            1 => serve(name, b"", asked),
            _ => serve(name, LOG.as_bytes(), asked),
        });
        let mut feed = log(&fake, kind(name));
        feed.finish();
        let (bytes, gaps, end) = all(&mut feed).await;
        assert_eq!((String::from_utf8_lossy(&bytes), gaps.len(), end), (LOG.into(), 0, complete(LOG.len())), "{name}");
        assert!(fake.asked().len() >= 3, "{name}");
    }
}

/// Jenkins says itself when its log may grow: then nothing else is complete, and without it nobody need tell.
#[tokio::test(start_paused = true)]
async fn a_service_that_says_whether_its_log_is_complete_is_believed() {
    let env = env(5);
    let body = |asked: &Asked| serve("jenkins", LOG.as_bytes(), asked);
    let fake =
        Fake::new(move |asked| if asked.n < 40 { body(asked).header("x-more-data", "true") } else { body(asked) });
    let mut feed = log(&fake, jenkins());
    assert_eq!(some(&mut feed).await, LOG);
    feed.finish();
    assert_eq!(within(&mut feed, &env, seconds(20)).await, None, "told that the work is over, and the log may grow");
    let fake = Fake::new(body);
    let mut feed = log(&fake, jenkins());
    assert_eq!(all(&mut feed).await, (LOG.into(), vec![], complete(LOG.len())));
    assert_eq!(fake.asked().len(), 1);
}

/// A log that is there only when the work is over: 404 before is "not yet", and none of its requests has a credential of
/// its own that a redirect could take along.
#[tokio::test(start_paused = true)]
async fn at_end_waits_for_the_log() {
    let env = env(6);
    let fake = Fake::new(|asked| if asked.n < 30 { Reply::status(404) } else { Reply::bytes("all of it") });
    let mut feed = log(&fake, LogKind::AtEnd);
    assert_eq!(within(&mut feed, &env, seconds(10)).await, None);
    assert_eq!(state(&feed), stale(Cause::NotYetVisible));
    assert_eq!(all(&mut feed).await, (b"all of it".to_vec(), vec![], complete(9)));
    assert!(fake.asked().iter().all(|asked| asked.header("authorization").is_none()));
    // Each look a second after the last at least: a log that is not there yet is no outage.
    let times: Vec<_> = fake.asked().iter().map(|asked| asked.at).collect();
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_millis(900)), "{times:?}");
}

/// R8: what the service asks for is a floor, and the interval grows while nothing comes.
#[tokio::test(start_paused = true)]
async fn r8_a_quiet_log_is_looked_at_less_often() {
    let env = env(8);
    let fake = Fake::new(|asked| serve("range", b"x", asked));
    let mut feed = log(&fake, range());
    some(&mut feed).await;
    within(&mut feed, &env, seconds(1000)).await;
    let asked = fake.asked();
    let times: Vec<_> = asked.iter().map(|asked| asked.at).collect();
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps[0] >= Duration::from_millis(900) && gaps[0] <= seconds(1), "{gaps:?}");
    assert!(*gaps.last().unwrap() >= seconds(9) && *gaps.last().unwrap() <= seconds(10), "{gaps:?}");

    let told = Told { poll_interval: Some(seconds(45)), ..Told::default() };
    let fake = Fake::new(move |asked| serve("range", b"x", asked).told(told.clone()));
    let mut feed = log(&fake, range());
    some(&mut feed).await;
    within(&mut feed, &env, seconds(100)).await;
    assert_eq!(fake.asked().len(), 3);
}

/// A log still grows for a moment after its work is over: the last look begins when that is past.
#[tokio::test(start_paused = true)]
async fn what_comes_just_after_the_end_of_the_work_is_read() {
    let late = Arc::new(Mutex::new(false));
    let is_late = Arc::clone(&late);
    let env = env(9);
    let fake =
        Fake::new(move |asked| serve("range", if *is_late.lock().unwrap() { b"one\ntwo\n" } else { b"one\n" }, asked));
    let mut feed = log(&fake, range());
    assert_eq!(some(&mut feed).await, "one\n");
    pass(&env, seconds(30)).await;
    let (over, told) = tokio::sync::oneshot::channel::<()>();
    feed.finish_when(async move { drop(told.await) });
    drop(over);
    pass(&env, Duration::from_millis(1500)).await;
    *late.lock().unwrap() = true;
    assert_eq!(all(&mut feed).await, (b"two\n".to_vec(), vec![], complete(8)));
}

/// Lines out of order, equal lines at equal times, and a service that ignores the time.
#[tokio::test(start_paused = true)]
async fn the_overlap_at_equal_times_is_taken_off_exactly() {
    let log_now = "2025-11-30T12:00:05Z a\n2025-11-30T12:00:04Z late\n2025-11-30T12:00:05Z a\n2025-11-30T12:00:05Z a\n";
    for ignores in [false, true] {
        let fake = Fake::new(move |asked| {
            let lines: Vec<&str> = log_now.split_inclusive('\n').collect();
            let now = lines[..(asked.n + 1).min(lines.len())].concat();
            if ignores { Reply::bytes(now) } else { serve("time", now.as_bytes(), asked) }
        });
        let mut feed = log(&fake, kind("time"));
        let mut bytes = Vec::new();
        let want = if ignores { log_now.len() } else { log_now.len() - "2025-11-30T12:00:04Z late\n".len() };
        while bytes.len() < want {
            bytes.extend_from_slice(&some(&mut feed).await);
        }
        let text = String::from_utf8(bytes).unwrap();
        // Where the service goes by the time, a line that is late and older than what it is asked for is not given.
        assert_eq!(text, if ignores { log_now.into() } else { log_now.replace("2025-11-30T12:00:04Z late\n", "") });
    }
    let fake = Fake::replies([Reply::bytes("unable to retrieve container logs"), Reply::bytes("no time\n")]);
    let mut feed = log(&fake, kind("time"));
    feed.finish();
    let (bytes, _, end) = all(&mut feed).await;
    assert!(bytes.is_empty() && matches!(end, FeedEnd::Incomplete { cause: Cause::Undecodable { .. }, .. }), "{end:?}");
}
