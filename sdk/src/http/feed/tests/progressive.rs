//! Logs by a service's own offsets, and the proof of what was read in parts.

use std::sync::{Arc, Mutex};

use super::fake::Asked;
use super::*;

/// What each kind of service answers while its log has these bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Service {
    Range,
    /// Exactly the bytes from the offset on.
    Exact,
    /// Jenkins before 2025: whole lines, without the notes that it counts, in each line of this letter.
    Notes(u8),
    /// Jenkins since: whole lines, at most so many of them, and no notes left out. It counts the log as a whole, whatever
    /// of it it sends.
    Lines(usize),
}

const NOTE: u64 = 20;

impl Service {
    fn kind(self) -> LogKind {
        match self {
            Self::Range => range(),
            Self::Exact => {
                let mut parameter = OffsetParameter::new("start", "x-text-size");
                parameter.more = Some("x-more-data".into());
                LogKind::Bytes(Offsets::Parameter(parameter))
            }
            Self::Notes(_) | Self::Lines(_) => jenkins(),
        }
    }

    /// As it is delivered: what shows the log as text ends lines with CR LF.
    fn shows(self, log: &str) -> String {
        match self {
            Self::Range | Self::Exact => log.into(),
            Self::Notes(_) | Self::Lines(_) => log.replace("\r\n", "\n").replace('\n', "\r\n"),
        }
    }

    fn serve(self, log: &str, over: bool, asked: &Asked) -> Reply {
        if self == Self::Range {
            return match asked.first() {
                None => Reply::bytes(log),
                Some(first) if first < log.len() => {
                    let range = format!("bytes {first}-{}/{}", log.len() - 1, log.len());
                    Reply::status(206).header("content-range", range).piece(&log[first..])
                }
                Some(_) => Reply::status(416).header("content-range", format!("bytes */{}", log.len())),
            };
        }
        let (bytes, size) = (log.as_bytes(), log.len() as u64);
        let start: u64 = asked.query("start").unwrap().parse().unwrap();
        let end = if over { log.len() } else { log.rfind(['\r', '\n']).map_or(0, |at| at + 1) };
        let (body, size) = match self {
            Self::Range => unreachable!(),
            Self::Exact => (bytes[from(start, size)..].to_vec(), size),
            Self::Lines(most) => {
                let most = if over { usize::MAX } else { most };
                let lines = bytes[from(start, size).min(end)..end].split_inclusive(|byte| *byte == b'\n').take(most);
                (self.shows(&String::from_utf8_lossy(&lines.collect::<Vec<_>>().concat())).into(), size)
            }
            Self::Notes(letter) => {
                // The offset of each byte, and of the end.
                let (mut at, mut offsets) = (0, Vec::new());
                for line in log[..end].split_inclusive('\n') {
                    at += if line.as_bytes()[0] == letter { NOTE } else { 0 };
                    offsets.extend((0..line.len() as u64).map(|n| at + n));
                    at += line.len() as u64;
                }
                let start = if start > at { 0 } else { start };
                let from = offsets.iter().position(|at| *at >= start).unwrap_or(end);
                let text = self.shows(&String::from_utf8_lossy(&bytes[from..end]));
                // Inside of a note, the rest of it is text.
                let is_inside = start > 0 && !offsets.contains(&start) && start != at;
                (if is_inside { format!("bm90ZQ=={text}") } else { text }.into(), at)
            }
        };
        let reply = Reply::bytes(&body).header("content-length", body.len()).header("x-text-size", size);
        if over { reply } else { reply.header("x-more-data", "true") }
    }
}

/// A start past the end is 0.
fn from(start: u64, size: u64) -> usize {
    usize::try_from(if start > size { 0 } else { start }).unwrap()
}

const PARAMETERS: [Service; 5] =
    [Service::Exact, Service::Notes(b'l'), Service::Notes(b'+'), Service::Lines(1000), Service::Lines(12)];

/// A log of lines of all lengths, some of them progress without an end, and more than what is recognised.
fn text(lines: usize) -> String {
    text_of("a", lines)
}

fn text_of(name: &str, lines: usize) -> String {
    let line = |n| match n % 5 {
        0 => format!("line {n} of {name} {}\n", "é".repeat(n % 97)),
        1 => format!("+ step {n} of {name}\n"),
        2 => format!("10%\r50%\r100% of {name}\n"),
        3 => "\n".into(),
        _ => format!("warning: {n} of {name}\n"),
    };
    (0..lines).map(line).collect()
}

/// A log that anybody may replace, and whether it is over.
type Shared = Arc<Mutex<(String, bool)>>;

fn shared(log: &str) -> Shared {
    Arc::new(Mutex::new((log.into(), false)))
}

fn served(service: Service, log: &Shared) -> Fake {
    let log = Arc::clone(log);
    Fake::new(move |asked| {
        let (log, over) = log.lock().unwrap().clone();
        service.serve(&log, over, asked)
    })
}

/// What comes until nothing more does for a minute.
async fn quiet(feed: &mut Feed<Bytes>) -> (Vec<u8>, usize) {
    let (mut bytes, mut gaps) = (Vec::new(), 0);
    let env = env(1);
    while let Some(item) = within(feed, &env, seconds(60)).await {
        match item {
            FeedItem::Item(item) => bytes.extend_from_slice(&item),
            FeedItem::Gap { .. } => gaps += 1,
            FeedItem::Ended(end) => panic!("{end}"),
        }
    }
    (bytes, gaps)
}

/// R6: a log that grows in the middle of its lines, as each service gives it, is delivered once and whole.
#[tokio::test(start_paused = true)]
async fn r6_a_log_by_offsets_grows_in_the_middle_of_lines() {
    let text = text(60);
    let texts = [text.clone(), text.replace('\n', "\r\n"), text.replace(" of a\n", " of a\r\n")];
    let cases = PARAMETERS.iter().flat_map(|service| texts.iter().map(move |text| (*service, text)));
    for (service, text) in cases {
        for step in [3, 17, 40, 300] {
            let whole = text.clone();
            let fake = Fake::new(move |asked| {
                let end = (asked.n * step).min(whole.len());
                let end = (0..=end).rfind(|end| whole.is_char_boundary(*end)).unwrap();
                service.serve(&whole[..end], end == whole.len() && asked.n > 3 * whole.len() / step, asked)
            });
            let mut feed = log(&fake, service.kind());
            let (bytes, gaps, end) = all(&mut feed).await;
            let what = format!("{service:?} by {step}");
            // A CR whose LF came with the next answer may stand twice.
            let plain = |text: &[u8]| String::from_utf8_lossy(text).replace('\r', "");
            assert_eq!(plain(&bytes), plain(service.shows(text).as_bytes()), "{what}");
            assert!(gaps.is_empty() && end.is_complete(), "{what}: {gaps:?} {end}");
        }
    }
}

/// R6: cut at every byte, three times in a row, it is byte-equal.
#[tokio::test(start_paused = true)]
async fn r6_a_log_by_offsets_is_cut_at_every_byte() {
    let text = text(13);
    for service in PARAMETERS {
        for cut in 0..text.len() + 10 {
            let whole = text.clone();
            let fake = Fake::new(move |asked| {
                let reply = service.serve(&whole, true, asked);
                if asked.n < 3 { reply.cut(cut + asked.n * 5) } else { reply }
            });
            let (bytes, gaps, end) = all(&mut log(&fake, service.kind())).await;
            assert_eq!(String::from_utf8_lossy(&bytes), service.shows(&text), "{service:?} cut at {cut}");
            assert!(gaps.is_empty() && end.is_complete(), "{service:?} cut at {cut}: {gaps:?} {end}");
        }
    }
}

/// R6: a log that started anew and has grown past what was read is a gap, and then the other log from its start: at
/// once, because what was read last is another text there.
#[tokio::test(start_paused = true)]
async fn r6_a_log_by_offsets_that_started_anew_and_is_longer_is_a_gap() {
    for service in PARAMETERS {
        for lines in [3, 30] {
            let (old, new) = (text(lines), text_of("b", lines + 5));
            let log_now = shared(&old);
            let fake = served(service, &log_now);
            let mut feed = log(&fake, service.kind());
            let (bytes, gaps) = quiet(&mut feed).await;
            assert_eq!((String::from_utf8(bytes).unwrap(), gaps), (service.shows(&old), 0), "{service:?}");
            log_now.lock().unwrap().0.clone_from(&new);
            let from = Position::Byte(service.shows(&old).len() as u64);
            assert_eq!(soon(&mut feed).await, Some(gap(from, Position::Byte(0))), "{service:?}");
            let (bytes, gaps) = quiet(&mut feed).await;
            assert_eq!((String::from_utf8(bytes).unwrap(), gaps), (service.shows(&new), 0), "{service:?}");
            log_now.lock().unwrap().1 = true;
            let (rest, gaps, end) = all(&mut feed).await;
            assert!(rest.is_empty() && gaps.is_empty(), "{service:?}");
            assert!(matches!(end, FeedEnd::Complete { gaps: 1, .. }), "{service:?}: {end}");
        }
    }
}

/// R6: and where it looks the same there, that shows at its end, where the whole is compared: never a part of one log and
/// a part of another that pass for complete.
#[tokio::test(start_paused = true)]
async fn r6_a_log_that_started_anew_and_looks_the_same_is_a_gap_at_its_end() {
    let same = "waiting for a runner\n".repeat(20);
    for service in PARAMETERS.into_iter().chain([Service::Range]) {
        for (begins, gaps) in [("attempt 2\n", 1), ("attempt 1\n", 0)] {
            let (old, new) = (format!("attempt 1\n{same}"), format!("{begins}{same}done\n"));
            let log_now = shared(&old);
            let fake = served(service, &log_now);
            let mut feed = log(&fake, service.kind());
            assert_eq!(quiet(&mut feed).await, (service.shows(&old).into(), 0), "{service:?}");
            log_now.lock().unwrap().0.clone_from(&new);
            assert_eq!(quiet(&mut feed).await, (service.shows("done\n").into(), 0), "{service:?}");
            log_now.lock().unwrap().1 = true;
            feed.finish();
            let (rest, seen, end) = all(&mut feed).await;
            let expected = if gaps == 1 { service.shows(&new) } else { String::new() };
            assert_eq!((String::from_utf8(rest).unwrap(), seen.len()), (expected, gaps), "{service:?} {begins}");
            let bytes = service.shows(&old).len() + service.shows("done\n").len() + gaps * service.shows(&new).len();
            assert_eq!(end, FeedEnd::Complete { bytes: bytes as u64, gaps: gaps as u64 }, "{service:?} {begins}");
        }
    }
}

/// FC-21: a strong tag proves nothing over an outage: the service may be another life of itself, which counts its tags from
/// 1 again and has written another log that looks the same.
#[tokio::test(start_paused = true)]
async fn fc_21_a_tag_is_no_proof_over_an_outage() {
    let same = "waiting for a runner\n".repeat(20);
    for (outage, begins, gaps) in [(true, "life 2\n", 1), (true, "life 1\n", 0), (false, "life 1\n", 0)] {
        let (old, new) = (format!("life 1\n{same}"), format!("{begins}{same}done\n"));
        let (first, then) = (old.clone(), new.clone());
        let fake = Fake::new(move |asked| match asked.n {
            0 => Service::Range.serve(&first, true, asked).header("etag", "\"1\""),
            1 if outage => Reply::error(FetchError::new(Cause::Dropped { code: None })),
            _ => Service::Range.serve(&then, true, asked).header("etag", "\"1\""),
        });
        let mut feed = log(&fake, range());
        assert_eq!(quiet(&mut feed).await.0, format!("{old}done\n").into_bytes());
        feed.finish();
        let (rest, seen, end) = all(&mut feed).await;
        let expected = if gaps == 1 { new } else { String::new() };
        assert_eq!((String::from_utf8(rest).unwrap(), seen.len()), (expected, gaps), "{end}");
        let wholes = fake.asked().iter().filter(|asked| asked.first().is_none()).count();
        assert_eq!(wholes > 1, outage);
    }
}

fn starts(asked: &[Asked]) -> Vec<Option<String>> {
    asked.iter().map(|asked| asked.query("start")).collect()
}

/// What was read at once needs no proof; what was read in parts is read once more, if it is not too long.
#[tokio::test(start_paused = true)]
async fn the_whole_is_read_once_more_where_that_proves_something() {
    let old = text(20);
    for service in [Service::Exact, Service::Lines(1000), Service::Range] {
        for (proof, again) in [(1 << 20, 1), (100, 0)] {
            let log_now = shared(&old);
            let fake = served(service, &log_now);
            let settings = Settings::default().with_sizes(Sizes::default().with_proof(proof));
            let mut feed = Feed::log(parts(&fake, settings), url(), service.kind()).unwrap();
            quiet(&mut feed).await;
            *log_now.lock().unwrap() = (old.clone() + "end\n", true);
            feed.finish();
            assert!(all(&mut feed).await.2.is_complete());
            let wholes = |asked: &Asked| match service {
                Service::Range => asked.first().is_none(),
                Service::Exact | Service::Notes(_) | Service::Lines(_) => asked.query("start").as_deref() == Some("0"),
            };
            let asked = fake.asked();
            let at_the_end = asked.iter().rev().take_while(|asked| wholes(asked)).count();
            assert_eq!(at_the_end, again, "{service:?}, at most {proof} bytes: {:?}", starts(&asked));
        }
        let fake = Fake::new(move |asked| service.serve("one\ntwo\n", true, asked));
        let mut feed = log(&fake, service.kind());
        feed.finish();
        assert!(all(&mut feed).await.2.is_complete());
        assert!(fake.asked().len() <= 2, "{service:?}: {:?}", starts(&fake.asked()));
    }
}

/// A log that is idle costs little, however much of it came at once, with hidden notes or without.
#[tokio::test(start_paused = true)]
async fn an_idle_log_is_not_read_again() {
    for service in [Service::Exact, Service::Notes(b'+'), Service::Notes(b'l'), Service::Lines(1 << 20)] {
        let log_now = shared(&text(20_000));
        let fake = served(service, &log_now);
        let mut feed = log(&fake, service.kind());
        quiet(&mut feed).await;
        let asked = fake.asked();
        let wholes = asked.iter().filter(|asked| asked.query("start").as_deref() == Some("0")).count();
        // Once more, until it is clear what is counted.
        assert!(wholes <= 2 && asked.len() > 10, "{service:?}: {wholes} of {}", asked.len());
    }
}

/// A service that gives a part of the log at once: the proof goes on where it says.
#[tokio::test(start_paused = true)]
async fn a_proof_in_parts() {
    let old = text(30);
    let log_now = shared(&old);
    let is = Arc::clone(&log_now);
    let fake = Fake::new(move |asked| {
        let (log, over) = is.lock().unwrap().clone();
        let start = from(asked.query("start").unwrap().parse().unwrap(), log.len() as u64);
        let end = log.len().min(start + 200);
        let reply = Reply::bytes(&log.as_bytes()[start..end]).header("x-text-size", end);
        let reply = if over && end == log.len() { reply } else { reply.header("x-more-data", "true") };
        // Each third answer breaks off.
        if asked.n % 3 == 2 { reply.cut(100) } else { reply }
    });
    let mut feed = log(&fake, Service::Exact.kind());
    let (bytes, gaps) = quiet(&mut feed).await;
    assert_eq!((String::from_utf8(bytes).unwrap(), gaps), (old, 0));
    log_now.lock().unwrap().1 = true;
    let (rest, gaps, end) = all(&mut feed).await;
    assert!(rest.is_empty() && gaps.is_empty() && end.is_complete(), "{end}");
    assert!(fake.asked().iter().filter(|asked| asked.query("start").as_deref() == Some("0")).count() >= 2);
}

/// R3: a service chooses its offsets, the largest too: what it sends after that one is delivered, and ends nothing.
#[tokio::test(start_paused = true)]
async fn r3_the_largest_offset_is_no_end() {
    let line = |letter: &str| letter.repeat(80) + "\r\n";
    let (first, second, third) = (line("a"), line("b"), line("c"));
    let whole = [&*first, &second, &third].concat();
    let parts = (first, second, third);
    let fake = Fake::new(move |asked| {
        let (first, second, third) = &parts;
        let body = match (asked.query("start").unwrap().parse::<u64>().unwrap(), asked.n) {
            (0, 0) => first.clone(),
            (0, 1) => [&**first, second].concat(),
            (0, _) => [&**first, second, third].concat(),
            (u64::MAX, _) => [&**second, third].concat(),
            // What was reckoned is wrong: it is asked for where the service says to go on.
            (_, _) => line("z"),
        };
        let reply = Reply::bytes(body).header("x-text-size", u64::MAX);
        if asked.n > 6 { reply } else { reply.header("x-more-data", "true") }
    });
    let mut feed = log(&fake, jenkins());
    let (bytes, gaps, end) = all(&mut feed).await;
    assert_eq!((String::from_utf8(bytes).unwrap(), gaps.len()), (whole, 0));
    assert!(end.is_complete(), "{end}");
    assert!(fake.asked().iter().any(|asked| asked.query("start").as_deref() == Some("18446744073709551615")));
}
