//! How the logs of a service are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::http::HeaderName;
use serde_json::Value;

use super::{Bindings, Pointer, Taken, Template, When};

/// How the logs of a piece of work are read.
///
/// The sources are asked in turn, each for each element of the one before; what the last one lists are the logs. Without
/// sources there is one log, and the stage says enough to ask for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Log {
    /// How a log continues.
    pub kind: LogKind,
    /// The stage whose logs these are.
    pub stage: Arc<str>,
    /// How to find them.
    pub sources: Vec<LogSource>,
    /// Where a log is read. `{from}` stands for where to continue (a byte, a line, a time, a token), `{limit}` for how many lines.
    pub path: Template,
    /// Where the list of pieces is in a JSON answer, for lines and tokens. Default: the answer is the list.
    pub each: Option<Pointer>,
    /// Where the text of a piece is in it. Default: the piece is the text.
    pub text: Option<Pointer>,
    /// Where a piece of lines says the number of its first one.
    pub first: Option<Pointer>,
    /// Where the service tells how many lines there are, and whether that is all.
    pub about: Option<LogAbout>,
    /// Where a JSON answer has the token to continue with.
    pub token: Option<Pointer>,
    /// The header that says where to continue.
    pub size: Option<HeaderName>,
    /// The header that is there as long as more is to come.
    pub more: Option<HeaderName>,
    /// Whether an answer has exactly the bytes up to where it says to continue. Default yes.
    pub exact: bool,
    /// When each line begins with a character that is no part of it, as the last source's element says.
    pub tagged: Option<When>,
}

/// Where a service tells of a log of lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LogAbout {
    /// Where it is read.
    pub path: Template,
    /// Where the number of lines is in the answer.
    pub lines: Pointer,
    /// Where it is said that the log is complete.
    pub complete: Pointer,
}

/// How a log continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogKind {
    /// From a byte.
    Bytes,
    /// From a line.
    Lines,
    /// From a token that the service gave.
    Token,
    /// From a time.
    Time,
    /// Not: it comes whole each time.
    Whole,
    /// Not: it is there only once the work is over.
    AtEnd,
}

/// One step on the way to the logs: a list, all pages of it.
///
/// The pages are those to which `Link` headers of type `next` (RFC 8288) lead. Where the path has `{from}`, it stands for how many
/// elements came so far, and pages are asked for until there are as many as [`total`](Self::total) says, or until one is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LogSource {
    /// Where it is read.
    pub path: Template,
    /// The list in the answer.
    pub each: Pointer,
    /// Where the answer says how many elements all pages have. A list that ends before is an error: something would be missing.
    pub total: Option<Pointer>,
    /// What each of its elements gives for the next step.
    pub bind: BTreeMap<Arc<str>, Taken>,
    /// Where an element has its name.
    pub name: Option<Pointer>,
}

/// An element of a list on the way to the logs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Listed {
    /// What it gives for the next step.
    pub bound: Bindings,
    /// Its name, where it has one.
    pub name: Option<Arc<str>>,
    /// The element itself: [`Log::tagged`] asks it.
    pub body: Value,
}
