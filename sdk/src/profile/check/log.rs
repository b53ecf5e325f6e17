//! Whether what a profile says of logs fits together.

use super::{bound, given, named};
use crate::error::Error;
use crate::profile::LogKind::{AtEnd, Bytes, Lines, Time, Token, Whole};
use crate::profile::{Log, Profile};

pub(super) fn log(profile: &Profile, log: &Log) -> Result<(), Error> {
    let mut given = given(named(profile, &log.stage, "log.stage")?);
    for (i, source) in log.sources.iter().enumerate() {
        let path = format!("log.source[{i}]");
        let mut pages = given.clone();
        pages.insert("from");
        bound(&source.path, &pages, &format!("{path}.path"))?;
        if source.bind.is_empty() {
            return Err(Error::invalid(&format!("{path}.bind"), "what tells one element of the list from another"));
        }
        given.extend(source.bind.keys().map(|name| &**name));
    }
    if let Some(about) = &log.about {
        bound(&about.path, &given, "log.about.path")?;
    }
    given.extend(["from", "limit"]);
    bound(&log.path, &given, "log.path")?;
    for name in ["from", "limit"] {
        if log.path.names().contains(name) && !log.path.is_parameter(name) {
            return Err(Error::invalid("log.path", format_args!("{{{name}}} as a value of its query")));
        }
    }
    needed(log)?;
    useful(log)
}

/// What a log of that kind cannot be read without is stated.
fn needed(log: &Log) -> Result<(), Error> {
    let names = log.path.names();
    match (log.kind, names.contains("from")) {
        (Whole | AtEnd, true) => Err(Error::invalid("log.path", "no {from}: a log of that kind does not continue")),
        (Lines | Token | Time, false) => Err(Error::invalid("log.path", "{from}, which says where to continue")),
        (Bytes, true) if log.size.is_none() => {
            Err(Error::invalid("log.size", "the header that says where to continue"))
        }
        (Lines, true) if !names.contains("limit") => {
            Err(Error::invalid("log.path", "{limit}, which says how many lines at most"))
        }
        (Lines, true) if log.first.is_none() => {
            Err(Error::invalid("log.first", "where the number of the first line stands"))
        }
        (Token, true) if log.token.is_none() => {
            Err(Error::invalid("log.token", "where the token to continue with stands"))
        }
        // Bytes may be asked for by a Range header (RFC 9110, 14.2).
        (Bytes, _) | (Whole | AtEnd, false) | (Lines | Token | Time, true) => Ok(()),
    }
}

/// What a log of that kind does not read is not stated: whoever wrote it relies on it.
fn useful(log: &Log) -> Result<(), Error> {
    let by_offset = log.kind == Bytes && log.path.names().contains("from");
    let (pieces, lines) = match log.kind {
        Lines => (true, true),
        Token => (true, false),
        Bytes | Time | Whole | AtEnd => (false, false),
    };
    if log.path.names().contains("limit") && !lines {
        return Err(Error::invalid("log.path", "no {limit}, for a log of that kind"));
    }
    let read = [
        ("log.each", log.each.is_some(), pieces),
        ("log.text", log.text.is_some(), pieces),
        ("log.first", log.first.is_some(), lines),
        ("log.about", log.about.is_some(), lines),
        ("log.tagged", log.tagged.is_some(), lines),
        ("log.token", log.token.is_some(), log.kind == Token),
        ("log.size", log.size.is_some(), by_offset),
        ("log.more", log.more.is_some(), by_offset),
        ("log.exact", !log.exact, by_offset),
    ];
    match read.into_iter().find(|(_, is_stated, is_read)| *is_stated && !is_read) {
        Some((field, ..)) => Err(Error::invalid(field, "nothing, for a log of that kind")),
        None => Ok(()),
    }
}
