//! Which keys are in flight, and the way of a request to the flight of its key.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};

use super::execution::Want;
use super::keywatch::Reply;
use super::routes::CommandHandler;
use super::scope::RpcScopeBuilder;
use crate::log::Subject;

/// One request to one key.
pub(crate) struct Request {
    pub(crate) want: Want,
    pub(crate) reply: Reply,
    /// What to run, if it is a call.
    pub(crate) invocation: Option<Invocation>,
}

/// A handler and what it is called with.
pub(crate) struct Invocation {
    pub(crate) handler: CommandHandler,
    pub(crate) params: Box<RawValue>,
    pub(crate) scope: RpcScopeBuilder,
}

/// The keys for which somebody waits: one flight each.
#[derive(Debug)]
pub(crate) struct Executions {
    flights: Mutex<HashMap<Subject, mpsc::UnboundedSender<Request>>>,
    count: watch::Sender<usize>,
}

impl Default for Executions {
    fn default() -> Self {
        Self { flights: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Executions {
    /// How many keys are in flight.
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Takes a request to the flight of its key. Where there is none `start` starts one on the requests to come, and says
    /// whether it could.
    ///
    /// # Errors
    /// The reply of a request that no flight will take, because none could be started.
    pub(crate) fn submit(
        &self,
        key: Subject,
        mut request: Request,
        start: impl FnOnce(Subject, mpsc::UnboundedReceiver<Request>) -> bool,
    ) -> Result<(), Reply> {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(&key) {
            match flight.send(request) {
                Ok(()) => return Ok(()),
                Err(unsent) => request = unsent.0, // its task was lost; only the log knows what it did
            }
        }
        let (sender, inbox) = mpsc::unbounded_channel();
        let reply = request.reply.clone();
        // The receiver is here, so it cannot fail.
        let _ = sender.send(request);
        if !start(key.clone(), inbox) {
            return Err(reply);
        }
        flights.insert(key, sender);
        self.count.send_replace(flights.len());
        Ok(())
    }

    /// The next request, or the flight's end: under one lock, so that no request falls between.
    pub(crate) fn land(&self, key: &Subject, inbox: &mut mpsc::UnboundedReceiver<Request>) -> Option<Request> {
        let mut flights = self.lock();
        let next = inbox.try_recv().ok();
        if next.is_none() {
            flights.remove(key);
            self.count.send_replace(flights.len());
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Subject, mpsc::UnboundedSender<Request>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
