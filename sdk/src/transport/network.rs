//! Where connections are made: TCP, or a network in memory for tests.

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connected stream of bytes.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// Resolves names and connects. Both futures may be dropped at any time; their time is bounded by the caller (R7).
pub trait Network: Send + Sync + 'static {
    /// The addresses of `host`, best first, in a form that [`connect`](Self::connect) takes.
    fn resolve(&self, host: Arc<str>, port: u16) -> BoxFuture<'static, io::Result<Vec<Arc<str>>>>;

    /// Connects to one resolved address.
    fn connect(&self, address: Arc<str>) -> BoxFuture<'static, io::Result<Box<dyn Io>>>;
}

/// The operating system's TCP and resolver.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Tcp;

impl Network for Tcp {
    fn resolve(&self, host: Arc<str>, port: u16) -> BoxFuture<'static, io::Result<Vec<Arc<str>>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((&*host, port)).await?;
            Ok(found.map(|address| address.to_string().into()).collect())
        })
    }

    fn connect(&self, address: Arc<str>) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect(&*address).await?;
            // Frames are small and each is awaited by somebody.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}
