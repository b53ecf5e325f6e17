//! TLS: whom a pool trusts, and who it says that it is.

use tokio::io::AsyncReadExt as _;

use super::peers::{Authority, Frames, Peer, answers, say};
use super::*;
use crate::http::exchange::FailureKind::Tls;

#[tokio::test]
async fn a_root_of_ones_own_is_trusted_and_another_is_not() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let peer = Peer::secure(ours.acceptor(&["http/1.1"], None), |_, stream| answers(stream)).await;
    let trusting = builder().root_certificates(ours.pem).build().unwrap();
    assert_eq!(fetched(&trusting, get(&peer.https("/"))).await, Ok((200, b"ok".to_vec())));
    for pool in [pool(), builder().root_certificates(theirs.pem).build().unwrap()] {
        let failure = failed(&pool, get(&peer.https("/"))).await;
        assert_eq!(failure.kind, Tls, "{failure}");
        assert!(failure.detail.contains("certificate"), "{failure}");
        assert!(failure.is_unsent());
    }
    // The certificate is for another name than the one asked.
    let by_address = format!("https://{}/", peer.address);
    assert_eq!(kind(&trusting, get(&by_address)).await, Tls);
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_or_ends_the_handshake_is_tls() {
    for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
        let peer = Peer::serve(move |_, mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await;
            say(&mut stream, answer).await;
        })
        .await;
        let failure = failed(&pool(), get(&peer.https("/"))).await;
        assert_eq!(failure.kind, Tls, "{answer:?}: {failure}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_one_is_required() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let issued = clients.issue("client.example");
    let http1 = Peer::secure(authority.acceptor(&["http/1.1"], Some(&clients)), |_, stream| answers(stream)).await;
    let http2 = Peer::secure(authority.acceptor(&["h2"], Some(&clients)), |_, stream| async move {
        let Some(mut frames) = Frames::new(stream).await else { return };
        while let Some(stream) = frames.request().await {
            frames.ok(stream).await;
        }
    })
    .await;
    let without = builder().root_certificates(authority.pem.as_str());
    let with = without.clone().client_certificate(issued.chain, issued.key).build().unwrap();
    let without = without.build().unwrap();
    for peer in [http1, http2] {
        let failure = failed(&without, get(&peer.https("/"))).await;
        assert_eq!(failure.kind, Tls, "{failure}");
        assert!(failure.detail.contains("CertificateRequired"), "{failure}");
        assert_eq!(fetched(&with, get(&peer.https("/"))).await.map(|(status, _)| status), Ok(200));
    }
}

#[test]
fn what_is_no_certificate_or_key_is_refused_with_the_name_of_the_field() {
    let authority = Authority::new();
    let (one, other) = (authority.issue("one.example"), authority.issue("other.example"));
    for (builder, field) in [
        (builder().root_certificates("nonsense"), "root_certificates"),
        (builder().root_certificates("nonsense").root_certificates_file("/none"), "root_certificates"),
        (builder().client_certificate("", one.key.as_str()), "client_certificate"),
        (builder().client_certificate(one.chain.as_str(), "hush"), "client_certificate key"),
        (builder().client_certificate(one.chain.as_str(), other.key.as_str()), "client_certificate key"),
        (builder().proxy("http://hush:hush@ /"), "proxy"),
    ] {
        let shown = format!("{builder:?}");
        let error = builder.build().expect_err(field);
        assert!(error.is_invalid(), "{error:?}");
        assert!(error.to_string().starts_with(&format!("{field}: expected ")), "{error}");
        for shown in [shown, format!("{error:?}")] {
            assert!(!shown.contains("hush") && !shown.contains("PRIVATE"), "{shown}");
        }
    }
}
