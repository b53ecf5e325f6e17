//! Laws of reading.

use super::{Tested, bodies, prefix, subject};
use crate::log::{Expect, Log, Prefix, Seq, Subject};

/// An append is read in one piece; of a part of its subjects, their entries with the whole append's timestamp.
pub async fn readers_see_whole_appends<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (a, b) = (subject("x/a"), subject("y/b"));
    log.done(&[(&a, Expect::Absent, "1"), (&b, Expect::Absent, "2"), (&a, Expect::Any, "3")]).await;
    log.done(&[(&b, Expect::Any, "4"), (&a, Expect::Any, "5"), (&b, Expect::Any, "6")]).await;
    log.done(&[(&b, Expect::At(6), "7")]).await;
    let shape = |page: Vec<crate::log::Committed>| {
        page.into_iter()
            .map(|c| (c.through, c.entries.iter().map(|e| e.seq).collect()))
            .collect::<Vec<(Seq, Vec<Seq>)>>()
    };
    for limit in 1..4 {
        // The limit is met by whole appends: it never cuts one.
        let whole = shape(log.read(&Prefix::all(), 0, limit).await);
        assert_eq!(whole, [(3, vec![1, 2, 3])], "limit {limit}");
    }
    assert_eq!(shape(log.read(&Prefix::all(), 0, 4).await), [(3, vec![1, 2, 3]), (6, vec![4, 5, 6])]);
    assert_eq!(shape(log.read(&prefix("x"), 0, 100).await), [(3, vec![1, 3]), (6, vec![5])]);
    assert_eq!(shape(log.read(&prefix("x"), 0, 1).await), [(3, vec![1, 3])]);
    assert_eq!(shape(log.read(&prefix("y"), 0, 2).await), [(3, vec![2]), (6, vec![4, 6])]);
    assert_eq!(shape(log.read(&a.itself(), 3, 100).await), [(6, vec![5])]);
    assert_eq!(shape(log.read(&prefix("y"), 6, 100).await), [(7, vec![7])]);
    assert_eq!(shape(log.read(&Prefix::all(), 7, 100).await), []);
    assert_eq!(shape(log.read(&Prefix::all(), u64::MAX, 100).await), []);
}

/// Reading on from the last `through` gives every entry once; fewer than the limit means the end.
pub async fn pages_give_everything_once<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    for n in 0..40 {
        let (even, odd) = (subject(&format!("even/{n}")), subject(&format!("odd/{n}")));
        if n % 3 == 0 {
            log.done(&[(&even, Expect::Absent, &format!("e{n}")), (&odd, Expect::Absent, &format!("o{n}"))]).await;
        } else {
            let subject = if n % 2 == 0 { even } else { odd };
            log.done(&[(&subject, Expect::Absent, &n.to_string())]).await;
        }
    }
    for selected in [Prefix::all(), prefix("even"), prefix("odd")] {
        let expected = log.bodies(&selected).await;
        for limit in [1, 2, 3, 7, 1000] {
            let (mut seen, mut after) = (Vec::new(), 0);
            loop {
                let page = log.read(&selected, after, limit).await;
                let count: usize = page.iter().map(|c| c.entries.len()).sum();
                seen.extend(bodies(&page));
                let Some(last) = page.last().filter(|_| count >= limit) else { break };
                after = last.through;
            }
            assert_eq!(seen, expected, "pages of {limit} of {selected:?}");
        }
    }
}

/// `build/1` has nothing to do with `build/10`, `build/1-x` or `build/1.x`.
pub async fn a_prefix_matches_whole_tokens<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    for text in ["build/1", "build/10", "build/1/log", "build/1-x", "build/1.x", "build/10/log", "build", "builds/1"] {
        log.done(&[(&subject(text), Expect::Absent, text)]).await;
    }
    assert_eq!(log.bodies(&prefix("build/1")).await, ["build/1", "build/1/log"]);
    assert_eq!(log.bodies(&prefix("builds")).await, ["builds/1"]);
    let builds = ["build/1", "build/10", "build/1/log", "build/1-x", "build/1.x", "build/10/log", "build"];
    assert_eq!(log.bodies(&prefix("build")).await, builds);
    assert_eq!(log.bodies(&prefix("buil")).await, [""; 0]);
    assert_eq!(log.bodies(&Prefix::all()).await.len(), 8);
}

/// [`Subject::itself`] reads one subject.
pub async fn a_subject_is_read_without_those_below<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (build, lines) = (subject("build/1"), subject("build/1/log"));
    log.done(&[(&build, Expect::Absent, "b1"), (&lines, Expect::Absent, "l1")]).await;
    log.done(&[(&lines, Expect::At(2), "l2")]).await;
    log.done(&[(&build, Expect::At(1), "b2")]).await;
    assert_eq!(log.bodies(&build.itself()).await, ["b1", "b2"]);
    assert_eq!(log.bodies(&build.prefix()).await, ["b1", "l1", "l2", "b2"]);
    assert_eq!(log.head(&build).await, Some(4));
}

/// Tokens are any text, and different subjects stay different.
pub async fn odd_tokens_are_kept_apart<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let odd: Vec<Subject> = [
        &["a", "b"][..],
        &["a/b"],
        &["a%2Fb"],
        &["A", "b"],
        &["a", ""],
        &["", "a"],
        &["a", "", "b"],
        &["a", "%"],
        &["a", "_"],
        &["a", "*"],
        &["a", ">"],
        &["a", "."],
        &["a", "b "],
        &["a", "\u{0}\n'\"; DROP TABLE x; --"],
        &["ünï", "日本語", "🦀"],
        &["ÜNÏ"],
    ]
    .iter()
    .map(|tokens| Subject::of(*tokens))
    .collect();
    for subject in &odd {
        log.done(&[(subject, Expect::Absent, subject.as_str())]).await;
    }
    for (n, subject) in odd.iter().enumerate() {
        assert_eq!(log.head(subject).await, Some(n as Seq + 1), "{subject}");
        assert_eq!(log.bodies(&subject.itself()).await, [subject.as_str()]);
        for selected in odd.iter().map(Subject::prefix) {
            let read = log.bodies(&selected).await.contains(&subject.as_str().to_owned());
            assert_eq!(read, selected.selects(subject), "{selected} and {subject}");
        }
    }
    let page = log.read(&Prefix::all(), 0, 100).await;
    assert!(page.iter().flat_map(|c| &c.entries).map(|entry| &entry.subject).eq(&odd));
}
