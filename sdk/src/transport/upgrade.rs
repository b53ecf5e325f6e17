//! What makes a WebSocket of a connection (RFC 6455, 4.1): TLS, upgrade. Each step says that it begins; the caller
//! bounds it (R7).

use ::http::{HeaderMap, Response};
use tokio_tungstenite::tungstenite::handshake::client::Request;

use super::handshake::{Unshaken, shake};
use super::meter::Metered;
use super::network::Io;
use super::tls::Tls;
use super::websocket::Socket;
use crate::error::{Cause, Phase};

/// A WebSocket that is open.
pub(crate) struct Upgraded {
    pub(crate) socket: Socket<Box<dyn Io>>,
    /// Of the answer.
    pub(crate) headers: HeaderMap,
}

/// Why none was opened.
#[derive(Debug)]
pub(crate) enum NoUpgrade {
    /// No connection was made there, or no TLS session: another address may do better.
    Unreachable(Cause),
    /// The peer answered with something else.
    Answered(Box<Response<Option<Vec<u8>>>>),
    /// The peer ended the connection, or what it said was no answer.
    Broken(Cause),
}

/// Opens a WebSocket over `io`, a connection to `place`, by sending `request`; with TLS, in a session with `host`. Unbounded
/// in time: the caller aborts it.
pub(crate) async fn upgrade(
    mut io: Box<dyn Io>,
    tls: Option<Tls>,
    host: &str,
    place: &str,
    request: Request,
    mut begins: impl FnMut(Phase),
) -> Result<Upgraded, NoUpgrade> {
    let failed = |e: &dyn std::fmt::Display| Cause::Unreachable { detail: format!("{place}: {e}").into() };
    if let Some(tls) = tls {
        begins(Phase::Tls);
        let stream = tls.connect(host, io).await.map_err(|e| NoUpgrade::Unreachable(failed(&e)))?;
        io = Box::new(stream);
    }
    begins(Phase::Upgrade);
    match shake(&request, Metered::new(io)).await {
        Ok((stream, headers)) => Ok(Upgraded { socket: Socket::new(stream), headers }),
        Err(Unshaken::Answered(response)) => Err(NoUpgrade::Answered(response)),
        Err(Unshaken::Dropped) => Err(NoUpgrade::Broken(Cause::Dropped { code: None })),
        Err(Unshaken::Broken(e)) => Err(NoUpgrade::Broken(failed(&e))),
    }
}
