//! The fields of a table, each taken by name; what is left over at the end is not known.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use toml::{Table, Value};

use crate::error::Error;
use crate::profile::{Place, Pointer, Template, Word, pointer};

/// A table of a file, and where it stands there.
pub(super) struct Fields {
    path: String,
    table: Table,
    known: Vec<&'static str>,
}

impl Fields {
    pub(super) fn new(path: String, table: Table) -> Self {
        Self { path, table, known: Vec::new() }
    }

    /// The path of a field, as in `stage[0].path`.
    pub(super) fn path(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    /// Whether the field is there. It still is to be taken.
    pub(super) fn has(&self, field: &str) -> bool {
        self.table.contains_key(field)
    }

    pub(super) fn invalid(&self, field: &str, expected: impl fmt::Display) -> Error {
        Error::invalid(&self.path(field), expected)
    }

    pub(super) fn missing(&self, field: &str, expected: &str) -> Error {
        self.invalid(field, format_args!("{expected}, found nothing"))
    }

    fn take(&mut self, field: &'static str) -> Option<Value> {
        self.known.push(field);
        self.table.remove(field)
    }

    fn wrong(&self, field: &str, expected: &str, value: &Value) -> Error {
        self.invalid(field, format_args!("{expected}, found {}", kind(value)))
    }

    pub(super) fn text(&mut self, field: &'static str) -> Result<Option<String>, Error> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(field, "a string", &other)),
        }
    }

    pub(super) fn need_text(&mut self, field: &'static str) -> Result<String, Error> {
        self.text(field)?.ok_or_else(|| self.missing(field, "a string"))
    }

    pub(super) fn flag(&mut self, field: &'static str) -> Result<Option<bool>, Error> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Boolean(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong(field, "true or false", &other)),
        }
    }

    pub(super) fn count(&mut self, field: &'static str) -> Result<Option<u32>, Error> {
        const EXPECTED: &str = "a whole number above zero";
        match self.take(field) {
            None => Ok(None),
            Some(Value::Integer(n)) => match u32::try_from(n) {
                Ok(n) if n > 0 => Ok(Some(n)),
                _ => Err(self.invalid(field, EXPECTED)),
            },
            Some(other) => Err(self.wrong(field, EXPECTED, &other)),
        }
    }

    pub(super) fn duration(&mut self, field: &'static str) -> Result<Option<Duration>, Error> {
        let path = self.path(field);
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => crate::profile::duration(&path, &text).map(Some),
            Some(other) => Err(self.wrong(field, "a duration such as \"90s\" or \"10m\"", &other)),
        }
    }

    pub(super) fn pointer(&mut self, field: &'static str) -> Result<Option<Pointer>, Error> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        Pointer::new(&text).map(Some).map_err(|_| self.invalid(field, pointer::EXPECTED))
    }

    pub(super) fn need_pointer(&mut self, field: &'static str) -> Result<Pointer, Error> {
        self.pointer(field)?.ok_or_else(|| self.missing(field, pointer::EXPECTED))
    }

    /// A pointer, or a list of them.
    pub(super) fn place(&mut self, field: &'static str) -> Result<Option<Place>, Error> {
        match self.take(field) {
            None => Ok(None),
            Some(value) => place(&self.path(field), &value).map(Some),
        }
    }

    pub(super) fn need_place(&mut self, field: &'static str) -> Result<Place, Error> {
        self.place(field)?.ok_or_else(|| self.missing(field, pointer::EXPECTED))
    }

    pub(super) fn template(&mut self, field: &'static str) -> Result<Option<Template>, Error> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        Template::parse(&text).map(Some).map_err(|expected| self.invalid(field, expected))
    }

    pub(super) fn need_template(&mut self, field: &'static str) -> Result<Template, Error> {
        self.template(field)?.ok_or_else(|| self.missing(field, "a path such as \"/builds/{build:number}\""))
    }

    /// A string that `T` is made of.
    pub(super) fn parsed<T: FromStr>(&mut self, field: &'static str, expected: &str) -> Result<Option<T>, Error> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.invalid(field, expected))
    }

    /// One of a few words.
    pub(super) fn one_of<T: Clone>(&mut self, field: &'static str, words: &[(&str, T)]) -> Result<Option<T>, Error> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| value.clone());
        found.map(Some).ok_or_else(|| self.invalid(field, one_of(words)))
    }

    pub(super) fn need_one_of<T: Clone>(&mut self, field: &'static str, words: &[(&str, T)]) -> Result<T, Error> {
        self.one_of(field, words)?.ok_or_else(|| self.missing(field, &one_of(words)))
    }

    /// A list of words of one type, not empty; nothing if the field is not there.
    pub(super) fn words(&mut self, field: &'static str) -> Result<Vec<Word>, Error> {
        const EXPECTED: &str = "a list of strings, of integers, or of true and false";
        let Some(value) = self.take(field) else { return Ok(Vec::new()) };
        let Value::Array(array) = value else { return Err(self.wrong(field, EXPECTED, &value)) };
        if array.is_empty() {
            return Err(self.invalid(field, "at least one word, or no such field"));
        }
        array
            .iter()
            .map(|each| match each {
                Value::String(text) => Ok(Word::Text(text.as_str().into())),
                Value::Integer(n) => Ok(Word::Integer((*n).into())),
                Value::Boolean(flag) => Ok(Word::Flag(*flag)),
                other => Err(self.wrong(field, EXPECTED, other)),
            })
            .collect()
    }

    pub(super) fn table(&mut self, field: &'static str) -> Result<Option<Self>, Error> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(Self::new(self.path(field), table))),
            Some(other) => Err(self.wrong(field, "a table", &other)),
        }
    }

    /// A list of tables; empty if the field is not there.
    pub(super) fn tables(&mut self, field: &'static str) -> Result<Vec<Self>, Error> {
        let path = self.path(field);
        let Some(value) = self.take(field) else { return Ok(Vec::new()) };
        let Value::Array(array) = value else { return Err(self.wrong(field, "a list of tables", &value)) };
        let each = array.into_iter().enumerate().map(|(i, value)| match value {
            Value::Table(table) => Ok(Self::new(format!("{path}[{i}]"), table)),
            other => Err(Error::invalid(&format!("{path}[{i}]"), format_args!("a table, found {}", kind(&other)))),
        });
        each.collect()
    }

    /// All fields of a table whose names are free.
    pub(super) fn entries(self) -> impl Iterator<Item = (String, String, Value)> {
        let path = self.path;
        self.table.into_iter().map(move |(name, value)| (format!("{path}.{name}"), name, value))
    }

    /// Nothing is left.
    pub(super) fn done(self) -> Result<(), Error> {
        let Some(unknown) = self.table.keys().next() else { return Ok(()) };
        if is_credential(unknown) {
            let expected = "nothing of that kind: credentials come from whoever runs the program, never from a profile";
            return Err(self.invalid(unknown, expected));
        }
        Err(self.invalid(unknown, format_args!("no such field; the fields here are {}", self.known.join(", "))))
    }
}

pub(super) fn place(path: &str, value: &Value) -> Result<Place, Error> {
    let pointers = match value {
        Value::String(text) => vec![Pointer::new(text)],
        Value::Array(array) => array.iter().map(|each| Pointer::new(each.as_str().unwrap_or("?"))).collect(),
        _ => Vec::new(),
    };
    let pointers: Result<Vec<Pointer>, Error> = pointers.into_iter().collect();
    let expected = format!("{}, or a list of them", pointer::EXPECTED);
    pointers.and_then(Place::first_of).map_err(|_| Error::invalid(path, expected))
}

/// Whether a name speaks of a credential.
pub(super) fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["token", "secret", "password", "credential", "auth", "cookie", "api-key", "api_key", "apikey"]
        .iter()
        .any(|part| name.contains(part))
}

fn one_of<T>(words: &[(&str, T)]) -> String {
    let quoted: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    format!("one of {}", quoted.join(", "))
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a fraction",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}
