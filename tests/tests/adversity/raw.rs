//! The protocol as text, without the library.

use futures::{SinkExt, StreamExt};
use outlast::transport::{Io, Network};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

pub type Socket = WebSocketStream<Box<dyn Io>>;

pub const WELCOME: &str = r#"{"type":"welcome","epoch":"01KAW6D4000000000000000001","log":"01KAW6D4000000000000000002","head":5,"durable":true,"principal":"anonymous","now":1764028800000,"heartbeat_ms":10000,"retention_ms":86400000,"spread_ms":0}"#;

#[expect(clippy::result_large_err, reason = "tungstenite's")]
pub async fn accept(io: Box<dyn Io>) -> Option<Socket> {
    let answer = |_: &Request, mut response: Response| {
        response.headers_mut().insert("sec-websocket-protocol", "outlast.v1".parse().unwrap());
        Ok(response)
    };
    tokio_tungstenite::accept_hdr_async(io, answer).await.ok()
}

pub async fn connect(net: &outlast::testing::Net, address: &str) -> Socket {
    let io = net.connect(address.into()).await.unwrap();
    let mut request = "ws://jobs/".into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "outlast.v1".parse().unwrap());
    tokio_tungstenite::client_async(request, io).await.unwrap().0
}

pub async fn say(socket: &mut Socket, text: impl Into<String>) -> bool {
    socket.send(Message::text(text.into())).await.is_ok()
}

pub async fn hear(socket: &mut Socket) -> Option<serde_json::Value> {
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}
