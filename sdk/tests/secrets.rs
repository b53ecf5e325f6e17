//! No secret is in any log. It has a process of its own: the log of a process is one.
#![expect(clippy::disallowed_methods, reason = "a test of its own, with real sockets")]

use std::sync::Mutex;

use outlast::Credential;
use outlast::http::Agent;
use outlast::http::feed::{self, LogKind};
use outlast::http::push::Push;
use serde::Deserialize;
use tokio::sync::Notify;

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is enough that it can be read")]
struct Run {
    status: String,
}

/// The credential and a secret query in no log, at the most talkative level: `tracing` and `log`.
#[test]
fn no_secret_is_in_any_log() {
    static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    static GREETED: Notify = Notify::const_new();
    struct Logger;
    impl log::Log for Logger {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }
        fn log(&self, record: &log::Record<'_>) {
            SEEN.lock().unwrap().push(format!("log {} {}", record.target(), record.args()));
        }
        fn flush(&self) {}
    }
    struct Subscriber;
    struct Visitor(String);
    impl tracing::field::Visit for Visitor {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            use std::fmt::Write as _;
            let _ = write!(self.0, " {}={value:?}", field.name());
        }
    }
    impl tracing::Subscriber for Subscriber {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            let mut visitor = Visitor(format!("span {}", span.metadata().target()));
            span.record(&mut visitor);
            SEEN.lock().unwrap().push(visitor.0);
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, record: &tracing::span::Record<'_>) {
            let mut visitor = Visitor("record".into());
            record.record(&mut visitor);
            SEEN.lock().unwrap().push(visitor.0);
        }
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            let mut visitor = Visitor(format!("event {}", event.metadata().target()));
            event.record(&mut visitor);
            SEEN.lock().unwrap().push(visitor.0);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }
    log::set_logger(&Logger).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    tracing::subscriber::set_global_default(Subscriber).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let Ok((mut io, _)) = listener.accept().await else { return };
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    let mut piece = [0; 4096];
                    while !head.ends_with(b"\r\n\r\n") {
                        match io.read(&mut piece).await {
                            Ok(n) if n > 0 => head.extend_from_slice(&piece[..n]),
                            _ => return,
                        }
                    }
                    let text = String::from_utf8_lossy(&head).into_owned();
                    if text.starts_with("GET /ws?key=s3cret-query&up") {
                        let key = text.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
                        let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
                        let answer = format!("HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
                        let _ = io.write_all(answer.as_bytes()).await;
                        let mut header = [0; 6];
                        io.read_exact(&mut header).await.unwrap();
                        let mut hello = [0; "s3cret-hello".len()];
                        io.read_exact(&mut hello).await.unwrap();
                        hello.iter_mut().zip(header[2..].iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
                        assert_eq!((header[0], &hello), (0x81, b"s3cret-hello"));
                        GREETED.notify_one();
                        while io.read(&mut piece).await.is_ok_and(|n| n > 0) {}
                        return;
                    }
                    let body = "{\"status\":\"running\"}";
                    let answer = if text.starts_with("GET /moved") {
                        "HTTP/1.1 302 Found\r\nLocation: /run?sig=s3cret-signature\r\nContent-Length: 0\r\nSet-Cookie: s=s3cret-cookie\r\nConnection: close\r\n\r\n".to_owned()
                    } else if text.starts_with("GET /ws") || text.starts_with("GET /events") {
                        "HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
                    } else {
                        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
                    };
                    let _ = io.write_all(answer.as_bytes()).await;
                });
            }
        });
        let origin = format!("http://127.0.0.1:{port}");
        let token = || Credential::bearer("s3cret-token").unwrap();
        let agent = Agent::builder().build().unwrap();
        let one = agent.get(&format!("{origin}/moved?key=s3cret-query")).credential(token()).observe::<Run>().unwrap();
        let push = Push::websocket(&format!("ws://127.0.0.1:{port}/ws?key=s3cret-query")).hello("s3cret-hello");
        let two = agent.get(&format!("{origin}/run")).credential(token()).push(push).observe::<Run>().unwrap();
        let push = Push::websocket(&format!("ws://127.0.0.1:{port}/ws?key=s3cret-query&up")).hello("s3cret-hello");
        let up = agent.get(&format!("{origin}/run")).credential(token()).push(push).observe::<Run>().unwrap();
        let push = Push::events(&format!("{origin}/events?key=s3cret-query"));
        let three = agent.get(&format!("{origin}/run")).credential(token()).push(push).observe::<Run>().unwrap();
        let log = agent.get(&format!("{origin}/moved?key=s3cret-query")).credential(token()).log(LogKind::Whole, feed::Settings::default()).unwrap();
        for read in [&one, &two, &up, &three] {
            read.until(|_| true).await.unwrap();
        }
        GREETED.notified().await;
        drop((one, two, up, three, log));
    });
    let seen = SEEN.lock().unwrap();
    assert!(!seen.is_empty(), "something is logged");
    let leaks: Vec<_> = seen
        .iter()
        .filter(|line| line.contains("s3cret"))
        .map(|line| line.chars().take(300).collect::<String>())
        .collect();
    let mut kinds: Vec<_> = leaks.iter().map(|l| l.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
    kinds.sort();
    kinds.dedup();
    assert!(
        leaks.is_empty(),
        "{} lines with a secret, by {kinds:?}; such as {:#?}",
        leaks.len(),
        &leaks[..leaks.len().min(6)]
    );
}
