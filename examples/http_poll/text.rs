//! What others have written, made fit to print: it commands neither a terminal nor the runner that reads the output.

use std::fmt::Write as _;

/// `text` on one line, without control characters and without what a CI runner takes for a command, at most `most`
/// characters.
///
/// GitHub takes `::` at the start of a line and `##[` anywhere; Azure and TeamCity take `##`, too.
pub(crate) fn harmless(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut last = ' ';
    for (n, c) in text.chars().enumerate() {
        if n == most {
            out.push('…');
            break;
        }
        if matches!(c, ':' | '#') && c == last {
            // It is not seen, and parts the two.
            out.push('\u{200b}');
        }
        last = c;
        out.push(if is_command(c) { ' ' } else { c });
    }
    out
}

/// JSON that means the same and is as harmless: what might command somebody is escaped.
///
/// In JSON, `::` and `##` stand in strings only.
pub(crate) fn harmless_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut last = ' ';
    for c in json.chars() {
        if is_command(c) || (matches!(c, ':' | '#') && c == last) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
        last = c;
    }
    out
}

/// Controls, line and paragraph separators, and what turns the direction of writing round.
fn is_command(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_says_commands_neither_a_terminal_nor_a_runner() {
        let said = "a\u{1b}[2Jb\n::error::c\r:::d##vso[x]\u{9b}\u{202e}###[error]";
        let printed = harmless(said, 100);
        for command in ["\u{1b}", "\n", "\r", "::", "##", "\u{9b}", "\u{202e}"] {
            assert!(!printed.contains(command), "{command:?} in {printed:?}");
        }
        let json = serde_json::json!({ "body": said, "::": 1 });
        let printed = harmless_json(&json.to_string());
        for command in ["\u{1b}", "\n", "\r", "::", "##", "\u{9b}", "\u{202e}"] {
            assert!(!printed.contains(command), "{command:?} in {printed:?}");
        }
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), json);
    }

    #[test]
    fn what_is_long_is_shortened() {
        assert_eq!(harmless(&"é".repeat(3_000), 20).chars().count(), 21);
        assert_eq!(harmless("é", 1), "é");
    }
}
