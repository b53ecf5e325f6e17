//! HTTP/1.1: what comes of a connection that ends, and what is left alone.

use std::sync::Arc;
use std::sync::Mutex;

use bytes::Bytes;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::peers::{OK, Peer, answers, drain, head, say};
use super::*;
use crate::http::exchange::FailureKind::{Closed, Connect, Incomplete, Malformed, Resolve};

#[tokio::test]
async fn gives_200_and_304_redirects_and_coded_bodies_as_they_came() {
    let server = MockServer::start().await;
    let same = Mock::given(path("/run")).and(header("if-none-match", "\"a\""));
    same.respond_with(ResponseTemplate::new(304)).with_priority(1).mount(&server).await;
    let run = ResponseTemplate::new(200).set_body_string("{}").insert_header("etag", "\"a\"");
    Mock::given(path("/run")).respond_with(run).mount(&server).await;
    let moved = ResponseTemplate::new(302).insert_header("location", "/run");
    Mock::given(path("/moved")).respond_with(moved).expect(1).mount(&server).await;
    let coded = ResponseTemplate::new(200).insert_header("content-encoding", "gzip").set_body_bytes(vec![1, 2, 3]);
    Mock::given(path("/coded")).respond_with(coded).mount(&server).await;
    let made = Mock::given(method("POST")).and(path("/made")).and(header("content-length", "0"));
    made.respond_with(ResponseTemplate::new(201)).mount(&server).await;

    let pool = pool();
    let url = |path: &str| format!("{}{path}", server.uri());
    assert_eq!(fetched(&pool, get(&url("/run"))).await, Ok((200, b"{}".to_vec())));
    let mut again = get(&url("/run"));
    again.headers.insert("if-none-match", HeaderValue::from_static("\"a\""));
    assert_eq!(fetched(&pool, again).await, Ok((304, vec![])));
    assert_eq!(fetched(&pool, get(&url("/moved"))).await, Ok((302, vec![])));
    assert_eq!(fetched(&pool, get(&url("/coded"))).await, Ok((200, vec![1, 2, 3])));
    let mut post = get(&url("/made"));
    post.method = Method::POST;
    assert_eq!(fetched(&pool, post).await, Ok((201, vec![])), "an empty body is announced as such");
}

/// FC-90: the service closes an idle connection exactly when the next request is written. The request is reported as
/// perhaps processed, is sent once and no more, and a fresh connection works.
#[tokio::test]
async fn fc_90_a_pooled_connection_that_ends_under_a_request() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let peer = Peer::serve(move |n, mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            while let Some(head) = head(&mut stream).await {
                seen.lock().unwrap().push((n, head.split_whitespace().nth(1).unwrap().to_owned()));
                if head.starts_with("GET /second ") && n == 0 {
                    return; // closes
                }
                say(&mut stream, OK).await;
            }
        }
    })
    .await;
    let pool = pool();
    assert_eq!(fetched(&pool, get(&peer.http("/first"))).await, Ok((200, b"ok".to_vec())));
    let failure = failed(&pool, get(&peer.http("/second"))).await;
    assert_eq!(failure.kind, Closed, "{failure}");
    assert!(!failure.is_unsent());
    assert_eq!(fetched(&pool, fresh(&peer.http("/second"))).await, Ok((200, b"ok".to_vec())));
    let expected = [(0, "/first"), (0, "/second"), (1, "/second")].map(|(n, path)| (n, path.to_owned()));
    assert_eq!(*requests.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_fresh_connection_is_new_and_is_not_pooled_and_the_pooled_one_stays() {
    let peer = Peer::serve(|_, stream| answers(stream)).await;
    let pool = pool();
    let url = peer.http("/");
    for (request, connections) in
        [(get(&url), 1), (get(&url), 1), (fresh(&url), 2), (get(&url), 2), (fresh(&url), 3), (get(&url), 3)]
    {
        fetched(&pool, request).await.unwrap();
        assert_eq!(peer.connections(), connections);
    }
    // Another clone has the same connections.
    fetched(&pool.clone(), get(&url)).await.unwrap();
    assert_eq!(peer.connections(), 3);
}

#[tokio::test]
async fn a_body_that_ends_early_is_incomplete_and_one_that_is_no_body_malformed() {
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok", Incomplete),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", Incomplete),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", Incomplete),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok", Incomplete),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", Incomplete),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok\r\n", Malformed),
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", Malformed),
        ("HTTP/1.1 banana\r\n\r\n", Malformed),
        ("HTTP/1.1 200 OK\r\ncontent-le", Closed),
        ("", Closed),
    ] {
        let peer = Peer::serve(move |_, mut stream| async move {
            head(&mut stream).await;
            say(&mut stream, answer).await;
        })
        .await;
        let failure = failed(&pool(), get(&peer.http("/"))).await;
        assert_eq!(failure.kind, expected, "{answer:?}: {failure}");
        assert!(!failure.is_unsent());
    }
}

#[tokio::test]
async fn a_head_larger_than_a_client_takes_is_malformed() {
    let peer = Peer::serve(|_, mut stream| async move {
        head(&mut stream).await;
        say(&mut stream, &format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20))).await;
        drain(stream).await;
    })
    .await;
    assert_eq!(kind(&pool(), get(&peer.http("/"))).await, Malformed);
}

#[tokio::test]
async fn interim_answers_are_skipped() {
    let peer = Peer::serve(|_, mut stream| async move {
        head(&mut stream).await;
        say(&mut stream, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n").await;
        say(&mut stream, OK).await;
    })
    .await;
    assert_eq!(fetched(&pool(), get(&peer.http("/"))).await, Ok((200, b"ok".to_vec())));
}

#[tokio::test]
async fn a_refused_port_is_connect_and_a_name_without_address_is_resolve() {
    let refused = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let failure = failed(&pool(), get(&refused)).await;
    assert_eq!(failure.kind, Connect, "{failure}");
    assert!(failure.is_unsent());
    assert!(failure.detail.starts_with("127.0.0.1:"), "{failure}");
    // A label of 64 letters is refused by the system's resolver without asking anybody (RFC 1035, 2.3.4).
    let failure = failed(&pool(), get(&format!("http://{}.invalid/", "a".repeat(64)))).await;
    assert_eq!(failure.kind, Resolve, "{failure}");
    let failure = failed(&pool(), get("ftp://127.0.0.1/")).await;
    assert_eq!(failure.kind, FailureKind::Request, "{failure}");
}

#[tokio::test]
async fn no_failure_holds_a_secret_and_user_and_password_are_not_sent() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let peer = Peer::serve(move |n, mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let asked = head(&mut stream).await;
            seen.lock().unwrap().extend(asked);
            match n {
                0 => {}
                1 => say(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok").await,
                2 => say(&mut stream, "nonsense\r\n\r\n").await,
                _ => say(&mut stream, OK).await,
            }
        }
    })
    .await;
    let pool = pool();
    let secret = |place: &str| format!("http://hush-user:hush-word@{place}/a?token=hush#hush");
    let mut failures = Vec::new();
    for _ in 0..3 {
        failures.push(failed(&pool, get(&secret(&peer.address.to_string()))).await);
    }
    failures.push(failed(&pool, get(&secret(&format!("{}.invalid", "a".repeat(64))))).await);
    failures.push(failed(&pool, get("ftp://hush:hush@127.0.0.1/?hush")).await);
    for failure in failures {
        let told = format!("{failure} {failure:?} {:?}", failure.cause());
        assert!(!told.contains("hush"), "{told}");
    }
    fetched(&pool, get(&secret(&peer.address.to_string()))).await.unwrap();
    for head in &*heads.lock().unwrap() {
        assert!(head.starts_with("GET /a?token=hush HTTP/1.1\r\n"), "{head}");
        assert!(!head.contains("hush-") && !head.to_lowercase().contains("authorization"), "{head}");
    }
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let sent = Bytes::from((0..300_000_u32).flat_map(u32::to_be_bytes).collect::<Vec<_>>());
    let server = MockServer::start().await;
    let whole = Mock::given(method("POST")).and(wiremock::matchers::body_bytes(sent.to_vec()));
    whole.respond_with(ResponseTemplate::new(200)).mount(&server).await;
    let mut request = get(&server.uri());
    request.method = Method::POST;
    request.body = sent;
    assert_eq!(fetched(&pool(), request).await, Ok((200, vec![])));
}
