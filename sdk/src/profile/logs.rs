//! The logs of a piece of work, as feeds.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use url::Url;

use super::pages::{MOST_LISTED, Page, Pages};
use super::{Bindings, Listed, Location, Log, LogKind, LogSource, Profile, Work};
use crate::error::{Error, ErrorKind};
use crate::http::feed::{self, Feed, LinePages, LinesAbout, Marked, OffsetParameter, Offsets, Stamps, TokenPages};
use crate::http::{self, Get};
use crate::{End, Known};

/// Stands for `{from}` and `{limit}` until the names of their parameters are known.
const FROM: &str = "{from}";
const LIMIT: &str = "{limit}";

impl Profile {
    /// The logs that the service lists now for `work`, each with its name, as [feeds](Feed).
    ///
    /// `work` is what a [watch](Self::watch) shows; `get` is set up as for that watch, with its credential and an address
    /// of the same service. The lists on the way to the logs are read as any read: an outage is waited out (R1). All
    /// pages of each list are read, on the origin of the work whatever a link says: at most 100 of one list, and 10,000 elements
    /// in each step. A log without a name of its own has that of the stage.
    ///
    /// The feeds of work that is over are told so. Tell those of other work with [`Feed::finish_with`]. Logs that begin
    /// later, such as those of later steps, and those of another attempt are listed by another call: what was listed
    /// before is listed again.
    ///
    /// ```no_run
    /// # async fn logs(token: outlast::Credential) -> Result<(), Box<dyn std::error::Error>> {
    /// use outlast::profile::Profile;
    ///
    /// let jenkins = Profile::named("jenkins")?;
    /// let get = outlast::http::get("https://ci.example/job/a/7/").credential(token);
    /// let work = jenkins.watch(get.clone())?;
    /// let build = work.until(|work| work.state.is_terminal()).await?;
    /// for (name, log) in jenkins.logs(get, &build).await? {
    ///     let mut lines = log.lines();
    ///     while let Some(line) = lines.next().await {
    ///         println!("{name}: {line:?}");
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the profile says nothing of logs, or has none for the stage of this work; when `work` was not read by a watch,
    /// or the address of `get` is of another service; when a list is not there, or its read is refused or given up; when
    /// a list has more pages or elements than are read, leads back to a page before, or does not have as many elements as it
    /// says, so that logs would be missing; and what [`Get::log`] says.
    ///
    /// # Cancel safety
    /// Dropping the future starts nothing.
    pub async fn logs(&self, get: Get, work: &Work) -> Result<Vec<(Arc<str>, Feed<Bytes>)>, Error> {
        self.check()?;
        let log = self.log.as_ref().ok_or_else(|| Error::invalid("log", "how the logs of the service are read"))?;
        let here = work.location.as_ref().ok_or_else(|| Error::invalid("work", "work that a watch has shown"))?;
        if here.stage != log.stage {
            return Err(Error::invalid("work.stage", format_args!("{}, whose logs these are", log.stage)));
        }
        let url = Url::parse(get.url())
            .map_err(|e| Error::invalid("url", "an absolute http:// or https:// URL").with_source(e))?;
        // The credential is for where that leads.
        if self.locate(&url)?.url.origin() != here.url.origin() {
            return Err(Error::invalid("url", "an address of the service that has shown the work"));
        }
        let get = self.dressed(get);
        let mut found = vec![Listed { bound: Bindings::default(), name: None, body: Value::Null }];
        for source in &log.sources {
            let mut next = Vec::new();
            for each in &found {
                let list = source.ask(&get, here, &each.bound).await?;
                next.extend(list.into_iter().map(|listed| listed.within(each)));
                if next.len() > MOST_LISTED {
                    let expected = format!("{}: expected at most {MOST_LISTED} elements, found more", source.path);
                    return Err(Error::new(ErrorKind::Corrupt, expected));
                }
            }
            found = next;
        }
        let is_over = work.marks().terminal;
        let feed = |listed: &Listed| {
            let (url, kind) = log.feed(here, listed)?;
            let feed = get.to(&url).log(kind)?;
            if is_over {
                feed.finish();
            }
            Ok((listed.name.clone().unwrap_or_else(|| Arc::clone(&log.stage)), feed))
        };
        found.iter().map(feed).collect()
    }
}

impl LogSource {
    /// What its list has, on all pages.
    async fn ask(&self, get: &Get, here: &Location, known: &Bindings) -> Result<Vec<Listed>, Error> {
        let mut pages = Pages::new(self, here, known);
        let mut next = Some(pages.address()?);
        while let Some(url) = next {
            let page = self.ask_page(get.to(&url)).await?;
            next = pages.take(url, &page)?;
        }
        Ok(pages.listed())
    }

    async fn ask_page(&self, get: Get) -> Result<Known<Page>, Error> {
        let source = self.clone();
        let read = get.json::<Page>().pages(|page, headers| {
            page.came_with(headers);
            http::Page::Value(Vec::new())
        });
        // An answer that is no such list is none (R3).
        let page = read.observe()?.until(move |page| source.has(page)).await;
        page.map_err(|e| match e.end() {
            Some(End::Denied) => Error::denied(format!("{}: access is denied", self.path)),
            Some(End::Gone | End::Closed) | None => Error::unavailable(format!("{}: {e}", self.path)),
        })
    }
}

impl Listed {
    /// With what the step before gave.
    fn within(mut self, before: &Self) -> Self {
        let mut bound = before.bound.clone();
        bound.extend(&self.bound);
        self.bound = bound;
        self.name = match (&before.name, self.name) {
            (Some(before), Some(name)) => Some(format!("{before}/{name}").into()),
            (before, name) => name.or_else(|| before.clone()),
        };
        self
    }
}

impl Log {
    /// Where one of the logs is read, and how: what [`Get::log`] needs. `here` is where the work is, `listed` what the
    /// last of the [sources](Self::sources) lists.
    ///
    /// # Errors
    /// When nothing says what a placeholder of the paths stands for, or `{from}` is no value of the query.
    pub fn feed(&self, here: &Location, listed: &Listed) -> Result<(Url, feed::LogKind), Error> {
        let mut more = listed.bound.clone();
        more.bind("from".into(), vec![FROM.into()]);
        more.bind("limit".into(), vec![LIMIT.into()]);
        let mut url = here.at(&self.path, &more)?;
        let (mut from, mut limit, mut others) = (None, None, Vec::new());
        for (name, value) in url.query_pairs() {
            match &*value {
                FROM => from = Some(name.into_owned()),
                LIMIT => limit = Some(name.into_owned()),
                _ => others.push((name.into_owned(), value.into_owned())),
            }
        }
        if from.is_some() || limit.is_some() {
            url.set_query(None);
            if !others.is_empty() {
                url.query_pairs_mut().extend_pairs(others);
            }
        }
        let need = |name: Option<String>| {
            name.ok_or_else(|| Error::invalid("log.path", "{from}, and of lines {limit}, as values of its query"))
        };
        let text = |pointer: &Option<super::Pointer>| pointer.as_ref().map_or("", super::Pointer::as_str).to_owned();
        let kind = match (self.kind, from) {
            (LogKind::Bytes, None) => feed::LogKind::Bytes(Offsets::Range),
            (LogKind::Bytes, Some(from)) => {
                let size = self.size.as_ref().ok_or_else(|| Error::invalid("log.size", "the name of a header"))?;
                let mut parameter = OffsetParameter::new(from, size.as_str());
                parameter.more = self.more.as_ref().map(|more| more.as_str().to_owned());
                parameter.exact = self.exact;
                feed::LogKind::Bytes(Offsets::Parameter(parameter))
            }
            (LogKind::Lines, from) => {
                let is_marked = self.tagged.as_ref().is_some_and(|when| when.holds(&listed.body));
                let mut pages = LinePages::buildbot();
                (pages.offset, pages.limit) = (need(from)?, need(limit)?);
                (pages.chunks, pages.content, pages.first) = (text(&self.each), text(&self.text), text(&self.first));
                pages.marked = if is_marked { Marked::Always } else { Marked::Never };
                pages.about = match &self.about {
                    Some(about) => {
                        let address = here.at(&about.path, &listed.bound)?;
                        Some(LinesAbout::new(address, about.lines.as_str(), about.complete.as_str()))
                    }
                    None => None,
                };
                feed::LogKind::Lines(pages)
            }
            (LogKind::Token, from) => feed::LogKind::Token(TokenPages::new(
                need(from)?,
                text(&self.token),
                text(&self.each),
                text(&self.text),
            )),
            (LogKind::Time, from) => feed::LogKind::Time(Stamps::polled(need(from)?)),
            (LogKind::Whole, _) => feed::LogKind::Whole,
            (LogKind::AtEnd, _) => feed::LogKind::AtEnd,
        };
        Ok((url, kind))
    }
}
