//! One attempt: connect, TLS, upgrade, welcome. Each step says that it begins; the supervisor bounds it (R7).

use std::sync::Arc;
use std::time::Duration;

use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response, StatusCode, header};
use url::Url;

use super::network::{Io, Network};
use super::tls::Tls;
use super::upgrade::{NoUpgrade, Upgraded, upgrade};
use super::websocket::{Received, Socket};
use crate::connection::close::CloseMeaning;
use crate::credential::Credential;
use crate::error::{Cause, Phase};
use crate::wire::{Incoming, SUBPROTOCOL, ServerFrame, Welcome};

/// How long to keep away after a close with 1013 that states no time.
pub(crate) const TRY_AGAIN_LATER: Duration = Duration::from_secs(5);

/// A connection that was welcomed.
pub(crate) struct Dialed {
    pub(crate) socket: Socket<Box<dyn Io>>,
    pub(crate) welcome: Welcome,
}

/// Why an attempt came to nothing.
#[derive(Debug)]
pub(crate) enum DialFailure {
    /// The service refused the credential.
    Refused,
    /// Anything else.
    Failed { cause: Cause, retry_after: Option<Duration> },
}

impl DialFailure {
    fn of(cause: Cause) -> Self {
        Self::Failed { cause, retry_after: None }
    }
}

/// Dials `address` for `url` and waits for the welcome. Unbounded in time: the caller aborts it.
pub(crate) async fn dial(
    network: Arc<dyn Network>,
    tls: Option<Tls>,
    url: Url,
    address: Arc<str>,
    credential: Option<Credential>,
    mut begins: impl FnMut(Phase),
) -> Result<Dialed, DialFailure> {
    let request = upgrade_request(&url, credential)?;
    begins(Phase::Connect);
    let io = network.connect(Arc::clone(&address)).await;
    let io = io.map_err(|e| DialFailure::of(Cause::Unreachable { detail: format!("{address}: {e}").into() }))?;
    let host = url.host_str().unwrap_or_default();
    let upgraded = upgrade(io, tls, host, &address, request, &mut begins).await;
    let Upgraded { mut socket, headers } = upgraded.map_err(|failure| match failure {
        NoUpgrade::Unreachable(cause) | NoUpgrade::Broken(cause) => DialFailure::of(cause),
        NoUpgrade::Answered(response) => refusal(&response),
    })?;
    if headers.get(header::SEC_WEBSOCKET_PROTOCOL).is_none_or(|p| p != SUBPROTOCOL) {
        return Err(DialFailure::of(Cause::Undecodable { detail: format!("subprotocol {SUBPROTOCOL}").into() }));
    }
    begins(Phase::Welcome);
    loop {
        match socket.next().await {
            Received::Text(text) => match ServerFrame::parse(&text) {
                Ok(Incoming::Known(ServerFrame::Welcome(welcome))) => return Ok(Dialed { socket, welcome }),
                Ok(_) => {
                    return Err(DialFailure::of(Cause::Undecodable { detail: "`welcome` as the first frame".into() }));
                }
                Err(e) => return Err(DialFailure::of(Cause::Undecodable { detail: e.to_string().into() })),
            },
            Received::Binary => return Err(DialFailure::of(Received::binary())),
            Received::Pong(_) | Received::Alive | Received::Flushed | Received::Moved { .. } => {}
            Received::Ended { cause, close } => {
                let (code, reason) = close.unzip();
                let hinted = reason.as_deref().and_then(hint);
                return Err(match CloseMeaning::of(code) {
                    CloseMeaning::Refused => DialFailure::Refused,
                    CloseMeaning::RecoverLater => {
                        DialFailure::Failed { cause, retry_after: Some(hinted.unwrap_or(TRY_AGAIN_LATER)) }
                    }
                    CloseMeaning::Recover => DialFailure::Failed { cause, retry_after: hinted },
                });
            }
        }
    }
}

/// A close reason of the form `retry-after=7` (seconds): how our server states a hint with 1013.
pub(crate) fn hint(reason: &str) -> Option<Duration> {
    reason.strip_prefix("retry-after=")?.parse().ok().map(Duration::from_secs)
}

fn upgrade_request(
    url: &Url,
    credential: Option<Credential>,
) -> Result<tungstenite::handshake::client::Request, DialFailure> {
    let bad = |e: &dyn std::fmt::Display| DialFailure::of(Cause::Refused { detail: format!("request: {e}").into() });
    let mut request = url.as_str().into_client_request().map_err(|e| bad(&e))?;
    let headers = request.headers_mut();
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    if let Some(credential) = credential {
        credential.apply(headers);
    }
    Ok(request)
}

fn refusal<B>(response: &Response<B>) -> DialFailure {
    let retry_after = response
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    match (response.status(), retry_after) {
        // A 403 with Retry-After is a rate limit, not a refusal (FC-55).
        (StatusCode::UNAUTHORIZED, _) | (StatusCode::FORBIDDEN, None) => DialFailure::Refused,
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::FORBIDDEN, Some(after)) => {
            DialFailure::Failed { cause: Cause::RateLimited { retry_after: after }, retry_after }
        }
        (status, _) => DialFailure::Failed { cause: Cause::Status { code: status.as_u16() }, retry_after },
    }
}

#[cfg(test)]
mod tests;
