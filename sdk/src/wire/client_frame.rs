//! What a client says.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use ulid::Ulid;

use super::fields::{Incoming, MalformedFrame, Received};
use super::{CallId, Cursor, SubId};
pub use crate::key::KeyLevel as Level;

/// A frame from client to server.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientFrame<'a> {
    /// Starts a read.
    #[serde(borrow)]
    Subscribe(Subscribe<'a>),
    /// Ends a read.
    Unsubscribe {
        /// Which one.
        sub: SubId,
    },
    /// Sends a command. Answered by `report` or `refused`; further reports follow until it is settled.
    Call(Call<'a>),
    /// Asks for the reports of a command without sending it: `report`, or `refused` with `not_found`.
    Attach {
        /// Names the answers.
        call: CallId,
        /// The command's key.
        key: Cow<'a, str>,
    },
    /// Cancels a command by key, whether or not it has been seen (W5). Answered by `report` or `refused`.
    Cancel {
        /// Names the answers; may be that of an earlier call or attach of the same key.
        call: CallId,
        /// The command's key.
        key: Cow<'a, str>,
        /// When the key was minted, in ms since 1970, by the client's clock.
        minted: u64,
    },
    /// Wants no further reports.
    Forget {
        /// Of this call.
        call: CallId,
    },
    /// Sent each heartbeat; answered by `pong` with the same `n`.
    Ping {
        /// Counts the pings of a connection.
        n: u64,
    },
}

/// Who waits for an answer.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    Call(CallId),
    Read(SubId),
}

/// Starts a read.
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the frame")]
pub struct Subscribe<'a> {
    /// Names the answers.
    pub sub: SubId,
    /// Service, version and method: `build_farm.v1/build`.
    pub method: Cow<'a, str>,
    /// An object of named arguments.
    pub params: Cow<'a, RawValue>,
    /// What the client holds already: asks only for what changed after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
}

/// Sends a command. The key and what belongs to it are request metadata, never arguments (K3).
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the frame")]
pub struct Call<'a> {
    /// Names the answers.
    pub call: CallId,
    /// Service, version and method.
    pub method: Cow<'a, str>,
    /// An object of named arguments.
    pub params: Cow<'a, RawValue>,
    /// The command's key.
    pub key: Cow<'a, str>,
    /// How the key was made.
    pub level: Level,
    /// When the key was minted, in ms since 1970, by the client's clock.
    pub minted: u64,
    /// The attempt of an L2 key; 1 for the first.
    pub attempt: u32,
    /// A ULID of the call for correlation, whatever the level (K3).
    pub id: Ulid,
    /// The caller's own metadata.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Cow<'a, BTreeMap<String, String>>,
}

impl<'a> ClientFrame<'a> {
    /// Reads one text frame.
    ///
    /// # Errors
    /// When it is no JSON object, or a field of a known type is missing or wrong; the error names the field.
    pub fn parse(text: &'a str) -> Result<Incoming<Self>, MalformedFrame> {
        let f = Received::parse(text)?;
        Ok(Incoming::Known(match &*f.kind {
            "subscribe" => Self::Subscribe(Subscribe {
                sub: f.need("sub", f.sub)?,
                method: f.need("method", f.method.clone())?,
                params: Cow::Borrowed(f.need("params", f.params)?),
                after: f.after,
            }),
            "unsubscribe" => Self::Unsubscribe { sub: f.need("sub", f.sub)? },
            "call" => Self::Call(Call {
                call: f.need("call", f.call)?,
                method: f.need("method", f.method.clone())?,
                params: Cow::Borrowed(f.need("params", f.params)?),
                key: f.need("key", f.key.clone())?,
                level: f.need("level", f.level)?,
                minted: f.need("minted", f.minted)?,
                attempt: f.attempt.unwrap_or(1),
                id: f.need("id", f.id)?,
                metadata: Cow::Owned(f.metadata.clone().unwrap_or_default()),
            }),
            "attach" => Self::Attach { call: f.need("call", f.call)?, key: f.need("key", f.key.clone())? },
            "cancel" => Self::Cancel {
                call: f.need("call", f.call)?,
                key: f.need("key", f.key.clone())?,
                minted: f.need("minted", f.minted)?,
            },
            "forget" => Self::Forget { call: f.need("call", f.call)? },
            "ping" => Self::Ping { n: f.need("n", f.n)? },
            other => return Ok(Incoming::Unknown(other.into())),
        }))
    }

    /// Who waits for an answer to a frame that [`parse`](Self::parse) could not read, where that much can be read.
    #[cfg(feature = "server")]
    pub(crate) fn asker(text: &str) -> Option<Asker> {
        #[derive(serde::Deserialize)]
        struct Head {
            r#type: String,
            call: Option<CallId>,
            sub: Option<SubId>,
        }
        let Head { r#type, call, sub } = serde_json::from_str(text).ok()?;
        match &*r#type {
            "call" | "attach" | "cancel" => call.map(Asker::Call),
            "subscribe" => sub.map(Asker::Read),
            _ => None,
        }
    }

    /// The text frame.
    pub fn to_text(&self) -> String {
        // Every field is a string, a number or JSON already: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
