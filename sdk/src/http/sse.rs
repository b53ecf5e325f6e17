//! The event stream format (WHATWG HTML, 9.2): bytes in, events out. Pure.

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use memchr::memchr2;

/// What the standard calls an event that names no type.
const MESSAGE: &str = "message";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a `text/event-stream` piece by piece, however it is cut into pieces.
///
/// It keeps what the standard says (WHATWG HTML, 9.2.6): a byte order mark at the start is skipped; CR, LF and CRLF end a
/// line; lines of `data` are joined by LF; an `id` with a NUL is ignored; `retry` is digits only; an event that is not
/// ended by an empty line is discarded with the stream. Invalid UTF-8 is replaced, and only what is invalid.
///
/// ```
/// let mut parser = outlast::http::sse::Parser::new();
/// parser.push(b"id: 7\nevent: done\ndata: {\"ok\":");
/// assert_eq!(parser.next_event()?, None);
/// parser.push(b"true}\n\n");
/// let event = parser.next_event()?.unwrap();
/// assert_eq!((event.id, event.kind, event.data), ("7", "done", r#"{"ok":true}"#));
/// # Ok::<(), outlast::http::sse::TooLarge>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parser {
    bound: usize,
    /// What was pushed and may still be needed.
    buffer: Vec<u8>,
    /// Where the line being read begins.
    line: usize,
    /// No line ends between `line` and here.
    searched: usize,
    /// The bytes of the finished lines of the event being read, without comments.
    size: usize,
    data: Data,
    /// The data of an event with several lines of it.
    joined: Vec<u8>,
    /// The data of an event that is not valid UTF-8.
    replaced: String,
    /// The `event` field of the event being read; empty for none.
    kind: String,
    /// The last `id` field of the event being read, if `id_given`; it counts from the end of the event.
    id: String,
    id_given: bool,
    last_id: String,
    retry: Option<Duration>,
    /// The last byte was a CR that ended a line: an LF after it belongs to it.
    after_cr: bool,
    /// The start of the stream is not read yet.
    start: bool,
    too_large: bool,
    /// An event was given out; what belonged to it is forgotten at the next call.
    dispatched: bool,
    /// An id came with the last event, or after it.
    resumable: bool,
}

/// The `data` of the event being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Data {
    None,
    /// One line, in the buffer.
    Line(Range<usize>),
    /// Several lines, in `joined`.
    Joined,
}

/// One event, borrowed from its [`Parser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EventRef<'a> {
    /// Its type; `message` where it names none.
    pub kind: &'a str,
    /// Its data, the lines joined by LF.
    pub data: &'a str,
    /// The last id that the stream gave, with this event or before it; empty if none.
    pub id: &'a str,
    /// Whether the id was given with this event.
    pub id_given: bool,
}

impl EventRef<'_> {
    /// A copy to keep.
    pub fn to_event(&self) -> Event {
        Event { kind: self.kind.into(), data: self.data.into(), id: self.id_given.then(|| self.id.into()) }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Event {
    /// Its type; `message` where it names none.
    pub kind: String,
    /// Its data, the lines joined by LF.
    pub data: String,
    /// The id that it gave.
    pub id: Option<Arc<str>>,
}

/// An event, or a line, is larger than the bound. The parser reads no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TooLarge {
    /// The bound in bytes.
    pub bound: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event stream: expected events of at most {} bytes", self.bound)
    }
}

impl std::error::Error for TooLarge {}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// The default bound on the size of one event: 1 MiB.
    pub const BOUND: usize = 1 << 20;

    /// At the start of a stream, with the default bound.
    pub fn new() -> Self {
        Self::bounded(Self::BOUND)
    }

    /// At the start of a stream whose events have at most `bound` bytes: of all their lines, without line ends and comments.
    pub fn bounded(bound: usize) -> Self {
        Self {
            bound,
            buffer: Vec::new(),
            line: 0,
            searched: 0,
            size: 0,
            data: Data::None,
            joined: Vec::new(),
            replaced: String::new(),
            kind: String::new(),
            id: String::new(),
            id_given: false,
            last_id: String::new(),
            retry: None,
            after_cr: false,
            start: true,
            too_large: false,
            dispatched: false,
            resumable: true,
        }
    }

    /// Starts on the stream of a new connection: what is not finished is discarded, the last id and `retry` stay.
    pub fn reconnect(&mut self) {
        let mut next = Self::bounded(self.bound);
        next.last_id.push_str(&self.last_id);
        next.retry = self.retry;
        next.resumable = self.resumable;
        *self = next;
    }

    /// The id of the last finished event that had one, or of one before it; empty if there was none. It is what
    /// `Last-Event-ID` says on the next connection.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// Whether [`last_id`](Self::last_id) says exactly how far the stream was read: an id came with the last event or
    /// after it, or there was no event.
    pub fn is_resumable(&self) -> bool {
        self.resumable
    }

    /// How long to wait before the next connection, if the stream said so.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes the next piece of the stream. Its events are had by [`next_event`](Self::next_event).
    pub fn push(&mut self, piece: &[u8]) {
        let kept = match &self.data {
            Data::Line(range) => range.start,
            Data::None | Data::Joined => self.line,
        };
        // What is left is less than one event, and moved once for each piece in which an event ends.
        if kept == self.buffer.len() {
            self.buffer.clear();
        } else {
            self.buffer.drain(..kept);
        }
        self.line -= kept;
        self.searched -= kept;
        if let Data::Line(range) = &mut self.data {
            *range = range.start - kept..range.end - kept;
        }
        self.buffer.extend_from_slice(piece);
    }

    /// The next event of what was pushed; `None` if the rest is not a whole one yet.
    ///
    /// # Errors
    /// When an event is larger than the bound; from then on always.
    pub fn next_event(&mut self) -> Result<Option<EventRef<'_>>, TooLarge> {
        if self.too_large || !self.is_started() {
            return self.check(0).map(|()| None);
        }
        if self.dispatched {
            self.forget();
        }
        loop {
            if self.after_cr
                && let Some(&byte) = self.buffer.get(self.line)
            {
                self.after_cr = false;
                if byte == b'\n' {
                    self.line += 1;
                    self.searched = self.line;
                }
            }
            let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return self.check(self.buffer.len() - self.line).map(|()| None);
            };
            let line = self.line..self.searched + found;
            self.check(line.len())?;
            self.after_cr = self.buffer[line.end] == b'\r';
            self.line = line.end + 1;
            self.searched = self.line;
            if !line.is_empty() {
                self.field(line);
            } else if let Some(data) = self.dispatch() {
                return Ok(Some(self.event(data)));
            }
        }
    }

    /// Skips the byte order mark; false while it may still be one.
    fn is_started(&mut self) -> bool {
        if self.start {
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.line = BYTE_ORDER_MARK.len();
                self.searched = self.line;
            } else if BYTE_ORDER_MARK.starts_with(&self.buffer) {
                return false;
            }
            self.start = false;
        }
        true
    }

    fn check(&mut self, line: usize) -> Result<(), TooLarge> {
        self.too_large |= self.size + line > self.bound;
        if self.too_large { Err(TooLarge { bound: self.bound }) } else { Ok(()) }
    }

    fn field(&mut self, line: Range<usize>) {
        let bytes = &self.buffer[line.clone()];
        let (name, value) = match bytes.iter().position(|&b| b == b':') {
            Some(0) => return,
            Some(colon) => {
                let space = usize::from(bytes.get(colon + 1) == Some(&b' '));
                (&bytes[..colon], line.start + colon + 1 + space..line.end)
            }
            None => (bytes, line.end..line.end),
        };
        self.size += line.len();
        match name {
            b"data" => match &self.data {
                Data::None => self.data = Data::Line(value),
                Data::Line(first) => {
                    self.joined.clear();
                    self.joined.extend_from_slice(&self.buffer[first.clone()]);
                    self.join(value);
                }
                Data::Joined => self.join(value),
            },
            b"event" => {
                set(&mut self.kind, &self.buffer[value]);
            }
            b"id" => {
                let value = &self.buffer[value];
                if !value.contains(&0) {
                    set(&mut self.id, value);
                    self.id_given = true;
                }
            }
            b"retry" => {
                let value = &self.buffer[value];
                if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
                    // Too many digits are as good as the most that can be counted.
                    let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    self.retry = Some(Duration::from_millis(millis.unwrap_or(u64::MAX)));
                }
            }
            _ => {}
        }
    }

    fn join(&mut self, value: Range<usize>) {
        self.joined.push(b'\n');
        self.joined.extend_from_slice(&self.buffer[value]);
        self.data = Data::Joined;
    }

    /// Ends the event being read. Without data there is none, but its id counts.
    fn dispatch(&mut self) -> Option<Data> {
        self.size = 0;
        if self.id_given {
            std::mem::swap(&mut self.last_id, &mut self.id);
        }
        match std::mem::replace(&mut self.data, Data::None) {
            Data::None => {
                self.resumable |= self.id_given;
                self.forget();
                None
            }
            data @ (Data::Line(_) | Data::Joined) => {
                self.resumable = self.id_given;
                self.dispatched = true;
                Some(data)
            }
        }
    }

    fn forget(&mut self) {
        self.dispatched = false;
        self.kind.clear();
        self.id_given = false;
    }

    fn event(&mut self, data: Data) -> EventRef<'_> {
        let bytes = match data {
            Data::None => &[],
            Data::Line(range) => &self.buffer[range],
            Data::Joined => &self.joined[..],
        };
        let data = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => {
                self.replaced = String::from_utf8_lossy(bytes).into_owned();
                &self.replaced
            }
        };
        let kind = if self.kind.is_empty() { MESSAGE } else { &self.kind };
        EventRef { kind, data, id: &self.last_id, id_given: self.id_given }
    }
}

/// Replaces what is not valid UTF-8, and only that. A line is whole, so no character is cut.
fn set(text: &mut String, bytes: &[u8]) {
    text.clear();
    match std::str::from_utf8(bytes) {
        Ok(valid) => text.push_str(valid),
        Err(_) => text.push_str(&String::from_utf8_lossy(bytes)),
    }
}
