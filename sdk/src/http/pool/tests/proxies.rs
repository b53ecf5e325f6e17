//! Proxies: the one that is given, and those of the usual variables, read in a process of their own.

use super::peers::{Authority, Peer, answers, proxy, socks};
use super::*;
use crate::http::exchange::FailureKind::{Connect, Resolve};

#[tokio::test]
async fn a_proxy_gets_absolute_forms_and_tunnels_and_its_password_is_never_shown() {
    let authority = Authority::new();
    let (proxy, heads) = proxy(None).await;
    let service = Peer::secure(authority.acceptor(&["http/1.1"], None), |_, stream| answers(stream)).await;
    let builder = builder().root_certificates(authority.pem).proxy(format!("http://user:hush@{}", proxy.address));
    assert!(!format!("{builder:?}").contains("hush"));
    let pool = builder.build().unwrap();
    assert!(!format!("{pool:?}").contains("hush"));
    assert_eq!(fetched(&pool, get("http://me:word@service.example/a?b=c")).await, Ok((200, b"ok".to_vec())));
    assert_eq!(fetched(&pool, get(&service.https("/secret"))).await, Ok((200, b"ok".to_vec())));
    let heads = heads.lock().unwrap();
    let [plain, tunnel] = &heads[..] else { panic!("{heads:?}") };
    let authorised = "proxy-authorization: basic dxnlcjpodxno\r\n"; // user:hush, in lower case as below
    assert!(plain.starts_with("GET http://service.example/a?b=c HTTP/1.1\r\n"), "{plain}");
    assert!(plain.to_lowercase().contains(authorised), "{plain}");
    assert!(tunnel.starts_with(&format!("CONNECT localhost:{} HTTP/1.1\r\n", service.address.port())), "{tunnel}");
    assert!(tunnel.to_lowercase().contains(authorised), "{tunnel}");
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_not_there_is_connect() {
    let (refusing, _) = proxy(Some(403)).await;
    let gone = {
        let (gone, _) = proxy(Some(403)).await;
        gone.address
    };
    for address in [refusing.address, gone] {
        let pool = builder().proxy(format!("http://user:hush@{address}")).build().unwrap();
        let failure = failed(&pool, get("https://service.example/?token=hush")).await;
        assert_eq!(failure.kind, Connect, "{failure}");
        assert!(!failure.detail.contains("hush"), "{failure}");
    }
    let pool = builder().proxy(format!("http://{}.invalid:3128", "a".repeat(64))).build().unwrap();
    assert_eq!(kind(&pool, get("https://service.example/")).await, Resolve);
}

#[tokio::test]
async fn a_socks_proxy_resolves_names() {
    let service = Peer::serve(|_, stream| answers(stream)).await;
    let socks = socks(None, "service.example", service.address).await;
    let pool = builder().proxy(format!("socks5h://{}", socks.address)).build().unwrap();
    assert_eq!(fetched(&pool, get("http://service.example/")).await, Ok((200, b"ok".to_vec())));
}

/// The child of the test below: asks `OUTLAST_TEST_URL` with the variables of its process. Without it there is nothing to ask.
#[tokio::test]
async fn child_of_the_usual_variables() {
    let Ok(url) = std::env::var("OUTLAST_TEST_URL") else { return };
    let builder = Pool::builder();
    let builder = if std::env::var("OUTLAST_TEST_NO_PROXY").is_ok() { builder.no_proxy() } else { builder };
    assert_eq!(fetched(&builder.build().unwrap(), get(&url)).await, Ok((200, b"ok".to_vec())));
}

/// In processes of their own: a test must not change the variables of its neighbours.
#[tokio::test]
async fn the_usual_variables_are_read() {
    let (proxy, heads) = proxy(None).await;
    let service = Peer::serve(|_, stream| answers(stream)).await;
    let (through, direct) = (format!("http://{}", proxy.address), service.http("/"));
    for (variables, url, proxied) in [
        (vec![("HTTP_PROXY", &*through)], &*direct, true),
        (vec![("http_proxy", &*through)], &*direct, true),
        (vec![("ALL_PROXY", &*through)], &*direct, true),
        (vec![("HTTPS_PROXY", &*through)], &*direct, false),
        (vec![("HTTP_PROXY", &*through), ("NO_PROXY", "127.0.0.1")], &*direct, false),
        (vec![("HTTP_PROXY", &*through), ("NO_PROXY", ".example")], &*direct, true),
        (vec![("HTTP_PROXY", &*through), ("OUTLAST_TEST_NO_PROXY", "")], &*direct, false),
        (vec![("HTTP_PROXY", &*through)], "http://service.example/", true),
    ] {
        heads.lock().unwrap().clear();
        let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "http::pool::tests::proxies::child_of_the_usual_variables"]);
        for inherited in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            child.env_remove(inherited).env_remove(inherited.to_lowercase());
        }
        child.envs(variables.iter().copied()).env("OUTLAST_TEST_URL", url).kill_on_drop(true);
        let output = bounded(child.output()).await.unwrap();
        assert!(output.status.success(), "{variables:?} {url}: {}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "the child has run");
        let seen = heads.lock().unwrap().iter().any(|head| head.starts_with("GET http://"));
        assert_eq!(seen, proxied, "{variables:?} {url}");
    }
}
