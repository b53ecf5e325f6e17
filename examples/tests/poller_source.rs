//! The poller is what a user writes: no loop, no sleep and no retry around a call of the SDK.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

/// Words that something which tries again cannot do without.
const FORBIDDEN: [&str; 12] = [
    "loop",
    "while",
    "for",
    "sleep",
    "sleep_until",
    "timeout",
    "interval",
    "retry",
    "repeat",
    "repeat_with",
    "from_fn",
    "unfold",
];

/// The words of Rust source that are no part of a comment or a string.
fn words(source: &str) -> Vec<String> {
    let mut code = String::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string(rest),
            c => {
                code.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        code.push(' ');
        rest = &rest[skipped..];
    }
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).map(String::from).collect()
}

/// The length of the string at the start of `text`.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(i, _)| i + 1)
}

fn forbidden(source: &str) -> Vec<String> {
    words(source).into_iter().filter(|word| FORBIDDEN.contains(&word.as_str())).collect()
}

fn source(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("build_farm").join(file)).unwrap()
}

/// R8, W4: recovery is the SDK's. The poller submits once and awaits one handle.
#[test]
fn r8_the_poller_does_not_try_again() {
    let poller = source("poller.rs");
    assert_eq!(forbidden(&poller), [""; 0]);
    let words = words(&poller);
    let count = |word: &str| words.iter().filter(|other| *other == word).count();
    assert_eq!((count("submit_build"), count("settled")), (1, 1), "one submit, one awaited handle");
}

/// Nothing in the poller's process talks to the SDK's client behind the poller's back: the story opens it, the
/// poller uses it. The worker is another process.
#[test]
fn only_the_poller_uses_the_client() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("build_farm");
    let mut users: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".rs") && source(name).contains("outlast::client"))
        .collect();
    users.sort();
    assert_eq!(users, ["poller.rs", "story.rs", "worker.rs"]);
    assert_eq!(forbidden(&source("story.rs")), [""; 0], "nor does the story try again");
}

#[test]
fn what_tries_again_is_found() {
    assert_eq!(forbidden("loop { client.read() }"), ["loop"]);
    assert_eq!(forbidden("tokio::time::sleep(d); // a loop\n for x in y {}"), ["sleep", "for"]);
    assert_eq!(forbidden(r#"let s = "for \" while"; /* loop */ s.for_each(retrying)"#), [""; 0]);
}
