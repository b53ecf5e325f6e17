//! One value of a status, as a service writes it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// A value of a status: a word, a number, or true or false.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "what JSON has beside objects, arrays, fractions and null")]
pub enum Word {
    /// A string.
    Text(Arc<str>),
    /// An integer.
    Integer(i128),
    /// True or false.
    Flag(bool),
}

impl Word {
    /// The word in a JSON value; `None` for null, objects, arrays and fractions.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.as_str().into())),
            Value::Number(number) => number.as_i128().map(Self::Integer),
            Value::Bool(flag) => Some(Self::Flag(*flag)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether both are of one type.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// What it is, for errors.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Flag(_) => "true or false",
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
        }
    }
}

/// What a JSON value is, for errors: its type, never its content.
pub(super) const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
