//! Server-sent events beside a read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::{Happening, Kind, Push, address};
use crate::connection::Endpoint;
use crate::error::Error;
use crate::http::{feed, sse};

/// An event stream of a service that says when something changes, being set up; it becomes a [`Push`].
///
/// By default each event is a reason to look. A stream that is silent for a minute, comments included, is asked for anew,
/// with a look. After 204 it is not asked for any more (WHATWG HTML, 9.2.3): the read is polled.
#[derive(Clone)]
#[must_use = "it is given to a read"]
pub struct Events {
    url: Arc<str>,
    /// `None`: all of them count.
    named: Option<Arc<[Arc<str>]>>,
    values: bool,
    pub(super) replays: bool,
    pub(super) quiet: Duration,
}

impl Events {
    pub(super) fn new(url: &str) -> Self {
        let quiet = feed::Settings::default().quiet;
        Self { url: url.into(), named: None, values: false, replays: false, quiet }
    }

    /// Only events of these types count; one that states none is a `message`. Default: all.
    pub fn named(mut self, types: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.named = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// The data of an event is the new value as a whole, as the read itself would answer it. Default: it is not looked at.
    ///
    /// Events come late and twice. So the value is shown at once only where its [marks](crate::http::Read::marks) prove
    /// that it is later than what is shown: a higher version, or a higher attempt. Any other one is a reason to look (R4).
    pub fn values(mut self) -> Self {
        self.values = true;
        self
    }

    /// Whether the service gives the events after `Last-Event-ID` when it is asked again. Default no.
    pub fn replays(mut self, replays: bool) -> Self {
        self.replays = replays;
        self
    }

    /// How long it may be silent, comments included, before it is asked for anew (R7). Default 60 s.
    pub fn quiet(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// With another stream of the same, for where this one cannot be had; see [`Push::or`].
    pub fn or(self, other: impl Into<Push>) -> Push {
        Push::from(self).or(other)
    }

    pub(super) fn address(&self) -> Result<Url, Error> {
        address(&self.url, &["http", "https"], "an absolute http:// or https:// URL")
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        let Self { url, named, values, replays, quiet } = self;
        (url, named, values, replays, quiet) == (&other.url, &other.named, &other.values, &other.replays, &other.quiet)
    }

    pub(super) fn happening(&self, event: &sse::Event) -> Option<Happening> {
        let counts = self.named.as_ref().is_none_or(|types| types.iter().any(|kind| **kind == *event.kind));
        counts.then(|| match self.values {
            true => Happening::Value(event.data.as_bytes().to_vec().into()),
            false => Happening::Hint,
        })
    }
}

impl From<Events> for Push {
    fn from(events: Events) -> Self {
        Self { kinds: vec![Kind::Events(events)] }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = Endpoint::new(Arc::clone(&self.url));
        f.debug_struct("Events").field("url", &url).field("named", &self.named).finish_non_exhaustive()
    }
}
