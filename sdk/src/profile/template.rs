//! Paths with placeholders: read, they match an address; filled, they make one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::Error;

/// All but what RFC 3986, 2.3 calls unreserved: safe in a segment of a path and in a query.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How many placeholders of several segments one path may have: what they take is searched for.
const MOST_OPEN: usize = 4;

/// What placeholders stand for: for each name the segments of a path, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bindings(BTreeMap<Arc<str>, Vec<Arc<str>>>);

impl Bindings {
    /// What `name` stands for, segments joined by slashes.
    pub fn get(&self, name: &str) -> Option<String> {
        Some(self.0.get(name)?.join("/"))
    }

    /// The names that stand for something.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    /// With `name` standing for `value`, one segment.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.bind(name.into(), vec![value.into()]);
        self
    }

    pub(super) fn bind(&mut self, name: Arc<str>, segments: Vec<Arc<str>>) {
        self.0.insert(name, segments);
    }

    /// Takes over what `other` binds.
    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().map(|(name, segments)| (Arc::clone(name), segments.clone())));
    }

    pub(super) fn segments(&self, name: &str) -> Option<&[Arc<str>]> {
        self.0.get(name).map(Vec::as_slice)
    }
}

/// A path, and perhaps a query and a fragment, with placeholders.
///
/// `{name}` is one segment, `{name:number}` one of digits, `{name:path}` one or more segments, `{name:any}` any number of
/// them. In a query a placeholder may stand anywhere. A pattern may begin with the name of a host instead of a slash.
/// `{_}` matches and binds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    text: Arc<str>,
    /// Labels of the host, the last first; empty for any host.
    host: Vec<Part>,
    path: Vec<Part>,
    query: Vec<Part>,
    /// The path of a page that a program in the browser shows: what follows `#/`.
    fragment: Option<Vec<Part>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// As it stands; in a path a whole segment, decoded.
    Literal(Arc<str>),
    Hole(Arc<str>, Kind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    One,
    Number,
    Path,
    Any,
}

impl Template {
    /// The template that `text` writes.
    ///
    /// # Errors
    /// When a placeholder is malformed, when a path has more than four of kind `path` or `any`, or when it does not
    /// begin with a slash, a host or `{base:any}`.
    pub fn new(text: &str) -> Result<Self, Error> {
        Self::parse(text).map_err(|expected| Error::invalid("template", expected))
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = match text.split_once('#') {
            Some((rest, fragment)) => (rest, Some(segments(fragment)?)),
            None => (text, None),
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match path.split_once('/') {
            Some((host, path)) if !host.is_empty() && !host.starts_with("{base") && !host.starts_with("{_") => {
                (few_open(host.split('.').rev().map(part).collect::<Result<_, _>>()?)?, path)
            }
            _ => (Vec::new(), path),
        };
        let path = segments(path)?;
        if path.is_empty() && fragment.is_none() {
            return Err("a path such as \"/builds/{build:number}\"".to_owned());
        }
        Ok(Self { text: text.into(), host, path, query: query_parts(query)?, fragment })
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of its placeholders.
    pub fn names(&self) -> BTreeSet<&str> {
        let parts = self.host.iter().chain(&self.path).chain(&self.query).chain(self.fragment.iter().flatten());
        parts
            .filter_map(|part| match part {
                Part::Hole(name, _) if &**name != "_" => Some(&**name),
                Part::Hole(..) | Part::Literal(_) => None,
            })
            .collect()
    }

    /// Whether a placeholder of that name is the whole value of a parameter of the query.
    pub(super) fn is_parameter(&self, name: &str) -> bool {
        let ends = |part: Option<&Part>| match part {
            None => true,
            Some(Part::Literal(text)) => text.starts_with('&'),
            Some(Part::Hole(..)) => false,
        };
        let begins = |part: Option<&Part>| matches!(part, Some(Part::Literal(text)) if text.ends_with('='));
        self.query.iter().enumerate().any(|(i, part)| {
            let is_it = matches!(part, Part::Hole(hole, _) if &**hole == name);
            is_it && begins(i.checked_sub(1).and_then(|i| self.query.get(i))) && ends(self.query.get(i + 1))
        })
    }

    /// Whether it names a host.
    pub(super) fn has_host(&self) -> bool {
        !self.host.is_empty()
    }

    /// What the placeholders stand for in an address, its query aside; `None` where it does not match.
    pub(super) fn matches(&self, host: &str, path: &str, fragment: Option<&str>) -> Option<Bindings> {
        let mut bound = Bindings::default();
        if !self.host.is_empty() {
            let labels: Vec<Arc<str>> = host.split('.').rev().map(Arc::from).collect();
            match_parts(&self.host, &labels, &mut bound)?;
        }
        if let Some(parts) = &self.fragment {
            match_parts(parts, &split(fragment?)?, &mut bound)?;
        }
        match_parts(&self.path, &split(path)?, &mut bound)?;
        Some(bound)
    }

    /// The path and query with the placeholders filled in. An error is the name of one that nothing is bound to.
    pub(super) fn fill(&self, bound: &Bindings) -> Result<String, Arc<str>> {
        let mut out = String::new();
        for part in &self.path {
            match part {
                Part::Literal(text) => {
                    out.push('/');
                    out.extend(utf8_percent_encode(text, RESERVED));
                }
                Part::Hole(name, kind) => {
                    let segments = bound.segments(name).ok_or_else(|| Arc::clone(name))?;
                    match kind {
                        Kind::One | Kind::Number => {
                            out.push('/');
                            out.extend(utf8_percent_encode(&segments.join("/"), RESERVED));
                        }
                        Kind::Path | Kind::Any => {
                            for segment in segments {
                                out.push('/');
                                out.extend(utf8_percent_encode(segment, RESERVED));
                            }
                        }
                    }
                }
            }
        }
        for (i, part) in self.query.iter().enumerate() {
            if i == 0 {
                out.push('?');
            }
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Hole(name, _) => {
                    let segments = bound.segments(name).ok_or_else(|| Arc::clone(name))?;
                    out.extend(utf8_percent_encode(&segments.join("/"), RESERVED));
                }
            }
        }
        Ok(out)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn segments(path: &str) -> Result<Vec<Part>, String> {
    few_open(path.split('/').filter(|segment| !segment.is_empty()).map(part).collect::<Result<_, _>>()?)
}

/// Refuses a pattern that takes long to match: a profile may come from anybody.
fn few_open(parts: Vec<Part>) -> Result<Vec<Part>, String> {
    let open = parts.iter().filter(|part| matches!(part, Part::Hole(_, Kind::Path | Kind::Any))).count();
    if open > MOST_OPEN {
        return Err(format!("at most {MOST_OPEN} placeholders of kind path or any, not {open}"));
    }
    Ok(parts)
}

/// A whole segment: text or one placeholder.
fn part(segment: &str) -> Result<Part, String> {
    match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(inner) => hole(inner),
        None if segment.contains(['{', '}']) => {
            Err(format!("a placeholder to be a whole segment, unlike \"{segment}\""))
        }
        None => decode(segment).map(Part::Literal).ok_or_else(|| format!("text in UTF-8, unlike \"{segment}\"")),
    }
}

fn hole(inner: &str) -> Result<Part, String> {
    let (name, kind) = inner.split_once(':').unwrap_or((inner, ""));
    let kind = match kind {
        "" => Kind::One,
        "number" => Kind::Number,
        "path" => Kind::Path,
        "any" => Kind::Any,
        other => return Err(format!("number, path or any after the name of a placeholder, not \"{other}\"")),
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
        return Err("a placeholder's name of lower-case letters, digits and _".to_owned());
    }
    Ok(Part::Hole(name.into(), kind))
}

/// A query: placeholders may stand in the middle.
fn query_parts(mut query: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    while let Some(at) = query.find('{') {
        if at > 0 {
            parts.push(Part::Literal(query[..at].into()));
        }
        let end = query[at..].find('}').ok_or("a } after each {")? + at;
        parts.push(hole(&query[at + 1..end])?);
        query = &query[end + 1..];
    }
    if !query.is_empty() {
        parts.push(Part::Literal(query.into()));
    }
    Ok(parts)
}

/// The decoded segments of a path; `None` where one is no text, or would lead elsewhere when it is put into a path.
pub(super) fn split(path: &str) -> Option<Vec<Arc<str>>> {
    path.split('/').filter(|segment| !segment.is_empty()).map(|raw| decode(raw).filter(|s| is_segment(s))).collect()
}

/// Whether it may be put into a path: a dot segment would be taken for a step (RFC 3986, 5.2.4).
pub(super) fn is_segment(text: &str) -> bool {
    !text.is_empty() && text != "." && text != ".." && !text.contains(char::is_control)
}

fn decode(raw: &str) -> Option<Arc<str>> {
    percent_decode_str(raw).decode_utf8().ok().map(|text| text.as_ref().into())
}

/// Matches all of `segments`: see [`match_from`].
fn match_parts(parts: &[Part], segments: &[Arc<str>], bound: &mut Bindings) -> Option<()> {
    match_from(parts, segments, bound, &mut HashSet::new())
}

/// Matches all of `segments`; a placeholder of several takes as many as it can, `any` as few.
///
/// `failed` has how many parts and segments were left where nothing matched, after a placeholder of several: nothing is
/// tried twice.
fn match_from(
    parts: &[Part],
    segments: &[Arc<str>],
    bound: &mut Bindings,
    failed: &mut HashSet<(usize, usize)>,
) -> Option<()> {
    let Some((first, parts)) = parts.split_first() else {
        return segments.is_empty().then_some(());
    };
    match first {
        Part::Literal(text) => {
            let (segment, rest) = segments.split_first()?;
            if segment == text { match_from(parts, rest, bound, failed) } else { None }
        }
        Part::Hole(name, kind) => {
            let lengths: Vec<usize> = match kind {
                Kind::One | Kind::Number => vec![1],
                Kind::Path => (1..=segments.len()).rev().collect(),
                Kind::Any => (0..=segments.len()).collect(),
            };
            for length in lengths {
                let (taken, rest) = segments.split_at_checked(length)?;
                let is_number = |s: &Arc<str>| s.len() <= 20 && s.bytes().all(|b| b.is_ascii_digit());
                if *kind == Kind::Number && !taken.iter().all(is_number) {
                    return None;
                }
                let left = (parts.len(), rest.len());
                if failed.contains(&left) {
                    continue;
                }
                if match_from(parts, rest, bound, failed).is_some() {
                    if &**name != "_" {
                        bound.bind(Arc::clone(name), taken.to_vec());
                    }
                    return Some(());
                }
                if matches!(kind, Kind::Path | Kind::Any) {
                    failed.insert(left);
                }
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(template: &str, path: &str) -> Option<Vec<(String, String)>> {
        let template = Template::new(template).unwrap();
        let bound = template.matches("h", path, None)?;
        Some(template.names().iter().map(|name| ((*name).to_owned(), bound.get(name).unwrap())).collect())
    }

    #[test]
    fn a_template_read_is_a_template_filled() {
        for (template, path) in [
            ("/a/{b}/c", "/a/x%20y/c"),
            ("{base:any}/job/{job:path}/{n:number}", "/jenkins/job/a/job/feature%252Fx/7"),
            ("{base:any}/job/{job:path}/{n:number}", "/job/7/12"),
            ("/projects/{project}/pipelines/{id:number}", "/projects/group%2Fproj/pipelines/9"),
        ] {
            let parsed = Template::new(template).unwrap();
            let bound = parsed.matches("h", path, None).unwrap();
            assert_eq!(parsed.fill(&bound).unwrap(), path, "{template}");
        }
    }

    #[test]
    fn placeholders_take_what_their_kind_says() {
        let pairs = |list: &[(&str, &str)]| Some(list.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect());
        assert_eq!(matched("/a/{b}", "/a/1/"), pairs(&[("b", "1")]));
        assert_eq!(matched("/a/{b}", "/a"), None);
        assert_eq!(matched("/a/{b}", "/a/1/2"), None);
        assert_eq!(matched("/a/{b:number}", "/a/x"), None);
        assert_eq!(matched("/a/{b:path}", "/a/1/2"), pairs(&[("b", "1/2")]));
        assert_eq!(
            matched("/{b:path}/-/p/{n:number}/{_:any}", "/g/s/p/-/p/9/builds"),
            pairs(&[("b", "g/s/p"), ("n", "9")])
        );
        assert_eq!(matched("{base:any}/a", "/a"), pairs(&[("base", "")]));
        // A step upwards is never put into a path again.
        assert_eq!(matched("/a/{b}", "/a/%2e%2e"), None);
    }

    #[test]
    fn a_path_in_one_segment_and_the_other_way_round() {
        let bound = Template::new("/{project:path}/-/p").unwrap().matches("h", "/group/sub/proj/-/p", None).unwrap();
        assert_eq!(Template::new("/projects/{project}").unwrap().fill(&bound).unwrap(), "/projects/group%2Fsub%2Fproj");
        assert_eq!(Template::new("/q?p={project}&x=1").unwrap().fill(&bound).unwrap(), "/q?p=group%2Fsub%2Fproj&x=1");
        assert_eq!(&*Template::new("/{other}").unwrap().fill(&bound).unwrap_err(), "other");
    }

    /// Without remembering what failed, this takes hours.
    #[test]
    fn the_most_wildcards_take_no_time() {
        let wild = format!("{}/{{n}}/end", "/{_:any}".repeat(MOST_OPEN));
        assert_eq!(matched(&wild, &"/s".repeat(1_000)), None);
        assert_eq!(matched(&wild, &format!("{}/end", "/s".repeat(300))), Some(vec![("n".into(), "s".into())]));
    }

    #[test]
    fn malformed_templates_are_refused() {
        for bad in ["", "/", "/a/{b", "/a/x{b}", "/{B}", "/{}", "/{b:digits}", "/a?x={b", &"/{_:any}".repeat(5)] {
            assert!(Template::new(bad).unwrap_err().is_invalid(), "{bad}");
        }
    }
}
