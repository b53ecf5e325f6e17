//! What a command asks for, in 32 bytes.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::canonical::canonicalize_arguments;
use crate::error::Error;

/// SHA-256 over a method and its canonical parameters: two commands of one key must agree on it (K1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of calling `method` with `params`, as they were received.
    ///
    /// An argument that is `null` counts as one that was left out, as it does where it is read: so an optional argument can
    /// be added to a method, and a command of before stays the same command.
    ///
    /// # Errors
    /// When `params` holds an object key twice or nests deeper than 127 levels.
    pub fn of(method: &str, params: &RawValue) -> Result<Self, Error> {
        let mut bytes = method.as_bytes().to_vec();
        bytes.push(0); // a method has no NUL, so method and parameters cannot run into each other
        canonicalize_arguments(params, &mut bytes)?;
        Ok(Self(Sha256::digest(&bytes).into()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let expected = || Error::invalid("fingerprint", "64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(expected());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(pair).map_err(|_| expected())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| expected())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    /// K1: method and canonical parameters form the fingerprint.
    #[test]
    fn k1_fingerprint_is_method_and_parameters() {
        let of = |method, json| Fingerprint::of(method, &raw(json)).unwrap();
        assert_eq!(of("m", r#"{"a":1,"b":2}"#), of("m", r#"{ "b":2, "a":1 }"#));
        assert_ne!(of("m", r#"{"a":1}"#), of("n", r#"{"a":1}"#));
        assert_eq!(of("m", r#"{"a":1}"#), of("m", r#"{"a":1,"later":null}"#));
        assert_ne!(of("m", r#"{"a":{"b":1}}"#), of("m", r#"{"a":{"b":1,"later":null}}"#), "only arguments");
        assert_ne!(of("m", r#"{"a":9007199254740992}"#), of("m", r#"{"a":9007199254740993}"#));
        let text = of("m", "{}").to_string();
        assert_eq!(Fingerprint::try_from(text).unwrap(), of("m", "{}"));
        assert!(Fingerprint::try_from("x".repeat(64)).is_err());
    }
}
