//! What a declared type may not have in it.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit::Visit;
use syn::{Ident, Lifetime, Type, TypeGroup, TypeImplTrait, TypeParamBound, TypeParen, TypePath, TypeReference};

/// The first part of a type that is borrowed, or that is not named.
#[derive(Default)]
pub(super) struct Unowned {
    pub(super) found: Option<TokenStream>,
}

impl Unowned {
    /// Looks for it in `ty`.
    pub(super) fn find(ty: &Type) -> Option<TokenStream> {
        let mut unowned = Self::default();
        unowned.visit_type(ty);
        unowned.found
    }

    fn note(&mut self, tokens: impl ToTokens) {
        self.found.get_or_insert_with(|| tokens.to_token_stream());
    }
}

impl Visit<'_> for Unowned {
    fn visit_type_reference(&mut self, reference: &TypeReference) {
        self.note(reference);
    }

    fn visit_type_impl_trait(&mut self, type_impl: &TypeImplTrait) {
        self.note(type_impl);
    }

    fn visit_lifetime(&mut self, lifetime: &Lifetime) {
        if lifetime.ident != "static" {
            self.note(lifetime);
        }
    }
}

/// The first `Self` of a type.
#[derive(Default)]
pub(super) struct SelfType {
    found: Option<Ident>,
}

impl SelfType {
    /// Looks for it in `ty`.
    pub(super) fn find(ty: &Type) -> Option<Ident> {
        let mut this = Self::default();
        this.visit_type(ty);
        this.found
    }

    /// Looks for it in a supertrait.
    pub(super) fn find_in_bound(bound: &TypeParamBound) -> Option<Ident> {
        let mut this = Self::default();
        this.visit_type_param_bound(bound);
        this.found
    }
}

impl Visit<'_> for SelfType {
    fn visit_ident(&mut self, ident: &Ident) {
        if ident == "Self" {
            self.found.get_or_insert_with(|| ident.clone());
        }
    }
}

/// The type in parentheses, or in the group that a `macro_rules` puts around its `$t:ty`.
pub(super) fn ungrouped(mut ty: &Type) -> &Type {
    while let Type::Group(TypeGroup { elem, .. }) | Type::Paren(TypeParen { elem, .. }) = ty {
        ty = elem;
    }
    ty
}

/// Whether it is a reference to what is called `RpcScope`. Only the words of a mistake hang on it.
pub(super) fn is_scope(ty: &Type) -> bool {
    let inner = match ungrouped(ty) {
        Type::Reference(reference) => &*reference.elem,
        other => other,
    };
    match ungrouped(inner) {
        Type::Path(TypePath { qself: None, path, .. }) => {
            path.segments.last().is_some_and(|last| last.ident == "RpcScope")
        }
        _ => false,
    }
}
