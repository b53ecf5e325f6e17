//! From an HTTP request to a session.
//!
//! The upgrade is hyper's own: axum's detaches its task, and then nobody could end it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::authenticate::Unauthenticated;
use super::core::{Core, Stage};
use super::session::{Connected, Peer, serve};
use super::tasks::Tasks;
use crate::log::Log;
use crate::wire::SUBPROTOCOL;

/// How long authentication, the log's head and the switch of protocols may take, each.
const BOUND: Duration = Duration::from_secs(5);

/// What a client that is turned away is asked to wait, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Answers `GET /`: 101 and a session, or why not.
pub(crate) async fn upgrade<B: Send + 'static>(core: Arc<Core>, tasks: &Tasks, request: Request<B>) -> Response<Body> {
    match accept(core, tasks, request).await {
        Ok(response) => response,
        Err(status) => refuse(status),
    }
}

async fn accept<B: Send + 'static>(
    core: Arc<Core>,
    tasks: &Tasks,
    request: Request<B>,
) -> Result<Response<Body>, StatusCode> {
    let accept = handshake(&request)?;
    if *core.stage.borrow() != Stage::Serving {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let principal = match core.within(BOUND, core.authenticate.authenticate(request.headers())).await {
        Some(Ok(principal)) => principal,
        Some(Err(Unauthenticated::Refused)) => return Err(StatusCode::UNAUTHORIZED),
        Some(Err(Unauthenticated::Unavailable)) | None => return Err(StatusCode::SERVICE_UNAVAILABLE),
    };
    // The log's own head, not what this server has seen: a client may have seen more elsewhere, and would
    // take a lower head for another history (R4).
    let head = match core.within(BOUND, core.log.head_of_log()).await {
        Some(Ok(head)) => head,
        Some(Err(_)) | None => return Err(StatusCode::SERVICE_UNAVAILABLE),
    };
    core.saw(head);
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    let connected = Connected::new(&core);
    let upgrading = hyper::upgrade::on(request);
    let session = async move {
        match core.within(BOUND, upgrading).await {
            Some(Ok(io)) => serve(core, TokioIo::new(io), Peer { principal, address, head }, connected).await,
            Some(Err(_)) | None => tracing::debug!("a connection went away before it was upgraded"),
        }
    };
    if !tasks.spawn(session) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    Ok(response)
}

/// The accept key of a WebSocket handshake that asks for our protocol (RFC 6455, 4.2.1).
fn handshake<B>(request: &Request<B>) -> Result<HeaderValue, StatusCode> {
    if request.method() != Method::GET {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let headers = request.headers();
    if !lists(headers, &header::CONNECTION, "upgrade") || !lists(headers, &header::UPGRADE, "websocket") {
        return Err(StatusCode::UPGRADE_REQUIRED);
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(StatusCode::UPGRADE_REQUIRED);
    }
    if !lists(headers, &header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        return Err(StatusCode::BAD_REQUEST);
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or(StatusCode::BAD_REQUEST)?;
    HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| StatusCode::BAD_REQUEST)
}

/// Whether a comma-separated header has this token.
fn lists(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(token))
}

fn refuse(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    match status {
        StatusCode::SERVICE_UNAVAILABLE => {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        StatusCode::UNAUTHORIZED => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        StatusCode::UPGRADE_REQUIRED => {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        _ => {}
    }
    response
}
