//! A dial against peers that are no service of ours.

use std::io;

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::credential::Credential;

/// A network with one peer, who says `answer` to whatever is asked and then ends.
struct Peer {
    answer: &'static str,
    asked: Arc<std::sync::Mutex<String>>,
}

impl Network for Peer {
    fn resolve(&self, host: Arc<str>, _: u16) -> BoxFuture<'static, io::Result<Vec<Arc<str>>>> {
        Box::pin(std::future::ready(Ok(vec![host])))
    }

    fn connect(&self, _: Arc<str>) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (answer, asked) = (self.answer, Arc::clone(&self.asked));
        let answered = answer_once(theirs, answer, asked);
        Box::pin(async move { Ok(Box::new(Both { ours, answered: Box::pin(answered), done: false }) as Box<dyn Io>) })
    }
}

async fn answer_once(mut io: DuplexStream, answer: &'static str, asked: Arc<std::sync::Mutex<String>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let Ok(byte) = io.read_u8().await else { return };
        request.push(byte);
    }
    asked.lock().unwrap().push_str(&String::from_utf8_lossy(&request));
    let _ = io.write_all(answer.as_bytes()).await;
}

/// Our end, which drives the peer when it is polled: no task is needed.
struct Both {
    ours: DuplexStream,
    answered: BoxFuture<'static, ()>,
    done: bool,
}

impl Both {
    fn drive(&mut self, cx: &mut std::task::Context<'_>) {
        if !self.done {
            self.done = self.answered.as_mut().poll(cx).is_ready();
        }
    }
}

impl tokio::io::AsyncRead for Both {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        self.drive(cx);
        std::pin::Pin::new(&mut self.ours).poll_read(cx, buf)
    }
}

impl tokio::io::AsyncWrite for Both {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        self.drive(cx);
        std::pin::Pin::new(&mut self.ours).poll_write(cx, buf)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.ours).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.ours).poll_shutdown(cx)
    }
}

async fn dialed(answer: &'static str) -> DialFailure {
    let peer = Peer { answer, asked: Arc::default() };
    let url = Url::parse("ws://builds.example/").unwrap();
    match dial(Arc::new(peer), None, url, "builds.example".into(), None, |_| {}).await {
        Ok(_) => panic!("welcomed by {answer:?}"),
        Err(failure) => failure,
    }
}

fn cause(failure: DialFailure) -> (Cause, Option<Duration>) {
    match failure {
        DialFailure::Failed { cause, retry_after } => (cause, retry_after),
        DialFailure::Refused => panic!("refused"),
    }
}

/// R3: only a refusal of the credential is one; a 403 with Retry-After is a rate limit (FC-55).
#[tokio::test]
async fn r3_only_a_refusal_is_a_refusal() {
    assert!(matches!(dialed("HTTP/1.1 401 Unauthorized\r\n\r\n").await, DialFailure::Refused));
    assert!(matches!(dialed("HTTP/1.1 403 Forbidden\r\n\r\n").await, DialFailure::Refused));
    let seven = Duration::from_secs(7);
    assert_eq!(
        cause(dialed("HTTP/1.1 403 Forbidden\r\nRetry-After: 7\r\n\r\n").await),
        (Cause::RateLimited { retry_after: seven }, Some(seven))
    );
    assert_eq!(
        cause(dialed("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n\r\n").await),
        (Cause::RateLimited { retry_after: seven }, Some(seven))
    );
    assert_eq!(
        cause(dialed("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n\r\n").await),
        (Cause::Status { code: 503 }, Some(seven))
    );
}

/// R3: a login page, a proxy's error and an empty answer are no end and no value.
#[tokio::test]
async fn r3_what_is_no_upgrade_is_a_failed_dial() {
    assert_eq!(cause(dialed("HTTP/1.1 200 OK\r\n\r\n<html>log in").await).0, Cause::Status { code: 200 });
    assert_eq!(cause(dialed("HTTP/1.1 502 Bad Gateway\r\n\r\n").await).0, Cause::Status { code: 502 });
    assert_eq!(cause(dialed("").await).0, Cause::Dropped { code: None });
    assert!(matches!(cause(dialed("SSH-2.0-OpenSSH\r\n\r\n").await).0, Cause::Unreachable { .. }));
}

/// K3: the credential travels in the header, and shows nowhere else.
#[tokio::test]
async fn the_credential_is_a_bearer_token() {
    let asked = Arc::default();
    let peer = Peer { answer: "HTTP/1.1 401 Unauthorized\r\n\r\n", asked: Arc::clone(&asked) };
    let url = Url::parse("ws://builds.example/x?y=1").unwrap();
    let secret = Credential::bearer("s3cret").unwrap();
    let failure = dial(Arc::new(peer), None, url, "builds.example".into(), Some(secret), |_| {}).await;
    assert!(matches!(failure, Err(DialFailure::Refused)));
    let asked = asked.lock().unwrap().to_lowercase();
    assert!(
        asked.starts_with("get /x?y=1 http/1.1\r\n") && asked.contains("authorization: bearer s3cret\r\n"),
        "{asked}"
    );
    assert!(asked.contains("sec-websocket-protocol: outlast.v1\r\n"), "{asked}");
}
