//! What a connection leaves behind.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::call::{Args, Method};
use crate::env::{Env, SystemClock, WallClock};
use crate::log::{MemoryLog, Subject};
use crate::server::{Cells, Events, Routes, RpcScope, Running, Server};

/// A server's only task while nobody is connected: the follower of the keys.
const IDLE: usize = 1;

/// S6, W5: an attempt that is given up is told so; what it has spawned can stop.
#[tokio::test(start_paused = true)]
async fn w5_an_abandoned_attempt_is_told() {
    let env = Env::new(SystemClock, 1);
    let (scopes, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let routes = Routes::new("s", 1).command(&Method::new("s.v1/hang"), move |scope: RpcScope, _: Args| {
        scopes.send(scope).unwrap();
        std::future::pending::<Result<Events, _>>()
    });
    let server = Server::builder(MemoryLog::new(&env)).env(env.clone()).service(routes).start().await.unwrap();
    let mut socket = connect(&server).await;
    socket.send(call(1, "hang")).await.unwrap();
    let scope = begun.recv().await.unwrap();
    let attempt = scope.deadline().unwrap().saturating_duration_since(env.tokio_instant(env.instant()));
    assert_eq!((scope.is_canceled(), attempt), (false, Duration::from_secs(30)));
    let minted = SystemClock.now().millis();
    let cancel = format!(r#"{{"type":"cancel","call":2,"key":"hang1","minted":{minted}}}"#);
    socket.send(Message::text(cancel)).await.unwrap();
    scope.canceled().await;
    assert!(socket.next().await.unwrap().unwrap().to_text().unwrap().contains("CANCELED"));
}

async fn start(env: &Env) -> (Server, Cells<String, u64>) {
    let cells: Cells<String, u64> = Cells::new();
    let live = cells.clone();
    let routes = Routes::new("s", 1)
        .read(&Method::new("s.v1/read"), move |_: &RpcScope, _: Args| Ok(live.live(&"a".to_owned())))
        .command(&Method::new("s.v1/hang"), |_: RpcScope, _: Args| std::future::pending::<Result<Events, _>>())
        .command(&Method::new("s.v1/run"), |_: RpcScope, _: Args| async {
            Ok(Running::new(Events::on(Subject::of(["a"])).push("begun")))
        });
    (Server::builder(MemoryLog::new(env)).env(env.clone()).service(routes).start().await.unwrap(), cells)
}

async fn connect(server: &Server) -> WebSocketStream<DuplexStream> {
    let (near, far) = tokio::io::duplex(64 << 10);
    let mut request = "ws://test/".into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "outlast.v1".parse().unwrap());
    let (served, dialed) = tokio::join!(server.serve_io(far), tokio_tungstenite::client_async(request, near));
    served.unwrap();
    let mut socket = dialed.unwrap().0;
    assert!(socket.next().await.unwrap().unwrap().to_text().unwrap().contains("welcome"));
    socket
}

fn call(call: u64, method: &str) -> Message {
    Message::text(format!(
        r#"{{"type":"call","call":{call},"method":"s.v1/{method}","params":{{}},"key":"{method}{call}",
            "level":"minted","minted":{},"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}}"#,
        SystemClock.now().millis()
    ))
}

/// FC-35, S6: a connection's watches, subscriptions and tasks go with it; its calls in flight go when they
/// are resolved, within the handler's bound.
#[tokio::test(start_paused = true)]
async fn fc35_a_connection_leaves_nothing_behind() {
    let env = Env::new(SystemClock, 1);
    let (server, cells) = start(&env).await;
    let (core, tasks) = (&server.owner.core, &server.owner.tasks);
    assert_eq!(tasks.len(), IDLE);
    let mut socket = connect(&server).await;
    let subscribe = r#"{"type":"subscribe","sub":1,"method":"s.v1/read","params":{}}"#;
    for frame in [Message::text(subscribe), call(1, "run"), call(2, "hang")] {
        socket.send(frame).await.unwrap();
    }
    let told = [socket.next().await, socket.next().await].map(|frame| frame.unwrap().unwrap().into_text().unwrap());
    assert!(told.iter().any(|frame| frame.contains("absent")) && told.iter().any(|frame| frame.contains("PENDING")));
    assert!(!core.keys.is_empty() && cells.watchers() == 1);
    assert_eq!(tasks.len(), IDLE + 2, "the session, and the call in flight");

    drop(socket);
    env.sleep_until(Some(env.instant() + Duration::from_millis(1))).await;
    assert!(core.keys.is_empty() && cells.watchers() == 0);
    assert_eq!((tasks.len(), server.connections()), (IDLE + 1, 0), "the call goes on");
    env.sleep_until(Some(env.instant() + Duration::from_secs(31))).await;
    assert_eq!((tasks.len(), *core.executions.count().borrow()), (IDLE, 0), "and is resolved");
}
