//! What the user wrote, as it stands in what is made of it: lints, names, paths.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Attribute;

/// What is allowed of lints in what is made of an item: what the user allows in it, and that both ends of what is
/// deprecated use it.
pub(crate) fn lints(allowed: &[Attribute]) -> TokenStream {
    quote! {
        #[allow(deprecated, reason = "it is made of what may be deprecated")]
        #(#allowed)*
    }
}

/// The same name where the user wrote it, but outside the user's lints.
pub(crate) fn at_call_site(ident: &syn::Ident) -> syn::Ident {
    let mut ident = ident.clone();
    ident.set_span(Span::call_site().located_at(ident.span()));
    ident
}

/// The path with its tokens at `span`: an error of what it leads to is told there.
pub(crate) fn path_at(path: &syn::Path, span: Span) -> TokenStream {
    let at = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    path.to_token_stream().into_iter().map(at).collect()
}
