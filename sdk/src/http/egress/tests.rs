//! WebSockets over sockets of the loopback interface, in real time: through proxies, and with certificates.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{SinkExt as _, StreamExt as _};
use secrecy::SecretString;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::sync::Notify;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::*;
use crate::http::pool::tests::bounded;
use crate::http::pool::tests::peers::{Authority, Peer, head, proxies, proxy, say, socks};
use crate::http::push::Push;
use crate::http::trust::Identity;
use crate::http::{Agent, AgentBuilder, Pool};
use crate::transport::Tcp;
use crate::{Observable, Reading};

fn egress(proxies: Proxies, trust: Trust) -> Egress {
    Egress::new(Arc::new(Tcp::default()), &proxies, trust).unwrap()
}

fn one(url: String) -> Proxies {
    Proxies::One(SecretString::from(url))
}

fn trusting(pem: &str) -> Trust {
    Trust { roots: pem.into(), ..Trust::default() }
}

/// Opens a WebSocket once, and says which phases began.
async fn opened(egress: &Egress, url: &str) -> (Result<(), Cause>, Vec<Phase>) {
    let url = Url::parse(url).unwrap();
    let mut phases = Vec::new();
    let opened = bounded(async {
        let addresses = egress.resolve(&url).await.unwrap();
        let request = url.as_str().into_client_request().unwrap();
        let address = Arc::clone(addresses.first().unwrap());
        egress.open(&url, address, request, |phase| phases.push(phase)).await
    })
    .await;
    let opened = match opened {
        Ok(_) => Ok(()),
        Err(NoUpgrade::Unreachable(cause) | NoUpgrade::Broken(cause)) => Err(cause),
        Err(NoUpgrade::Answered(response)) => panic!("{response:?}"),
    };
    (opened, phases)
}

/// Takes WebSockets until they end.
async fn takes(stream: impl AsyncRead + AsyncWrite + Unpin) {
    if let Ok(mut peer) = accept_async(stream).await {
        while let Some(Ok(_)) = peer.next().await {}
    }
}

async fn secure(authority: &Authority, clients: Option<&Authority>) -> Peer {
    Peer::secure(authority.acceptor(&["http/1.1"], clients), |_, stream| takes(stream)).await
}

fn wss(peer: &Peer) -> String {
    format!("wss://localhost:{}/ws", peer.address.port())
}

const BASIC: &str = "proxy-authorization: basic dxnlcjpodxno\r\n"; // user:hush, in lower case

#[tokio::test]
async fn a_proxy_tunnels_with_its_authorisation() {
    let authority = Authority::new();
    let service = secure(&authority, None).await;
    let plain = Peer::serve(|_, stream| takes(stream)).await;
    let (proxy, heads) = proxy(None).await;
    let egress = egress(one(format!("http://user:hush@{}", proxy.address)), trusting(&authority.pem));
    let (upgraded, phases) = opened(&egress, &wss(&service)).await;
    upgraded.unwrap();
    assert_eq!(phases, [Phase::Tls, Phase::Connect, Phase::Tls, Phase::Upgrade]);
    opened(&egress, &format!("ws://{}/ws", plain.address)).await.0.unwrap();
    let heads = heads.lock().unwrap();
    let [secure, plain_head] = &heads[..] else { panic!("{heads:?}") };
    assert!(secure.starts_with(&format!("CONNECT localhost:{} HTTP/1.1\r\n", service.address.port())), "{secure}");
    assert!(plain_head.starts_with(&format!("CONNECT {} HTTP/1.1\r\n", plain.address)), "{plain_head}");
    for head in &heads[..] {
        assert!(head.to_lowercase().contains(BASIC), "{head}");
    }
}

#[tokio::test]
async fn a_proxy_may_be_spoken_to_over_tls() {
    let authority = Authority::new();
    let service = secure(&authority, None).await;
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let acceptor = authority.acceptor(&["http/1.1"], None);
    let proxy = Peer::secure(acceptor, move |_, stream| proxies(stream, None, Arc::clone(&seen))).await;
    let url = format!("https://user:hush@localhost:{}", proxy.address.port());
    let egress = egress(one(url), trusting(&authority.pem));
    let (upgraded, phases) = opened(&egress, &wss(&service)).await;
    upgraded.unwrap();
    let [.., first, second, third, fourth, fifth] = phases[..] else { panic!("{phases:?}") };
    assert_eq!(
        [first, second, third, fourth, fifth],
        [Phase::Connect, Phase::Tls, Phase::Connect, Phase::Tls, Phase::Upgrade]
    );
    assert!(heads.lock().unwrap()[0].to_lowercase().contains(BASIC));
}

#[tokio::test]
async fn socks_proxies_are_asked_by_name_or_by_address() {
    let service = Peer::serve(|_, stream| takes(stream)).await;
    let by_name = socks(Some(("user", "hush")), "localhost", service.address).await;
    let by_address = socks(None, "127.0.0.1", service.address).await;
    for url in [format!("socks5h://user:hush@{}", by_name.address), format!("socks5://{}", by_address.address)] {
        let egress = Egress::new(Arc::new(Four), &one(url), Trust::default()).unwrap();
        opened(&egress, "ws://localhost:7/ws").await.0.unwrap();
    }
}

/// SOCKS4 knows no IPv6: of a name that has both kinds of addresses, it is asked for the first of IPv4.
#[tokio::test]
async fn a_socks4_proxy_is_asked_for_an_address_of_ipv4() {
    let service = Peer::serve(|_, stream| takes(stream)).await;
    let to = service.address;
    let proxy = Peer::serve(move |_, mut stream| async move {
        let mut asked = [0; 9]; // version, command, port, address, and the end of the empty user
        stream.read_exact(&mut asked).await.unwrap();
        assert_eq!(asked, [4, 1, 0, 7, 192, 0, 2, 7, 0]);
        stream.write_all(&[0, 90, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut service = tokio::net::TcpStream::connect(to).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut service).await;
    })
    .await;
    let proxies = one(format!("socks4://{}", proxy.address));
    let both = Names(&["[2001:db8::7]:7", "192.0.2.7:7", "192.0.2.8:7"]);
    let both = Egress::new(Arc::new(both), &proxies, Trust::default()).unwrap();
    opened(&both, "ws://ci.example:7/ws").await.0.unwrap();
    let six = Egress::new(Arc::new(Names(&["[2001:db8::7]:7"])), &proxies, Trust::default()).unwrap();
    let failed = opened(&six, "ws://ci.example:7/ws").await.0.unwrap_err();
    assert!(failed.to_string().contains("IPv4"), "{failed}");
}

/// `ci.example` has these addresses.
struct Names(&'static [&'static str]);

impl Network for Names {
    fn resolve(&self, host: Arc<str>, port: u16) -> BoxFuture<'static, std::io::Result<Vec<Arc<str>>>> {
        if &*host != "ci.example" {
            return Tcp::default().resolve(host, port);
        }
        Box::pin(std::future::ready(Ok(self.0.iter().map(|address| Arc::from(*address)).collect())))
    }

    fn connect(&self, address: Arc<str>) -> BoxFuture<'static, std::io::Result<Box<dyn crate::transport::Io>>> {
        Tcp::default().connect(address)
    }
}

/// Of a name, only the IPv4 addresses.
struct Four;

impl Network for Four {
    fn resolve(&self, host: Arc<str>, port: u16) -> BoxFuture<'static, std::io::Result<Vec<Arc<str>>>> {
        let found = Tcp::default().resolve(host, port);
        Box::pin(async move { Ok(found.await?.into_iter().filter(|address| !address.starts_with('[')).collect()) })
    }

    fn connect(&self, address: Arc<str>) -> BoxFuture<'static, std::io::Result<Box<dyn crate::transport::Io>>> {
        Tcp::default().connect(address)
    }
}

/// An address of IPv6 stands in brackets in a URL, and without them everywhere else.
#[tokio::test]
async fn an_ipv6_address_is_a_name_of_its_own() {
    let authority = Authority::new();
    let service = secure(&authority, None).await;
    let proxies = Proxies::None;
    let egress = Egress::new(Arc::new(To(service.address)), &proxies, trusting(&authority.pem)).unwrap();
    opened(&egress, "wss://[::1]:7/ws").await.0.unwrap();
}

/// Leads `::1` to another address.
struct To(std::net::SocketAddr);

impl Network for To {
    fn resolve(&self, host: Arc<str>, port: u16) -> BoxFuture<'static, std::io::Result<Vec<Arc<str>>>> {
        assert_eq!((&*host, port), ("::1", 7));
        Box::pin(std::future::ready(Ok(vec![self.0.to_string().into()])))
    }

    fn connect(&self, address: Arc<str>) -> BoxFuture<'static, std::io::Result<Box<dyn crate::transport::Io>>> {
        Tcp::default().connect(address)
    }
}

/// A tunnel that fails says where and why, in the phase of the connection, and nothing that is secret.
#[tokio::test]
async fn a_tunnel_that_fails_says_what_failed() {
    let (refusing, _) = proxy(Some(407)).await;
    let (forbidding, _) = proxy(Some(403)).await;
    let silent = Peer::serve(|_, mut stream| async move { drop(head(&mut stream).await) }).await;
    let gone = proxy(None).await.0.address;
    for (address, expected) in [
        (refusing.address, "proxy authorization required"),
        (forbidding.address, "unsuccessful"),
        (silent.address, "unexpected end of file"),
        (gone, "refused"),
    ] {
        let egress = egress(one(format!("http://user:hush@{address}")), Trust::default());
        let (failed, phases) = opened(&egress, "ws://service.example/ws?token=hush").await;
        let Err(Cause::Unreachable { detail }) = failed else { panic!("{failed:?}") };
        assert!(detail.contains(&address.to_string()) && detail.contains(expected), "{detail}");
        assert!(!detail.contains("hush"), "{detail}");
        assert_eq!(phases, [Phase::Connect], "{detail}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_one_is_required() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let service = secure(&authority, Some(&clients)).await;
    let issued = clients.issue("client.example");
    let identity = Identity::Pem { chain: issued.chain.into(), key: issued.key.into_bytes().into() };
    let with = egress(Proxies::None, Trust { identity, ..trusting(&authority.pem) });
    opened(&with, &wss(&service)).await.0.unwrap();
    let without = egress(Proxies::None, trusting(&authority.pem));
    assert!(opened(&without, &wss(&service)).await.0.is_err());
}

/// Files that others replace count for the next handshake; while they cannot be used, nothing is dialed.
#[tokio::test]
async fn files_are_read_again_for_each_handshake() {
    let (old, new, clients, files) = (Authority::new(), Authority::new(), Authority::new(), TempDir::new().unwrap());
    let (old_peer, new_peer) = (secure(&old, None).await, secure(&new, Some(&clients)).await);
    let path = |name| files.path().join(name);
    let issued = clients.issue("client.example");
    std::fs::write(path("chain"), &issued.chain).unwrap();
    std::fs::write(path("key"), &issued.key).unwrap();
    let egress = egress(
        Proxies::None,
        Trust {
            roots_file: Some(path("roots")),
            identity: Identity::Files { chain: path("chain"), key: path("key") },
            recheck: std::time::Duration::ZERO,
            ..Trust::default()
        },
    );
    let (missing, phases) = opened(&egress, &wss(&old_peer)).await;
    assert!(missing.unwrap_err().to_string().contains("root_certificates_file"));
    assert_eq!(phases, [Phase::Tls]);
    std::fs::write(path("roots"), &old.pem).unwrap();
    opened(&egress, &wss(&old_peer)).await.0.unwrap();
    assert!(opened(&egress, &wss(&new_peer)).await.0.is_err());
    std::fs::write(path("roots"), &new.pem).unwrap();
    opened(&egress, &wss(&new_peer)).await.0.unwrap();
    assert!(opened(&egress, &wss(&old_peer)).await.0.is_err());
    std::fs::write(path("key"), "nonsense").unwrap();
    let e = opened(&egress, &wss(&new_peer)).await.0.unwrap_err();
    assert!(e.to_string().contains("client_certificate key"), "{e}");
}

/// A service that answers each request with a number.
async fn numbered() -> (Peer, Arc<AtomicU64>) {
    let number = Arc::new(AtomicU64::new(1));
    let read = Arc::clone(&number);
    let peer = Peer::serve(move |_, mut stream| {
        let read = Arc::clone(&read);
        async move {
            while head(&mut stream).await.is_some() {
                let body = read.load(Ordering::SeqCst).to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
                say(&mut stream, &format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
            }
        }
    })
    .await;
    (peer, number)
}

/// A service whose WebSocket says something when it is told to.
async fn telling(authority: &Authority, clients: Option<&Authority>) -> (Peer, Arc<Notify>) {
    let tell = Arc::new(Notify::new());
    let told = Arc::clone(&tell);
    let acceptor = authority.acceptor(&["http/1.1"], clients);
    let peer = Peer::secure(acceptor, move |_, stream| {
        let told = Arc::clone(&told);
        async move {
            let Ok(mut peer) = accept_async(stream).await else { return };
            loop {
                tokio::select! {
                    () = told.notified() => peer.send(Message::text("changed")).await.unwrap(),
                    said = peer.next() => if !matches!(said, Some(Ok(_))) { return },
                }
            }
        }
    })
    .await;
    (peer, tell)
}

async fn shows(read: &mut Observable<u64>, number: u64) {
    let shown = async {
        while let Some(reading) = read.next().await {
            if matches!(&reading, Reading::Fresh(n) if **n == number) {
                return;
            }
        }
        panic!("ended");
    };
    bounded(shown).await;
}

/// A read of `run` with the WebSocket of `service` beside it: whether a message leads to a look within a bound that polls
/// beside a stream do not keep.
async fn hints(agent: AgentBuilder, service: &Peer, tell: &Notify) {
    let (run, number) = numbered().await;
    let read = agent.build().unwrap().get(&run.http("/run"));
    let (mut read, looks) = read.push(Push::websocket(&wss(service))).json::<u64>().observe_with_looks().unwrap();
    shows(&mut read, 1).await;
    // The next look is far away once the stream is up.
    let far = looks.until(|look| look.next > std::time::Duration::from_secs(30));
    bounded(far).await.unwrap();
    number.store(2, Ordering::SeqCst);
    tell.notify_one();
    shows(&mut read, 2).await;
}

/// One builder sets up requests and WebSockets: certificates from here and the client's own, and the proxy.
#[tokio::test]
async fn an_agent_sets_up_both() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let issued = clients.issue("client.example");
    let (service, tell) = telling(&authority, Some(&clients)).await;
    let (proxy, heads) = proxy(None).await;
    let agent = || {
        let agent = Agent::builder().root_certificates(authority.pem.as_str());
        agent.client_certificate(issued.chain.as_str(), issued.key.as_str())
    };
    hints(agent().no_proxy(), &service, &tell).await;
    assert!(heads.lock().unwrap().is_empty());
    // The proxy answers requests itself: those of the read go elsewhere.
    let direct = Pool::builder().no_proxy().build().unwrap();
    let proxied = agent().proxy(format!("http://user:hush@{}", proxy.address));
    assert!(!format!("{proxied:?}").contains("hush"), "{proxied:?}");
    hints(proxied.exchange(direct), &service, &tell).await;
    assert!(heads.lock().unwrap()[0].starts_with("CONNECT localhost:"));
}

/// Requests of the shipped exchange go by what the agent was given, too.
#[tokio::test]
async fn an_agent_sets_up_its_requests() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let issued = clients.issue("client.example");
    let acceptor = authority.acceptor(&["http/1.1"], Some(&clients));
    let service = Peer::secure(acceptor, |_, mut stream| async move {
        while head(&mut stream).await.is_some() {
            say(&mut stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n1").await;
        }
    })
    .await;
    let (proxy, heads) = proxy(None).await;
    let files = TempDir::new().unwrap();
    let put = |name, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let agent = Agent::builder()
        .proxy(format!("http://user:hush@{}", proxy.address))
        .root_certificates_file(put("roots", &authority.pem))
        .client_certificate_files(put("chain", &issued.chain), put("key", &issued.key));
    let mut read = agent.build().unwrap().get(&service.https("/run")).observe::<u64>().unwrap();
    shows(&mut read, 1).await;
    assert!(heads.lock().unwrap()[0].to_lowercase().contains(BASIC));
}

/// A proxy that refuses the tunnel costs the stream, and not the read.
#[tokio::test]
async fn a_proxy_that_refuses_leaves_the_read_polling() {
    let authority = Authority::new();
    let (service, _tell) = telling(&authority, None).await;
    let ((run, number), (proxy, heads)) = (numbered().await, proxy(Some(407)).await);
    let agent = Agent::builder().exchange(Pool::builder().no_proxy().build().unwrap());
    let agent = agent.proxy(proxy.http("")).root_certificates(authority.pem.as_str()).build().unwrap();
    let read = agent.get(&run.http("/run")).push(Push::websocket(&wss(&service)));
    let mut read = read.observe::<u64>().unwrap();
    shows(&mut read, 1).await;
    bounded(async {
        while heads.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for n in 2..4 {
        number.store(n, Ordering::SeqCst);
        shows(&mut read, n).await;
    }
    assert_eq!(service.connections(), 0);
}

/// The child of the test below: connects to `OUTLAST_TEST_WS` with the variables of its process.
#[tokio::test]
async fn child_of_the_usual_variables() {
    let Ok(url) = std::env::var("OUTLAST_TEST_WS") else { return };
    let agent = Agent::builder().build().unwrap();
    opened(&agent.inner().egress, &url).await.0.unwrap();
    // A network of one's own is where WebSockets connect; no variable leads them elsewhere.
    let agent = Agent::builder().network(Four).build().unwrap();
    assert!(agent.inner().egress.proxy(&Url::parse(&url).unwrap()).is_none());
}

/// In processes of their own: a test must not change the variables of its neighbours.
#[tokio::test]
async fn the_usual_variables_are_read() {
    let (proxy, heads) = proxy(None).await;
    let service = Peer::serve(|_, stream| takes(stream)).await;
    let through = proxy.http("");
    let url = format!("ws://{}/ws", service.address);
    for (variables, proxied) in [
        (vec![("HTTP_PROXY", &*through)], true),
        (vec![("http_proxy", &*through)], true),
        (vec![("ALL_PROXY", &*through)], true),
        (vec![("HTTPS_PROXY", &*through)], false),
        (vec![("HTTP_PROXY", &*through), ("NO_PROXY", "127.0.0.1")], false),
        (vec![("HTTP_PROXY", &*through), ("no_proxy", "127.0.0.0/8")], false),
        (vec![("HTTP_PROXY", &*through), ("NO_PROXY", ".example")], true),
    ] {
        heads.lock().unwrap().clear();
        let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "http::egress::tests::child_of_the_usual_variables"]);
        for inherited in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            child.env_remove(inherited).env_remove(inherited.to_lowercase());
        }
        child.envs(variables.iter().copied()).env("OUTLAST_TEST_WS", &url).kill_on_drop(true);
        let output = bounded(child.output()).await.unwrap();
        assert!(output.status.success(), "{variables:?}: {}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "the child has run");
        let seen = heads.lock().unwrap().iter().any(|head| head.starts_with("CONNECT "));
        assert_eq!(seen, proxied, "{variables:?}");
    }
}

/// Which proxy is asked, and on which port.
#[test]
fn a_proxy_is_found_for_each_address() {
    let proxy = |proxies: Proxies, url: &str| {
        let proxy = egress(proxies, Trust::default()).proxy(&Url::parse(url).unwrap());
        proxy.map(|proxy| (proxy.host().to_owned(), proxy.port()))
    };
    for (given, port) in [
        ("http://p.example", 80),
        ("https://p.example", 443),
        ("socks5://p.example", 1080),
        ("socks4a://p.example", 1080),
        ("p.example:3128", 3128),
    ] {
        let found = Some(("p.example".to_owned(), port));
        assert_eq!(proxy(one(given.into()), "wss://ci.example/ws"), found, "{given}");
        assert_eq!(proxy(one(given.into()), "ws://[::1]:80/ws"), found, "{given}");
    }
    assert_eq!(proxy(Proxies::None, "wss://ci.example/ws"), None);
}

#[tokio::test]
async fn what_is_not_usable_is_refused_with_the_name_of_the_field() {
    let issued = Authority::new().issue("client.example");
    let pool = || Pool::builder().no_proxy().build().unwrap();
    let files = |agent: AgentBuilder| agent.client_certificate_files("/none", "/none");
    for (agent, field) in [
        (Agent::builder().proxy("ftp://user:hush@proxy.example/"), "proxy"),
        (Agent::builder().proxy("http://hush:hush@ /"), "proxy"),
        // A URL to some, which others cannot read: it must not mean no proxy.
        (Agent::builder().proxy("socks5://hush:hush@pr\u{f6}xy.example:1080"), "proxy"),
        (Agent::builder().root_certificates("hush"), "root_certificates"),
        (files(Agent::builder()).root_certificates("hush"), "root_certificates"),
        (Agent::builder().client_certificate(issued.chain.as_str(), "hush"), "client_certificate key"),
    ] {
        let given = agent.exchange(pool());
        let error = given.build().expect_err(field);
        assert!(error.is_invalid() && error.to_string().starts_with(&format!("{field}: expected ")), "{error}");
        assert!(!format!("{error:?}").contains("hush"), "{error:?}");
    }
    for proxy in ["ftp://proxy.example/", "socks5h://pr\u{f6}xy.example"] {
        let error = Agent::builder().proxy(proxy).build().unwrap_err();
        assert!(error.is_invalid(), "{error}");
        for pool in [Pool::builder(), Pool::builder().root_certificates_file("/none")] {
            let error = pool.proxy(proxy).build().unwrap_err();
            assert!(error.is_invalid(), "{error}");
        }
    }
}
