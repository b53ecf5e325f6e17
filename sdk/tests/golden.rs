//! An example of every frame: what is on the wire cannot change unseen.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use outlast::wire::{ClientFrame, Incoming, ServerFrame};
use serde_json::Value;

/// The examples of one side: name and text.
fn examples(side: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(side);
    let mut examples: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
        })
        .collect();
    examples.sort();
    examples
}

fn client(text: &str) -> String {
    match ClientFrame::parse(text).unwrap() {
        Incoming::Known(frame) => frame.to_text(),
        Incoming::Unknown(kind) => panic!("unknown frame {kind}"),
    }
}

fn server(text: &str) -> String {
    match ServerFrame::parse(text).unwrap() {
        Incoming::Known(frame) => frame.to_text(),
        Incoming::Unknown(kind) => panic!("unknown frame {kind}"),
    }
}

/// Reads each example, writes it, and compares; also with a field and in a form that a later version may send.
fn round_trip(side: &str, again: fn(&str) -> String, every_type: &[&str]) {
    let mut seen = BTreeSet::new();
    for (name, text) in examples(side) {
        let golden: Value = serde_json::from_str(&text).unwrap();
        let exact = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        assert_eq!(exact(&again(&text)), golden, "{name}");
        let mut extended = golden.clone();
        extended["of_a_later_version"] = serde_json::json!({"x": [1, null]});
        assert_eq!(exact(&again(&extended.to_string())), golden, "{name} with an unknown field");
        assert_eq!(exact(&again(&serde_json::to_string_pretty(&golden).unwrap())), golden, "{name} with white space");
        seen.insert(golden["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, every_type.iter().map(|&kind| kind.to_owned()).collect());
}

#[test]
fn every_client_frame_is_as_it_was() {
    round_trip("client", client, &["subscribe", "unsubscribe", "call", "attach", "cancel", "forget", "ping"]);
}

#[test]
fn every_server_frame_is_as_it_was() {
    round_trip(
        "server",
        server,
        &[
            "welcome",
            "value",
            "unchanged",
            "absent",
            "end",
            "unserved",
            "report",
            "refused",
            "watermark",
            "pong",
            "drain",
            "fault",
        ],
    );
}

/// K1, W1: arguments and values travel as they were written, every digit of them.
#[test]
fn k1_arguments_keep_every_digit() {
    let call = examples("client").into_iter().find(|(name, _)| name == "call").unwrap().1;
    assert!(client(&call).contains("9007199254740993"));
}

#[test]
fn a_later_version_may_say_more() {
    assert!(matches!(ClientFrame::parse(r#"{"type":"later"}"#), Ok(Incoming::Unknown(kind)) if &*kind == "later"));
    assert!(matches!(ServerFrame::parse(r#"{"type":"later"}"#), Ok(Incoming::Unknown(kind)) if &*kind == "later"));
    let codes = r#"{"type":"refused","call":1,"code":"a_later_code","detail":""}"#;
    assert!(server(codes).contains(r#""code":"other""#));
}
