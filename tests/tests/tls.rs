//! `wss://` with the one TLS provider of the shipped tree, over real sockets.

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{Client, ClientBuilder};
use outlast::connection::LinkState;
use outlast_tests::{JobsClient, World};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, crypto::ring};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Serves the jobs service over TLS; its port, and the certificate in PEM.
async fn serve(world: &World) -> (u16, String, tokio::task::JoinHandle<()>) {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = world.router().await;
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(outlast::testing::serve_connection(stream, router.clone()));
            }
        }
    });
    (port, issued.cert.pem(), task)
}

fn client(port: u16) -> ClientBuilder {
    Client::builder(format!("wss://localhost:{port}/"))
}

/// A command and a read through TLS, with a root of one's own.
#[tokio::test]
async fn a_command_and_a_read_through_tls() {
    let world = World::new(20);
    let (port, pem, server) = serve(&world).await;
    let client =
        client(port).env(outlast::env::Env::new(world.clock.clone(), 3)).root_certificates(pem).open().unwrap();
    let jobs = JobsClient::new(&client);
    jobs.bump("a".into()).await.unwrap();
    assert_eq!(jobs.job("a".into()).until(|job| job.bumps == 1).await.unwrap().bumps, 1);
    server.abort();
}

/// R2: a certificate that nobody vouches for is no error of the read, and not invisible either.
#[tokio::test]
async fn r2_an_untrusted_certificate_is_a_cause() {
    let world = World::new(21);
    let (port, _, server) = serve(&world).await;
    let client = client(port).open().unwrap();
    let state = client
        .connection()
        .until(|state| matches!(state, LinkState::Connecting { cause: Some(_), .. }))
        .within(Duration::from_secs(30))
        .await
        .unwrap();
    assert!(state.to_string().contains("certificate"), "{}", *state);
    server.abort();
}
