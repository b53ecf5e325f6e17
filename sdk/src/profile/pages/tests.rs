//! Pages that are linked, pages that are counted, and services that do neither well.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::profile::{Pointer, Taken, Template};

fn source(path: &str, total: Option<&str>) -> LogSource {
    let pointer = |text| Pointer::new(text).unwrap();
    LogSource {
        path: Template::new(path).unwrap(),
        each: pointer("/jobs"),
        total: total.map(pointer),
        bind: BTreeMap::from([("job".into(), Taken::At(pointer("/id").into()))]),
        name: None,
    }
}

fn here() -> Location {
    let url = Url::parse("https://ci.example/runs/7").unwrap();
    Location { stage: "run".into(), url, bound: Bindings::default().with("run", "7") }
}

/// The ids that all pages have, and the addresses that were asked; each is answered with a body and a `Link`.
fn walk(
    source: &LogSource,
    mut answer: impl FnMut(&str) -> (Value, String),
) -> (Result<Vec<String>, Error>, Vec<String>) {
    let (here, known) = (here(), Bindings::default());
    let (mut pages, mut asked) = (Pages::new(source, &here, &known), Vec::new());
    let mut next = Some(pages.address().unwrap());
    while let Some(url) = next {
        asked.push(url.to_string());
        let (body, link) = answer(url.as_str());
        let page = Page { body, links: OnceLock::from(vec![link]) };
        next = match pages.take(url, &page) {
            Ok(next) => next,
            Err(e) => return (Err(e), asked),
        };
    }
    (Ok(pages.listed().iter().map(|listed| listed.bound.get("job").unwrap()).collect()), asked)
}

fn jobs(ids: impl IntoIterator<Item = u64>) -> Value {
    json!({"jobs": ids.into_iter().map(|id| json!({"id": id})).collect::<Vec<_>>(), "total": 5})
}

#[test]
fn the_next_link_is_found() {
    for (line, expected) in [
        ("<https://h/x?page=2>; rel=\"next\", <https://h/x?page=9>; rel=\"last\"", Some("https://h/x?page=2")),
        ("<https://h/x?page=1>; rel=\"prev\", <https://h/x?page=3>; rel=\"next\"", Some("https://h/x?page=3")),
        ("</x?a=1,2;3>;rel=next", Some("/x?a=1,2;3")),
        ("<a>; title=\"x, <b>; rel=next\", <c>; REL=\"last NEXT\"", Some("c")),
        ("<a>; title=\"\\\", <b>; rel=next\", <c>; rel=next", Some("c")),
        ("<a>; rel=next; anchor=\"/elsewhere\", <b>; rel=next", Some("b")),
        ("<a>; rel=last; rel=next", None),
        ("<a>; rel=nextish", None),
        ("<a>", None),
        ("<a; rel=next", None),
        ("", None),
        ("<>; rel=next", Some("")),
    ] {
        assert_eq!(next(line), expected, "{line}");
    }
}

/// Links lead on, also to another path, and never to another origin: a credential goes there.
#[test]
fn linked_pages_stay_on_their_origin() {
    let source = source("/runs/{run}/jobs?per_page=2", None);
    let (listed, asked) = walk(&source, |url| match url {
        "https://ci.example/runs/7/jobs?per_page=2" => {
            (jobs([1, 2]), "<http://evil.example:8080/repositories/1/jobs?page=2>; rel=\"next\"".into())
        }
        "https://ci.example/repositories/1/jobs?page=2" => (jobs([2, 3]), "<jobs?page=3>; rel=\"next\"".into()),
        "https://ci.example/repositories/1/jobs?page=3" => (jobs([4]), "<x>; rel=\"first\"".into()),
        other => panic!("{other}"),
    });
    // What the list has pushed on to the next page meanwhile is one element all the same.
    assert_eq!(listed.unwrap(), ["1", "2", "3", "4"]);
    assert_eq!(asked.len(), 3);
}

/// R6: pages without an end are an error, and nothing is left out in silence.
#[test]
fn linked_pages_without_an_end_are_refused() {
    let source = source("/jobs", None);
    let (listed, asked) = walk(&source, |_| (jobs([1]), "</jobs>; rel=next".into()));
    assert!(listed.unwrap_err().to_string().ends_with("expected pages that go on, found one that leads back"));
    assert_eq!(asked.len(), 1);
    let (listed, asked) = walk(&source, |url| match url.ends_with("a") {
        true => (jobs([2]), "</b>; rel=next".into()),
        false => (jobs([1]), "</a>; rel=next".into()),
    });
    assert!(listed.unwrap_err().is_corrupt());
    assert_eq!(asked.len(), 3);
    let mut page = 0;
    let (listed, asked) = walk(&source, |_| {
        page += 1;
        (jobs([page]), format!("<?page={page}>; rel=next"))
    });
    let e = listed.unwrap_err();
    assert!(e.is_corrupt() && e.to_string() == "/jobs: expected at most 100 pages, found more", "{e}");
    assert_eq!(asked.len(), 100);
    for target in ["ftp://ci.example/x", "http://[x"] {
        let (listed, _) = walk(&source, |_| (jobs([1]), format!("<{target}>; rel=next")));
        assert!(listed.unwrap_err().to_string().contains("expected the address of the next page"), "{target}");
    }
}

#[test]
fn counted_pages_go_on_to_the_total_or_to_an_empty_one() {
    let by_total = source("/jobs?limit=2&offset={from}", Some("/total"));
    let from = |url: &str| url.rsplit_once('=').unwrap().1.parse::<u64>().unwrap();
    let (listed, asked) = walk(&by_total, |url| (jobs((from(url)..5).take(2)), "</elsewhere>; rel=next".into()));
    assert_eq!(listed.unwrap(), ["0", "1", "2", "3", "4"]);
    let (first, last) = ("https://ci.example/jobs?limit=2&offset=0", "https://ci.example/jobs?limit=2&offset=4");
    assert_eq!((asked.len(), &*asked[0], &*asked[2]), (3, first, last));

    // Whoever does not say how many there are is asked until there are no more.
    for source in [source("/jobs?offset={from}", None), source("/jobs?offset={from}", Some("/nowhere"))] {
        let (listed, asked) = walk(&source, |url| (jobs((from(url)..5).take(2)), String::new()));
        assert_eq!((listed.unwrap().len(), asked.len()), (5, 4));
    }
}

/// R6: a list that is shorter than it says, one that ignores how many came, and one that has no end.
#[test]
fn counted_pages_of_which_some_are_missing_are_refused() {
    let by_total = source("/jobs?offset={from}", Some("/total"));
    let (listed, _) = walk(&by_total, |url| (jobs(if url.ends_with("=0") { 0..3 } else { 0..0 }), String::new()));
    let e = listed.unwrap_err();
    assert!(e.is_retryable() && e.to_string().ends_with("expected 5 elements, found 3"), "{e}");
    let (listed, asked) = walk(&source("/jobs?offset={from}", None), |_| (jobs(0..3), String::new()));
    let e = listed.unwrap_err();
    assert!(e.is_corrupt() && e.to_string().contains("found what was listed before"), "{e}");
    assert_eq!(asked.len(), 2);
    let mut id = 0;
    let (listed, asked) = walk(&source("/jobs?offset={from}", None), |_| {
        id += 1;
        (jobs([id]), String::new())
    });
    assert!(listed.unwrap_err().is_corrupt());
    assert_eq!(asked.len(), 100);
}

/// R6: a list that becomes shorter while it is read has moved what is not read yet; a link that a proxy leaves out leaves
/// out what follows.
#[test]
fn lists_of_which_some_may_be_missing_are_refused() {
    let linked = source("/jobs", Some("/total"));
    let (listed, _) = walk(&linked, |_| (jobs(0..3), String::new()));
    let e = listed.unwrap_err();
    assert!(e.is_retryable() && e.to_string() == "/jobs: expected 5 elements, found 3", "{e}");
    let (listed, _) = walk(&linked, |_| (jobs(0..5), String::new()));
    assert_eq!(listed.unwrap().len(), 5);
    let counted = source("/jobs?offset={from}", Some("/total"));
    let mut total = 5;
    let (listed, asked) = walk(&counted, |_| {
        total -= 1;
        (json!({"jobs": [{"id": total}], "total": total}), String::new())
    });
    let e = listed.unwrap_err();
    assert!(e.is_retryable() && e.to_string().contains("become shorter"), "{e}");
    assert_eq!(asked.len(), 2);
}

/// R3: what is no part of such a list is none.
#[test]
fn what_is_no_page_is_none() {
    let source = source("/jobs?offset={from}", Some("/total"));
    let page = |body| Page { body, links: OnceLock::new() };
    assert!(source.has(&page(jobs([1]))));
    for body in [json!({"jobs": null}), json!({"jobs": [{}]}), json!({"jobs": [], "total": "5"}), json!([])] {
        assert!(!source.has(&page(body.clone())), "{body}");
    }
}

/// A list of too many elements is not read any further, however many pages it has.
#[test]
fn lists_of_too_many_elements_are_read_no_further() {
    for (path, each) in [("/jobs?from={from}", 4_000), ("/jobs", 4_000), ("/jobs", 10_001)] {
        let mut came = 0;
        let source = source(path, None);
        let (listed, asked) = walk(&source, |_| {
            came += each;
            (jobs(came - each..came), format!("</jobs?page={came}>; rel=next"))
        });
        let e = listed.unwrap_err();
        assert!(e.is_corrupt() && e.to_string().ends_with(": expected at most 10000 elements, found more"), "{e}");
        assert_eq!(asked.len() as u64, 10_001_u64.div_ceil(each), "{asked:?}");
    }
}
