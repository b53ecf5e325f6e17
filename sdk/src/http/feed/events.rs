//! Event streams.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use ::http::header::CACHE_CONTROL;
use ::http::{HeaderName, StatusCode};
use bytes::Bytes;
use url::Url;

use super::item::Position;
use super::reader::{Ask, Growth, Head, Out, Reached, Reader, Then, Trouble};
use super::settings::Replay;
use crate::error::Cause;
use crate::http::sse::{Event, EventRef, Parser};

/// How many events that were delivered are recognised when they come again.
const RECENT: usize = 256;
/// The longest wait that a stream may ask for with `retry`.
const MOST_RETRY: Duration = Duration::from_secs(60);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Reads an event stream on from the last id, one subscription at a time (FC-23).
///
/// After a reconnect, what was delivered and comes again is left out; and where something may be missing there is one
/// gap: if the last event had no id, if the service does not replay, or if ids that count up by one are not continued.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EventReader {
    url: Url,
    replay: Replay,
    parser: Parser,
    /// The id of the last event that was delivered, if it had one.
    last: Option<Arc<str>>,
    /// Digests of id and content of the last events that had one.
    recent: VecDeque<(u64, u64)>,
    /// Whether the ids so far count up by one.
    dense: bool,
    /// It was connected before.
    connected: bool,
    /// No event with an id that is new has come since the reconnect.
    resuming: bool,
    /// The reconnect was a gap.
    gapped: bool,
    /// Nothing was delivered since the last gap: one more would say nothing.
    open_gap: bool,
}

impl EventReader {
    /// A stream of events of at most `bound` bytes.
    pub(super) fn new(url: Url, replay: Replay, bound: usize) -> Self {
        Self {
            url,
            replay,
            parser: Parser::bounded(bound),
            last: None,
            recent: VecDeque::new(),
            dense: true,
            connected: false,
            resuming: false,
            gapped: false,
            open_gap: false,
        }
    }

    fn position(&self) -> Option<Position> {
        let id = self.parser.last_id();
        (!id.is_empty()).then(|| Position::Event(id.into()))
    }
}

fn hash(parts: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// The part of the reader that an event changes, apart from the parser that lends it.
struct Course<'a> {
    last: &'a mut Option<Arc<str>>,
    recent: &'a mut VecDeque<(u64, u64)>,
    dense: &'a mut bool,
    resuming: &'a mut bool,
    gapped: bool,
}

impl Course<'_> {
    fn take(&mut self, event: EventRef<'_>, out: &mut Out<Event>) {
        let owned = event.to_event();
        if let Some(id) = &owned.id {
            let digest = (hash(&[id]), hash(&[event.kind, event.data]));
            if *self.resuming && self.recent.contains(&digest) {
                return;
            }
            let follows = match (self.last.as_deref().map(str::parse::<u64>), id.parse::<u64>()) {
                (Some(Ok(last)), Ok(next)) => last.checked_add(1) == Some(next),
                (None, _) => true,
                (Some(_), _) => false,
            };
            if *self.resuming
                && !self.gapped
                && *self.dense
                && !follows
                && is_number(self.last.as_deref())
                && is_number(Some(id))
            {
                let from = self.last.clone().map(Position::Event);
                out.gap(from, Position::Event(Arc::clone(id)));
            } else {
                *self.dense &= follows;
            }
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(digest);
            *self.last = Some(Arc::clone(id));
            // An event without an id says nothing about what was replayed.
            *self.resuming = false;
        }
        out.item(owned);
    }
}

fn is_number(id: Option<&str>) -> bool {
    id.is_some_and(|id| id.parse::<u64>().is_ok())
}

impl Reader for EventReader {
    type Item = Event;
    const ENDLESS: bool = true;

    fn ask(&mut self, _: Growth) -> Ask {
        self.parser.reconnect();
        let ask = Ask::events(self.url.clone()).header(CACHE_CONTROL, "no-cache");
        match self.parser.last_id() {
            "" => ask,
            id => {
                let id = id.to_owned();
                ask.header(LAST_EVENT_ID, &id)
            }
        }
    }

    fn head(&mut self, head: &Head<'_>, out: &mut Out<Event>) -> Result<Then, Trouble> {
        match head.status {
            StatusCode::OK => {}
            // "Do not reconnect" (WHATWG HTML, 9.2.3).
            StatusCode::NO_CONTENT => return Ok(Then::Reached(Reached::Complete)),
            _ => return Err(head.unserved(self.connected)),
        }
        if self.connected {
            self.resuming = !self.parser.last_id().is_empty();
            self.gapped = !(self.resuming && self.parser.is_resumable() && self.replay == Replay::AfterId);
            if self.gapped && !self.open_gap {
                self.open_gap = true;
                // What happened meanwhile, if anything did, is not to be had.
                out.gap(self.position(), None);
            }
        }
        self.connected = true;
        Ok(Then::Read)
    }

    fn piece(&mut self, piece: Bytes, out: &mut Out<Event>) -> Result<(), Trouble> {
        let Self { parser, last, recent, dense, resuming, gapped, .. } = self;
        let before = out.len();
        let mut course = Course { last, recent, dense, resuming, gapped: *gapped };
        parser.push(&piece);
        loop {
            match parser.next_event() {
                Ok(Some(event)) => course.take(event, out),
                Ok(None) => {
                    self.open_gap &= out.len() == before;
                    return Ok(());
                }
                // It would come again after each reconnect.
                Err(e) => return Err(Trouble::Unreadable(Cause::Undecodable { detail: e.to_string().into() })),
            }
        }
    }

    fn end(&mut self, _: &mut Out<Event>) -> Result<Reached, Trouble> {
        // A clean end of a stream is no end (R3).
        Err(Trouble::Unserved(Cause::Dropped { code: None }))
    }

    fn restart(&mut self, _: &mut Out<Event>) {}

    fn size(event: &Event) -> usize {
        event.data.len()
    }

    fn least_delay(&self) -> Duration {
        self.parser.retry().unwrap_or_default().min(MOST_RETRY)
    }
}
