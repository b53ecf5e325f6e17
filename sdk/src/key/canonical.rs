//! A canonical form of JSON with sorted keys and exact integers.
//!
//! RFC 8785 maps 2^53 and 2^53+1 to one text, so it cannot tell two commands apart; here an integer
//! keeps every digit.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind};

/// As deep as `serde_json` parses.
const DEPTH: usize = 127;

/// Appends the canonical form of `json` to `out`.
///
/// Object keys are sorted by their UTF-8 bytes, white space is gone, strings use the shortest escapes,
/// an integer keeps its digits, another number is the shortest text of its `f64`.
///
/// # Errors
/// When `json` is not JSON, nests deeper than 127 levels, holds an object key twice, or a number beyond `f64`.
pub(super) fn canonicalize(json: &RawValue, out: &mut Vec<u8>) -> Result<(), Error> {
    write(json.get(), out, DEPTH)
}

/// As [`canonicalize`]; of an object the fields that are `null` are left out.
///
/// # Errors
/// As [`canonicalize`].
pub(super) fn canonicalize_arguments(json: &RawValue, out: &mut Vec<u8>) -> Result<(), Error> {
    if !json.get().trim_start().starts_with('{') {
        return canonicalize(json, out);
    }
    let arguments: Object<'_> = parse(json.get())?;
    object(arguments.0.into_iter().filter(|(_, value)| value.get() != "null"), out, DEPTH)
}

fn object<'a>(
    fields: impl Iterator<Item = (String, &'a RawValue)>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), Error> {
    out.push(b'{');
    for (i, (key, value)) in fields.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        string(&key, out)?;
        out.push(b':');
        write(value.get(), out, depth - 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn write(json: &str, out: &mut Vec<u8>, depth: usize) -> Result<(), Error> {
    let json = json.trim_matches([' ', '\t', '\n', '\r']);
    if depth == 0 {
        return Err(Error::invalid("JSON", format_args!("at most {DEPTH} nested levels")));
    }
    match json.as_bytes().first() {
        Some(b'{') => {
            let fields: Object<'_> = parse(json)?;
            object(fields.0.into_iter(), out, depth)?;
        }
        Some(b'[') => {
            let array: Vec<&RawValue> = parse(json)?;
            out.push(b'[');
            for (i, value) in array.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(value.get(), out, depth - 1)?;
            }
            out.push(b']');
        }
        Some(b'"') => string(&parse::<String>(json)?, out)?,
        Some(b'-' | b'0'..=b'9') => number(json, out)?,
        _ => out.extend_from_slice(json.as_bytes()),
    }
    Ok(())
}

fn number(text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    if text.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
        // JSON allows no leading zeros, so the digits are unique but for -0.
        out.extend_from_slice(if text == "-0" { b"0" } else { text.as_bytes() });
        return Ok(());
    }
    let value: f64 = parse(text)?;
    serde_json::to_writer(out, &value).map_err(corrupt)
}

fn string(text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    serde_json::to_writer(out, text).map_err(corrupt)
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(corrupt)
}

fn corrupt(e: serde_json::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("JSON: {e}")).with_source(e)
}

/// An object whose values are left as text, sorted by key, each key once.
struct Object<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut object = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    if object.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("object key {key:?} twice")));
                    }
                    object.insert(key, value);
                }
                Ok(Object(object))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canon(json: &str) -> Result<String, Error> {
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let mut out = Vec::new();
        canonicalize(&raw, &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    /// K1: order and spelling do not matter, every digit does.
    #[test]
    fn k1_sorted_keys_and_exact_integers() {
        assert_eq!(canon(r#" {"b": [1, 2.50, "\u0061"], "a": {"z":null,"y":true}} "#).unwrap(), {
            r#"{"a":{"y":true,"z":null},"b":[1,2.5,"a"]}"#
        });
        assert_ne!(canon("9007199254740992").unwrap(), canon("9007199254740993").unwrap());
        assert_ne!(canon("18446744073709551616").unwrap(), canon("18446744073709551617").unwrap());
        assert_eq!(canon("-0").unwrap(), "0");
        assert_eq!(canon("1e2").unwrap(), canon("100.0").unwrap());
    }

    #[test]
    fn what_has_no_single_meaning_is_refused() {
        assert!(canon(r#"{"a":1,"a":2}"#).unwrap_err().is_invalid());
        assert!(canon(r#"{"a":1,"\u0061":2}"#).unwrap_err().is_invalid());
        let deep = format!("{}{}", "[".repeat(126), "]".repeat(126));
        assert!(canon(&deep).is_ok());
    }
}
