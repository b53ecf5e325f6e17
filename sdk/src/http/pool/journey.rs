//! Where a request is on its way, told truthfully although reqwest does not say it.
//!
//! The name is resolved and the connection made inside the future of the request that wants it, so a task-local names
//! that request there. A connection that goes on without it (another one became free first) is polled elsewhere, finds
//! no request, and tells nobody. That the request is handed to its connection shows when the connection asks whether
//! there is a body.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::error::Phase;
use crate::http::exchange::Progress;

/// How much of a body is handed to a connection at a time: the rest is not written yet, and that is known.
const PIECE: usize = 64 << 10;

tokio::task_local! {
    static CURRENT: Arc<Journey>;
}

/// One request on its way.
pub(super) struct Journey {
    progress: Progress,
    place: Mutex<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    phase: Phase,
    over: bool,
}

impl Journey {
    pub(super) fn new(progress: Progress) -> Arc<Self> {
        // As `Progress` has it: on a connection that is there already.
        Arc::new(Self { progress, place: Mutex::new(Place { phase: Phase::FirstByte, over: false }) })
    }

    /// Runs `future` as the way of `journey`.
    pub(super) async fn scope<F: Future>(journey: Arc<Self>, future: F) -> F::Output {
        CURRENT.scope(journey, future).await
    }

    /// `phase` begins for the request in whose future this is called, if it is called in one.
    pub(super) fn current_begins(phase: Phase) {
        // An error means that the request has its connection from elsewhere, or is gone.
        let _ = CURRENT.try_with(|journey| journey.begins(phase));
    }

    pub(super) fn begins(&self, phase: Phase) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if !place.over && place.phase != phase {
            place.phase = phase;
            self.progress.begins(phase);
        }
    }

    /// It is over, in the phase returned; nothing is told any more. A body may still be on its way up then.
    pub(super) fn over(&self) -> Phase {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.over = true;
        place.phase
    }
}

/// The body of a request, which says when it is asked for and when it is gone.
pub(super) struct Sent {
    rest: Bytes,
    begun: AtomicBool,
    journey: Arc<Journey>,
}

impl Sent {
    pub(super) fn new(body: Bytes, journey: Arc<Journey>) -> Self {
        Self { rest: body, begun: AtomicBool::new(false), journey }
    }

    fn phase(&self) -> Phase {
        if self.rest.is_empty() { Phase::FirstByte } else { Phase::Write }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(piece);
        self.journey.begins(self.phase());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        if !self.begun.swap(true, Ordering::Relaxed) {
            self.journey.begins(self.phase());
        }
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
