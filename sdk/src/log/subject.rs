//! Subjects: lists of percent-encoded tokens, and the prefixes that select them.

use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// RFC 3986 unreserved characters stand for themselves.
const TOKEN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The name of one stream of entries: a list of tokens, `build/01ARZ3/log`.
///
/// Tokens are any text; they are percent-encoded, so `/` in a token does not split it. At most
/// [`Subject::MAX`] bytes encoded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(Arc<str>);

/// A list of whole tokens that selects the subject of that name and every subject below it.
///
/// `build/1` selects `build/1` and `build/1/log`, not `build/10`. The empty prefix selects everything.
/// [`Subject::itself`] selects one subject and nothing below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    text: Arc<str>,
    below: bool,
}

impl Subject {
    /// The longest encoded subject, in bytes.
    pub const MAX: usize = 1024;

    /// A subject of one or more tokens.
    ///
    /// # Panics
    /// When `tokens` is empty: a subject has a name.
    pub fn of<I>(tokens: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let text = encode(tokens);
        assert!(!text.is_empty(), "a subject has at least one token that is not empty");
        Self(text.into())
    }

    /// The encoded text: tokens joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the encoded form, as [`as_str`](Self::as_str) gives it.
    pub fn from_encoded(text: &str) -> Self {
        Self(text.into())
    }

    /// The decoded tokens.
    pub fn tokens(&self) -> impl Iterator<Item = String> + '_ {
        self.0.split('/').map(|token| percent_decode_str(token).decode_utf8_lossy().into_owned())
    }

    /// The prefix that selects this subject and all below it.
    pub fn prefix(&self) -> Prefix {
        Prefix { text: Arc::clone(&self.0), below: true }
    }

    /// The prefix that selects this subject and nothing below it.
    pub fn itself(&self) -> Prefix {
        Prefix { text: Arc::clone(&self.0), below: false }
    }
}

impl Prefix {
    /// The prefix of these tokens; none selects everything, and so does a single empty one.
    pub fn of<I>(tokens: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Self { text: encode(tokens).into(), below: true }
    }

    /// The prefix that selects everything.
    pub fn all() -> Self {
        Self { text: "".into(), below: true }
    }

    /// The encoded text: tokens joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The one subject that it selects, if it came from [`Subject::itself`].
    pub fn only(&self) -> Option<Subject> {
        (!self.below).then(|| Subject(Arc::clone(&self.text)))
    }

    /// Whether it selects everything.
    pub fn is_all(&self) -> bool {
        self.below && self.text.is_empty()
    }

    /// Whether it selects `subject`.
    pub fn selects(&self, subject: &Subject) -> bool {
        match subject.0.strip_prefix(&*self.text) {
            Some("") => true,
            Some(rest) => self.below && (self.text.is_empty() || rest.starts_with('/')),
            None => false,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn encode<I>(tokens: I) -> String
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let mut text = String::new();
    for (i, token) in tokens.into_iter().enumerate() {
        if i > 0 {
            text.push('/');
        }
        text.extend(utf8_percent_encode(token.as_ref(), TOKEN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_matches_whole_tokens() {
        let build = Prefix::of(["build", "1"]);
        assert!(build.selects(&Subject::of(["build", "1"])));
        assert!(build.selects(&Subject::of(["build", "1", "log"])));
        assert!(!build.selects(&Subject::of(["build", "10"])));
        assert!(!build.selects(&Subject::of(["build"])));
        assert!(Prefix::all().selects(&Subject::of(["x"])));
    }

    #[test]
    fn a_subject_itself_is_selected_without_what_is_below_it() {
        let build = Subject::of(["build", "1"]);
        assert!(build.itself().selects(&build));
        assert!(!build.itself().selects(&Subject::of(["build", "1", "log"])));
        assert_eq!(build.itself().only(), Some(build.clone()));
        assert_eq!(build.prefix().only(), None);
    }

    #[test]
    fn a_token_keeps_any_text() {
        let odd = ["a/b", "%2F", "", "ünï", " *>."];
        let subject = Subject::of(odd);
        assert_eq!(subject.tokens().collect::<Vec<_>>(), odd);
        assert!(!Prefix::of(["a"]).selects(&subject));
        assert_eq!(Subject::from_encoded(subject.as_str()), subject);
    }
}
