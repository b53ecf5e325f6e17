//! Command keys: what makes a resend harmless.
//!
//! | level | made from | protects |
//! |---|---|---|
//! | L1 [`KeyLevel::Minted`] | a ULID per call | against transport faults; dies with its handle |
//! | L2 [`KeyLevel::Semantic`] | method, key arguments, attempt | across client restarts too, within retention |
//! | L3 [`KeyLevel::Explicit`] | what the caller says | the same, where there is no natural key |

mod canonical;
mod fingerprint;
mod semantic;

pub use fingerprint::Fingerprint;
pub use semantic::semantic;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::error::Error;

/// How a key was made, which says how long it protects (K2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the ladder has three rungs")]
pub enum KeyLevel {
    /// L1: a ULID minted for the call.
    Minted,
    /// L2: computed on both ends from the method and its key arguments.
    Semantic,
    /// L3: given by the caller.
    Explicit,
}

/// Who a command belongs to: keys of different principals never meet (K1).
///
/// Any text of 1 to [`Principal::MAX`] bytes; stable across reconnects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The longest principal, in bytes.
    pub const MAX: usize = 128;

    /// A principal of that name.
    ///
    /// # Errors
    /// When `name` is empty or longer than [`Principal::MAX`] bytes.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, Error> {
        let name = name.into();
        if name.is_empty() || name.len() > Self::MAX {
            return Err(Error::invalid("principal", format_args!("1 to {} bytes, got {}", Self::MAX, name.len())));
        }
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of one command, the same in every resend (W1).
///
/// Made from text (`"release:42".into()`), it is an explicit L3 key. It must have 1 to
/// [`CommandKey::MAX`] bytes without control characters; a command given another fails before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandKey {
    text: Arc<str>,
    level: KeyLevel,
}

impl CommandKey {
    /// The longest key, in bytes.
    pub const MAX: usize = 256;

    /// An L3 key.
    pub fn explicit(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), level: KeyLevel::Explicit }
    }

    /// An L1 key.
    pub fn minted(id: Ulid) -> Self {
        Self { text: id.to_string().into(), level: KeyLevel::Minted }
    }

    /// A key of a known level, as it travels.
    pub fn of_level(text: impl Into<Arc<str>>, level: KeyLevel) -> Self {
        Self { text: text.into(), level }
    }

    /// The L3 key of a named step of this one: `key.step("b")`.
    #[must_use]
    pub fn step(&self, name: &str) -> Self {
        Self::explicit(format!("{}/{name}", self.text))
    }

    /// The text that travels.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How it was made.
    pub fn level(&self) -> KeyLevel {
        self.level
    }

    /// Whether the key may be used.
    ///
    /// # Errors
    /// When it is empty, longer than [`CommandKey::MAX`] bytes, or holds a control character.
    pub fn validate(&self) -> Result<(), Error> {
        if self.text.is_empty() || self.text.len() > Self::MAX {
            return Err(Error::invalid("key", format_args!("1 to {} bytes, got {}", Self::MAX, self.text.len())));
        }
        if self.text.chars().any(char::is_control) {
            return Err(Error::invalid("key", "no control characters"));
        }
        Ok(())
    }
}

impl From<&str> for CommandKey {
    fn from(text: &str) -> Self {
        Self::explicit(text)
    }
}

impl From<String> for CommandKey {
    fn from(text: String) -> Self {
        Self::explicit(text)
    }
}

impl fmt::Display for CommandKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The full address of a command: keys are scoped by principal (K1).
///
/// A service keeps it to settle a running command later, for example in the event that records the work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommandRef {
    principal: Principal,
    key: Arc<str>,
}

impl CommandRef {
    /// The command of `principal` with `key`.
    pub fn new(principal: Principal, key: impl Into<Arc<str>>) -> Self {
        Self { principal, key: key.into() }
    }

    /// Whose command.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Its key.
    pub fn key(&self) -> &str {
        &self.key
    }
}
