use proptest::prelude::*;

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::try_from(*name).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

/// What is sent after a value came with these headers.
fn sent(lines: &[(&str, &str)]) -> Option<(String, Vec<u8>)> {
    let run = url("https://ci.example/run");
    let validator = Validator::learn(&run, Generation::new(1), &headers(lines))?;
    let mut request = HeaderMap::new();
    assert!(validator.apply(&run, Generation::new(1), &mut request));
    assert_eq!(request.len(), 1);
    request.iter().next().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
}

fn none_match(tag: &str) -> Option<(String, Vec<u8>)> {
    Some(("if-none-match".to_owned(), tag.as_bytes().to_vec()))
}

#[test]
fn a_tag_is_sent_as_it_came() {
    for tag in
        [r#""abc""#, r#"W/"abc""#, r#""""#, r#""a, b""#, r#""*""#, "\"\u{e9}\"", "abc", "W/abc", "686897696a7c876b7e"]
    {
        assert_eq!(sent(&[("etag", tag)]), none_match(tag), "{tag}");
    }
}

/// Above all not `*`: every value matches it, so that the service would answer 304 for ever.
#[test]
fn what_could_match_more_than_one_value_is_not_sent() {
    for tag in ["*", "W/*", "", "W/", r#""a", "b""#, "a, b", "a b", "\"", r#""open"#, r#"a"b"#] {
        assert_eq!(sent(&[("etag", tag)]), None, "{tag}");
    }
    assert_eq!(sent(&[("etag", r#""a""#), ("etag", r#""b""#)]), None);
    assert_eq!(sent(&[("etag", r#""a""#), ("etag", r#""a""#)]), none_match(r#""a""#));
    assert_eq!(sent(&[]), None);
}

const MODIFIED: (&str, &str) = ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");

#[test]
fn a_tag_counts_before_a_date() {
    let later = ("date", "Sun, 06 Nov 1994 08:50:37 GMT");
    assert_eq!(sent(&[("etag", r#""a""#), MODIFIED, later]), none_match(r#""a""#));
    let by_date = Some(("if-modified-since".to_owned(), MODIFIED.1.as_bytes().to_vec()));
    assert_eq!(sent(&[MODIFIED, later]), by_date);
    assert_eq!(sent(&[("etag", "*"), MODIFIED, later]), by_date);
}

/// R4, RFC 9110, 8.8.2.2: two changes in one second have one date, so a date is only worth something afterwards.
#[test]
fn a_date_of_the_second_in_which_it_was_read_is_not_sent() {
    let at = |date| sent(&[MODIFIED, ("date", date)]).is_some();
    assert!(!at("Sun, 06 Nov 1994 08:49:37 GMT"));
    assert!(!at("Sun, 06 Nov 1994 08:49:30 GMT"));
    assert!(at("Sun, 06 Nov 1994 08:49:38 GMT"));
    assert_eq!(sent(&[MODIFIED]), None, "without a date of its own nothing is known");
    assert_eq!(sent(&[("last-modified", "recently"), ("date", "Sun, 06 Nov 1994 08:49:38 GMT")]), None);
}

/// A tag that was learnt under another credential is not sent: GitHub's change with the token.
#[test]
fn a_validator_belongs_to_a_credential_and_to_the_url_that_answered() {
    let run = url("https://ci.example/run");
    let validator = Validator::learn(&run, Generation::new(3), &headers(&[("etag", r#""a""#)])).unwrap();
    let applies = |to: &str, generation| {
        let mut request = headers(&[("if-none-match", r#""stale""#), ("if-modified-since", "x"), ("accept", "*/*")]);
        let applied = validator.apply(&url(to), Generation::new(generation), &mut request);
        assert_eq!(request.get("if-none-match").is_some_and(|tag| tag == r#""a""#), applied);
        assert_eq!(request.len(), if applied { 2 } else { 1 }, "nothing else validates");
        applied
    };
    assert!(applies("https://ci.example/run", 3));
    assert!(applies("https://ci.example/run#part", 3), "a fragment is not sent");
    assert!(!applies("https://ci.example/run", 2));
    assert!(!applies("https://ci.example/run", 4));
    assert!(!applies("https://ci.example/run?page=2", 3));
    assert!(!applies("https://ci.example/run/", 3));
    assert!(!applies("https://other.example/run", 3));
    assert!(!applies("http://ci.example/run", 3));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_send_a_wildcard(
        tag in prop::collection::vec(any::<u8>(), 0..12),
        modified in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut answer = headers(&[("date", "Sun, 06 Nov 1994 08:49:38 GMT")]);
        for (name, bytes) in [(ETAG, tag), (LAST_MODIFIED, modified)] {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                answer.insert(name, value);
            }
        }
        let run = url("https://ci.example/run");
        if let Some(validator) = Validator::learn(&run, Generation::default(), &answer) {
            let mut request = HeaderMap::new();
            prop_assert!(validator.apply(&run, Generation::default(), &mut request));
            let value = request.get(IF_NONE_MATCH).map(HeaderValue::as_bytes);
            prop_assert!(value.is_none_or(|tag| tag != b"*" && !tag.is_empty()));
        }
    }
}
