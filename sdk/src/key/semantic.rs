//! L2 keys: the same on both ends, because both ends run this.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::canonical::canonicalize;
use super::{CommandKey, KeyLevel};
use crate::error::Error;

/// The L2 key of `method` called with `params`: H(method, the arguments named by `key_fields`, attempt).
///
/// The first attempt is 1. The server recomputes the key from the arguments that it received, so a
/// client that restarts, or has lost an acknowledgement, finds its command again (K2).
///
/// # Errors
/// When `params` is no object, or has a field of that name twice, or lacks one of `key_fields`.
pub fn semantic(method: &str, params: &RawValue, key_fields: &[&str], attempt: u32) -> Result<CommandKey, Error> {
    let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(params.get())
        .map_err(|e| Error::invalid("params", "an object of named arguments").with_source(e))?;
    let mut bytes = method.as_bytes().to_vec();
    for name in key_fields {
        let value = fields.get(name).ok_or_else(|| Error::invalid(name, "a value, as it is part of the key"))?;
        bytes.push(0);
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        canonicalize(value, &mut bytes)?;
    }
    bytes.push(0);
    bytes.extend_from_slice(attempt.to_string().as_bytes());
    let hash = Sha256::digest(&bytes);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(CommandKey::of_level(hex, KeyLevel::Semantic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(method: &str, json: &str, attempt: u32) -> CommandKey {
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        semantic(method, &raw, &["sha"], attempt).unwrap()
    }

    /// K2: the key is made of the method, the key arguments and the attempt, and of nothing else.
    #[test]
    fn k2_semantic_key_is_method_key_arguments_and_attempt() {
        let first = key("submit", r#"{"sha":"a","spec":1}"#, 1);
        assert_eq!(first.level(), KeyLevel::Semantic);
        assert_eq!(first, key("submit", r#"{"spec":2,"sha":"a"}"#, 1));
        assert_ne!(first, key("submit", r#"{"sha":"b","spec":1}"#, 1));
        assert_ne!(first, key("other", r#"{"sha":"a","spec":1}"#, 1));
        assert_ne!(first, key("submit", r#"{"sha":"a","spec":1}"#, 2));
    }

    #[test]
    fn a_missing_key_argument_is_named() {
        let raw: Box<RawValue> = serde_json::from_str("{}").unwrap();
        assert!(semantic("m", &raw, &["sha"], 1).unwrap_err().to_string().starts_with("sha:"));
    }
}
