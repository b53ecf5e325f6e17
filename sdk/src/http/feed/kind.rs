//! How a service gives its logs.

/// How a service gives a log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogKind {
    /// From a byte on.
    Bytes(Offsets),
    /// By the number of a line, in JSON (Buildbot).
    Lines(LinePages),
    /// By a token that each page gives for the next, in JSON (CodeBuild).
    Token(TokenPages),
    /// Lines that start with their time, from a time on (Kubernetes).
    Time(Stamps),
    /// The whole log each time, with an `ETag` where there is one. Only what is new is delivered.
    Whole,
    /// The whole log, once the work is over; 404 before (GitHub Actions).
    AtEnd,
}

impl LogKind {
    /// A log of Jenkins: [`OffsetParameter::jenkins`], at `progressiveText`.
    pub fn jenkins() -> Self {
        Self::Bytes(Offsets::Parameter(OffsetParameter::jenkins()))
    }

    /// A log of Buildbot: [`LinePages::buildbot`], at `/api/v2/logs/{id}/contents`.
    pub fn buildbot() -> Self {
        Self::Lines(LinePages::buildbot())
    }

    /// A pod's log: [`Stamps::kubernetes`], at `/log?timestamps=true`.
    pub fn kubernetes() -> Self {
        Self::Time(Stamps::kubernetes())
    }
}

/// How to ask for a log from a byte on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Offsets {
    /// By `Range` (RFC 9110, 14.2). A service that ignores it is read whole each time, and so is one that sends the log
    /// encoded although it was asked for as it is: then its ranges are those of what it sends.
    Range,
    /// By a parameter and headers of the service's own.
    Parameter(OffsetParameter),
}

/// A service's own parameter for the offset (Jenkins).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OffsetParameter {
    /// The parameter of the query that says from which byte on.
    pub start: String,
    /// The header that says at which offset to go on.
    pub next: String,
    /// The header that is `true` while the log may grow; without it, only [`finish`](super::Feed::finish) tells.
    pub more: Option<String>,
    /// Whether the body has exactly the bytes up to the next offset, so that it can be asked for from any byte on. Jenkins
    /// counts notes and ends of lines that it does not send, and sends CR that it does not count.
    pub exact: bool,
}

impl OffsetParameter {
    /// A parameter and a header, of bodies that have exactly the bytes up to the next offset.
    pub fn new(start: impl Into<String>, next: impl Into<String>) -> Self {
        Self { start: start.into(), next: next.into(), more: None, exact: true }
    }

    /// Jenkins' `progressiveText`: `start`, `X-Text-Size`, `X-More-Data`.
    ///
    /// What was delivered last is asked for again and compared, and the whole log once more at its end: a log that started
    /// anew is a gap, also where it is longer by then. CR is overlooked in the comparison. The start of the last lines is
    /// reckoned, since Jenkins does not tell it, and only believed if these lines come.
    pub fn jenkins() -> Self {
        Self { more: Some("x-more-data".into()), exact: false, ..Self::new("start", "x-text-size") }
    }
}

/// Pages of lines by number. The pointers are JSON Pointers (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LinePages {
    /// The parameter that says from which line on.
    pub offset: String,
    /// The parameter that says how many lines at most.
    pub limit: String,
    /// How many lines a page has at most. Default 1,000.
    pub page: u64,
    /// Where the chunks of lines are in the answer.
    pub chunks: String,
    /// Where the text of a chunk is in it.
    pub content: String,
    /// Where the number of its first line is in it.
    pub first: String,
    /// Which lines start with a letter that names their channel and is left out.
    pub marked: Marked,
    /// Where the service says how many lines there are, and whether that is all.
    pub about: Option<LinesAbout>,
}

/// Which lines of a log start with a letter that is no part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Marked {
    /// None.
    Never,
    /// All.
    Always,
    /// All, where the service [tells](LinePages::about) that the log is of one of these types; otherwise none. No line is
    /// read before that is known.
    Typed {
        /// Where the type is in that answer.
        at: String,
        /// The types with such lines.
        is: Vec<String>,
    },
}

/// Where the service tells of a log of lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LinesAbout {
    /// Its address, relative to that of the lines; a slash at its end is left out.
    pub path: String,
    /// Where the number of lines is in the answer.
    pub lines: String,
    /// Where it is said that the log is complete.
    pub complete: String,
}

impl LinesAbout {
    /// An address, relative to that of the lines, and the two places in its answer.
    pub fn new(path: impl Into<String>, lines: impl Into<String>, complete: impl Into<String>) -> Self {
        Self { path: path.into(), lines: lines.into(), complete: complete.into() }
    }
}

impl LinePages {
    /// Buildbot's `/api/v2/logs/{id}/contents`, whose log tells of itself one level up. Only the lines of a log of type
    /// `s`, the output of a command, start with a letter; those of other types are as they are.
    pub fn buildbot() -> Self {
        Self {
            offset: "offset".into(),
            limit: "limit".into(),
            page: 1000,
            chunks: "/logchunks".into(),
            content: "/content".into(),
            first: "/firstline".into(),
            marked: Marked::Typed { at: "/logs/0/type".into(), is: vec!["s".into()] },
            about: Some(LinesAbout::new(".", "/logs/0/num_lines", "/logs/0/complete")),
        }
    }
}

/// Pages by token. The pointers are JSON Pointers (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TokenPages {
    /// The parameter that says which page.
    pub parameter: String,
    /// Where the token of the next page is in the answer. The same token again, or none, is the end for now.
    pub next: String,
    /// Where the items are in the answer.
    pub items: String,
    /// Where the text of an item is in it; empty if the item is the text.
    pub text: String,
}

impl TokenPages {
    /// Pages of items.
    pub fn new(
        parameter: impl Into<String>,
        next: impl Into<String>,
        items: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self { parameter: parameter.into(), next: next.into(), items: items.into(), text: text.into() }
    }
}

/// Lines that start with their time (RFC 3339) and a space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stamps {
    /// The parameter that says from which time on; it is given in whole seconds, and that second is included.
    pub since: String,
    /// The parameter that is `true` for an answer that goes on; without it the log is polled.
    pub follow: Option<String>,
}

impl Stamps {
    /// Asked again and again by that parameter.
    pub fn polled(since: impl Into<String>) -> Self {
        Self { since: since.into(), follow: None }
    }

    /// A pod's log: `sinceTime` and `follow`. The URL says `timestamps=true`.
    pub fn kubernetes() -> Self {
        Self { since: "sinceTime".into(), follow: Some("follow".into()) }
    }
}
