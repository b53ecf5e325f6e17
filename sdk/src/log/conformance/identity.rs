//! Laws of a history's id.

use super::{Tested, subject};
use crate::log::{Expect, Log};

/// Every handle and every timestamp has the same id, however often the history is opened.
pub async fn the_id_names_one_history<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let log = Tested::open(&open).await;
    let id = log.log.id();
    let timestamp = log.done(&[(&subject("a"), Expect::Absent, "1")]).await;
    assert_eq!((timestamp.log, timestamp.seq), (id, 1));
    let again = Tested::open(&open).await;
    assert_eq!(again.log.id(), id);
    assert_eq!(again.done(&[(&subject("a"), Expect::At(1), "2")]).await.log, id);
    assert_eq!(log.log.id(), id);
}

/// `renew_id` changes the id and nothing else; a handle that was open before has it with its next append.
pub async fn a_renewed_id_keeps_the_history<L: Log, Fut: Future<Output = L>>(open: impl Fn() -> Fut) {
    let (log, other) = (Tested::open(&open).await, Tested::open(&open).await);
    let a = subject("a");
    let before = log.done(&[(&a, Expect::Absent, "1")]).await;
    let renewed = super::retry(async || log.log.renew_id().await).await;
    assert_ne!(renewed, before.log);
    assert_eq!(log.log.id(), renewed);
    let after = log.done(&[(&a, Expect::At(1), "2")]).await;
    assert_eq!((after.log, after.seq), (renewed, 2));
    assert_eq!(before.partial_cmp(&after), None, "timestamps of two histories are not compared");
    assert_eq!(other.done(&[(&a, Expect::At(2), "3")]).await.log, renewed);
    assert_eq!(other.log.id(), renewed);
    assert_eq!(log.bodies(&a.itself()).await, ["1", "2", "3"]);
    assert_eq!(Tested::open(&open).await.log.id(), renewed);
}
