//! Laws of appending.

use futures::future::join_all;

use super::{Tested, subject};
use crate::log::{Append, AppendId, Appended, Certain, Expect, InvalidAppend, Log, LogExt, Prefix, Subject};
use crate::machine::Wall;

/// One expectation that does not hold keeps every entry out.
pub async fn an_append_is_all_or_nothing<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (a, b, c) = (subject("a"), subject("b"), subject("c"));
    log.done(&[(&a, Expect::Absent, "1")]).await;
    log.conflict(&[(&b, Expect::Absent, "2"), (&a, Expect::Absent, "3"), (&c, Expect::Any, "4")]).await;
    assert_eq!((log.head(&b).await, log.head(&c).await), (None, None));
    assert_eq!(log.bodies(&Prefix::all()).await, ["1"]);
    log.done(&[(&b, Expect::Absent, "2"), (&a, Expect::At(1), "3"), (&c, Expect::Any, "4")]).await;
    assert_eq!(log.bodies(&Prefix::all()).await, ["1", "2", "3", "4"]);
}

/// Sequences begin at 1 and have no gap, also over a conflict; an append's last one is its timestamp.
pub async fn sequences_are_consecutive_and_the_last_is_the_timestamp<L: Log, Fut: Future<Output = L>>(
    open: impl Fn() -> Fut,
) {
    let log = Tested::open(&open).await;
    assert_eq!(log.head_of_log().await, 0);
    let (a, b) = (subject("a"), subject("b"));
    let first = log.done(&[(&a, Expect::Absent, "1")]).await;
    log.conflict(&[(&a, Expect::Absent, "no")]).await;
    let second = log.done(&[(&a, Expect::Any, "2"), (&b, Expect::Absent, "3"), (&a, Expect::Any, "4")]).await;
    let third = log.done(&[(&b, Expect::At(3), "5")]).await;
    assert_eq!((first.seq, second.seq, third.seq), (1, 4, 5));
    assert!(first < second && second < third, "timestamps of one log are ordered");
    assert_eq!(log.head_of_log().await, 5);
    let seqs = |page: &[crate::log::Committed]| page.iter().flat_map(|c| &c.entries).map(|e| e.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&log.read(&Prefix::all(), 0, 100).await), [1, 2, 3, 4, 5]);
    assert_eq!((log.head(&a).await, log.head(&b).await), (Some(4), Some(5)));
}

/// `Absent`, `At` and `Any` mean what they say.
pub async fn expectations_are_kept<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (a, b) = (subject("a"), subject("b"));
    log.conflict(&[(&a, Expect::At(0), "no")]).await;
    log.conflict(&[(&a, Expect::At(1), "no")]).await;
    log.done(&[(&a, Expect::Any, "1")]).await;
    log.done(&[(&b, Expect::Any, "2")]).await;
    log.done(&[(&a, Expect::At(1), "3")]).await;
    log.conflict(&[(&a, Expect::Absent, "no")]).await;
    log.conflict(&[(&a, Expect::At(1), "no")]).await;
    log.conflict(&[(&a, Expect::At(2), "no")]).await;
    log.conflict(&[(&a, Expect::At(4), "no")]).await;
    log.conflict(&[(&a, Expect::At(u64::MAX), "no")]).await;
    log.done(&[(&a, Expect::Any, "4"), (&b, Expect::At(2), "5")]).await;
    assert_eq!(log.bodies(&Prefix::all()).await, ["1", "2", "3", "4", "5"]);
}

/// A conflict tells the present head of every subject of the append, each once, not only of the one in the way.
pub async fn a_conflict_names_the_heads<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (a, b, c) = (subject("a"), subject("b"), subject("c"));
    log.done(&[(&a, Expect::Absent, "1"), (&b, Expect::Absent, "2"), (&b, Expect::Any, "3")]).await;
    let mut heads = log
        .conflict(&[
            (&c, Expect::Absent, "no"),
            (&b, Expect::At(2), "no"),
            (&a, Expect::Any, "no"),
            (&c, Expect::Any, "no"),
        ])
        .await;
    heads.sort();
    assert_eq!(heads, [(a, Some(1)), (b, Some(3)), (c, None)]);
}

/// Several entries for one subject in one append are in the order of the writes.
pub async fn a_later_write_to_a_subject_follows_its_first<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (a, b) = (subject("a"), subject("b"));
    let writes = [(&a, Expect::Absent, "1"), (&b, Expect::Absent, "2"), (&a, Expect::Any, "3"), (&a, Expect::Any, "4")];
    log.done(&writes).await;
    assert_eq!(log.head(&a).await, Some(4));
    assert_eq!(log.bodies(&a.itself()).await, ["1", "3", "4"]);
}

/// What clears up `Unknown`: an identical second copy is refused, and the first is found, also under newer entries.
pub async fn a_repeated_append_is_found_and_not_written_again<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (key, build) = (subject("key"), subject("build"));
    let append = log.make(&[(&key, Expect::Absent, "k"), (&build, Expect::Absent, "b")]);
    let Certain::Done(first) = log.append(&append).await else { panic!("the first copy must be done") };
    let mut newest = 2;
    for n in 0..600 {
        newest = log.done(&[(&key, Expect::At(if n == 0 { 1 } else { newest }), "later")]).await.seq;
    }
    loop {
        match log.log.append(append.clone()).await {
            Appended::Conflict(_) => break,
            Appended::Busy | Appended::Unknown => {}
            other @ (Appended::Done(_) | Appended::Invalid(_)) => panic!("a second copy must conflict: {other:?}"),
        }
    }
    assert_eq!(log.append(&append).await, Certain::Done(first), "the first copy is found");
    assert_eq!(super::retry(async || log.log.find(&build, 0, append.id).await).await, Some(first));
    let never = AppendId::new(log.env.ulid());
    assert_eq!(super::retry(async || log.log.find(&build, 0, never).await).await, None);
    assert_eq!(log.head(&build).await, Some(2));
}

/// Of appends that expect the same, exactly one is written, whichever handle they come through.
pub async fn one_of_concurrent_appenders_wins<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let logs = [Tested::open(&open).await, Tested::open(&open).await];
    let contested = subject("contested");
    let mut expect = Expect::Absent;
    for round in 0..8 {
        let contenders = (0..16).map(|n| {
            let (log, own) = (&logs[n % 2], subject(&format!("own/{round}/{n}")));
            let append = log.make(&[(&contested, expect, &n.to_string()), (&own, Expect::Absent, "mine")]);
            async move { (log.append(&append).await, log.head(&own).await) }
        });
        let mut won = Vec::new();
        for (certain, own) in join_all(contenders).await {
            match certain {
                Certain::Done(timestamp) => won.push((timestamp, own)),
                Certain::Conflict(_) => assert_eq!(own, None, "the loser wrote nothing"),
            }
        }
        let [(timestamp, own)] = won[..] else { panic!("expected one winner, got {won:?}") };
        assert_eq!(own, Some(timestamp.seq));
        assert_eq!(logs[1].head(&contested).await, Some(timestamp.seq - 1));
        expect = Expect::At(timestamp.seq - 1);
    }
}

/// Appends that have nothing to do with one another are all written, each in one piece.
pub async fn concurrent_appends_take_turns<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let logs = [Tested::open(&open).await, Tested::open(&open).await];
    let appends = (0..100).map(|n| {
        let (log, subject) = (&logs[n % 2], subject(&format!("s/{n}")));
        async move { log.done(&[(&subject, Expect::Absent, "1"), (&subject, Expect::Any, "2")]).await.seq }
    });
    let mut timestamps = join_all(appends).await;
    timestamps.sort_unstable();
    assert_eq!(timestamps, (1..=100).map(|n| 2 * n).collect::<Vec<_>>());
    for committed in logs[0].read(&Prefix::all(), 0, 1000).await {
        assert_eq!(committed.entries.len(), 2);
        assert!(committed.entries.iter().all(|entry| entry.subject == committed.entries[0].subject));
    }
}

/// What no log can take is refused with the reason, and leaves nothing.
pub async fn an_invalid_append_is_refused<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let a = subject("a");
    let none = log.make(&[]);
    let many = (0..=Append::MAX_WRITES).fold(none.clone(), |append, _| append.write(a.clone(), Expect::Any, "x"));
    let long = Subject::of([&"x".repeat(Subject::MAX + 1)]);
    let long = none.clone().write(a.clone(), Expect::Absent, "x").write(long, Expect::Absent, "x");
    let large = none.clone().write(a.clone(), Expect::Absent, vec![0; Append::MAX_BYTES + 1]);
    let twice = log.make(&[(&a, Expect::Absent, "1"), (&a, Expect::At(1), "2")]);
    let refused = async |append: &Append| match log.log.append(append.clone()).await {
        Appended::Invalid(invalid) => Some(invalid),
        // A log that fails now and then may fail first.
        Appended::Busy | Appended::Unknown => append.validate().err(),
        Appended::Done(_) | Appended::Conflict(_) => None,
    };
    assert_eq!(refused(&none).await, Some(InvalidAppend::Writes { count: 0 }));
    assert_eq!(refused(&many).await, Some(InvalidAppend::Writes { count: Append::MAX_WRITES + 1 }));
    assert_eq!(refused(&long).await, Some(InvalidAppend::Subject { bytes: Subject::MAX + 1 }));
    assert_eq!(refused(&large).await, Some(InvalidAppend::TooLarge { bytes: Append::MAX_BYTES + 1 }));
    assert_eq!(refused(&twice).await, Some(InvalidAppend::Expectation { subject: a }));
    assert_eq!(log.head_of_log().await, 0);
}

/// Empty bodies, every byte, and the largest append that is allowed.
pub async fn bodies_are_any_bytes<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let a = subject("a");
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let half = vec![0xA5; (Append::MAX_BYTES - every.len()) / 2];
    let append = Append::new(AppendId::new(log.env.ulid()), Wall::from_millis(1));
    let append = [vec![], every, half.clone(), half].into_iter().fold(append, |append, body| {
        let expect = if append.writes.is_empty() { Expect::Absent } else { Expect::Any };
        append.write(a.clone(), expect, body)
    });
    assert!(matches!(log.append(&append).await, Certain::Done(_)));
    let page = log.read(&a.itself(), 0, 1).await;
    let read: Vec<_> = page.iter().flat_map(|c| &c.entries).map(|entry| &entry.body).collect();
    let written: Vec<_> = append.writes.iter().map(|write| &write.body).collect();
    assert!(read == written, "the bodies came back changed");
}

/// An entry has its append's id and time, the time in whole milliseconds.
pub async fn an_entry_keeps_what_was_appended<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let a = subject("a/b");
    let at = Wall::new(std::time::Duration::from_nanos(1_764_500_000_123_456_789));
    let append = Append::new(AppendId::new(log.env.ulid()), at).write(a.clone(), Expect::Absent, "body");
    let Certain::Done(timestamp) = log.append(&append).await else { panic!("expected Done") };
    let page = log.read(&Prefix::all(), 0, 1).await;
    let [entry] = &page[0].entries[..] else { panic!("expected one entry, got {page:?}") };
    assert_eq!((entry.seq, &entry.subject, entry.append), (timestamp.seq, &a, append.id));
    assert_eq!((entry.at, &entry.body[..]), (Wall::from_millis(1_764_500_000_123), &b"body"[..]));
}
