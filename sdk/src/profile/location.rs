//! From the address that a person has at hand to the first read.

use std::sync::Arc;

use url::Url;

use super::{Bindings, Profile, Stage, Template};
use crate::error::Error;

/// Where to read, and what is known by then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Location {
    /// The stage that is read there.
    pub stage: Arc<str>,
    /// Its address.
    pub url: Url,
    /// What the placeholders of the profile's paths stand for.
    pub bound: Bindings,
}

impl Location {
    /// The address of another path of the profile, on the same origin: of a log, of a stream. `more` says what
    /// placeholders stand for that are not known here.
    ///
    /// # Errors
    /// When nothing says what one of its placeholders stands for.
    pub fn at(&self, path: &Template, more: &Bindings) -> Result<Url, Error> {
        let mut bound = self.bound.clone();
        bound.extend(more);
        filled(&self.url, path, &bound)
    }
}

/// An address that leads to a stage: a page of the service, or another path of the interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Address {
    /// What it looks like, perhaps with a host.
    pub like: Template,
    /// The stage that it leads to.
    pub stage: Arc<str>,
    /// Where that is read, if not at the stage's own path.
    pub path: Option<Template>,
    /// What `base` stands for there, if the address does not say.
    pub base: Option<Arc<str>>,
    /// The host of the interface, if it is another one than the page's; placeholders of the host may be in it.
    ///
    /// A credential goes there, so a file cannot say this: only a shipped profile and one's own code can.
    pub host: Option<Arc<str>>,
}

impl Address {
    /// What looks like `like` is read as `stage`.
    pub fn new(like: Template, stage: impl Into<Arc<str>>) -> Self {
        Self { like, stage: stage.into(), path: None, base: None, host: None }
    }
}

impl Profile {
    /// Where to read the work that `url` leads to: the page of a run as people paste it, or an address of the interface.
    ///
    /// Its query is left out.
    ///
    /// # Errors
    /// When it is neither, or holds a user name or a password.
    pub fn locate(&self, url: &Url) -> Result<Location, Error> {
        let host = match (url.scheme(), url.host_str()) {
            ("http" | "https", Some(host)) => host,
            _ => return Err(Error::invalid("url", "an http or https address")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::invalid("url", "an address without user name and password"));
        }
        // The path of a page that a program in the browser shows.
        let fragment = url.fragment().filter(|f| f.starts_with('/')).map(|f| f.split('?').next().unwrap_or(f));
        // The interface first: its paths are exact, those of pages are not (a GitLab project may have any).
        for stage in &self.stages {
            if let Some(bound) = stage.path.matches(host, url.path(), None) {
                // A list is no address of one piece of work: which one is meant it does not say.
                if stage.path.names().iter().all(|name| bound.segments(name).is_some()) && stage.find.is_none() {
                    return place(url, stage, None, bound);
                }
            }
        }
        for address in &self.addresses {
            if let Some(bound) = address.like.matches(host, url.path(), fragment) {
                return self.at_address(url, address, bound);
            }
        }
        let known: Vec<&str> = self.addresses.iter().map(|address| address.like.as_str()).collect();
        let paths = self.stages.iter().filter(|stage| stage.find.is_none()).map(|stage| stage.path.as_str());
        let known = known.into_iter().chain(paths).collect::<Vec<_>>().join(", ");
        Err(Error::invalid("url", format_args!("an address like one of {known}")))
    }

    fn at_address(&self, url: &Url, address: &Address, mut bound: Bindings) -> Result<Location, Error> {
        let stage = self.stage(&address.stage).ok_or_else(|| Error::invalid("address.stage", "the name of a stage"))?;
        if let Some(base) = &address.base {
            bound.bind("base".into(), base.split('/').filter(|s| !s.is_empty()).map(Arc::from).collect());
        } else if bound.segments("base").is_none() {
            bound.bind("base".into(), Vec::new());
        }
        let mut url = url.clone();
        if let Some(host) = &address.host {
            let mut labels = Vec::new();
            for label in host.split('.') {
                let name = label.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                labels.push(name.map_or_else(|| Some(label.to_owned()), |name| bound.get(name)));
            }
            let host: Option<Vec<String>> = labels.into_iter().collect();
            // Credentials go there: never without TLS.
            let set = host.is_some_and(|host| {
                url.set_scheme("https").is_ok()
                    && url.set_port(None).is_ok()
                    && url.set_host(Some(&host.join("."))).is_ok()
            });
            if !set {
                return Err(Error::invalid("address.host", "a host whose placeholders the address gives"));
            }
        }
        place(&url, stage, address.path.as_ref(), bound)
    }
}

/// The location of `stage` on the origin of `url`.
pub(super) fn place(url: &Url, stage: &Stage, path: Option<&Template>, bound: Bindings) -> Result<Location, Error> {
    let url = filled(url, path.unwrap_or(&stage.path), &bound)?;
    Ok(Location { stage: Arc::clone(&stage.name), url, bound })
}

/// A path on the origin of `url`. Whatever a body says, the origin stays: a credential goes there.
fn filled(url: &Url, path: &Template, bound: &Bindings) -> Result<Url, Error> {
    let text =
        path.fill(bound).map_err(|name| Error::invalid("url", format_args!("what gives {{{name}}} of {path}")))?;
    let (path, query) = text.split_once('?').map_or((text.as_str(), None), |(path, query)| (path, Some(query)));
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(query);
    url.set_fragment(None);
    Ok(url)
}
