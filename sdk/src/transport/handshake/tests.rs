use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{Unshaken, shake};

/// What `shake` makes of an answer with `fields`, where `{}` stands for the right key.
async fn shaken(fields: &str) -> Result<(), Unshaken> {
    let request = "ws://ci.example/ws?key=1".into_client_request().unwrap();
    let key = derive_accept_key(request.headers()["sec-websocket-key"].as_bytes());
    let answer = fields.replace("{}", &key);
    let (near, mut far) = tokio::io::duplex(1 << 10);
    let peer = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(far.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"GET /ws?key=1 HTTP/1.1\r\nHost: ci.example\r\n"));
        for piece in answer.as_bytes().chunks(7) {
            far.write_all(piece).await.unwrap();
        }
        drop(far);
    };
    tokio::join!(shake(&request, near), peer).0.map(drop)
}

const RIGHT: &str =
    "HTTP/1.1 101 Go\r\nUpgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\nSec-WebSocket-Accept: {}\r\n";

#[tokio::test]
async fn only_what_was_asked_for_is_an_upgrade() {
    shaken(&format!("{RIGHT}\r\n")).await.unwrap();
    for wrong in [
        RIGHT.replace("WebSocket\r\n", "h2c\r\n"),
        RIGHT.replace("upgrade\r\n", "close\r\n"),
        RIGHT.replace("{}", "dGhlIHNhbXBsZSBub25jZQ=="),
        format!("{RIGHT}Sec-WebSocket-Protocol: other\r\n"),
        format!("{RIGHT}Sec-WebSocket-Extensions: permessage-deflate\r\n"),
    ] {
        let failed = shaken(&format!("{wrong}\r\n")).await;
        assert!(matches!(failed, Err(Unshaken::Broken(_))), "{wrong}: {failed:?}");
    }
    assert!(matches!(shaken(RIGHT).await, Err(Unshaken::Dropped)));
    let endless = format!("HTTP/1.1 101 Go\r\nx: {}", "x".repeat(80 << 10));
    assert!(matches!(shaken_long(&endless).await, Err(Unshaken::Broken(_))));
}

/// The same with a peer that does not mind whether all of it is read.
async fn shaken_long(answer: &str) -> Result<(), Unshaken> {
    let request = "ws://ci.example/ws".into_client_request().unwrap();
    let (near, mut far) = tokio::io::duplex(128 << 10);
    far.write_all(answer.as_bytes()).await.unwrap();
    shake(&request, near).await.map(drop)
}

#[tokio::test]
async fn another_answer_comes_with_the_beginning_of_its_body() {
    let failed = shaken_long("HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nrate").await;
    let Err(Unshaken::Answered(response)) = failed else { panic!("{failed:?}") };
    assert_eq!((response.status().as_u16(), response.body().as_deref()), (403, Some(b"rate".as_slice())));
}
