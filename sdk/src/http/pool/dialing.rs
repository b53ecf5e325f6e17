//! What is told while a connection is made: that it begins, that its TLS session begins, that it came to nothing.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use rustls::NamedGroup;
use rustls::client::{ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use tower_layer::Layer;
use tower_service::Service;

use super::journey::Journey;
use crate::error::Phase;

/// Wraps what connects.
#[derive(Clone)]
pub(super) struct Dialing {
    pub(super) failed: Arc<AtomicUsize>,
}

impl<S> Layer<S> for Dialing {
    type Service = Dialed<S>;

    fn layer(&self, inner: S) -> Dialed<S> {
        Dialed { inner: Arc::new(inner), failed: Arc::clone(&self.failed) }
    }
}

/// It is cloned for each request, also for those that need no new connection: what is inside only for those that do.
pub(super) struct Dialed<S> {
    inner: Arc<S>,
    failed: Arc<AtomicUsize>,
}

impl<S> Clone for Dialed<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), failed: Arc::clone(&self.failed) }
    }
}

impl<S, R> Service<R> for Dialed<S>
where
    R: Send + 'static,
    S: Service<R> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Send,
    S::Response: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(())) // what is inside is waited for in the call
    }

    fn call(&mut self, request: R) -> Self::Future {
        let mut inner = S::clone(&self.inner);
        let failed = Arc::clone(&self.failed);
        Box::pin(async move {
            let mut attempt = Attempt { failed, connected: false };
            Journey::current_begins(Phase::Connect);
            let dialed = match poll_fn(|cx| inner.poll_ready(cx)).await {
                Ok(()) => inner.call(request).await,
                Err(e) => Err(e),
            };
            attempt.connected = dialed.is_ok();
            dialed
        })
    }
}

/// Counts as failed when it is dropped before it has connected: its caller's bound passed.
struct Attempt {
    failed: Arc<AtomicUsize>,
    connected: bool,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.connected {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sessions to resume. rustls looks here when it begins a handshake, which is how that is known.
#[derive(Debug)]
pub(super) struct Sessions(ClientSessionMemoryCache);

impl Sessions {
    pub(super) fn new() -> Self {
        Self(ClientSessionMemoryCache::new(256)) // rustls' own default
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(server_name, group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        Journey::current_begins(Phase::Tls);
        self.0.kx_hint(server_name)
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(server_name, value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(server_name)
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        self.0.remove_tls12_session(server_name);
    }

    fn insert_tls13_ticket(&self, server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(server_name, value);
    }

    fn take_tls13_ticket(&self, server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(server_name)
    }
}
