//! Certificates in files, which others replace while a process runs.

use std::fs;

use tempfile::TempDir;

use super::peers::{Authority, Peer, answers};
use super::*;
use crate::http::exchange::FailureKind::Tls;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }
}

async fn serve(authority: &Authority, clients: Option<&Authority>) -> Peer {
    Peer::secure(authority.acceptor(&["http/1.1"], clients), |_, stream| answers(stream)).await
}

#[tokio::test]
async fn a_rotated_file_of_roots_is_found_without_a_restart() {
    let (old, new, bytes, files) = (Authority::new(), Authority::new(), Authority::new(), Files::new());
    let (old_peer, new_peer, bytes_peer) =
        (serve(&old, None).await, serve(&new, None).await, serve(&bytes, None).await);
    files.put("roots", &old.pem);
    let pool = builder().root_certificates(bytes.pem.trim_end()).root_certificates_file(files.path("roots"));
    let pool = pool.build().unwrap();
    let ok = Ok((200, b"ok".to_vec()));
    assert_eq!(fetched(&pool, get(&old_peer.https("/"))).await, ok);
    assert_eq!(fetched(&pool, get(&bytes_peer.https("/"))).await, ok, "those given as bytes count, too");
    assert_eq!(kind(&pool, get(&new_peer.https("/"))).await, Tls);
    assert_eq!(fetched(&pool, get(&old_peer.https("/"))).await, ok);
    assert_eq!(old_peer.connections(), 1, "an unchanged file changes no connection");

    files.put("roots", &new.pem);
    assert_eq!(fetched(&pool, get(&new_peer.https("/"))).await, ok);
    assert_eq!(kind(&pool, get(&old_peer.https("/"))).await, Tls, "nor is the old connection used again");
    assert_eq!(fetched(&pool, fresh(&new_peer.https("/"))).await, ok);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_fails_typed_until_it_can_and_only_where_tls_is_needed() {
    let (authority, files) = (Authority::new(), Files::new());
    let (peer, plain) = (serve(&authority, None).await, Peer::serve(|_, stream| answers(stream)).await);
    let pool = builder().root_certificates_file(files.path("roots")).build().unwrap();
    for content in [None, Some("nonsense"), Some("-----BEGIN CERTIFICATE-----\nnonsense"), Some("")] {
        if let Some(content) = content {
            files.put("roots", content);
        }
        let failure = failed(&pool, get(&peer.https("/?token=hush"))).await;
        assert_eq!(failure.kind, Tls, "{content:?}: {failure}");
        assert!(failure.detail.contains("root_certificates"), "{content:?}: {failure}");
        assert!(!failure.detail.contains("hush"), "{failure}");
        assert!(fetched(&pool, get(&plain.http("/"))).await.is_ok());
    }
    assert_eq!(peer.connections(), 0);
    files.put("roots", &authority.pem);
    assert_eq!(fetched(&pool, get(&peer.https("/"))).await, Ok((200, b"ok".to_vec())));
}

#[tokio::test]
async fn files_are_not_read_more_often_than_stated() {
    let (authority, files) = (Authority::new(), Files::new());
    let peer = serve(&authority, None).await;
    files.put("roots", &authority.pem);
    let pool =
        builder().root_certificates_file(files.path("roots")).recheck(Duration::from_secs(3600)).build().unwrap();
    assert!(fetched(&pool, get(&peer.https("/"))).await.is_ok());
    fs::remove_file(files.path("roots")).unwrap();
    assert!(fetched(&pool, get(&peer.https("/"))).await.is_ok());
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn a_client_certificate_in_files_is_read_again() {
    let (authority, clients, files) = (Authority::new(), Authority::new(), Files::new());
    let peer = serve(&authority, Some(&clients)).await;
    let (stranger, known) = (Authority::new().issue("client.example"), clients.issue("client.example"));
    let pool = builder()
        .root_certificates(authority.pem.as_str())
        .client_certificate_files(files.path("chain"), files.path("key"))
        .build()
        .unwrap();
    let failure = failed(&pool, get(&peer.https("/"))).await;
    assert!(failure.kind == Tls && failure.detail.contains("client_certificate_files"), "{failure}");
    files.put("chain", &stranger.chain);
    files.put("key", &stranger.key);
    assert_eq!(kind(&pool, get(&peer.https("/"))).await, Tls);
    // Half of a rotation: the key is not the certificate's.
    files.put("chain", &known.chain);
    let failure = failed(&pool, get(&peer.https("/"))).await;
    assert!(failure.kind == Tls && failure.detail.contains("client_certificate key"), "{failure}");
    files.put("key", &known.key);
    assert_eq!(fetched(&pool, get(&peer.https("/"))).await, Ok((200, b"ok".to_vec())));
}
