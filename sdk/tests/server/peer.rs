//! A client without any of the library's client code: frames are JSON text.

use futures::{SinkExt, StreamExt};
use http::StatusCode;
use outlast::server::Server;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::farm::START;

pub(crate) struct Peer {
    pub(crate) socket: WebSocketStream<DuplexStream>,
    pub(crate) welcome: Value,
    /// The last one told.
    pub(crate) watermark: u64,
    _connection: JoinSet<()>,
}

/// An upgrade request by `principal`.
pub(crate) fn request(principal: Option<&str>) -> http::Request<()> {
    let mut request = "ws://farm.test/".into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "outlast.v1".parse().unwrap());
    if let Some(principal) = principal {
        request.headers_mut().insert("authorization", principal.parse().unwrap());
    }
    request
}

/// Dials with any request; the HTTP answer, if it is no upgrade.
pub(crate) async fn dial(
    server: &Server,
    request: http::Request<()>,
    buffer: usize,
) -> Result<(WebSocketStream<DuplexStream>, JoinSet<()>), http::Response<()>> {
    let (near, far) = tokio::io::duplex(buffer);
    let mut connection = JoinSet::new();
    let server = server.clone();
    connection.spawn(async move {
        let _ = server.serve_io(far).await;
    });
    match tokio_tungstenite::client_async(request, near).await {
        Ok((socket, response)) => {
            assert_eq!(response.headers()["sec-websocket-protocol"], "outlast.v1");
            Ok((socket, connection))
        }
        Err(Error::Http(response)) => Err(response.map(drop)),
        Err(e) => panic!("{e}"),
    }
}

impl Peer {
    pub(crate) async fn connect(server: &Server, principal: &str) -> Self {
        Self::with_buffer(server, principal, 64 << 10).await
    }

    pub(crate) async fn with_buffer(server: &Server, principal: &str, buffer: usize) -> Self {
        let (socket, connection) = dial(server, request(Some(principal)), buffer).await.unwrap();
        let mut peer = Self { socket, welcome: Value::Null, watermark: 0, _connection: connection };
        peer.welcome = peer.frame().await;
        assert_eq!(peer.welcome["type"], "welcome", "the first frame");
        peer
    }

    pub(crate) async fn status(server: &Server, request: http::Request<()>) -> (StatusCode, http::HeaderMap) {
        let response = dial(server, request, 4096).await.map(drop).unwrap_err();
        (response.status(), response.headers().clone())
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next frame of any type.
    pub(crate) async fn frame(&mut self) -> Value {
        match self.socket.next().await {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
            other => panic!("expected a frame, got {other:?}"),
        }
    }

    /// The next frame but watermarks, which are kept.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let frame = self.frame().await;
            if frame["type"] != "watermark" {
                return frame;
            }
            let through = frame["through"].as_u64().unwrap();
            assert!(through > self.watermark, "watermarks only grow");
            self.watermark = through;
        }
    }

    /// How the connection ends: a close code, or none.
    pub(crate) async fn end(&mut self) -> Option<u16> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Close(close))) => return close.map(|close| close.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    pub(crate) async fn call(&mut self, call: u64, method: &str, key: &str, params: Value) -> Value {
        self.send(call_frame(call, method, key, params)).await;
        self.answer(call).await
    }

    /// The next frame, which must be about this call.
    pub(crate) async fn answer(&mut self, call: u64) -> Value {
        let answer = self.next().await;
        assert_eq!(answer["call"], call, "{answer}");
        answer
    }

    pub(crate) async fn attach(&mut self, call: u64, key: &str) -> Value {
        self.send(json!({"type": "attach", "call": call, "key": key})).await;
        self.answer(call).await
    }

    pub(crate) async fn cancel(&mut self, call: u64, key: &str) -> Value {
        self.send(json!({"type": "cancel", "call": call, "key": key, "minted": START})).await;
        self.answer(call).await
    }

    pub(crate) async fn subscribe(&mut self, sub: u64, method: &str, params: Value) -> Value {
        self.send(json!({"type": "subscribe", "sub": sub, "method": method, "params": params})).await;
        self.next().await
    }

    pub(crate) async fn ping(&mut self, n: u64) -> Value {
        self.send(json!({"type": "ping", "n": n})).await;
        self.next().await
    }
}

pub(crate) fn call_frame(call: u64, method: &str, key: &str, params: Value) -> Value {
    json!({
        "type": "call", "call": call, "method": method, "params": params, "key": key, "level": "explicit",
        "minted": START, "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    })
}
