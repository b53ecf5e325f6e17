//! Lists and parameters in header fields, read as leniently as services write them (RFC 9110, 5.6; RFC 9651).

use ::http::header::AsHeaderName;
use ::http::{HeaderMap, HeaderName};

/// One member of a list: `head;key=value;key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// What stands before the first semicolon, without the spaces around it; quoted where it was.
    pub(crate) head: &'a str,
    parameters: Vec<&'a str>,
}

impl<'a> Member<'a> {
    /// Takes `text` apart.
    pub(crate) fn of(text: &'a str) -> Self {
        let mut parts = split(text, b';').into_iter();
        Self { head: parts.next().unwrap_or_default(), parameters: parts.collect() }
    }

    /// The value of the first parameter of that name, unquoted; the case of names does not matter.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        self.parameters.iter().find_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            key.trim().eq_ignore_ascii_case(name).then(|| unquoted(value))
        })
    }
}

/// The values of all lines of a field; a line that is not UTF-8 is left out.
pub(crate) fn lines<N: AsHeaderName>(headers: &HeaderMap, name: N) -> impl Iterator<Item = &str> + use<'_, N> {
    headers.get_all(name).into_iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()).map(str::trim)
}

/// The members of a list that may run over several lines; empty ones are left out (RFC 9110, 5.6.1).
pub(crate) fn members<N: AsHeaderName>(headers: &HeaderMap, name: N) -> impl Iterator<Item = Member<'_>> + use<'_, N> {
    lines(headers, name).flat_map(|line| split(line, b',')).filter(|text| !text.is_empty()).map(Member::of)
}

/// The parts between `separator`s that stand outside of quotes, trimmed.
pub(crate) fn split(text: &str, separator: u8) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if byte == separator && !quoted => {
                // A separator is ASCII, so both ends lie between characters.
                parts.push(text.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default().trim());
    parts
}

/// `text` without the quotes around it, if there are any, and without what escapes inside them.
pub(crate) fn unquoted(text: &str) -> String {
    let text = text.trim();
    let Some(inner) = text.strip_prefix('"') else { return text.to_owned() };
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        out.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    out
}

/// At most `most` characters of `text`, fit to be shown in a cause: what is not printable ASCII becomes `?`.
pub(crate) fn shown(text: &str, most: usize) -> String {
    text.chars().take(most).map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).collect()
}

/// Whether a header says where a request goes or where it ends, or belongs to one connection (RFC 9110, 7.2, 7.6.1 and 8.6;
/// RFC 9112, 6): whoever sends the request sets it, nobody else.
pub(crate) fn is_framing(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "host"
            | "content-length"
            | "transfer-encoding"
            | "connection"
            | "keep-alive"
            | "proxy-connection"
            | "upgrade"
            | "te"
            | "trailer"
            | "http2-settings"
    )
}

/// Whether a header decides which part of what an answer has, or is one that this library sets and judges the answer by.
pub(crate) fn is_own(name: &HeaderName) -> bool {
    let name = name.as_str();
    matches!(
        name,
        "expect" | "range" | "accept-encoding" | "prefer" | "cookie" | "authorization" | "last-event-id" | "forwarded"
    ) || ["if-", "proxy-", "sec-", "x-forwarded-", "x-http-method"].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_in_quotes_separate_nothing() {
        assert_eq!(split(r#" "a,b" , c,, "d\",e" "#, b','), [r#""a,b""#, "c", "", r#""d\",e""#]);
        assert_eq!(split(r#""open, for ever"#, b','), [r#""open, for ever"#]);
        assert_eq!(split("", b','), [""]);
        assert_eq!(split("é,ü", b','), ["é", "ü"]);
    }

    #[test]
    fn parameters_are_found_in_any_case_and_unquoted() {
        let member = Member::of(r#"text/html ; Charset="UTF-8" ;q=0.5;flag"#);
        assert_eq!(member.head, "text/html");
        assert_eq!(member.parameter("charset").as_deref(), Some("UTF-8"));
        assert_eq!(member.parameter("q").as_deref(), Some("0.5"));
        assert_eq!(member.parameter("flag"), None);
    }

    #[test]
    fn quotes_and_escapes_go() {
        assert_eq!(unquoted(r#""a\"b\\c""#), r#"a"b\c"#);
        assert_eq!(unquoted(" plain "), "plain");
        assert_eq!(unquoted("\""), "");
        assert_eq!(unquoted("\"x\\"), "x");
    }

    #[test]
    fn what_is_shown_is_short_and_printable() {
        assert_eq!(shown("a\u{7f}é\nb", 10), "a???b");
        assert_eq!(shown("abcdef", 3), "abc");
    }
}
