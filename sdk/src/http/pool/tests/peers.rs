//! Peers that do exactly what a test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A listener; each connection is handed to the test with its number.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Peer {
    pub(super) async fn serve<F, Fut>(handle: F) -> Self
    where
        F: Fn(usize, TcpStream) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut handlers = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                handlers.spawn(handle(counted.fetch_add(1, Ordering::SeqCst), stream));
            }
        });
        Self { address, connections, _tasks: tasks }
    }

    /// The same behind TLS; a handshake that fails is the end of its connection.
    pub(super) async fn secure<F, Fut>(acceptor: TlsAcceptor, handle: F) -> Self
    where
        F: Fn(usize, tokio_rustls::server::TlsStream<TcpStream>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self::serve(move |n, stream| {
            let (acceptor, handle) = (acceptor.clone(), handle.clone());
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    handle(n, stream).await;
                }
            }
        })
        .await
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(super) fn http(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// By the name that the certificates here are for.
    pub(super) fn https(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }
}

/// The next request's head; `None` at the end of the connection.
pub(super) async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

pub(super) async fn say(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    // The client may have gone.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.flush().await;
}

pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Answers each request.
pub(super) async fn answers(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    while head(&mut stream).await.is_some() {
        say(&mut stream, OK).await;
    }
}

/// Reads to the end, so that nothing is reset.
pub(super) async fn drain(mut stream: impl AsyncRead + Unpin) {
    let mut sink = [0; 4096];
    while stream.read(&mut sink).await.is_ok_and(|n| n > 0) {}
}

/// A certificate authority.
pub(super) struct Authority {
    pub(super) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key in PEM.
pub(super) struct Issued {
    pub(super) chain: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub(super) fn issue(&self, name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        Issued { chain: certificate.pem(), key: key.serialize_pem() }
    }

    /// Accepts TLS as `localhost`, speaks `protocols`, and wants a certificate of `clients` if that is given.
    pub(super) fn acceptor(&self, protocols: &[&str], clients: Option<&Self>) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                use rustls::pki_types::pem::PemObject as _;
                let mut roots = RootCertStore::empty();
                roots.add(rustls::pki_types::CertificateDer::from_pem_slice(clients.pem.as_bytes()).unwrap()).unwrap();
                builder.with_client_cert_verifier(
                    WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build().unwrap(),
                )
            }
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// An HTTP/2 server's end of a connection, frame by frame (RFC 9113, 4.1).
pub(super) struct Frames<S>(S);

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// `:status: 200` (RFC 7541, appendix A).
pub(super) const STATUS_200: &[u8] = &[0x88];

impl<S: AsyncRead + AsyncWrite + Unpin> Frames<S> {
    pub(super) async fn new(mut stream: S) -> Option<Self> {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.ok()?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut this = Self(stream);
        this.send(SETTINGS, 0, 0, &[]).await;
        Some(this)
    }

    /// The stream of the next request; settings and pings are answered on the way.
    pub(super) async fn request(&mut self) -> Option<u32> {
        loop {
            let mut header = [0; 9];
            self.0.read_exact(&mut header).await.ok()?;
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            match (header[3], header[4]) {
                (HEADERS, _) => {
                    return Some(u32::from_be_bytes([header[5], header[6], header[7], header[8]]));
                }
                (SETTINGS, 0) => self.send(SETTINGS, ACK, 0, &[]).await,
                (PING, 0) => self.send(PING, ACK, 0, &payload).await,
                _ => {}
            }
        }
    }

    pub(super) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        let _ = self.0.write_all(&frame).await;
        let _ = self.0.flush().await;
    }

    /// A whole answer without a body.
    pub(super) async fn ok(&mut self, stream: u32) {
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_200).await;
    }

    pub(super) fn into_inner(self) -> S {
        self.0
    }
}
