//! One open stream; it reconnects by itself.

use url::Url;

use super::dialing::Dialing;
use super::following::Following;
use super::{Kind, Report, as_http};
use crate::error::Error;
use crate::http::requester::Requester;

/// One stream, at work.
pub(super) enum Source {
    Events(Box<Following>),
    WebSocket(Box<Dialing>),
}

impl Source {
    /// Beside a read of `read`, whose requests `requester` sends. Nothing is sent before [`next`](Self::next) is called.
    pub(super) fn new(kind: Kind, requester: &Requester, read: &Url) -> Result<Self, Error> {
        Ok(match kind {
            Kind::Events(events) => {
                let url = events.address()?;
                let requester = beside(requester, &url, read);
                Self::Events(Box::new(Following::new(events, url, requester)))
            }
            Kind::WebSocket(websocket) => {
                let url = websocket.address()?;
                let requester = beside(requester, &url, read);
                Self::WebSocket(Box::new(Dialing::new(websocket, url, requester)))
            }
        })
    }

    /// What happens next. Cancel safe.
    pub(super) async fn next(&mut self) -> Report {
        match self {
            Self::Events(following) => following.next().await,
            Self::WebSocket(dialing) => dialing.next().await,
        }
    }

    /// Lets go of it; the next [`next`](Self::next) begins anew.
    pub(super) fn stop(&mut self) {
        match self {
            Self::Events(following) => following.stop(),
            Self::WebSocket(dialing) => dialing.stop(),
        }
    }
}

/// What sends the requests of a stream at `url` beside a read of `read`.
fn beside(requester: &Requester, url: &Url, read: &Url) -> Requester {
    if as_http(url).origin() == read.origin() { requester.clone() } else { requester.without_secrets() }
}
