//! Laws of expiry.

use std::time::Duration;

use super::{Tested, prefix, subject};
use crate::log::{Append, AppendId, Certain, Expect, Log, Prefix, Seq, Subject};
use crate::machine::Wall;

const SECOND: Duration = Duration::from_secs(1);

fn second(n: u32) -> Wall {
    Wall::default() + SECOND * n
}

impl<L: Log> Tested<L> {
    async fn at(&self, n: u32, subjects: &[&Subject]) -> Seq {
        let append = Append::new(AppendId::new(self.env.ulid()), second(n));
        let append =
            subjects.iter().fold(append, |append, s| append.write((*s).clone(), Expect::Any, s.as_str().to_owned()));
        match self.append(&append).await {
            Certain::Done(timestamp) => timestamp.seq,
            Certain::Conflict(heads) => panic!("expected Done, got Conflict({heads:?})"),
        }
    }
}

/// A subject with one entry that is young enough keeps all of them; "older" is strict.
pub async fn expiry_removes_whole_subjects_only<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (old, mixed, young) = (subject("s/old"), subject("s/mixed"), subject("s/young"));
    log.at(1, &[&old, &mixed]).await;
    log.at(3, &[&young]).await;
    log.at(2, &[&old]).await;
    log.at(3, &[&mixed]).await;
    assert_eq!(log.expire(&Prefix::all(), second(2)).await, 0, "its newest entry is of that very time");
    assert_eq!(log.expire(&Prefix::all(), second(3)).await, 1);
    assert_eq!(log.bodies(&Prefix::all()).await, ["s/mixed", "s/young", "s/mixed"]);
    assert_eq!((log.head(&old).await, log.head(&mixed).await), (None, Some(5)));
    assert_eq!(log.expire(&Prefix::all(), second(4)).await, 2);
    assert_eq!(log.bodies(&Prefix::all()).await, [""; 0]);
}

/// Only subjects under the prefix go, however many there are.
pub async fn expiry_stays_under_its_prefix<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    for text in ["key/1", "key", "keys/1", "build/1", "key-x"] {
        log.at(1, &[&subject(text)]).await;
    }
    for chunk in 0..13 {
        let many: Vec<_> = (0..100).map(|n| subject(&format!("key/{chunk}/{n}"))).collect();
        log.at(1, &many.iter().collect::<Vec<_>>()).await;
    }
    assert_eq!(log.expire(&subject("key").itself(), second(2)).await, 1);
    assert_eq!(log.expire(&prefix("key"), second(2)).await, 1301);
    assert_eq!(log.bodies(&Prefix::all()).await, ["keys/1", "build/1", "key-x"]);
}

/// Expiry is the one way back to absent.
pub async fn an_expired_subject_is_absent<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let a = subject("a");
    let seq = log.at(1, &[&a]).await;
    log.conflict(&[(&a, Expect::Absent, "no")]).await;
    log.expire(&a.itself(), second(2)).await;
    assert_eq!(log.conflict(&[(&a, Expect::At(seq), "no")]).await, [(a.clone(), None)]);
    assert_eq!(log.done(&[(&a, Expect::Absent, "again")]).await.seq, 2);
}

/// Not after the newest entries have expired, and not through a handle that was opened after that.
pub async fn sequences_are_never_reused<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (a, b) = (subject("a"), subject("b"));
    assert_eq!(log.at(1, &[&a, &b]).await, 2);
    assert_eq!(log.expire(&Prefix::all(), second(9)).await, 2);
    assert_eq!(log.head_of_log().await, 2);
    assert_eq!(log.at(1, &[&a]).await, 3);
    assert_eq!(log.expire(&Prefix::all(), second(9)).await, 1);
    let opened_again = Tested::open(&open).await;
    assert_eq!(opened_again.head_of_log().await, 3);
    assert_eq!(opened_again.at(1, &[&b]).await, 4);
}

/// What is left of an append keeps its sequences and its timestamp.
pub async fn readers_see_the_rest_of_an_append_after_expiry<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let (key, build) = (subject("key/1"), subject("build/1"));
    log.at(1, &[&key, &build, &key]).await;
    assert_eq!(log.expire(&prefix("key"), second(2)).await, 1);
    let page = log.read(&Prefix::all(), 0, 100).await;
    let [committed] = &page[..] else { panic!("expected one append, got {page:?}") };
    let [entry] = &committed.entries[..] else { panic!("expected one entry, got {page:?}") };
    assert_eq!((committed.through, entry.seq, &entry.subject), (3, 2, &build));
}
