//! A hop in the path: it accepts, and may have nothing behind it.
#![expect(clippy::disallowed_methods, reason = "a line's rate is time")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::net::Net;
use crate::transport::{Io, Network};

/// What a relay does to the connections that it accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Passes everything on.
    None,
    /// Accepts, and ends without a byte.
    Swallow,
    /// Accepts, and never says anything.
    Hang,
    /// Ends the connection once this many bytes have come from the client.
    CutUp(usize),
    /// Ends the connection once this many bytes have come from the server.
    CutDown(usize),
}

#[derive(Debug)]
struct Settings {
    target: Option<Arc<str>>,
    faults: Vec<Fault>,
    rate: Option<u64>,
    passed: (usize, usize),
}

/// A relay on an address of a [`Net`]; dropping it makes the address vanish and ends its connections.
#[derive(Debug)]
pub struct Relay {
    settings: Arc<Mutex<Settings>>,
    _tasks: JoinSet<()>,
}

impl Relay {
    /// Relays `address` to `target`; without one, or when nothing listens there, it accepts and ends without a byte.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(net: &Net, address: &str, target: Option<&str>) -> Self {
        let settings = Arc::new(Mutex::new(Settings {
            target: target.map(Arc::from),
            faults: Vec::new(),
            rate: None,
            passed: (0, 0),
        }));
        let mut listener = net.listen(address);
        let (net, shared) = (net.clone(), Arc::clone(&settings));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Some(client) = listener.accept().await {
                let (fault, target) = {
                    let mut settings = lock(&shared);
                    let fault = if settings.faults.is_empty() { Fault::None } else { settings.faults.remove(0) };
                    (fault, settings.target.clone())
                };
                connections.spawn(relay(net.clone(), client, target, fault, Arc::clone(&shared)));
            }
        });
        Self { settings, _tasks: tasks }
    }

    /// Points it at another address. Open connections stay as they are.
    pub fn point(&self, target: Option<&str>) {
        lock(&self.settings).target = target.map(Arc::from);
    }

    /// Does `fault` to one of the next connections; several are done in the order given.
    pub fn fault(&self, fault: Fault) {
        lock(&self.settings).faults.push(fault);
    }

    /// Passes at most about this many bytes a second each way, on connections that come from now on.
    pub fn rate(&self, bytes_per_second: u64) {
        lock(&self.settings).rate = Some(bytes_per_second.max(1));
    }

    /// The bytes passed so far: from clients, and from the server.
    pub fn passed(&self) -> (usize, usize) {
        lock(&self.settings).passed
    }
}

fn lock(settings: &Mutex<Settings>) -> std::sync::MutexGuard<'_, Settings> {
    settings.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn relay(net: Net, client: Box<dyn Io>, target: Option<Arc<str>>, fault: Fault, settings: Arc<Mutex<Settings>>) {
    let (up_limit, down_limit) = match fault {
        Fault::Swallow => return,
        Fault::Hang => return std::future::pending().await,
        Fault::None => (usize::MAX, usize::MAX),
        Fault::CutUp(bytes) => (bytes, usize::MAX),
        Fault::CutDown(bytes) => (usize::MAX, bytes),
    };
    let Some(target) = target else { return };
    let rate = lock(&settings).rate;
    let Ok(server) = net.connect(target).await else { return };
    let (client_read, client_write) = tokio::io::split(client);
    let (server_read, server_write) = tokio::io::split(server);
    // Either direction's end is the connection's end: a relay keeps no half-open pairs.
    tokio::select! {
        () = pass(client_read, server_write, up_limit, rate, |n| lock(&settings).passed.0 += n) => {}
        () = pass(server_read, client_write, down_limit, rate, |n| lock(&settings).passed.1 += n) => {}
    }
}

/// Copies until the end, an error, or `limit` bytes.
async fn pass<R, W>(mut from: R, mut to: W, mut limit: usize, rate: Option<u64>, mut passed: impl FnMut(usize))
where
    R: AsyncReadExt + Unpin,
    W: AsyncWriteExt + Unpin,
{
    let mut buffer = [0; 4096];
    while limit > 0 {
        let most = limit.min(buffer.len());
        let Ok(n @ 1..) = from.read(&mut buffer[..most]).await else { return };
        if to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
        passed(n);
        limit -= n;
        if let Some(rate) = rate {
            tokio::time::sleep(Duration::from_nanos(n as u64 * 1_000_000_000 / rate)).await;
        }
    }
    // Let what was passed be read before the end is seen.
    let _ = to.flush().await;
    tokio::task::yield_now().await;
}
