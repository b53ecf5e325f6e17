//! The pages of a list, and where the next one is. Pure: what comes in is an answer, what comes out is an address.

use std::collections::HashSet;
use std::sync::OnceLock;

use ::http::HeaderMap;
use ::http::header::LINK;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::word::kind_of;
use super::{Bindings, Listed, Location, LogSource, Unread};
use crate::error::{Error, ErrorKind};
use crate::http::fields::{Member, lines};

/// How many pages of one list are read.
const MOST_PAGES: usize = 100;

/// How many elements all lists of one step may have.
pub(super) const MOST_LISTED: usize = 10_000;

/// One answer with a part of a list.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Page {
    body: Value,
    /// What its `Link` headers say.
    #[serde(skip)]
    links: OnceLock<Vec<String>>,
}

impl Page {
    /// Remembers what the headers of the answer say; of one page there is one answer.
    pub(super) fn came_with(&self, headers: &HeaderMap) {
        self.links.get_or_init(|| lines(headers, LINK).map(str::to_owned).collect());
    }

    /// The target of the first link of type `next` (RFC 8288, 3).
    fn next(&self) -> Option<&str> {
        self.links.get().into_iter().flatten().find_map(|line| next(line))
    }
}

/// Reads one list, page by page.
pub(super) struct Pages<'a> {
    source: &'a LogSource,
    here: &'a Location,
    known: &'a Bindings,
    /// Whether the service is told how many elements came; otherwise its links lead on.
    counts: bool,
    /// How many came, those too that came before.
    came: usize,
    /// How many there are, as the latest page says.
    total: Option<u64>,
    asked: HashSet<Url>,
    pages: usize,
    seen: HashSet<Bindings>,
    listed: Vec<Listed>,
}

impl<'a> Pages<'a> {
    /// The list of `source`, of the work that is at `here`; `known` is what the steps before gave.
    pub(super) fn new(source: &'a LogSource, here: &'a Location, known: &'a Bindings) -> Self {
        Self {
            source,
            here,
            known,
            counts: source.path.names().contains("from"),
            came: 0,
            total: None,
            asked: HashSet::new(),
            pages: 0,
            seen: HashSet::new(),
            listed: Vec::new(),
        }
    }

    /// The address of the first page; where elements are counted, of the one after those that came.
    ///
    /// # Errors
    /// When nothing says what a placeholder of it stands for.
    pub(super) fn address(&self) -> Result<Url, Error> {
        self.here.at(&self.source.path, &self.known.clone().with("from", &self.came.to_string()))
    }

    /// Takes the page that `url` had. Gives the address of the next one, if there is any.
    ///
    /// # Errors
    /// When it is no part of such a list; when what follows cannot be had, so that something would be missing.
    pub(super) fn take(&mut self, url: Url, page: &Page) -> Result<Option<Url>, Error> {
        let list = self.source.list(&page.body).map_err(|e| self.unavailable(e))?;
        let total = self.source.total_of(&page.body).map_err(|e| self.unavailable(e))?;
        if self.total.zip(total).is_some_and(|(before, total)| total < before) {
            // What follows has moved to a page that was read already.
            return Err(self.unavailable("expected a list that does not become shorter while it is read"));
        }
        self.total = total.or(self.total);
        let (came, before) = (list.len(), self.listed.len());
        self.came += came;
        // While it is read, the list may grow at its beginning: what was listed before comes again.
        self.listed.extend(list.into_iter().filter(|listed| self.seen.insert(listed.bound.clone())));
        if self.listed.len() > MOST_LISTED {
            // No more is asked for, or kept, of what is refused in the end.
            return Err(self.unreadable(&format!("at most {MOST_LISTED} elements, found more")));
        }
        let next = match self.counts {
            true => self.counted(came, before)?,
            false => page.next().map(|target| self.linked(&url, target)).transpose()?,
        };
        self.asked.insert(url);
        self.pages += 1;
        match next {
            Some(next) if self.asked.contains(&next) => {
                Err(self.unreadable("pages that go on, found one that leads back"))
            }
            Some(_) if self.pages >= MOST_PAGES => {
                Err(self.unreadable(&format!("at most {MOST_PAGES} pages, found more")))
            }
            Some(next) => Ok(Some(next)),
            // A link was lost on the way, or the list was never given whole.
            None => match self.total {
                Some(total) if !self.is_all() => {
                    Err(self.unavailable(format_args!("expected {total} elements, found {}", self.came)))
                }
                Some(_) | None => Ok(None),
            },
        }
    }

    /// All elements that were listed, each once.
    pub(super) fn listed(self) -> Vec<Listed> {
        self.listed
    }

    fn is_all(&self) -> bool {
        self.total.is_some_and(|total| self.came as u64 >= total)
    }

    fn counted(&self, came: usize, before: usize) -> Result<Option<Url>, Error> {
        if self.is_all() || came == 0 {
            return Ok(None);
        }
        if self.listed.len() == before {
            return Err(self.unreadable("what follows, found what was listed before"));
        }
        self.address().map(Some)
    }

    /// Where a link leads, relative to the page that has it. Whatever it says, the origin stays: a credential goes there.
    fn linked(&self, url: &Url, target: &str) -> Result<Url, Error> {
        let target = url.join(target).ok().filter(|target| matches!(target.scheme(), "http" | "https"));
        let target = target.ok_or_else(|| self.unreadable("the address of the next page in Link"))?;
        let mut next = url.clone();
        next.set_path(target.path());
        next.set_query(target.query());
        Ok(next)
    }

    fn unavailable(&self, detail: impl std::fmt::Display) -> Error {
        Error::unavailable(format!("{}: {detail}", self.source.path))
    }

    fn unreadable(&self, expected: &str) -> Error {
        Error::new(ErrorKind::Corrupt, format!("{}: expected {expected}", self.source.path))
    }
}

impl LogSource {
    /// Whether `page` is a part of such a list.
    pub(super) fn has(&self, page: &Page) -> bool {
        self.list(&page.body).is_ok() && self.total_of(&page.body).is_ok()
    }

    /// How many elements the list has, as the answer says.
    fn total_of(&self, body: &Value) -> Result<Option<u64>, Unread> {
        let Some((place, value)) = self.total.as_ref().and_then(|place| Some((place, place.of(body)?))) else {
            return Ok(None);
        };
        let wrong = || format!("expected a whole number at {place}, found {}", kind_of(value));
        value.as_u64().map(Some).ok_or_else(|| Unread::Undecodable(wrong().into()))
    }
}

/// The target of the first link of type `next` in a line of `Link` headers: `<target>; rel="next", ..`.
fn next(line: &str) -> Option<&str> {
    let mut rest = line;
    loop {
        // In its angle brackets a target may have any separator.
        let (target, after) = rest.split_once('<')?.1.split_once('>')?;
        let end = member_end(after);
        let link = Member::of(&after[..end]);
        // One with an anchor is about something else.
        let is_next = link.parameter("anchor").is_none()
            && link
                .parameter("rel")
                .is_some_and(|rel| rel.split_ascii_whitespace().any(|r| r.eq_ignore_ascii_case("next")));
        if is_next {
            return Some(target.trim());
        }
        rest = &after[end..];
    }
}

/// Where the first comma outside of quotes is, or the end.
fn member_end(text: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
