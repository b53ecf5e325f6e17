//! Reading a frame in one pass: all fields that any frame has, then the ones of its type.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use ulid::Ulid;

use super::refusal::{EndReason, RefusalCode, Refused};
use super::{CallId, CommandFailure, CommandStatus, Cursor, Epoch, LogId, Seq, SubId};
use crate::key::KeyLevel;

/// A frame that was read.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a type is known or it is not")]
pub enum Incoming<F> {
    /// Of a type that this version knows.
    Known(F),
    /// Of another type, whose name this is: to be traced and ignored.
    Unknown(Arc<str>),
}

/// A frame that could not be read: which field, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedFrame {
    detail: Arc<str>,
}

impl MalformedFrame {
    pub(super) fn new(detail: &dyn fmt::Display) -> Self {
        Self { detail: detail.to_string().into() }
    }
}

impl fmt::Display for MalformedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed frame: {}", self.detail)
    }
}

impl std::error::Error for MalformedFrame {}

/// Every field of every frame. One pass over the text, whatever the type.
#[derive(Deserialize)]
pub(super) struct Received<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    pub(super) sub: Option<SubId>,
    pub(super) call: Option<CallId>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) value: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) detail: Option<Cow<'a, str>>,
    pub(super) at: Option<At>,
    pub(super) after: Option<Cursor>,
    pub(super) level: Option<KeyLevel>,
    pub(super) minted: Option<u64>,
    pub(super) attempt: Option<u32>,
    pub(super) id: Option<Ulid>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
    pub(super) n: Option<u64>,
    pub(super) through: Option<Seq>,
    pub(super) head: Option<Seq>,
    pub(super) spread_ms: Option<u64>,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) reason: Option<EndReason>,
    pub(super) code: Option<RefusalCode>,
    pub(super) status: Option<CommandStatus>,
    pub(super) accepted: Option<Seq>,
    pub(super) failure: Option<CommandFailure>,
}

/// `at` is a cursor in a read's frame and a sequence in a command's.
#[derive(Clone, Copy)]
pub(super) enum At {
    Seq(Seq),
    Cursor(Cursor),
}

/// By hand, because every value has one: an untagged enum would copy it aside and read it once for each variant.
impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = At;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence, {log, seq} or {epoch, count}")
            }

            fn visit_u64<E>(self, seq: u64) -> Result<At, E> {
                Ok(At::Seq(seq))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<At, A::Error> {
                Cursor::deserialize(MapAccessDeserializer::new(map)).map(At::Cursor)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// The fields of both kinds of [`Cursor`].
#[derive(Deserialize)]
pub(super) struct CursorFields {
    log: Option<LogId>,
    seq: Option<Seq>,
    epoch: Option<Epoch>,
    count: Option<u64>,
}

impl TryFrom<CursorFields> for Cursor {
    type Error = &'static str;

    fn try_from(fields: CursorFields) -> Result<Self, Self::Error> {
        match fields {
            CursorFields { log: Some(log), seq: Some(seq), .. } => Ok(Self::log(log, seq)),
            CursorFields { epoch: Some(epoch), count: Some(count), .. } => Ok(Self::Epoch { epoch, count }),
            CursorFields { .. } => Err("expected {log, seq} or {epoch, count}"),
        }
    }
}

impl<'a> Received<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, MalformedFrame> {
        serde_json::from_str(text).map_err(|e| blame(text).unwrap_or_else(|| MalformedFrame::new(&e)))
    }

    pub(super) fn need<T>(&self, field: &str, value: Option<T>) -> Result<T, MalformedFrame> {
        value.ok_or_else(|| MalformedFrame::new(&format_args!("`{}` lacks field `{field}`", self.kind)))
    }

    pub(super) fn need_cursor(&self) -> Result<Cursor, MalformedFrame> {
        match self.need("at", self.at)? {
            At::Cursor(cursor) => Ok(cursor),
            At::Seq(_) => Err(MalformedFrame::new(&"`at`: expected {log, seq} or {epoch, count}")),
        }
    }

    pub(super) fn need_seq(&self) -> Result<Seq, MalformedFrame> {
        match self.need("at", self.at)? {
            At::Seq(seq) => Ok(seq),
            At::Cursor(_) => Err(MalformedFrame::new(&"`at`: expected a sequence")),
        }
    }

    pub(super) fn refused(&self) -> Result<Refused, MalformedFrame> {
        Ok(Refused {
            code: self.need("code", self.code)?,
            detail: self.detail.clone().unwrap_or_default().into_owned(),
            retry_after: self.retry_after_ms.map(Duration::from_millis),
        })
    }
}
/// Which field is wrong: `serde_json` tells only where in the text.
fn blame(text: &str) -> Option<MalformedFrame> {
    let Ok(fields) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text) else {
        return Some(MalformedFrame::new(&"the frame: expected a JSON object"));
    };
    if !fields.contains_key("type") {
        return Some(MalformedFrame::new(&"the frame lacks field `type`"));
    }
    fields.iter().find_map(|(name, value)| {
        let kind = if name == "type" { "" } else { r#""type":"","# };
        let alone = format!("{{{kind}{}:{value}}}", serde_json::to_string(name).ok()?);
        let e = serde_json::from_str::<Received<'_>>(&alone).err()?.to_string();
        let what = e.split(" at line ").next().unwrap_or_default();
        Some(MalformedFrame::new(&format_args!("`{name}`: {what}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R4: a position is read whatever the order of its fields and whatever else stands beside them, or not at all.
    #[test]
    fn r4_a_position_is_a_sequence_or_one_of_two_cursors() {
        const ULID: &str = "01KB3X7Q4YVJ5N9ZC2D8E6F0GH";
        let read = |at: &str| {
            let text = format!(r#"{{"type":"x","at":{at}}}"#);
            Received::parse(&text).map(|f| (f.need_seq().ok(), f.need_cursor().ok()))
        };
        let id = Ulid::from_string(ULID).unwrap();
        let log = Cursor::log(LogId::new(id), 7);
        let epoch = Cursor::Epoch { epoch: Epoch::new(id), count: 7 };
        assert_eq!(read("7"), Ok((Some(7), None)));
        assert_eq!(read(&format!(r#"{{"log":"{ULID}","seq":7}}"#)), Ok((None, Some(log))));
        assert_eq!(read(&format!(r#"{{"later":[1],"seq":7,"log":"{ULID}"}}"#)), Ok((None, Some(log))));
        assert_eq!(read(&format!(r#"{{"epoch":"{ULID}","count":7}}"#)), Ok((None, Some(epoch))));
        for wrong in ["-1", "\"7\"", "{}", "[7]", r#"{"log":7,"seq":7}"#, &format!(r#"{{"log":"{ULID}","count":7}}"#)] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for cursor in [log, epoch] {
            let text = serde_json::to_string(&cursor).unwrap();
            assert_eq!(serde_json::from_str::<Cursor>(&text).unwrap(), cursor);
        }
    }
}
