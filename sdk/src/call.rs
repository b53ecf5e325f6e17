//! What is called: a method's descriptor and its named arguments, the same on both ends.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind};
use crate::key::{CommandKey, semantic};

/// What both ends know of one method of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method {
    name: &'static str,
    key: &'static [&'static str],
    dedupe: bool,
}

impl Method {
    /// A method by its full name: service, version and method, `build_farm.v1/submit_build`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, key: &[], dedupe: true }
    }

    /// Makes its commands' keys of these arguments (L2, K2).
    #[must_use]
    pub const fn keyed_by(mut self, arguments: &'static [&'static str]) -> Self {
        self.key = arguments;
        self
    }

    /// Says that the service does not deduplicate it: a command whose answer is lost is not resent (W2).
    #[must_use]
    pub const fn without_dedupe(mut self) -> Self {
        self.dedupe = false;
        self
    }

    /// The full name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the service deduplicates it by key.
    pub const fn dedupes(&self) -> bool {
        self.dedupe
    }

    /// The L2 key of this method called with `params`, if it has key arguments.
    ///
    /// # Errors
    /// When a key argument is missing.
    pub fn semantic_key(&self, params: &RawValue, attempt: u32) -> Option<Result<CommandKey, Error>> {
        (!self.key.is_empty()).then(|| semantic(self.name, params, self.key, attempt))
    }
}

/// Named arguments as they travel: one JSON object, shared between resends byte for byte (W1).
#[derive(Clone)]
pub struct Params {
    json: Result<String, Error>,
}

impl Params {
    /// No arguments.
    pub fn new() -> Self {
        Self { json: Ok("{".to_owned()) }
    }

    /// Adds the argument `name`. One that cannot be written as JSON is reported by the call it is used for.
    #[must_use]
    pub fn with<T: Serialize + ?Sized>(mut self, name: &str, value: &T) -> Self {
        if let Ok(json) = &mut self.json {
            match (serde_json::to_string(name), serde_json::to_string(value)) {
                (Ok(name), Ok(value)) => {
                    if json.len() > 1 {
                        json.push(',');
                    }
                    json.push_str(&name);
                    json.push(':');
                    json.push_str(&value);
                }
                (Err(e), _) | (_, Err(e)) => {
                    self.json = Err(Error::invalid(name, "a value that JSON can hold").with_source(e));
                }
            }
        }
        self
    }

    /// The JSON object.
    ///
    /// # Errors
    /// When an argument could not be written as JSON; the error names it.
    pub fn into_raw(self) -> Result<Arc<RawValue>, Error> {
        let mut json = self.json?;
        json.push('}');
        RawValue::from_string(json).map(Arc::from).map_err(|e| Error::new(ErrorKind::Invalid, "params").with_source(e))
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Params {
    /// Without the values: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Params").finish_non_exhaustive()
    }
}

/// Received arguments, taken by name.
#[derive(Clone)]
pub struct Args {
    fields: std::collections::BTreeMap<String, Box<RawValue>>,
}

impl Args {
    /// The arguments in a received JSON object.
    ///
    /// # Errors
    /// When `params` is no object.
    pub fn parse(params: &RawValue) -> Result<Self, Error> {
        serde_json::from_str(params.get())
            .map(|fields| Self { fields })
            .map_err(|e| Error::invalid("params", "an object of named arguments").with_source(e))
    }

    /// The argument `name`. A missing one is read as JSON `null`, so an `Option` may be left out.
    ///
    /// # Errors
    /// When it is missing or of another type; the error names it.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Error> {
        match self.fields.remove(name) {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|e| Error::invalid(name, &e).with_source(e)),
            None => {
                serde_json::from_str("null").map_err(|e| Error::invalid(name, "a value; it is missing").with_source(e))
            }
        }
    }
}

impl fmt::Debug for Args {
    /// Without the values: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.fields.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_travel_by_name() {
        let raw = Params::new().with("id", &7).with("name", "a\"b").into_raw().unwrap();
        assert_eq!(raw.get(), r#"{"id":7,"name":"a\"b"}"#);
        let mut args = Args::parse(&raw).unwrap();
        assert_eq!(args.take::<String>("name").unwrap(), "a\"b");
        assert!(args.take::<String>("id").unwrap_err().to_string().starts_with("id: expected"));
        assert!(args.take::<u32>("gone").unwrap_err().is_invalid());
        assert_eq!(args.take::<Option<u32>>("gone").unwrap(), None);
    }

    #[test]
    fn an_argument_that_json_cannot_hold_is_named() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        let e = Params::new().with("map", &map).into_raw().unwrap_err();
        assert!(e.is_invalid() && e.to_string().starts_with("map:"), "{e}");
    }
}
