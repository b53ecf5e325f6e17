//! What a server says.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fields::{Incoming, MalformedFrame, Received};
use super::millis;
use super::refusal::{EndReason, Refused};
use super::{CallId, CommandFailure, CommandStatus, Cursor, Epoch, LogId, Seq, SubId};
use crate::key::Principal;

/// A frame from server to client.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerFrame<'a> {
    /// The first frame of every connection.
    Welcome(Welcome),
    /// The read's value.
    Value {
        /// Of which subscription.
        sub: SubId,
        /// How recent it is.
        at: Cursor,
        /// The value.
        #[serde(borrow)]
        value: Cow<'a, RawValue>,
    },
    /// The read's value is what the client holds already.
    Unchanged {
        /// Of which subscription.
        sub: SubId,
        /// How recent that is.
        at: Cursor,
    },
    /// There is no such resource (yet); the subscription stays.
    Absent {
        /// Of which subscription.
        sub: SubId,
        /// As of when.
        at: Cursor,
    },
    /// The resource was there and is no more, or access to it is denied. Ends the subscription.
    End {
        /// Of which subscription.
        sub: SubId,
        /// Which of the two.
        reason: EndReason,
    },
    /// The subscription could not be served now and is over; the client may start another.
    Unserved {
        /// Of which subscription.
        sub: SubId,
        /// Why.
        #[serde(flatten)]
        refused: Refused,
    },
    /// Where a command stands.
    Report {
        /// The call that asked.
        call: CallId,
        /// Where it stands.
        #[serde(flatten)]
        report: CommandReport,
    },
    /// A call, attach or cancel that left no record and has no further reports.
    Refused {
        /// The call that asked.
        call: CallId,
        /// Why.
        #[serde(flatten)]
        refused: Refused,
    },
    /// All values of this connection up to here have been sent.
    Watermark {
        /// The sequence in the welcome's log.
        through: Seq,
    },
    /// Answers `ping`.
    Pong {
        /// The ping's.
        n: u64,
        /// As `watermark`.
        through: Seq,
        /// The log's head.
        head: Seq,
        /// As in `welcome`.
        #[serde(rename = "spread_ms", with = "millis")]
        spread: Duration,
    },
    /// The server will close soon: send nothing new here.
    Drain,
    /// The client sent a frame that could not be understood; for its log.
    Fault {
        /// Names the field and what was expected.
        detail: Cow<'a, str>,
    },
}

/// The first frame of every connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the frame; unknown fields are ignored when read")]
pub struct Welcome {
    /// This life of the server process.
    pub epoch: Epoch,
    /// The log that it speaks for.
    pub log: LogId,
    /// That log's head.
    pub head: Seq,
    /// Whether the log outlives the process (W8).
    pub durable: bool,
    /// Who the server takes the client for.
    pub principal: Principal,
    /// The server's wall clock, in ms since 1970.
    pub now: u64,
    /// How often the client is to ping; a connection silent for two of them is dropped.
    #[serde(rename = "heartbeat_ms", with = "millis")]
    pub heartbeat: Duration,
    /// R: how long a key is remembered.
    #[serde(rename = "retention_ms", with = "millis")]
    pub retention: Duration,
    /// The first dial after a drop is uniform in [0, spread].
    #[serde(rename = "spread_ms", with = "millis")]
    pub spread: Duration,
}

/// Where a command stands, by the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the frame; unknown fields are ignored when read")]
pub struct CommandReport {
    /// Of the seven.
    pub status: CommandStatus,
    /// The sequence of its acceptance in the welcome's log: the same in every replay (S2).
    pub accepted: Seq,
    /// The sequence of its newest entry.
    pub at: Seq,
    /// Why it failed, where `status` is `FAILED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<CommandFailure>,
}

impl<'a> ServerFrame<'a> {
    /// Reads one text frame.
    ///
    /// # Errors
    /// When it is no JSON object, or a field of a known type is missing or wrong; the error names the field.
    pub fn parse(text: &'a str) -> Result<Incoming<Self>, MalformedFrame> {
        let f = Received::parse(text)?;
        Ok(Incoming::Known(match &*f.kind {
            "welcome" => Self::Welcome(serde_json::from_str(text).map_err(|e| MalformedFrame::new(&e))?),
            "value" => Self::Value {
                sub: f.need("sub", f.sub)?,
                at: f.need_cursor()?,
                value: Cow::Borrowed(f.need("value", f.value)?),
            },
            "unchanged" => Self::Unchanged { sub: f.need("sub", f.sub)?, at: f.need_cursor()? },
            "absent" => Self::Absent { sub: f.need("sub", f.sub)?, at: f.need_cursor()? },
            "end" => Self::End { sub: f.need("sub", f.sub)?, reason: f.need("reason", f.reason)? },
            "unserved" => Self::Unserved { sub: f.need("sub", f.sub)?, refused: f.refused()? },
            "report" => Self::Report {
                call: f.need("call", f.call)?,
                report: CommandReport {
                    status: f.need("status", f.status)?,
                    accepted: f.need("accepted", f.accepted)?,
                    at: f.need_seq()?,
                    failure: f.failure.clone(),
                },
            },
            "refused" => Self::Refused { call: f.need("call", f.call)?, refused: f.refused()? },
            "watermark" => Self::Watermark { through: f.need("through", f.through)? },
            "pong" => Self::Pong {
                n: f.need("n", f.n)?,
                through: f.need("through", f.through)?,
                head: f.need("head", f.head)?,
                spread: Duration::from_millis(f.spread_ms.unwrap_or(0)),
            },
            "drain" => Self::Drain,
            "fault" => Self::Fault { detail: f.detail.clone().unwrap_or_default() },
            other => return Ok(Incoming::Unknown(other.into())),
        }))
    }

    /// The text frame.
    pub fn to_text(&self) -> String {
        // Every field is a string, a number or JSON already: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
