//! Logs in pages of JSON: by line, and by token.

use ::http::StatusCode;
use bytes::Bytes;
use serde_json::Value;
use url::Url;

use super::delivered::Digest;
use super::item::Position;
use super::kind::{LinePages, LinesAbout, Marked, TokenPages};
use super::reader::{Ask, Growth, Head, Out, Reached, Reader, Then, Trouble};
use crate::error::Error;

/// A page, until it is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Page {
    body: Vec<u8>,
    bound: usize,
}

impl Page {
    fn head(&mut self, head: &Head<'_>, seen: &mut bool) -> Result<Then, Trouble> {
        self.body.clear();
        if head.status != StatusCode::OK {
            return Err(head.unserved(*seen));
        }
        *seen = true;
        Ok(Then::Read)
    }

    fn push(&mut self, piece: &[u8]) -> Result<(), Trouble> {
        if self.body.len() + piece.len() > self.bound {
            return Err(Trouble::undecodable(format_args!("body: expected at most {} bytes", self.bound)));
        }
        self.body.extend_from_slice(piece);
        Ok(())
    }

    fn parse(&mut self) -> Result<Value, Trouble> {
        serde_json::from_slice(&std::mem::take(&mut self.body)).map_err(|_| Trouble::undecodable("body: expected JSON"))
    }
}

fn at<'a>(value: &'a Value, pointer: &str, expected: &str) -> Result<&'a Value, Trouble> {
    value.pointer(pointer).ok_or_else(|| Trouble::undecodable(format_args!("{pointer}: expected {expected}")))
}

fn number(value: &Value, pointer: &str) -> Result<u64, Trouble> {
    at(value, pointer, "a number")?
        .as_u64()
        .ok_or_else(|| Trouble::undecodable(format_args!("{pointer}: expected a number")))
}

fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str, Trouble> {
    at(value, pointer, "text")?.as_str().ok_or_else(|| Trouble::undecodable(format_args!("{pointer}: expected text")))
}

fn list<'a>(value: &'a Value, pointer: &str) -> Result<&'a Vec<Value>, Trouble> {
    at(value, pointer, "a list")?
        .as_array()
        .ok_or_else(|| Trouble::undecodable(format_args!("{pointer}: expected a list")))
}

/// A setting that is a JSON Pointer (RFC 6901).
fn pointer(field: &str, pointer: &str) -> Result<(), Error> {
    if pointer.is_empty() || pointer.starts_with('/') {
        Ok(())
    } else {
        Err(Error::invalid(field, "a JSON Pointer such as /items"))
    }
}

/// Reads a log by the numbers of its lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lines {
    url: Url,
    about: Option<(Url, LinesAbout)>,
    pages: LinePages,
    page: Page,
    /// The number of the line that follows next.
    next: u64,
    /// How many lines there are, as was said last.
    lines: u64,
    /// Whether its lines are marked, once that is known.
    marked: Option<bool>,
    /// Whether the answer being read tells of the log.
    asks_about: bool,
    seen: bool,
}

impl Lines {
    /// A log by the numbers of its lines, in pages of at most `bound` bytes.
    ///
    /// # Errors
    /// When a setting is not what it is to be.
    pub(super) fn new(url: Url, pages: LinePages, bound: usize) -> Result<Self, Error> {
        pointer("log.chunks", &pages.chunks)?;
        pointer("log.content", &pages.content)?;
        pointer("log.first", &pages.first)?;
        if pages.page == 0 {
            return Err(Error::invalid("log.page", "at least one line"));
        }
        let marked = match &pages.marked {
            Marked::Never => Some(false),
            Marked::Always => Some(true),
            Marked::Typed { at, .. } => {
                pointer("log.marked.at", at)?;
                if pages.about.is_none() {
                    return Err(Error::invalid("log.about", "where the service tells of what type the log is"));
                }
                None
            }
        };
        let about = match &pages.about {
            Some(about) => {
                pointer("log.about.lines", &about.lines)?;
                pointer("log.about.complete", &about.complete)?;
                let mut address = url
                    .join(&about.path)
                    .map_err(|_| Error::invalid("log.about.path", "an address relative to that of the lines"))?;
                if let Ok(mut segments) = address.path_segments_mut() {
                    segments.pop_if_empty();
                }
                Some((address, about.clone()))
            }
            None => None,
        };
        let page = Page { body: Vec::new(), bound };
        Ok(Self { url, about, pages, page, next: 0, lines: 0, marked, asks_about: false, seen: false })
    }

    fn about(&mut self, answer: &Value) -> Result<Reached, Trouble> {
        let Some((_, about)) = &self.about else { return Ok(Reached::End) };
        let lines = number(answer, &about.lines)?;
        let complete = at(answer, &about.complete, "true or false")?.as_bool();
        let complete =
            complete.ok_or_else(|| Trouble::undecodable(format_args!("{}: expected true or false", about.complete)))?;
        if let Marked::Typed { at, is } = &self.pages.marked {
            let kind = text(answer, at)?;
            self.marked = Some(is.iter().any(|each| each == kind));
        }
        self.lines = lines;
        match (lines.cmp(&self.next), complete) {
            (std::cmp::Ordering::Less, _) => Err(Trouble::Contradiction),
            (std::cmp::Ordering::Greater, _) => Ok(Reached::More),
            (std::cmp::Ordering::Equal, true) => Ok(Reached::Complete),
            (std::cmp::Ordering::Equal, false) => Ok(Reached::Later),
        }
    }

    fn lines(&mut self, answer: &Value, out: &mut Out<Bytes>) -> Result<Reached, Trouble> {
        let mut chunks = Vec::new();
        for chunk in list(answer, &self.pages.chunks)? {
            let (first, content) = (number(chunk, &self.pages.first)?, text(chunk, &self.pages.content)?);
            // The service chose the number: there is one after its last line, too.
            if first.checked_add(content.len() as u64).is_none() {
                let pointer = &self.pages.first;
                return Err(Trouble::undecodable(format_args!(
                    "{pointer}: expected the number of a line, found {first}"
                )));
            }
            chunks.push((first, content));
        }
        chunks.sort_by_key(|(first, _)| *first);
        let (before, mut count) = (self.next, 0);
        let is_marked = self.marked.unwrap_or(false);
        for (first, content) in chunks {
            let mut fresh = Vec::new();
            let lines = content.split_inclusive('\n').zip(first..);
            for (line, number) in lines {
                count += 1;
                if number < self.next {
                    continue;
                }
                if number > self.next {
                    out.gap(Position::Line(self.next), Position::Line(number));
                }
                let marked = usize::from(is_marked && line.len() > 1 && line.is_char_boundary(1));
                fresh.extend_from_slice(&line.as_bytes()[marked..]);
                self.next = number + 1;
            }
            if !fresh.is_empty() {
                out.item(fresh.into());
            }
        }
        let news = self.next > before;
        match &self.about {
            // More is asked for at once only where something came: what is told of and not given is not asked for in a loop.
            Some(_) if news => Ok(Reached::More),
            None if news && count >= self.pages.page => Ok(Reached::More),
            Some(_) => Ok(Reached::Later),
            None => Ok(Reached::End),
        }
    }
}

impl Reader for Lines {
    type Item = Bytes;

    fn ask(&mut self, _: Growth) -> Ask {
        match &self.about {
            // What its lines are has to be known before the first of them is read.
            Some((about, _)) if self.lines <= self.next || self.marked.is_none() => {
                self.asks_about = true;
                Ask::json(about.clone())
            }
            Some(_) | None => {
                self.asks_about = false;
                Ask::json(self.url.clone())
                    .parameter(&self.pages.offset, &self.next.to_string())
                    .parameter(&self.pages.limit, &self.pages.page.to_string())
            }
        }
    }

    fn head(&mut self, head: &Head<'_>, _: &mut Out<Bytes>) -> Result<Then, Trouble> {
        self.page.head(head, &mut self.seen)
    }

    fn piece(&mut self, piece: Bytes, _: &mut Out<Bytes>) -> Result<(), Trouble> {
        self.page.push(&piece)
    }

    fn end(&mut self, out: &mut Out<Bytes>) -> Result<Reached, Trouble> {
        let answer = self.page.parse()?;
        if self.asks_about {
            return self.about(&answer);
        }
        let reached = self.lines(&answer, out)?;
        if reached == Reached::Later {
            // Ask what it has before its lines are asked for again.
            self.lines = 0;
        }
        Ok(reached)
    }

    fn restart(&mut self, out: &mut Out<Bytes>) {
        out.gap(Position::Line(self.next), Position::Line(0));
        (self.next, self.lines) = (0, 0);
    }

    fn size(item: &Bytes) -> usize {
        item.len()
    }
}

/// Reads a log by the token that each page gives for the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tokens {
    url: Url,
    pages: TokenPages,
    page: Page,
    token: Option<String>,
    /// How many items of the token's page were delivered, and their digest: the last page grows.
    past: usize,
    digest: Digest,
    /// Pages in a row that were empty and led on.
    empty: u32,
    seen: bool,
}

/// How many empty pages in a row are followed at once. After that each waits for the next look.
const EMPTY_AT_ONCE: u32 = 100;

impl Tokens {
    /// A log by token, in pages of at most `bound` bytes.
    ///
    /// # Errors
    /// When a setting is not what it is to be.
    pub(super) fn new(url: Url, pages: TokenPages, bound: usize) -> Result<Self, Error> {
        pointer("log.next", &pages.next)?;
        pointer("log.items", &pages.items)?;
        pointer("log.text", &pages.text)?;
        let page = Page { body: Vec::new(), bound };
        let digest = Digest::default();
        Ok(Self { url, pages, page, token: None, past: 0, digest, empty: 0, seen: false })
    }
}

fn item_digest(digest: &mut Digest, item: &str) {
    digest.update(&(item.len() as u64).to_le_bytes());
    digest.update(item.as_bytes());
}

impl Reader for Tokens {
    type Item = Bytes;

    fn ask(&mut self, _: Growth) -> Ask {
        let ask = Ask::json(self.url.clone());
        match &self.token {
            Some(token) => ask.parameter(&self.pages.parameter, token),
            None => ask,
        }
    }

    fn head(&mut self, head: &Head<'_>, _: &mut Out<Bytes>) -> Result<Then, Trouble> {
        self.page.head(head, &mut self.seen)
    }

    fn piece(&mut self, piece: Bytes, _: &mut Out<Bytes>) -> Result<(), Trouble> {
        self.page.push(&piece)
    }

    fn end(&mut self, out: &mut Out<Bytes>) -> Result<Reached, Trouble> {
        let answer = self.page.parse()?;
        let items = list(&answer, &self.pages.items)?;
        let items = items.iter().map(|item| text(item, &self.pages.text)).collect::<Result<Vec<_>, _>>()?;
        let next = match answer.pointer(&self.pages.next) {
            None | Some(Value::Null) => None,
            Some(Value::String(token)) if token.is_empty() => None,
            Some(Value::String(token)) => Some(token.clone()),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                return Err(Trouble::undecodable(format_args!("{}: expected a token", self.pages.next)));
            }
        };
        let stays = next.is_none() || next == self.token;
        // At the end, a service may give the items after the token, or those of the last page again.
        let repeats = items.len() >= self.past && {
            let mut digest = Digest::default();
            items[..self.past].iter().for_each(|item| item_digest(&mut digest, item));
            digest == self.digest
        };
        let after = items.is_empty() && next.is_some() && next == self.token;
        if !(repeats || after) {
            return Err(Trouble::Contradiction);
        }
        let fresh = if repeats { &items[self.past..] } else { &[] };
        for item in fresh {
            item_digest(&mut self.digest, item);
            out.item(Bytes::copy_from_slice(item.as_bytes()));
        }
        if stays {
            if repeats {
                self.past = items.len();
            }
            self.empty = 0;
            return Ok(Reached::End);
        }
        self.empty = if fresh.is_empty() { self.empty + 1 } else { 0 };
        (self.token, self.past, self.digest) = (next, 0, Digest::default());
        // An empty page that leads on is not the end (FC-07).
        Ok(if self.empty > EMPTY_AT_ONCE { Reached::Later } else { Reached::More })
    }

    fn restart(&mut self, out: &mut Out<Bytes>) {
        let from = self.token.take().map(Into::into);
        out.gap(Position::Token(from), Position::Token(None));
        (self.past, self.digest, self.empty) = (0, Digest::default(), 0);
    }

    fn size(item: &Bytes) -> usize {
        item.len()
    }
}
