use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json as object};
use url::Url;

use super::body::Completeness;
use super::*;
use crate::machine::Wall;

const SEVENTH: Generation = Generation::new(7);

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::try_from(*name).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

fn of(status: u16, lines: &[(&str, &str)], asked: Asked) -> Judgement {
    let (status, headers) = (StatusCode::from_u16(status).unwrap(), headers(lines));
    judge(status, &headers, &Told::of(status, &headers, Wall::default()), asked)
}

fn plain() -> Asked {
    Asked::new(Expected::Json, SEVENTH)
}

fn given(answer: Answer) -> Judgement {
    Judgement::Given(answer)
}

fn status(code: u16) -> Judgement {
    given(Answer::Unserved(Cause::Status { code }))
}

fn undecodable(detail: &str) -> Judgement {
    given(Answer::Unserved(Cause::Undecodable { detail: detail.into() }))
}

fn limited(seconds: u64) -> Judgement {
    given(Answer::Unserved(Cause::RateLimited { retry_after: Duration::from_secs(seconds) }))
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// R3: who is an authority, and who is not.
#[test]
fn every_status_comes_down_to_what_it_is() {
    let refused = |detail: &str| given(Answer::Unserved(Cause::Refused { detail: detail.into() }));
    for code in 100..600 {
        let expected = match code {
            200 => Judgement::Read,
            202 => given(Answer::Unserved(Cause::Unavailable { detail: "202: accepted, not ready yet".into() })),
            401 | 403 => given(Answer::Refused(SEVENTH)),
            404 => given(Answer::Absent),
            410 => given(Answer::Gone),
            407 | 408 | 421 | 425 => status(code),
            429 => limited(0),
            400 => refused("400 Bad Request"),
            405 => refused("405 Method Not Allowed"),
            406 => refused("406 Not Acceptable"),
            414 => refused("414 URI Too Long"),
            451 => refused("451 Unavailable For Legal Reasons"),
            402..=499 => match of(code, &[JSON], plain()) {
                Judgement::Given(Answer::Unserved(Cause::Refused { detail })) => {
                    assert!(detail.starts_with(&code.to_string()));
                    continue;
                }
                other @ (Judgement::Read | Judgement::Given(_)) => panic!("{code}: {other:?}"),
            },
            _ => status(code),
        };
        assert_eq!(of(code, &[JSON], plain()), expected, "{code}");
    }
}

/// R3: a proxy that has changed what the service said is no authority.
#[test]
fn a_203_is_never_read() {
    for expected in [Expected::Json, Expected::Text, Expected::Log, Expected::Bytes, Expected::EventStream] {
        assert_eq!(of(203, &[JSON], Asked::new(expected, SEVENTH)), status(203));
    }
}

#[test]
fn what_was_not_asked_for_has_no_meaning() {
    assert_eq!(of(304, &[], plain()), status(304));
    assert_eq!(of(304, &[], Asked { validated: true, ..plain() }), given(Answer::Unchanged));
    assert_eq!(of(206, &[JSON], plain()), status(206));
    let text = Asked { ranged: true, ..Asked::new(Expected::Text, SEVENTH) };
    assert_eq!(of(206, &[("content-type", "text/plain")], text), Judgement::Read);
    assert_eq!(of(204, &[], plain()), status(204));
    assert_eq!(of(205, &[], Asked { held: true, ..plain() }), status(205));
}

/// FC-07: the time for which the request was held is over.
#[test]
fn a_held_request_may_come_back_with_nothing() {
    assert_eq!(of(204, &[], Asked { held: true, ..plain() }), given(Answer::Nothing));
    assert_eq!(of(200, &[JSON, ("content-length", "0")], Asked { held: true, ..plain() }), undecodable(body::EMPTY));
}

/// FC-55: a 403 that carries `Retry-After`, or of somebody with nothing left, is a rate limit and no refusal.
#[test]
fn a_refusal_for_the_rate_is_none_of_the_credential() {
    assert_eq!(of(429, &[("retry-after", "30")], plain()), limited(30));
    assert_eq!(of(503, &[("retry-after", "30")], plain()), limited(30));
    assert_eq!(of(403, &[("retry-after", "30")], plain()), limited(30));
    assert_eq!(of(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "9")], plain()), limited(9));
    assert_eq!(of(403, &[("x-ratelimit-remaining", "1")], plain()), given(Answer::Refused(SEVENTH)));
    assert_eq!(of(401, &[("retry-after", "30")], plain()), given(Answer::Refused(SEVENTH)));
}

#[test]
fn a_403_may_say_in_its_body_that_it_is_for_the_rate() {
    let secondary = br#"{"message":"You have exceeded a secondary rate limit. Please wait a few minutes."}"#;
    assert!(speaks_of_rate(secondary));
    assert!(speaks_of_rate(b"<h1>Too Many Requests</h1>"));
    assert!(!speaks_of_rate(br#"{"message":"Resource not accessible by personal access token"}"#));
    assert!(!speaks_of_rate(b""));
    assert!(!speaks_of_rate(b"\xff\xfe\x00"));
    assert!(!speaks_of_rate(&[vec![b'x'; 9_000], b"rate limit".to_vec()].concat()), "only the beginning");
}

/// R3: a login page with status 200 is not the value.
#[test]
fn a_login_page_is_not_the_value() {
    for (media, shown) in [
        ("text/html", "text/html"),
        ("text/html; charset=utf-8", "text/html"),
        ("TEXT/HTML", "text/html"),
        ("application/xhtml+xml", "application/xhtml+xml"),
        ("application/octet-stream", "application/octet-stream"),
        ("application/jsonp", "application/jsonp"),
        ("application/json-seq", "application/json-seq"),
        ("application/x-ndjson", "application/x-ndjson"),
        ("text/javascript", "text/javascript"),
        ("json", "json"),
        ("application/json, text/html", "text/html"),
        ("appl\u{e9}", "appl?"),
    ] {
        let expected = undecodable(&format!("expected application/json, got {shown}"));
        assert_eq!(of(200, &[("content-type", media)], plain()), expected, "{media}");
    }
    let both = [JSON, ("content-type", "text/html")];
    assert_eq!(of(200, &both, plain()), undecodable("expected application/json, got text/html"));
}

#[test]
fn json_by_its_names() {
    for media in [
        "application/json",
        "Application/JSON",
        "text/plain; charset=utf-8",
        "application/json;charset=utf-8",
        "application/json; charset=\"UTF-8\"",
        "application/json ; charset=utf8",
        "application/json; charset=us-ascii",
        "application/json; api-version=7.1; profile=\"a;b,c\"",
        "text/json",
        "application/vnd.github+json",
        "application/hal+json; charset=utf-8",
        "application/problem+json",
        "",
        "  ",
        ";charset=utf-8",
    ] {
        let judged = of(200, &[("content-type", media)], plain());
        if media.starts_with(';') {
            assert_eq!(judged, undecodable("expected application/json, got "), "{media}");
        } else {
            assert_eq!(judged, Judgement::Read, "{media}");
        }
    }
    assert_eq!(of(200, &[], plain()), Judgement::Read, "a missing type is taken for the expected one");
    for charset in ["utf-16", "iso-8859-1", "UTF-16LE", "windows-1252"] {
        let media = format!("application/json; charset={charset}");
        let expected = undecodable(&format!("expected application/json in UTF-8, got it in {charset}"));
        assert_eq!(of(200, &[("content-type", &media)], plain()), expected);
    }
}

#[test]
fn the_other_kinds_by_their_names() {
    let read = |expected, media: &str| {
        of(200, &[("content-type", media)], Asked::new(expected, Generation::default())) == Judgement::Read
    };
    for media in
        ["text/plain", "text/plain;charset=UTF-8", "application/octet-stream", "application/json", "text/x-log"]
    {
        assert!(read(Expected::Text, media), "{media}");
    }
    for media in
        ["text/html", "application/xhtml+xml", "image/png", "multipart/byteranges", "text/plain; charset=utf-16"]
    {
        assert!(!read(Expected::Text, media), "{media}");
    }
    for media in ["text/plain; charset=iso-8859-1", "application/octet-stream", "application/json", "image/png"] {
        assert!(read(Expected::Log, media), "{media}");
    }
    for media in ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml", "text/plain, text/html"] {
        assert!(!read(Expected::Log, media), "{media}");
    }
    assert!(read(Expected::Bytes, "application/zip"));
    assert!(read(Expected::Bytes, "text/html; charset=iso-8859-1"));
    assert!(read(Expected::EventStream, "text/event-stream"));
    assert!(read(Expected::EventStream, "Text/Event-Stream;charset=utf-8"));
    for media in ["application/json", "text/plain", "text/html"] {
        assert!(!read(Expected::EventStream, media), "{media}");
    }
    let missing = undecodable("expected text/event-stream, got no content type");
    assert_eq!(of(200, &[], Asked::new(Expected::EventStream, Generation::default())), missing);
    for expected in [Expected::Text, Expected::Log, Expected::Bytes] {
        assert_eq!(of(200, &[("content-length", "0")], Asked::new(expected, Generation::default())), Judgement::Read);
    }
}

fn redirected(location: &str) -> Asked {
    let mut trail = Trail::new(Url::parse("http://ci.example/run").unwrap());
    assert_eq!(trail.follow(StatusCode::FOUND, &headers(&[("location", location)])), Ok(true));
    plain().along(&trail)
}

/// R3: only who was asked is an authority, not who a redirect led to.
#[test]
fn whoever_a_redirect_leads_to_is_no_authority() {
    let login = redirected("https://login.example/");
    let html = ("content-type", "text/html");
    assert_eq!(of(200, &[html], login), undecodable("expected application/json, got text/html"));
    assert_eq!(of(200, &[JSON], login), Judgement::Read);
    assert_eq!(of(404, &[], login), status(404));
    assert_eq!(of(410, &[], login), status(410));
    for code in [401, 403] {
        for asked in [login, redirected("https://ci.example/run"), redirected("http://ci.example:81/run")] {
            let judged = of(code, &[], asked);
            let misdirected = matches!(judged, Judgement::Given(Answer::Unserved(Cause::Misdirected { .. })));
            assert!(misdirected, "our credential was not refused: {judged:?}");
        }
    }
    let same_host = redirected("https://ci.example/run");
    assert_eq!(of(404, &[], same_host), given(Answer::Absent));
    assert_eq!(of(410, &[], same_host), given(Answer::Gone));
    let bytes = Asked { expected: Expected::Bytes, ..login };
    assert_eq!(of(200, &[html], bytes), undecodable("expected what was asked for, got text/html"));
    let same_origin = redirected("/elsewhere");
    assert_eq!(of(401, &[], same_origin), given(Answer::Refused(SEVENTH)));
}

/// R3: a relay with nothing behind it is no authority.
#[test]
fn a_relay_that_speaks_for_itself_is_no_authority() {
    for relay in [
        ("x-cf-routererror", "unknown_route"),
        ("ngrok-error-code", "ERR_NGROK_3200"),
        ("x-render-routing", "no-server"),
    ] {
        for code in [401, 403, 404, 410] {
            assert_eq!(of(code, &[relay], plain()), status(code), "{relay:?}");
        }
    }
    assert_eq!(of(404, &[("x-render-routing", "ok")], plain()), given(Answer::Absent));
}

#[test]
fn what_is_accepted_is_what_is_read() {
    for expected in [Expected::Json, Expected::Text, Expected::Log, Expected::Bytes, Expected::EventStream] {
        assert!(!expected.accept().is_empty());
    }
    assert_eq!(Expected::Json.accept(), "application/json");
    assert_eq!(Expected::EventStream.accept(), "text/event-stream");
}

/// Collects a body from `chunks`.
fn body(lines: &[(&str, &str)], chunks: &[&[u8]], limit: u64) -> Result<Bytes, Cause> {
    let mut body = Body::of(&headers(lines), limit)?;
    for chunk in chunks {
        body.push(Bytes::copy_from_slice(chunk))?;
    }
    body.finish()
}

fn is_undecodable<T>(result: Result<T, Cause>, part: &str) -> bool {
    matches!(result, Err(Cause::Undecodable { detail }) if detail.contains(part))
}

#[test]
fn a_body_is_whole_or_an_error() {
    let six = [("content-length", "6")];
    assert_eq!(body(&six, &[b"abc", b"def"], 100), Ok(Bytes::from_static(b"abcdef")));
    assert_eq!(body(&[], &[b"abc", b"", b"def"], 100), Ok(Bytes::from_static(b"abcdef")));
    assert_eq!(body(&[], &[], 100), Ok(Bytes::new()));
    assert_eq!(body(&six, &[b"abc"], 100), Err(Cause::Dropped { code: None }));
    assert_eq!(body(&six, &[], 100), Err(Cause::Dropped { code: None }));
    assert!(is_undecodable(body(&six, &[b"abc", b"defg"], 100), "expected a body of 6 bytes, got more"));
}

#[test]
fn a_body_over_the_limit_is_refused_before_and_while_it_is_read() {
    assert!(is_undecodable(Body::of(&headers(&[("content-length", "101")]), 100), "at most 100 bytes, got one of 101"));
    assert!(Body::of(&headers(&[("content-length", "100")]), 100).is_ok());
    assert!(is_undecodable(Body::of(&headers(&[("content-length", "99999999999999999999")]), 100), "Content-Length"));
    assert!(is_undecodable(body(&[], &[&[0; 60], &[0; 41]], 100), "at most 100 bytes, got more"));
    assert!(body(&[], &[&[0; 60], &[0; 40]], 100).is_ok());
    assert!(is_undecodable(Body::of(&headers(&[("content-length", "16777217")]), MAX_BODY), "at most 16777216"));
}

#[test]
fn a_length_has_to_be_one_number() {
    let announced = |lines: &[(&str, &str)]| Completeness::of(&headers(lines)).map(|c| c.announced());
    assert_eq!(announced(&[]), Ok(None));
    assert_eq!(announced(&[("content-length", "5"), ("content-length", "5")]), Ok(Some(5)));
    assert_eq!(announced(&[("content-length", "5, 5")]), Ok(Some(5)));
    assert_eq!(announced(&[("content-length", "5"), ("transfer-encoding", "chunked")]), Ok(None));
    for bad in ["5, 6", "-5", "+5", "5.0", "", "five", "0x5"] {
        assert!(is_undecodable(announced(&[("content-length", bad)]), "one Content-Length"), "{bad}");
    }
    assert!(is_undecodable(announced(&[("content-length", "5"), ("content-length", "6")]), "one Content-Length"));
}

/// The length is of what is sent, the limit of what comes out.
#[test]
fn a_compressed_body_is_counted_on_both_sides() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![b' '; 100_000]).unwrap();
    let encoded = encoder.finish().unwrap();
    let length = encoded.len().to_string();
    let lines = [("content-encoding", "gzip"), ("content-length", length.as_str())];
    let (one, two) = encoded.split_at(20);
    assert_eq!(body(&lines, &[one, two], 100_000).map(|body| body.len()), Ok(100_000));
    assert!(is_undecodable(body(&lines, &[one, two], 99_999), "at most 99999 bytes, got more"));
    assert_eq!(body(&lines, &[one], 100_000), Err(Cause::Dropped { code: None }));
    // Without a length the coding itself has to tell.
    assert!(is_undecodable(body(&lines[..1], &[one], 100_000), "the whole of an encoded body"));
    assert!(is_undecodable(body(&[("content-encoding", "br")], &[], 100), "got br"));
}

#[derive(Debug, PartialEq, Deserialize)]
struct Run {
    status: String,
    attempt: u64,
}

/// R3: an empty, cut off or lengthened text is never a value.
#[test]
fn json_is_whole_or_an_error() {
    let whole = br#"{"status":"running","attempt":2}"#;
    let run = Run { status: "running".to_owned(), attempt: 2 };
    assert_eq!(json::<Run>(whole), Ok(run));
    assert_eq!(json::<Value>(b"\xef\xbb\xbf {\"a\":1}\r\n"), Ok(object!({"a": 1})));
    for cut in 1..whole.len() {
        assert!(is_undecodable(json::<Value>(&whole[..cut]), "expected JSON, got a part of it"), "{cut}");
    }
    for empty in [&b""[..], b" \r\n", b"\xef\xbb\xbf"] {
        assert_eq!(json::<Value>(empty), Err(Cause::Undecodable { detail: body::EMPTY.into() }));
    }
    for wrong in [&b"{}{}"[..], b"{} x", b"<html>", b"{\"a\":\"\xff\"}", b"NaN", b"{'a':1}"] {
        assert!(is_undecodable(json::<Value>(wrong), "expected JSON, got something else"), "{wrong:?}");
    }
    assert!(json::<Value>("[".repeat(100_000).as_bytes()).is_err(), "the depth is bounded");
}

#[test]
fn what_is_said_of_a_wrong_value_names_the_field_and_not_what_it_holds() {
    let missing = json::<Run>(br#"{"status":"running"}"#);
    assert!(is_undecodable(missing, "missing field `attempt`"));
    let Err(Cause::Undecodable { detail }) = json::<Run>(br#"{"status":"ok","attempt":"s3cret \" s3cret"}"#) else {
        panic!("a value of the wrong type");
    };
    assert!(detail.contains("invalid type: string \"..\", expected u64") && !detail.contains("s3cret"), "{detail}");
    let long = format!(r#"{{"status":"ok","attempt":"{}"}}"#, "s3cret ".repeat(1000));
    let Err(Cause::Undecodable { detail }) = json::<Run>(long.as_bytes()) else { panic!("a value of the wrong type") };
    assert!(detail.len() < 400 && !detail.contains("s3cret"), "{detail}");
}

#[test]
fn text_is_utf_8() {
    assert_eq!(text(Bytes::from_static("é\n".as_bytes())).as_deref(), Ok("é\n"));
    assert_eq!(text(Bytes::from_static(b"\xef\xbb\xbfa")).as_deref(), Ok("a"));
    assert!(is_undecodable(text(Bytes::from_static(b"abc\xff")), "another byte at 3"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// R3: whatever the headers, only a 200 (or an asked-for 206) is read, and only who was asked ends anything.
    #[test]
    fn only_an_authority_says_anything(
        code in 100_u16..1000,
        lines in prop::collection::vec((
            prop::sample::select(vec!["content-type", "content-length", "retry-after", "x-ratelimit-remaining", "content-encoding"]),
            prop_oneof![any::<Vec<u8>>(), "[-a-z0-9/+;=,\" ]{0,30}".prop_map(String::into_bytes)],
        ), 0..5),
        flags in any::<[bool; 5]>(),
    ) {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                map.append(name, value);
            }
        }
        let status = StatusCode::from_u16(code).unwrap();
        let told = Told::of(status, &map, Wall::default());
        let [validated, held, ranged, elsewhere, stripped] = flags;
        let asked = Asked { validated, held, ranged, elsewhere, stripped, ..plain() };
        match judge(status, &map, &told, asked) {
            Judgement::Read => prop_assert!(code == 200 || (code == 206 && ranged)),
            Judgement::Given(Answer::Unserved(_)) => {}
            Judgement::Given(Answer::Unchanged) => prop_assert!(code == 304 && validated),
            Judgement::Given(Answer::Nothing) => prop_assert!(code == 204 && held),
            Judgement::Given(Answer::Absent) => prop_assert!(code == 404 && !elsewhere),
            Judgement::Given(Answer::Gone) => prop_assert!(code == 410 && !elsewhere),
            Judgement::Given(Answer::Refused(SEVENTH)) => {
                prop_assert!(matches!(code, 401 | 403) && !elsewhere && !stripped && !told.throttled);
            }
            Judgement::Given(other) => prop_assert!(false, "{:?}", other),
        }
        let _ = Body::of(&map, 1000);
    }

    /// R3: however a body is cut into chunks, it is the same; and one byte less is an error.
    #[test]
    fn a_body_is_the_same_in_any_chunks(data in prop::collection::vec(any::<u8>(), 1..300), chunk in 1_usize..50) {
        let length = data.len().to_string();
        let lines = [("content-length", length.as_str())];
        let chunks: Vec<_> = data.chunks(chunk).collect();
        prop_assert_eq!(body(&lines, &chunks, 300), Ok(Bytes::from(data.clone())));
        let short: Vec<_> = data[..data.len() - 1].chunks(chunk).collect();
        prop_assert_eq!(body(&lines, &short, 300), Err(Cause::Dropped { code: None }));
    }
}
