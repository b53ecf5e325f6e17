//! HTTP/2: what a service says that it did not process, and connections that are silently gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use tokio::sync::Notify;

use super::peers::{Authority, DATA, END_HEADERS, Frames, GOAWAY, HEADERS, Peer, RST_STREAM, STATUS_200, drain};
use super::*;
use crate::http::exchange::FailureKind::{Closed, Incomplete, NotProcessed};

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;

/// What the peer says to each request.
#[derive(Clone, Copy, Debug)]
enum Says {
    Refuse(u32),
    /// With the last stream that it takes, as distance from the request's.
    Goaway {
        last: u32,
        reason: u32,
        closes: bool,
    },
    HalfThenReset,
    HalfThenClose,
}

/// Asks such a peer once; says what came of it, on how many connections and with how many requests.
async fn asked(says: Says) -> (Failure, usize, usize) {
    let authority = Authority::new();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let peer = Peer::secure(authority.acceptor(&["h2"], None), move |_, stream| {
        let counted = Arc::clone(&counted);
        async move {
            let Some(mut frames) = Frames::new(stream).await else { return };
            while let Some(stream) = frames.request().await {
                counted.fetch_add(1, Ordering::SeqCst);
                match says {
                    Says::Refuse(reason) => frames.send(RST_STREAM, 0, stream, &reason.to_be_bytes()).await,
                    Says::Goaway { last, reason, closes } => {
                        let payload = [last.to_be_bytes(), reason.to_be_bytes()].concat();
                        frames.send(GOAWAY, 0, 0, &payload).await;
                        if closes {
                            return;
                        }
                    }
                    Says::HalfThenReset | Says::HalfThenClose => {
                        frames.send(HEADERS, END_HEADERS, stream, STATUS_200).await;
                        frames.send(DATA, 0, stream, b"half").await;
                        if matches!(says, Says::HalfThenClose) {
                            return;
                        }
                        frames.send(RST_STREAM, 0, stream, &INTERNAL_ERROR.to_be_bytes()).await;
                    }
                }
            }
        }
    })
    .await;
    let pool = builder().root_certificates(authority.pem).build().unwrap();
    let failure = failed(&pool, get(&peer.https("/"))).await;
    (failure, peer.connections(), requests.load(Ordering::SeqCst))
}

/// RFC 9113, 8.7: a refused stream, and one past the last of a GOAWAY, was not processed. Nothing repeats it here.
#[tokio::test]
async fn refused_streams_and_streams_past_a_goaway_are_not_processed_and_not_repeated() {
    for says in [
        Says::Refuse(REFUSED_STREAM),
        Says::Goaway { last: 0, reason: NO_ERROR, closes: false },
        Says::Goaway { last: 0, reason: NO_ERROR, closes: true },
    ] {
        let (failure, connections, requests) = asked(says).await;
        assert_eq!(failure.kind, NotProcessed, "{says:?}: {failure}");
        assert!(failure.is_unsent());
        assert_eq!((connections, requests), (1, 1), "{says:?}");
    }
}

#[tokio::test]
async fn other_ends_of_a_stream_may_have_been_processed() {
    for says in [
        Says::Refuse(INTERNAL_ERROR),
        Says::Refuse(ENHANCE_YOUR_CALM),
        Says::Goaway { last: 1, reason: NO_ERROR, closes: true },
        Says::Goaway { last: 1, reason: ENHANCE_YOUR_CALM, closes: true },
    ] {
        let (failure, _, requests) = asked(says).await;
        assert_eq!(failure.kind, Closed, "{says:?}: {failure}");
        assert!(!failure.is_unsent());
        assert_eq!(requests, 1, "{says:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_reset_or_cut_is_incomplete() {
    for says in [Says::HalfThenReset, Says::HalfThenClose] {
        let (failure, ..) = asked(says).await;
        assert_eq!(failure.kind, Incomplete, "{says:?}: {failure}");
    }
}

/// FC-91: an HTTP/2 connection with ten streams goes silent. Pings find it, its streams fail typed, it leaves the pool,
/// and the next request has a new connection.
#[tokio::test]
async fn fc_91_a_silent_connection_is_found_by_pings() {
    let authority = Authority::new();
    let silent = Arc::new(Notify::new());
    let told = Arc::clone(&silent);
    let peer = Peer::secure(authority.acceptor(&["h2"], None), move |n, stream| {
        let told = Arc::clone(&told);
        async move {
            let Some(mut frames) = Frames::new(stream).await else { return };
            let mut asked = 0;
            while let Some(stream) = frames.request().await {
                asked += 1;
                if n > 0 || asked == 1 {
                    frames.ok(stream).await;
                } else if asked == 11 {
                    told.notify_one();
                    // Neither reads nor answers nor closes.
                    std::future::pending::<()>().await;
                }
            }
        }
    })
    .await;
    let pings = (Duration::from_secs(1), Duration::from_secs(1));
    let pool = builder().root_certificates(authority.pem).pings(pings.0, pings.1).build().unwrap();
    let url = peer.https("/");
    assert_eq!(fetched(&pool, get(&url)).await, Ok((200, vec![])));
    let streams = join_all((0..10).map(|_| failed(&pool, get(&url))));
    let (failures, ()) = tokio::join!(streams, bounded(silent.notified()));
    assert_eq!(failures.len(), 10);
    for failure in failures {
        assert_eq!(failure.kind, Closed, "{failure}");
    }
    assert_eq!(peer.connections(), 1, "all of them were on one connection");
    assert_eq!(fetched(&pool, get(&url)).await, Ok((200, vec![])));
    assert_eq!(peer.connections(), 2);
}

/// FC-91, with nothing sent on it: the connection is given up while idle.
#[tokio::test]
async fn fc_91_an_idle_connection_that_is_silent_is_given_up() {
    let authority = Authority::new();
    let given_up = Arc::new(Notify::new());
    let told = Arc::clone(&given_up);
    let peer = Peer::secure(authority.acceptor(&["h2"], None), move |_, stream| {
        let told = Arc::clone(&told);
        async move {
            let Some(mut frames) = Frames::new(stream).await else { return };
            let Some(stream) = frames.request().await else { return };
            frames.ok(stream).await;
            drain(frames.into_inner()).await; // answers no ping
            told.notify_one();
        }
    })
    .await;
    let pings = (Duration::from_millis(500), Duration::from_millis(500));
    let pool = builder().root_certificates(authority.pem).pings(pings.0, pings.1).build().unwrap();
    fetched(&pool, get(&peer.https("/"))).await.unwrap();
    bounded(given_up.notified()).await;
    fetched(&pool, get(&peer.https("/"))).await.unwrap();
    assert_eq!(peer.connections(), 2);
}
