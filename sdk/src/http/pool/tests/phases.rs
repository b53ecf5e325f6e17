//! Each phase is told when it begins, so that its bound can be kept by the caller (R7).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::FutureExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::peers::{Authority, OK, Peer, answers, drain, head, say};
use super::*;
use crate::error::Phase;
use crate::http::exchange::{Phases, Progress};

fn observed(url: &str) -> (Request, Phases) {
    let (progress, phases) = Progress::observed();
    let mut request = get(url);
    request.progress = progress;
    (request, phases)
}

/// Completes once `phase` is the one that began last, if it is not yet.
async fn comes_to(phases: &mut Phases, phase: Phase) {
    while phases.last() != phase {
        phases.next().await;
    }
}

/// Sends until `phase` is reached, and abandons the request then.
async fn reaches(pool: &Pool, request: Request, mut phases: Phases, expected: Phase) {
    bounded(async {
        tokio::select! {
            answer = pool.send(request) => panic!("nothing comes of it: {answer:?}"),
            () = comes_to(&mut phases, expected) => {}
        }
    })
    .await;
}

/// R7: resolve.
#[tokio::test]
async fn r7_a_name_that_does_not_resolve_hangs_in_resolve() {
    let mut settings = builder().settings;
    settings.lookup = Arc::new(|_| Box::pin(std::future::pending()));
    let pool = PoolBuilder { settings }.build().unwrap();
    let (request, phases) = observed("http://service.example/");
    reaches(&pool, request, phases, Phase::Resolve).await;
}

/// R7: connect.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn r7_a_full_backlog_hangs_in_connect() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener: TcpListener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Linux drops what comes when the queue is full: the queue holds one more than it was asked for.
    let _queued = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
    let (request, phases) = observed(&format!("http://{address}/"));
    reaches(&pool(), request, phases, Phase::Connect).await;
    // The backstop ends it when nobody else does.
    let pool = builder().connect_timeout(Duration::from_millis(50)).build().unwrap();
    assert_eq!(kind(&pool, get(&format!("http://{address}/"))).await, FailureKind::Connect);
}

/// R7: TLS.
#[tokio::test]
async fn r7_a_peer_that_answers_no_handshake_hangs_in_tls() {
    let peer = Peer::serve(|_, stream| drain(stream)).await;
    let (request, phases) = observed(&peer.https("/"));
    reaches(&pool(), request, phases, Phase::Tls).await;
    let pool = builder().connect_timeout(Duration::from_millis(500)).build().unwrap();
    assert_eq!(kind(&pool, get(&peer.https("/"))).await, FailureKind::Tls);
}

/// R7: write.
#[tokio::test]
async fn r7_a_peer_that_reads_no_body_hangs_in_write() {
    let peer = Peer::serve(|_, mut stream| async move {
        head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let (mut request, mut phases) = observed(&peer.http("/"));
    request.method = Method::POST;
    request.body = Bytes::from(vec![0; 64 << 20]); // more than sockets hold
    let pool = pool();
    let mut sending = pool.send(request);
    bounded(async {
        tokio::select! {
            answer = &mut sending => panic!("nothing comes of it: {answer:?}"),
            () = comes_to(&mut phases, Phase::Write) => {}
        }
        while phases.next().now_or_never().is_some() {}
    })
    .await;
    #[expect(clippy::disallowed_methods, reason = "that nothing happens shows only after some time")]
    let more = tokio::time::timeout(Duration::from_millis(200), async {
        tokio::select! {
            answer = sending => panic!("nothing comes of it: {answer:?}"),
            _ = phases.next() => {}
        }
    })
    .await;
    assert!(more.is_err(), "{:?}", phases.last());
}

/// R7: first byte, on a new connection and on a pooled one.
#[tokio::test]
async fn r7_a_peer_that_answers_nothing_hangs_in_first_byte() {
    let authority = Authority::new();
    let peer = Peer::secure(authority.acceptor(&["http/1.1"], None), |_, mut stream| async move {
        while let Some(head) = head(&mut stream).await {
            if head.contains("/hangs") {
                std::future::pending::<()>().await;
            }
            say(&mut stream, OK).await;
        }
    })
    .await;
    let pool = builder().root_certificates(authority.pem).build().unwrap();
    let (request, mut phases) = observed(&peer.https("/hangs"));
    let mut sending = pool.send(request);
    let mut seen = Vec::new();
    bounded(async {
        while seen.last() != Some(&Phase::FirstByte) {
            tokio::select! {
                biased;
                phase = phases.next() => seen.push(phase),
                answer = &mut sending => panic!("nothing comes of it: {answer:?}"),
            }
        }
    })
    .await;
    drop(sending);
    // The last before is the session; those before that may have been too short to be seen.
    assert!(seen.ends_with(&[Phase::Tls, Phase::FirstByte]), "{seen:?}");

    fetched(&pool, get(&peer.https("/"))).await.unwrap();
    let (request, mut phases) = observed(&peer.https("/"));
    fetched(&pool, request).await.unwrap();
    assert_eq!(phases.next().now_or_never(), None, "a pooled connection is there already");
    assert_eq!(phases.last(), Phase::FirstByte);
}

/// A request waits for a connection of its own and gets one that became free: it is in its first byte then, whatever
/// becomes of the other.
#[tokio::test]
async fn a_connection_that_is_not_needed_any_more_tells_nothing() {
    let released = Arc::new(tokio::sync::Notify::new());
    let release = Arc::clone(&released);
    let peer = Peer::serve(move |_, mut stream| {
        let release = Arc::clone(&release);
        async move {
            head(&mut stream).await;
            release.notified().await;
            say(&mut stream, OK).await;
            head(&mut stream).await;
            std::future::pending::<()>().await;
        }
    })
    .await;
    let (address, lookups) = (peer.address, Arc::new(AtomicUsize::new(0)));
    let (counted, resolved) = (Arc::clone(&lookups), Arc::new(tokio::sync::Notify::new()));
    let resolve = Arc::clone(&resolved);
    let mut settings = builder().settings;
    settings.lookup = Arc::new(move |name| {
        let (first, resolve) = (counted.fetch_add(1, Ordering::SeqCst) == 0, Arc::clone(&resolve));
        Box::pin(async move {
            if !first {
                resolve.notified().await;
            }
            assert_eq!(&*name, "service.example");
            Ok(vec![SocketAddr::new(address.ip(), 0)])
        })
    });
    let pool = PoolBuilder { settings }.build().unwrap();
    let url = format!("http://service.example:{}/", address.port());
    let (request, mut first) = observed(&url);
    let (waiting, mut second) = observed(&url);
    let mut tasks = tokio::task::JoinSet::new();
    let sending = pool.send(request);
    tasks.spawn(async move { drop(sending.await.unwrap().chunk().await) });
    bounded(comes_to(&mut first, Phase::Connect)).await;
    bounded(comes_to(&mut first, Phase::FirstByte)).await;
    let sending = pool.send(waiting);
    tasks.spawn(async move { drop(sending.await) });
    bounded(comes_to(&mut second, Phase::Resolve)).await;
    released.notify_one();
    bounded(comes_to(&mut second, Phase::FirstByte)).await;
    resolved.notify_one();
    while peer.connections() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(second.last(), Phase::FirstByte);
}

/// Many who want a name at the same time ask for it once (R8: waiters share).
#[tokio::test]
async fn one_look_up_serves_all_who_wait_for_it() {
    let peer = Peer::serve(|_, stream| answers(stream)).await;
    let (address, lookups) = (peer.address, Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&lookups);
    let answered = Arc::new(tokio::sync::Notify::new());
    let answer = Arc::clone(&answered);
    let mut settings = builder().settings;
    settings.lookup = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let answer = Arc::clone(&answer);
        Box::pin(async move {
            answer.notified().await;
            Ok(vec![SocketAddr::new(address.ip(), 0)])
        })
    });
    let pool = PoolBuilder { settings }.build().unwrap();
    let url = format!("http://service.example:{}/", address.port());
    let requests = futures::future::join_all((0..5).map(|_| fetched(&pool, get(&url))));
    let answer = async {
        while lookups.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        answered.notify_one();
    };
    let (answers, ()) = tokio::join!(requests, answer);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
}

/// One of two addresses is dead: the attempt after the one that it cost begins with the other.
#[tokio::test]
async fn the_next_attempt_begins_with_another_address() {
    let peer = Peer::serve(|_, stream| answers(stream)).await;
    let dead = {
        let listener = TcpListener::bind("127.0.0.2:0").await;
        listener.map_or_else(|_| "127.0.0.2:9".parse().unwrap(), |l| l.local_addr().unwrap())
    };
    let alive = peer.address;
    let mut settings = builder().settings;
    settings.lookup = Arc::new(move |_| Box::pin(async move { Ok(vec![dead, alive]) }));
    let names = names::Names::new(settings.lookup);
    let first = |names: &names::Names| {
        let found = reqwest::dns::Resolve::resolve(names, "service.example".parse().unwrap());
        async move { found.await.unwrap().next() }
    };
    assert_eq!(first(&names).await, Some(dead));
    assert_eq!(first(&names).await, Some(dead), "nothing has failed");
    names.failed.fetch_add(1, Ordering::Relaxed);
    assert_eq!(first(&names).await, Some(alive));
}
