//! Logs in pages of JSON.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::fake::Asked;
use super::*;

/// A Buildbot log: its lines, and whether it is complete.
fn buildbot(lines: &[&str], complete: bool, asked: &Asked) -> Reply {
    if asked.ask.url.path() == "/api/v2/logs/7" {
        return Reply::json(json!({"logs": [{"complete": complete, "num_lines": lines.len(), "type": "s"}]}));
    }
    assert_eq!(asked.ask.url.path(), "/api/v2/logs/7/contents");
    let number = |name: &str| asked.query(name).unwrap().parse::<usize>().unwrap();
    let first = number("offset").min(lines.len());
    let content: String =
        lines[first..lines.len().min(first + number("limit"))].iter().map(|line| format!("o{line}\n")).collect();
    Reply::json(json!({"logchunks": [{"content": content, "firstline": first, "logid": 7}]}))
}

fn lines_feed(fake: &Fake, page: u64) -> Feed<Bytes> {
    let url = Url::parse("http://ci.example/api/v2/logs/7/contents").unwrap();
    let pages = LinePages { page, ..LinePages::buildbot() };
    Feed::log(parts(fake, Settings::default()), url, LogKind::Lines(pages)).unwrap()
}

/// Lines: each once and in order, whatever the size of the pages and wherever an answer is cut, until the service says
/// that the log is complete.
#[tokio::test(start_paused = true)]
async fn lines_are_read_to_the_end_that_the_service_states() {
    let lines = ["one", "two", "é€𝄞", "", "five"];
    let whole = lines.join("\n") + "\n";
    for page in 1..7 {
        for cut in (0..140).step_by(7) {
            let fake = Fake::new(move |asked| {
                let reply = buildbot(&lines[..asked.n.min(lines.len())], asked.n > 9, asked);
                if asked.n % 3 == 1 { reply.cut(cut) } else { reply }
            });
            let mut feed = lines_feed(&fake, page);
            let (bytes, gaps, end) = all(&mut feed).await;
            assert_eq!((String::from_utf8(bytes).unwrap(), gaps.len()), (whole.clone(), 0), "{page} {cut}");
            assert_eq!(end, FeedEnd::Complete { bytes: whole.len() as u64, gaps: 0 });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_of_lines_that_restarts_or_lacks_some_is_a_gap() {
    let fake =
        Fake::new(
            |asked| {
                if asked.n < 3 { buildbot(&["a", "b", "c"], false, asked) } else { buildbot(&["d"], true, asked) }
            },
        );
    let mut feed = lines_feed(&fake, 10);
    assert_eq!(some(&mut feed).await, "a\nb\nc\n");
    assert_eq!(soon(&mut feed).await, Some(gap(Position::Line(3), Position::Line(0))));
    assert_eq!(some(&mut feed).await, "d\n");
    assert_eq!(all(&mut feed).await.2, FeedEnd::Complete { bytes: 8, gaps: 1 });

    // Without a word about the log itself, and with lines that are not kept.
    let fake = Fake::new(|asked| {
        let chunk = |first: u64, content: &str| json!({"content": content, "firstline": first});
        Reply::json(match asked.query("offset").unwrap().as_str() {
            "0" => json!({"logchunks": [chunk(4, "e\nf\n"), chunk(0, "a\nb\n")]}),
            "6" => json!({"logchunks": [chunk(5, "f\ng\n")]}),
            _ => json!({"logchunks": []}),
        })
    });
    let pages = LinePages { about: None, marked: Marked::Never, ..LinePages::buildbot() };
    let mut feed = log(&fake, LogKind::Lines(pages));
    assert_eq!(some(&mut feed).await, "a\nb\n");
    assert_eq!(soon(&mut feed).await, Some(gap(Position::Line(2), Position::Line(4))));
    assert_eq!(some(&mut feed).await, "e\nf\n");
    assert_eq!(some(&mut feed).await, "g\n");
    feed.finish();
    assert_eq!(all(&mut feed).await.2, FeedEnd::Complete { bytes: 10, gaps: 1 });
}

/// The work is over, and the service does not say that its log is: it never becomes complete in silence.
#[tokio::test(start_paused = true)]
async fn a_log_that_is_not_said_to_be_complete_is_incomplete() {
    let fake = Fake::new(|asked| buildbot(&["a"], false, asked));
    let mut feed = lines_feed(&fake, 10);
    assert_eq!(some(&mut feed).await, "a\n");
    feed.finish();
    assert_eq!(all(&mut feed).await.2, FeedEnd::Incomplete { bytes: 2, cause: Cause::Behind });
}

fn tokens() -> LogKind {
    LogKind::Token(TokenPages::new("nextToken", "/nextForwardToken", "/events", "/message"))
}

fn page(items: &[&str], next: Option<&str>) -> Reply {
    let items: Vec<_> = items.iter().map(|item| json!({"message": item, "timestamp": 1})).collect();
    Reply::json(json!({"events": items, "nextForwardToken": next}))
}

/// Tokens: an empty page that leads on is not the end (FC-07), the same token again is, for now; the last page may grow.
#[tokio::test(start_paused = true)]
async fn fc_07_an_empty_page_that_leads_on_is_not_the_end_of_a_log() {
    for (last, more) in [(vec!["d"], vec!["d", "e"]), (vec![], vec!["d", "e"])] {
        let over = Arc::new(Mutex::new(false));
        let is_over = Arc::clone(&over);
        let fake = Fake::new(move |asked| match asked.query("nextToken").as_deref() {
            None => page(&["a", "b"], Some("1")),
            Some("1") => page(&[], Some("2")),
            Some("2") => page(&[], Some("3")),
            Some("3") => page(&["c"], Some("4")),
            Some("4") if *is_over.lock().unwrap() => page(&more, Some("4")),
            Some("4") => page(&last, Some("4")),
            other => panic!("{other:?}"),
        });
        let mut feed = log(&fake, tokens());
        for item in ["a", "b", "c"] {
            assert_eq!(some(&mut feed).await, item);
        }
        assert!(fake.asked().last().unwrap().at.since_start() < seconds(1), "the pages are read at once");
        pass(&env(1), seconds(20)).await;
        *over.lock().unwrap() = true;
        for item in ["d", "e"] {
            assert_eq!(some(&mut feed).await, item);
        }
        feed.finish();
        assert_eq!(all(&mut feed).await.2, FeedEnd::Complete { bytes: 5, gaps: 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_page_without_a_token_is_not_delivered_twice() {
    let fake = Fake::new(|asked| match asked.n {
        0..3 => page(&["a"], None),
        3..6 => page(&["a", "b"], None),
        6 => page(&["x", "b"], None),
        7 => page(&["a", "b"], Some("1")).cut(9),
        8 => Reply::bytes("[").header("content-type", "application/json"),
        9 => Reply::bytes("<p>").header("content-type", "text/html"),
        10 => page(&["a", "b"], Some("1")),
        _ if asked.query("nextToken").is_some() => page(&[], None),
        _ => panic!("{asked:?}"),
    });
    let mut feed = log(&fake, tokens());
    assert_eq!((some(&mut feed).await, some(&mut feed).await), ("a".into(), "b".into()));
    feed.finish();
    assert_eq!(all(&mut feed).await.2, FeedEnd::Complete { bytes: 2, gaps: 0 });
    // Items that changed, twice: another log.
    let fake = Fake::new(|asked| if asked.n < 2 { page(&["a"], None) } else { page(&["x", "y"], None) });
    let mut feed = log(&fake, tokens());
    assert_eq!(some(&mut feed).await, "a");
    assert_eq!(soon(&mut feed).await, Some(gap(Position::Token(None), Position::Token(None))));
    assert_eq!((some(&mut feed).await, some(&mut feed).await), ("x".into(), "y".into()));
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_be_are_refused_by_name() {
    let fake = Fake::replies([Reply::status(404)]);
    let refused =
        |kind: LogKind| Feed::log(parts(&fake, Settings::default()), url(), kind).map(drop).unwrap_err().to_string();
    let mut pages = LinePages::buildbot();
    pages.chunks = "logchunks".into();
    assert!(refused(LogKind::Lines(pages)).starts_with("log.chunks: expected a JSON Pointer"));
    let pages = LinePages { about: None, ..LinePages::buildbot() };
    assert!(refused(LogKind::Lines(pages)).starts_with("log.about:"));
    let pages = LinePages { page: 0, ..LinePages::buildbot() };
    assert!(refused(LogKind::Lines(pages)).starts_with("log.page:"));
    assert!(refused(LogKind::Token(TokenPages::new("t", "/next", "items", ""))).starts_with("log.items:"));
    let parameter = OffsetParameter::new("start", "X Text Size");
    assert!(refused(LogKind::Bytes(Offsets::Parameter(parameter))).starts_with("log.next:"));
}

/// R3: a service chooses the numbers of its lines, those too after which there is no other. That is an answer of no use, and
/// ends nothing.
#[tokio::test(start_paused = true)]
async fn r3_a_line_of_the_largest_number_is_no_end() {
    let fake = Fake::new(|asked| {
        let lines = if asked.n < 6 { u64::MAX } else { 1 };
        if asked.ask.url.path() == "/api/v2/logs/7" {
            return Reply::json(json!({"logs": [{"complete": asked.n > 6, "num_lines": lines, "type": "s"}]}));
        }
        let (first, content) = match asked.n {
            0..3 => (u64::MAX, "oa\n"),
            3..6 => (u64::MAX - 2, "oa\nob\noc"),
            _ => (0, "oa\n"),
        };
        Reply::json(json!({"logchunks": [{"content": content, "firstline": first, "logid": 7}]}))
    });
    let mut feed = lines_feed(&fake, 10);
    pass(&env(1), Duration::from_millis(10)).await;
    assert!(
        matches!(feed.state().latest(), Reading::Fresh(state) if matches!(&*state, FeedState::Stale { cause: Cause::Undecodable { detail } } if detail.starts_with("/firstline: expected the number of a line"))),
        "{:?}",
        feed.state().latest()
    );
    assert_eq!(some(&mut feed).await, "a\n");
    assert_eq!(all(&mut feed).await.2, FeedEnd::Complete { bytes: 2, gaps: 0 });
}
