//! L2 keys: the same on both ends, because both ends run this.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::canonical::canonicalize;
use super::{CommandKey, KeyLevel};
use crate::error::Error;

/// The L2 key of `method` called with `params`: H(method, the arguments named by `key_fields`, attempt).
///
/// The order of `key_fields` does not matter, since arguments travel by name; one that is missing counts as `null`, as it
/// does where it is read. So a service may reorder them, and add an optional one.
///
/// The first attempt is 1. The server recomputes the key from the arguments that it received, so a
/// client that restarts, or has lost an acknowledgement, finds its command again (K2).
///
/// # Errors
/// When `params` is no object, or a key argument holds an object key twice.
pub fn semantic(method: &str, params: &RawValue, key_fields: &[&str], attempt: u32) -> Result<CommandKey, Error> {
    let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(params.get())
        .map_err(|e| Error::invalid("params", "an object of named arguments").with_source(e))?;
    let mut bytes = method.as_bytes().to_vec();
    let mut key_fields = key_fields.to_vec();
    key_fields.sort_unstable();
    for name in key_fields {
        // `null` is left out, as in a fingerprint: a key of before an optional argument was added stays the same.
        let Some(value) = fields.get(name).filter(|value| value.get() != "null") else { continue };
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

    /// K2: a service may reorder its key arguments and add an optional one; the keys of before stay the same.
    #[test]
    fn k2_keys_outlive_a_change_of_the_declaration() {
        let of = |json: &str, fields: &[&str]| {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            semantic("m", &raw, fields, 1).unwrap()
        };
        let before = of(r#"{"sha":"a","os":"b"}"#, &["sha", "os"]);
        assert_eq!(before, of(r#"{"sha":"a","os":"b"}"#, &["os", "sha"]));
        assert_eq!(before, of(r#"{"sha":"a","os":"b"}"#, &["sha", "os", "label"]));
        assert_eq!(before, of(r#"{"sha":"a","os":"b","label":null}"#, &["sha", "os", "label"]));
        assert_ne!(before, of(r#"{"sha":"a","os":"b","label":"x"}"#, &["sha", "os", "label"]));
        assert_ne!(before, of(r#"{"sha":"b","os":"a"}"#, &["sha", "os"]));
    }
}
