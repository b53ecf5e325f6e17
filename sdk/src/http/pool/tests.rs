//! The pool against peers on the loopback interface, in real time: what matters here is what sockets do.

mod files;
mod http1;
mod http2;
pub(in crate::http) mod peers;
mod phases;
mod proxies;
mod tls;

use std::time::Duration;

use url::Url;

use super::*;

/// Nothing here waits for so long: it ends a test that would hang.
const LONG: Duration = Duration::from_secs(20);

fn builder() -> PoolBuilder {
    Pool::builder().no_proxy().recheck(Duration::ZERO)
}

fn pool() -> Pool {
    builder().build().unwrap()
}

fn get(url: &str) -> Request {
    Request::get(Url::parse(url).unwrap())
}

fn fresh(url: &str) -> Request {
    let mut request = get(url);
    request.connection = Connection::Fresh;
    request
}

#[expect(clippy::disallowed_methods, reason = "bounds a test in real time")]
pub(in crate::http) async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LONG, future).await.expect("within the bound of a test")
}

/// The status and the body.
async fn fetched(pool: &Pool, request: Request) -> Result<(u16, Vec<u8>), Failure> {
    bounded(async {
        let mut answer = pool.send(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            body.extend(chunk);
        }
        Ok((answer.status.as_u16(), body))
    })
    .await
}

async fn failed(pool: &Pool, request: Request) -> Failure {
    fetched(pool, request).await.expect_err("no whole answer")
}

async fn kind(pool: &Pool, request: Request) -> FailureKind {
    failed(pool, request).await.kind
}
