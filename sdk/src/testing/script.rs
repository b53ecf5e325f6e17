//! A service whose answers are written down in advance.

mod life;
mod line;
mod parse;
mod reply;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::http::{HeaderMap, Method};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::net::Net;
pub use reply::{Reply, StreamHandle};

/// A scripted HTTP/1.1 service on an address of a [`Net`], which can misbehave in every way that a [`Reply`] knows.
///
/// A target that nothing is scripted for is answered with 404. Connections are kept for the next request, unless a reply ends them.
/// Dropping it, or [`kill`](Self::kill), is `kill -9`: connections end without another byte and the address vanishes.
/// What is scripted and what was asked outlives that; [`revive`](Self::revive) starts another life with it.
pub struct Script {
    net: Net,
    address: Arc<str>,
    shared: Arc<Shared>,
    life: Mutex<JoinSet<()>>,
}

impl Script {
    /// Serves `address` of `net`; nothing is scripted yet.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn serve(net: &Net, address: &str) -> Self {
        let script = Self { net: net.clone(), address: address.into(), shared: Arc::default(), life: Mutex::default() };
        script.revive();
        script
    }

    /// Answers requests for `target` with `replies` in turn; the last one repeats. It replaces what `target` had before,
    /// and an empty list leaves nothing.
    ///
    /// A target is a path, with its query or without. One with the query goes before one without, whatever the method.
    pub fn replies(&self, target: &str, replies: impl IntoIterator<Item = Reply>) {
        let mut rest = replies.into_iter().collect::<Vec<_>>().into_iter();
        match rest.next() {
            Some(mut now) => self.on(target, move |_| match rest.next() {
                Some(next) => std::mem::replace(&mut now, next),
                None => now.clone(),
            }),
            None => drop(self.shared.lock().answers.remove(target)),
        }
    }

    /// Answers requests for `target` as `answer` says. It replaces what `target` had before.
    ///
    /// Requests on several connections are answered one after the other.
    pub fn on(&self, target: &str, answer: impl FnMut(&Asked) -> Reply + Send + 'static) {
        let answer: Answers = Arc::new(Mutex::new(answer));
        self.shared.lock().answers.insert(target.into(), answer);
    }

    /// The requests for `target` so far, in all lives: a path, with its query or without.
    pub fn asked(&self, target: &str) -> Vec<Asked> {
        self.shared.lock().asked.iter().filter(|asked| asked.is_for(target)).cloned().collect()
    }

    /// How many requests there were so far, for whatever target and in all lives.
    pub fn total(&self) -> usize {
        self.shared.lock().asked.len()
    }

    /// Waits until there were `n` requests for `target`, in all lives, and gives the last of these.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn until(&self, target: &str, n: usize) -> Asked {
        let mut changes = self.shared.changes.subscribe();
        loop {
            if let Some(asked) = self.shared.lock().asked.iter().filter(|asked| asked.is_for(target)).nth(n.max(1) - 1)
            {
                return asked.clone();
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await; // it cannot be: `shared` holds the sender
            }
        }
    }

    /// How many connections were accepted so far, in all lives.
    pub fn connections(&self) -> u64 {
        self.shared.lock().lines.accepted()
    }

    /// How many connections are open now.
    pub fn open(&self) -> usize {
        self.shared.lock().lines.open()
    }

    /// Ends each connection that is open now and has had a request, exactly when its next request arrives and without
    /// an answer (FC-90). That request does not count as asked; [`hung_up`](Self::hung_up) counts it.
    pub fn close_idle_on_next_request(&self) {
        self.shared.lock().distrusted += 1;
    }

    /// How many requests [`close_idle_on_next_request`](Self::close_idle_on_next_request) has left without an answer.
    pub fn hung_up(&self) -> usize {
        self.shared.lock().hung_up
    }

    /// `kill -9`: all connections end at once without another byte, and new ones are refused.
    pub fn kill(&self) {
        // The old listener goes only when the runtime drops its task. Another takes its place at once, and goes.
        drop(self.net.listen(&self.address));
        self.end();
    }

    /// Starts another life on the same address; one that goes on is killed.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn revive(&self) {
        let listener = self.net.listen(&self.address);
        self.end();
        self.life().spawn(life::run(listener, Arc::clone(&self.shared)));
    }

    fn end(&self) {
        *self.life() = JoinSet::new();
        // Tasks go when the runtime comes to it; the connections of a dead process are gone at once.
        let lines = self.shared.lock().lines.take();
        lines.into_iter().for_each(line::End::cut);
    }

    fn life(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("address", &self.address).field("total", &self.total()).finish_non_exhaustive()
    }
}

/// A request as the service got it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Asked {
    /// When its last byte had come.
    pub at: Instant,
    /// The method.
    pub method: Method,
    /// The path and the query.
    pub target: String,
    /// The headers, `Host` too.
    pub headers: HeaderMap,
    /// Which connection it came on; they are counted from 1 over all lives.
    pub connection: u64,
    /// The body.
    pub body: Bytes,
}

impl Asked {
    /// A header's first value, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(&*self.target, |(path, _)| path)
    }

    fn is_for(&self, target: &str) -> bool {
        self.target == target || self.path() == target
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No headers, query or body: they may hold secrets.
        f.debug_struct("Asked")
            .field("at", &self.at)
            .field("method", &self.method)
            .field("path", &self.path())
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

type Answers = Arc<Mutex<dyn FnMut(&Asked) -> Reply + Send>>;

/// Everything but the tasks of a life.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answers>,
    asked: Vec<Asked>,
    lines: line::Lines,
    /// How often the idle connections were told to end on their next request.
    distrusted: u64,
    hung_up: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request and decides on the answer.
    fn ask(&self, asked: Asked) -> Reply {
        let answer = {
            let mut state = self.lock();
            state.asked.push(asked.clone());
            state.answers.get(&asked.target).or_else(|| state.answers.get(asked.path())).cloned()
        };
        self.changes.send_replace(());
        // Outside the lock: the closure may look at the script.
        match answer {
            Some(answer) => answer.lock().unwrap_or_else(PoisonError::into_inner)(&asked),
            None => Reply::status(404).body(format!("nothing is scripted for {}", asked.path())),
        }
    }
}

#[cfg(test)]
mod tests;
