//! The handlers of a service in a type that serves it.

use std::collections::HashSet;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{
    Attribute, FnArg, GenericParam, Ident, ImplItem, ImplItemFn, ItemImpl, Path, ReceiverKind, ReturnType, Signature,
    Type, parse_quote,
};

use super::types::ungrouped;
use crate::attributes::{HandlersArguments, allowed, cfgs};
use crate::errors::Errors;

/// An `impl` block of handlers.
pub(crate) struct Handlers {
    pub(crate) item: ItemImpl,
    pub(crate) outlast: Path,
    /// The service's trait.
    pub(crate) service: Option<Path>,
    pub(crate) cfgs: Vec<Attribute>,
    /// The lints that it allows.
    pub(crate) allowed: Vec<Attribute>,
    pub(crate) handlers: Vec<Handler>,
}

/// One handler.
pub(crate) struct Handler {
    pub(crate) ident: Ident,
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) is_async: bool,
    /// Where it says `async`, or that it is not: at `fn`.
    pub(crate) kind: Span,
    /// The type behind a leading reference.
    pub(crate) scope: Option<Type>,
    pub(crate) arguments: Vec<Type>,
    /// Where its return type is.
    pub(crate) returns: Span,
}

impl Handlers {
    /// Reads a block; what is mistaken in it is told.
    pub(crate) fn parse(arguments: TokenStream, mut item: ItemImpl, errors: &mut Errors) -> Self {
        let HandlersArguments { outlast, service } = HandlersArguments::parse(arguments, errors);
        if let Some((path, _)) = &item.trait_ {
            errors.at(path, "handlers are in an `impl` block of the type itself: the service's trait is the client's");
        }
        if let Some(token) = &item.unsafety {
            errors.at(token, "handlers are in a safe `impl` block");
        }
        let mut handlers = Vec::new();
        let mut names = HashSet::new();
        for each in &item.items {
            match each {
                ImplItem::Fn(handler) => {
                    let found = Handler::parse(handler, errors);
                    // A second one of the name is an error of the block itself.
                    if names.insert(found.ident.clone()) || !found.cfgs.is_empty() {
                        handlers.push(found);
                    }
                }
                other => errors.at(other, "a block of handlers has nothing else: use another `impl` block"),
            }
        }
        let (cfgs, allowed) = (cfgs(&item.attrs), allowed(&item.attrs));
        item.attrs.push(tolerance());
        Self { cfgs, allowed, item, outlast, service, handlers }
    }
}

/// What a handler must look like is not the user's choice, so lints about it are not the user's business.
fn tolerance() -> Attribute {
    parse_quote! {
        #[allow(
            clippy::needless_pass_by_value,
            clippy::unused_async,
            clippy::unused_self,
            reason = "a handler owns its arguments; a command's is async"
        )]
    }
}

impl Handler {
    fn parse(item: &ImplItemFn, errors: &mut Errors) -> Self {
        let signature = &item.sig;
        refuse_signature(signature, errors);
        let mut scope = None;
        let mut arguments = Vec::new();
        for input in signature.inputs.iter() {
            let FnArg::Typed(typed) = input else { continue };
            match ungrouped(&typed.ty) {
                Type::Reference(reference) if scope.is_none() && arguments.is_empty() => {
                    if let Some(token) = &reference.mutability {
                        errors.at(token, "the scope is read-only: `&RpcScope`");
                    }
                    scope = Some((*reference.elem).clone());
                }
                Type::Reference(_) => errors
                    .at(&typed.ty, "declared arguments are owned; the one reference, `&RpcScope`, comes before them"),
                Type::ImplTrait(_) => {
                    errors.at(&typed.ty, "a handler has no generic parameters: the service declares its types");
                }
                ty => arguments.push(elided(ty, signature)),
            }
        }
        Self {
            ident: signature.ident.clone(),
            cfgs: cfgs(&item.attrs),
            is_async: signature.asyncness.is_some(),
            kind: signature.asyncness.map_or(signature.fn_token.span, |token| token.span),
            scope,
            arguments,
            returns: match &signature.output {
                ReturnType::Default => signature.ident.span(),
                ReturnType::Type(_, ty) => ty.span(),
            },
        }
    }
}

/// The type as it is said outside of the handler, where its own lifetimes have no names.
fn elided(ty: &Type, signature: &Signature) -> Type {
    let own: Vec<&Ident> = signature.generics.lifetimes().map(|parameter| &parameter.lifetime.ident).collect();
    if own.is_empty() { ty.clone() } else { Type::Verbatim(without_lifetimes(ty.to_token_stream(), &own)) }
}

fn without_lifetimes(tokens: TokenStream, own: &[&Ident]) -> TokenStream {
    let mut after_quote = false;
    let each = tokens.into_iter().map(|token| {
        let is_lifetime =
            std::mem::replace(&mut after_quote, matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '\''));
        match token {
            TokenTree::Ident(ident) if is_lifetime && own.contains(&&ident) => {
                TokenTree::Ident(Ident::new("_", ident.span()))
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_lifetimes(group.stream(), own));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other,
        }
    });
    each.collect()
}

fn refuse_signature(signature: &Signature, errors: &mut Errors) {
    if let Some(token) = &signature.constness {
        errors.at(token, "a handler runs when it is called for");
    }
    if !matches!(signature.safety, syn::Safety::Default) {
        errors.at(&signature.safety, "a handler is safe to call");
    }
    if let Some(abi) = &signature.abi {
        errors.at(abi, "a handler has no ABI");
    }
    for parameter in &signature.generics.params {
        if !matches!(parameter, GenericParam::Lifetime(_)) {
            errors.at(parameter, "a handler has no generic parameters: the service declares its types");
        }
    }
    match signature.receiver() {
        None => errors.at(&signature.ident, "a handler takes `&self`; other functions go in another `impl` block"),
        Some(receiver) if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) => {
            errors.at(receiver, "a handler takes `&self`: many calls run at once");
        }
        Some(_) => {}
    }
}
