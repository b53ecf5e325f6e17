//! Each misbehaviour of a script, as the simulated exchange sees it.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use url::Url;

use crate::error::Phase;
use crate::http::Exchange;
use crate::http::exchange::{Answer, Connection, Failure, FailureKind, Progress, Request};
use crate::testing::{Net, Reply, Script, SimulatedExchange};

fn get(path: &str) -> Request {
    Request::get(Url::parse("http://ci.example/").unwrap().join(path).unwrap())
}

fn world() -> (Net, Script, SimulatedExchange) {
    let net = Net::new();
    let script = Script::serve(&net, "ci.example");
    let exchange = SimulatedExchange::new(net.clone());
    (net, script, exchange)
}

async fn whole(answer: &mut Answer) -> Result<Bytes, Failure> {
    let mut all = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all.into())
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_and_its_connection_is_used_again() {
    let (_net, script, exchange) = world();
    script.replies("/run", [Reply::json(json!({ "status": "running" })), Reply::status(304)]);
    let mut answer = exchange.send(get("/run?page=2")).await.unwrap();
    assert_eq!((answer.status.as_u16(), &*whole(&mut answer).await.unwrap()), (200, &b"{\"status\":\"running\"}"[..]));
    for _ in 0..2 {
        assert_eq!(exchange.send(get("/run")).await.unwrap().status, 304);
    }
    assert_eq!((script.connections(), script.total(), script.asked("/run").len()), (1, 3, 3));
}
