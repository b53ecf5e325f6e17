use proptest::prelude::*;

use super::*;

fn event(kind: &str, data: &str, id: Option<&str>) -> Event {
    Event { kind: kind.into(), data: data.into(), id: id.map(Into::into) }
}

fn message(data: &str) -> Event {
    event("message", data, None)
}

fn drain(parser: &mut Parser, into: &mut Vec<Event>) -> Result<(), TooLarge> {
    while let Some(event) = parser.next_event()? {
        into.push(event.to_event());
    }
    Ok(())
}

fn read(pieces: &[&[u8]]) -> Vec<Event> {
    let (mut parser, mut events) = (Parser::new(), Vec::new());
    for piece in pieces {
        parser.push(piece);
        drain(&mut parser, &mut events).unwrap();
    }
    events
}

/// The events of the whole, which must be those of every cut in two and of single bytes.
fn events(stream: &[u8]) -> Vec<Event> {
    let whole = read(&[stream]);
    for cut in 0..=stream.len() {
        assert_eq!(read(&[&stream[..cut], &stream[cut..]]), whole, "cut at {cut}");
    }
    assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
    whole
}

/// The examples of WHATWG HTML, 9.2.6.
#[test]
fn the_examples_of_the_standard() {
    let stock = b"data: YHOO\ndata: +2\ndata: 10\n\n";
    assert_eq!(events(stock), [message("YHOO\n+2\n10")]);
    let four = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
    let four_events = [
        event("message", "first event", Some("1")),
        event("message", "second event", Some("")),
        message(" third event"),
    ];
    assert_eq!(events(four), four_events);
    assert_eq!(events(b"data\n\ndata\ndata\n\ndata:"), [message(""), message("\n")]);
    assert_eq!(events(b"data:test\n\ndata: test\n\n"), [message("test"), message("test")]);
}

#[test]
fn cr_lf_and_crlf_end_a_line_also_across_pieces() {
    for end in ["\n", "\r", "\r\n"] {
        let stream = format!("event: a{end}data: 1{end}data: 2{end}{end}data: 3{end}{end}");
        assert_eq!(events(stream.as_bytes()), [event("a", "1\n2", None), message("3")], "{end:?}");
    }
    assert_eq!(events(b"data: 1\r\n\n\rdata: 2\n\r\n"), [message("1"), message("2")]);
    // A CR ends the line at once: the event does not wait for what comes after it.
    assert_eq!(read(&[b"data: 1\r\r"]), [message("1")]);
    assert_eq!(read(&[b"data: 1\r\n\r"]), [message("1")]);
}

#[test]
fn a_byte_order_mark_is_skipped_once() {
    assert_eq!(events(b"\xef\xbb\xbfdata: 1\n\n"), [message("1")]);
    assert_eq!(events(b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\n"), []);
    assert_eq!(events(b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n"), [message("1")]);
    assert_eq!(events(b"\xef\xbbdata: 1\n\n"), []);
}

#[test]
fn an_id_with_a_nul_is_ignored_and_one_without_data_counts() {
    let mut parser = Parser::new();
    parser.push(b"id: 1\0\ndata: a\n\n");
    assert_eq!(parser.next_event().unwrap().unwrap().to_event(), message("a"));
    assert_eq!((parser.last_id(), parser.is_resumable()), ("", false));
    parser.push(b"id: 2\n\n");
    assert_eq!(parser.next_event().unwrap(), None);
    assert_eq!((parser.last_id(), parser.is_resumable()), ("2", true));
    parser.push(b"event: x\n\ndata: b\n\n");
    let b = parser.next_event().unwrap().unwrap();
    assert_eq!((b.kind, b.id, b.id_given), ("message", "2", false), "nothing is left of the event before");
    assert!(!parser.is_resumable());
    // An id of an event that is never finished does not count.
    parser.push(b"id: 3\ndata: c\n");
    assert_eq!(parser.next_event().unwrap(), None);
    parser.reconnect();
    assert_eq!(parser.last_id(), "2");
    parser.push(b"\ndata: d\n\n");
    let d = parser.next_event().unwrap().unwrap();
    assert_eq!((d.data, d.id), ("d", "2"));
}

#[test]
fn retry_is_digits_only() {
    for (line, millis) in [
        ("retry: 3000", Some(3000)),
        ("retry:0", Some(0)),
        ("retry: +5", None),
        ("retry: 5s", None),
        ("retry", None),
        ("retry:  5", None),
        ("retry: 99999999999999999999999", Some(u64::MAX)),
    ] {
        let mut parser = Parser::new();
        parser.push(format!("{line}\n").as_bytes());
        assert_eq!(parser.next_event().unwrap(), None);
        assert_eq!(parser.retry(), millis.map(Duration::from_millis), "{line}");
        parser.reconnect();
        assert_eq!(parser.retry(), millis.map(Duration::from_millis));
    }
}

#[test]
fn comments_unknown_fields_and_an_unfinished_end_are_nothing() {
    assert_eq!(events(b":\n: data: 1\nDATA: 2\n data: 3\ndata : 4\n\n"), []);
    assert_eq!(events(b"data: 1\n:\n: x\nfoo: bar\ndata: 2\n\ndata: 3\n"), [message("1\n2")]);
    assert_eq!(events(b"data: 1"), []);
    assert_eq!(events(b"event: x\nevent: y\nevent\ndata: 1\n\n"), [message("1")]);
}

#[test]
fn utf_8_is_whole_however_it_is_cut_and_only_the_invalid_is_replaced() {
    let text = "é€𝄞";
    assert_eq!(
        events(format!("event: {text}\ndata: {text}\ndata: {text}\n\n").as_bytes()),
        [event(text, &format!("{text}\n{text}"), None)]
    );
    assert_eq!(events(b"data: a\xffb\xc3\n\ndata: \xe2\x82\xac\n\n"), [message("a\u{fffd}b\u{fffd}"), message("€")]);
}

#[test]
fn an_event_has_a_bound_wherever_it_is_cut() {
    let outcome = |stream: &[u8], piece: usize| {
        let (mut parser, mut events) = (Parser::bounded(16), Vec::new());
        let mut end = Ok(());
        for piece in stream.chunks(piece) {
            parser.push(piece);
            end = drain(&mut parser, &mut events);
        }
        (events.len(), end)
    };
    let error = Err(TooLarge { bound: 16 });
    for piece in [1, 2, 3, 7, 1000] {
        assert_eq!(outcome(b"data: 1\n\ndata: 0123456789\n\ndata: 2\n\n", piece), (3, Ok(())), "{piece}");
        assert_eq!(outcome(b"data: 1\n\ndata: 0123456789a\n\ndata: 2\n\n", piece), (1, error), "{piece}");
        assert_eq!(outcome(b"data: 12\ndata: 12\n\n", piece), (1, Ok(())), "{piece}");
        assert_eq!(outcome(b"data: 12\ndata: 123\n\n", piece), (0, error), "{piece}");
        assert_eq!(outcome(b":12345678901234567\n", piece), (0, error), "{piece}");
        // Comments are bounded each, and keep nothing: a quiet stream of them may go on for ever.
        assert_eq!(outcome(&b": alive\n".repeat(99), piece), (0, Ok(())), "{piece}");
        assert_eq!(outcome(&[b"data: 1\n".as_slice(), &b": alive\n".repeat(99), b"\n"].concat(), piece), (1, Ok(())));
    }
    assert!(TooLarge { bound: 16 }.to_string().contains("16 bytes"));
}

/// The standard's rules, read naively from the whole stream.
fn naive(stream: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(stream.strip_prefix(BYTE_ORDER_MARK).unwrap_or(stream)).into_owned();
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut data, mut kind, mut id) = (Vec::new(), String::new(), String::new(), None);
    let mut lines: Vec<_> = text.split('\n').collect();
    lines.pop();
    for line in lines {
        if line.is_empty() {
            if data.pop().is_some() {
                events.push(event(if kind.is_empty() { "message" } else { &kind }, &data, id));
            }
            (data, kind, id) = (String::new(), String::new(), None);
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => data += &format!("{value}\n"),
            "event" => kind = value.into(),
            "id" if !value.contains('\0') => id = Some(value),
            _ => {}
        }
    }
    events
}

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let tokens: [&[u8]; 18] = [
        b"data",
        b"event",
        b"id",
        b"retry",
        b":",
        b" ",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"data: x\n",
        b"id: 1\n",
        b"\0",
        b"\xff",
        "€".as_bytes(),
        b"\xe2\x82",
        BYTE_ORDER_MARK,
        b"7",
    ];
    prop::collection::vec(prop::sample::select(tokens.to_vec()), 0..60).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cutting_gives_the_events_of_the_standard(stream in soup(), cuts in prop::collection::vec(1usize..9, 1..20)) {
        let (mut pieces, mut rest) = (Vec::new(), &stream[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break }
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = left;
        }
        let whole = read(&[&stream]);
        prop_assert_eq!(&read(&pieces), &whole);
        prop_assert_eq!(naive(&stream), whole);
    }
}
