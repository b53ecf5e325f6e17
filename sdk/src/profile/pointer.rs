//! Where in a JSON body something stands.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::error::Error;

/// A place in a JSON body, as RFC 6901 writes it: `/builds/0/number`. The empty one is the whole body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(Arc<str>);

impl Pointer {
    /// The pointer that `text` writes.
    ///
    /// # Errors
    /// When it is none: it neither is empty nor begins with a slash, or a `~` is followed by neither 0 nor 1 (RFC 6901, 3).
    pub fn new(text: &str) -> Result<Self, Error> {
        let begins = text.is_empty() || text.starts_with('/');
        let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        if !begins || !escapes {
            return Err(Error::invalid("pointer", EXPECTED));
        }
        Ok(Self(text.into()))
    }

    /// What stands there.
    pub fn of<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        body.pointer(&self.0)
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a pointer looks like, for errors.
pub(super) const EXPECTED: &str = "a JSON pointer (RFC 6901) such as \"/status\"";

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where something stands in a JSON body: the first of these places that is there and is not null.
///
/// Several, for a service whose versions name it differently.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place(Vec<Pointer>);

impl Place {
    /// The first of these.
    ///
    /// # Errors
    /// When there is none.
    pub fn first_of(pointers: Vec<Pointer>) -> Result<Self, Error> {
        if pointers.is_empty() {
            return Err(Error::invalid("place", "at least one JSON pointer"));
        }
        Ok(Self(pointers))
    }

    /// What stands there, null left out.
    pub fn of<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        self.0.iter().filter_map(|pointer| pointer.of(body)).find(|value| !value.is_null())
    }
}

impl From<Pointer> for Place {
    fn from(pointer: Pointer) -> Self {
        Self(vec![pointer])
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pointer) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" or ")?;
            }
            pointer.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_is_what_rfc_6901_says() {
        for good in ["", "/", "/a/0/b", "/a~1b/~0"] {
            assert!(Pointer::new(good).is_ok(), "{good}");
        }
        for bad in ["a", "status", "/a~", "/a~2b", "#/a"] {
            assert!(Pointer::new(bad).unwrap_err().is_invalid(), "{bad}");
        }
    }

    #[test]
    fn a_place_is_the_first_pointer_with_a_value() {
        let place = Place::first_of(vec![Pointer::new("/new").unwrap(), Pointer::new("/old").unwrap()]).unwrap();
        assert_eq!(place.of(&json!({"new": null, "old": 1})), Some(&json!(1)));
        assert_eq!(place.of(&json!({"new": 2, "old": 1})), Some(&json!(2)));
        assert_eq!(place.of(&json!({"new": null})), None);
        assert_eq!(place.to_string(), "/new or /old");
    }
}
