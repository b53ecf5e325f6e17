//! Peers that do exactly what a test says.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A listener; each connection is handed to the test with its number.
pub(in crate::http) struct Peer {
    pub(in crate::http) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Peer {
    pub(in crate::http) async fn serve<F, Fut>(handle: F) -> Self
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
    pub(in crate::http) async fn secure<F, Fut>(acceptor: TlsAcceptor, handle: F) -> Self
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

    pub(in crate::http) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(in crate::http) fn http(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// By the name that the certificates here are for.
    pub(in crate::http) fn https(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }
}

/// The next request's head; `None` at the end of the connection.
pub(in crate::http) async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

pub(in crate::http) async fn say(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    // The client may have gone.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.flush().await;
}

pub(in crate::http) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Answers each request.
pub(in crate::http) async fn answers(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    while head(&mut stream).await.is_some() {
        say(&mut stream, OK).await;
    }
}

/// Reads to the end, so that nothing is reset.
pub(in crate::http) async fn drain(mut stream: impl AsyncRead + Unpin) {
    let mut sink = [0; 4096];
    while stream.read(&mut sink).await.is_ok_and(|n| n > 0) {}
}

/// What a proxy was asked for.
pub(in crate::http) type Heads = Arc<Mutex<Vec<String>>>;

/// A proxy that answers requests itself, and tunnels to wherever it is asked to; or refuses everything with that status.
pub(in crate::http) async fn proxy(refuses: Option<u16>) -> (Peer, Heads) {
    let heads = Heads::default();
    let seen = Arc::clone(&heads);
    let peer = Peer::serve(move |_, stream| proxies(stream, refuses, Arc::clone(&seen))).await;
    (peer, heads)
}

/// One connection of such a proxy.
pub(in crate::http) async fn proxies(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    refuses: Option<u16>,
    heads: Heads,
) {
    while let Some(asked) = head(&mut stream).await {
        heads.lock().unwrap().push(asked.clone());
        if let Some(status) = refuses {
            return say(&mut stream, &format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n")).await;
        }
        let Some(target) = asked.strip_prefix("CONNECT ") else {
            say(&mut stream, OK).await;
            continue;
        };
        let mut service = TcpStream::connect(target.split(' ').next().unwrap()).await.unwrap();
        say(&mut stream, "HTTP/1.1 200 OK\r\n\r\n").await;
        let _ = copy_bidirectional(&mut stream, &mut service).await;
        return;
    }
}

/// A SOCKS 5 proxy (RFC 1928) that wants that user and password (RFC 1929), and leads to `service` whoever asks for
/// `host`.
pub(in crate::http) async fn socks(
    user: Option<(&'static str, &'static str)>,
    host: &'static str,
    service: SocketAddr,
) -> Peer {
    Peer::serve(move |_, mut stream| async move {
        let [_, methods] = take(&mut stream).await;
        take_all(&mut stream, methods.into()).await;
        if let Some((user, password)) = user {
            stream.write_all(&[5, 2]).await.unwrap();
            let [1, length] = take(&mut stream).await else { panic!("another version") };
            assert_eq!(take_all(&mut stream, length.into()).await, user.as_bytes());
            let [length] = take(&mut stream).await;
            assert_eq!(take_all(&mut stream, length.into()).await, password.as_bytes());
            stream.write_all(&[1, 0]).await.unwrap();
        } else {
            stream.write_all(&[5, 0]).await.unwrap();
        }
        // CONNECT, by address or by name.
        let asked = match take(&mut stream).await {
            [5, 1, 0, 1] => std::net::Ipv4Addr::from(take::<4>(&mut stream).await).to_string(),
            [5, 1, 0, 3] => {
                let [length] = take(&mut stream).await;
                String::from_utf8(take_all(&mut stream, length.into()).await).unwrap()
            }
            other => panic!("{other:?}"),
        };
        let [_, _] = take(&mut stream).await;
        assert_eq!(asked, host);
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut service = TcpStream::connect(service).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut service).await;
    })
    .await
}

async fn take<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut taken = [0; N];
    stream.read_exact(&mut taken).await.unwrap();
    taken
}

async fn take_all(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut taken = vec![0; length];
    stream.read_exact(&mut taken).await.unwrap();
    taken
}

/// A certificate authority.
pub(in crate::http) struct Authority {
    pub(in crate::http) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key in PEM.
pub(in crate::http) struct Issued {
    pub(in crate::http) chain: String,
    pub(in crate::http) key: String,
}

impl Authority {
    pub(in crate::http) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub(in crate::http) fn issue(&self, name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        Issued { chain: certificate.pem(), key: key.serialize_pem() }
    }

    /// Accepts TLS as `localhost` and as `::1`, speaks `protocols`, and wants a certificate of `clients` if that is given.
    pub(in crate::http) fn acceptor(&self, protocols: &[&str], clients: Option<&Self>) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned(), "::1".to_owned()]).unwrap();
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
pub(in crate::http) struct Frames<S>(S);

pub(in crate::http) const DATA: u8 = 0;
pub(in crate::http) const HEADERS: u8 = 1;
pub(in crate::http) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub(in crate::http) const GOAWAY: u8 = 7;

pub(in crate::http) const END_STREAM: u8 = 1;
pub(in crate::http) const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// `:status: 200` (RFC 7541, appendix A).
pub(in crate::http) const STATUS_200: &[u8] = &[0x88];

impl<S: AsyncRead + AsyncWrite + Unpin> Frames<S> {
    pub(in crate::http) async fn new(mut stream: S) -> Option<Self> {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.ok()?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut this = Self(stream);
        this.send(SETTINGS, 0, 0, &[]).await;
        Some(this)
    }

    /// The stream of the next request; settings and pings are answered on the way.
    pub(in crate::http) async fn request(&mut self) -> Option<u32> {
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

    pub(in crate::http) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        let _ = self.0.write_all(&frame).await;
        let _ = self.0.flush().await;
    }

    /// A whole answer without a body.
    pub(in crate::http) async fn ok(&mut self, stream: u32) {
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_200).await;
    }

    pub(in crate::http) fn into_inner(self) -> S {
        self.0
    }
}
