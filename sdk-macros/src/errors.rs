//! The mistakes of one item, all of them.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// Mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    found: Vec<syn::Error>,
}

impl Errors {
    /// A mistake, at the tokens that make it.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.found.push(syn::Error::new_spanned(tokens, message));
    }

    /// A mistake that a parser found.
    pub(crate) fn add(&mut self, error: syn::Error) {
        self.found.extend(error);
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// What makes the compiler report each of them.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.found.iter().map(syn::Error::to_compile_error).collect()
    }
}
