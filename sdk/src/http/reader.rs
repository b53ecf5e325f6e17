//! How the bodies of a read become its values: with the caller's code, which may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::http::HeaderMap;
use bytes::Bytes;

use super::answer::Expected;
use super::poll::{Answer, Marks};
use crate::error::Cause;

/// Makes a value of a body, or says what the answer comes down to without one.
pub(crate) type Decode<T> = dyn Fn(&Bytes) -> Result<T, Answer> + Send + Sync;
pub(super) type MarksOf<T> = dyn Fn(&T) -> Marks + Send + Sync;
pub(super) type Pages<T> = dyn Fn(&T, &HeaderMap) -> Page + Send + Sync;

/// Query parameters.
pub(super) type Query = Vec<(String, String)>;

/// Whether an answer has a value, and where the next request continues: for services that hold a request open or page
/// with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Page {
    /// It is a value. The next request has these query parameters beside those of the URL.
    Value(Vec<(String, String)>),
    /// It is none yet, such as the empty page of a long poll that ran out. The next request, made at once, has these
    /// query parameters (FC-07).
    Nothing(Vec<(String, String)>),
}

/// Makes values of bodies.
pub(super) struct Reader<T> {
    pub(super) expected: Expected,
    pub(super) decode: Arc<Decode<T>>,
    pub(super) marks: Option<Arc<MarksOf<T>>>,
    pub(super) pages: Option<Arc<Pages<T>>>,
}

/// What a body came down to.
pub(super) struct Decoded<T> {
    pub(super) answer: Answer,
    /// There with [`Answer::Value`].
    pub(super) value: Option<T>,
    /// Where the next request continues, if the page says so.
    pub(super) query: Option<Query>,
}

impl<T> Reader<T> {
    /// A whole body, with the headers that came before it.
    pub(super) fn read(&self, body: &Bytes, headers: &HeaderMap) -> Decoded<T> {
        let decoded = guarded(|| {
            let value = (self.decode)(body)?;
            Ok(match self.pages.as_ref().map(|pages| pages(&value, headers)) {
                Some(Page::Nothing(query)) => Decoded { answer: Answer::Nothing, value: None, query: Some(query) },
                Some(Page::Value(query)) => self.valued(value, Some(query)),
                None => self.valued(value, None),
            })
        });
        decoded.unwrap_or_else(|answer| Decoded { answer, value: None, query: None })
    }

    /// A body that did not come in answer to a request. It says nothing of where a next one continues.
    pub(super) fn pushed(&self, body: &Bytes) -> Option<(T, Marks)> {
        guarded(|| {
            let value = (self.decode)(body)?;
            let marks = self.marks_of(&value);
            Ok((value, marks))
        })
        .ok()
    }

    fn valued(&self, value: T, query: Option<Query>) -> Decoded<T> {
        Decoded { answer: Answer::Value(self.marks_of(&value)), value: Some(value), query }
    }

    fn marks_of(&self, value: &T) -> Marks {
        self.marks.as_ref().map(|marks| marks(value)).unwrap_or_default()
    }
}

/// Runs the caller's code. Its panic is a value that cannot be had, and no end of the read (R1, R3).
fn guarded<R>(code: impl FnOnce() -> Result<R, Answer>) -> Result<R, Answer> {
    catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|_| {
        let detail = "expected a value, the decoder panicked".into();
        Err(Answer::Unserved(Cause::Undecodable { detail }))
    })
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        let Self { expected, decode, marks, pages } = self;
        Self { expected: *expected, decode: Arc::clone(decode), marks: marks.clone(), pages: pages.clone() }
    }
}
