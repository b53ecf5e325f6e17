//! Names, addresses and connections in memory.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::BoxFuture;
use tokio::sync::mpsc;

use super::pipe::{Pipe, Wire};
use crate::transport::{Io, Network};

/// As much as a socket's buffers hold, about.
const CAPACITY: usize = 64 << 10;

/// A network in memory. Cloning is cheap and shares it.
#[derive(Clone, Debug, Default)]
pub struct Net {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    names: HashMap<Arc<str>, Vec<Arc<str>>>,
    listening: HashMap<Arc<str>, Slot>,
    silent: Vec<Arc<str>>,
    wires: Vec<(Arc<str>, Weak<Wire>)>,
    connects: HashMap<Arc<str>, u64>,
    generation: u64,
}

#[derive(Debug)]
struct Slot {
    generation: u64,
    accept: mpsc::UnboundedSender<Pipe>,
}

impl Net {
    /// A network without any address.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `name` resolve to `addresses`, best first. A name that was never given one resolves to itself;
    /// one given an empty list does not resolve.
    pub fn name<'a>(&self, name: &str, addresses: impl IntoIterator<Item = &'a str>) {
        self.lock().names.insert(name.into(), addresses.into_iter().map(Arc::from).collect());
    }

    /// Listens on `address` until the listener is dropped. A later listener on the same address replaces an earlier one.
    pub fn listen(&self, address: &str) -> Listener {
        let (accept, incoming) = mpsc::unbounded_channel();
        let mut state = self.lock();
        state.generation += 1;
        let generation = state.generation;
        state.listening.insert(address.into(), Slot { generation, accept });
        Listener { net: self.clone(), address: address.into(), generation, incoming }
    }

    /// Loses every byte to and from `address`, without an end, and lets new connects hang, until [`heal`](Self::heal).
    pub fn silence(&self, address: &str) {
        let mut state = self.lock();
        state.silent.push(address.into());
        for (_, wire) in state.wires.iter().filter(|(at, _)| **at == *address) {
            if let Some(wire) = wire.upgrade() {
                wire.silence();
            }
        }
    }

    /// Lets new connects to `address` through again. Connections that fell silent stay so.
    pub fn heal(&self, address: &str) {
        self.lock().silent.retain(|silent| **silent != *address);
    }

    /// How many connects `address` has seen, those that were refused included.
    pub fn connects(&self, address: &str) -> u64 {
        self.lock().connects.get(address).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects at once; `None` means silence.
    fn open(&self, address: &str) -> Option<io::Result<Pipe>> {
        let mut state = self.lock();
        *state.connects.entry(address.into()).or_default() += 1;
        if state.silent.iter().any(|silent| **silent == *address) {
            return None;
        }
        let (ours, theirs, wire) = Pipe::pair(CAPACITY);
        let accepted = state.listening.get(address).is_some_and(|slot| slot.accept.send(theirs).is_ok());
        if !accepted {
            return Some(Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nothing listens there")));
        }
        state.wires.retain(|(_, wire)| wire.strong_count() > 0);
        state.wires.push((address.into(), Arc::downgrade(&wire)));
        Some(Ok(ours))
    }
}

impl Network for Net {
    fn resolve(&self, host: Arc<str>, _port: u16) -> BoxFuture<'static, io::Result<Vec<Arc<str>>>> {
        let found = self.lock().names.get(&host).cloned().unwrap_or_else(|| vec![host]);
        Box::pin(std::future::ready(if found.is_empty() {
            Err(io::Error::new(io::ErrorKind::NotFound, "no such name"))
        } else {
            Ok(found)
        }))
    }

    fn connect(&self, address: Arc<str>) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        match self.open(&address) {
            Some(opened) => Box::pin(std::future::ready(opened.map(|pipe| Box::new(pipe) as Box<dyn Io>))),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// Accepts connections to one address; dropping it makes the address vanish.
#[derive(Debug)]
pub struct Listener {
    net: Net,
    address: Arc<str>,
    generation: u64,
    incoming: mpsc::UnboundedReceiver<Pipe>,
}

impl Listener {
    /// The next connection. It ends only when another listener has taken the address over.
    ///
    /// # Cancel safety
    /// No connection is lost.
    pub async fn accept(&mut self) -> Option<Box<dyn Io>> {
        self.incoming.recv().await.map(|pipe| Box::new(pipe) as Box<dyn Io>)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.net.lock();
        if state.listening.get(&self.address).is_some_and(|slot| slot.generation == self.generation) {
            state.listening.remove(&self.address);
        }
    }
}
