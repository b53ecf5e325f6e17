//! The handlers of a type, as the struct that the declared service asks for.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ItemImpl;
use syn::spanned::Spanned;

use crate::errors::Errors;
use crate::model::{Handler, Handlers};
use crate::tokens::{at_call_site, lints, path_at};

/// Expands `#[handlers(arguments)] item`.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = match syn::parse2::<ItemImpl>(item.clone()) {
        Ok(parsed) => parsed,
        Err(e) => {
            let e = if item.to_string().contains("impl") { e } else { not_a_block(&item) };
            let e = e.into_compile_error();
            return quote! { #item #e };
        }
    };
    let mut errors = Errors::default();
    let handlers = Handlers::parse(arguments, parsed, &mut errors);
    let serve = if errors.is_empty() { filled(&handlers) } else { unfilled() };
    let serve = serve_impl(&handlers, &serve);
    let item = &handlers.item;
    let errors = errors.into_tokens();
    quote! { #item #serve #errors }
}

fn not_a_block(item: &TokenStream) -> syn::Error {
    syn::Error::new_spanned(item, "handlers are in an `impl` block: `#[outlast::handlers(BuildFarm)] impl Farm { .. }`")
}

fn serve_impl(handlers: &Handlers, body: &TokenStream) -> TokenStream {
    let Handlers { item, outlast, service: Some(service), cfgs, allowed, .. } = handlers else {
        return TokenStream::new();
    };
    let (generics, _, clause) = item.generics.split_for_impl();
    let (ty, lints) = (&item.self_ty, lints(allowed));
    let span = Span::call_site().located_at(service.span());
    let outlast = path_at(outlast, span);
    quote_spanned! { span=>
        #(#cfgs)*
        #lints
        impl #generics #outlast::declare::Serve<dyn #service> for #ty #clause {
            fn handlers() -> <dyn #service as #outlast::declare::Service>::Handlers<Self> {
                #body
            }
        }
    }
}

/// A mistake is told already; that the type has no handlers is not to be told as another.
fn unfilled() -> TokenStream {
    quote! { loop {} }
}

fn filled(handlers: &Handlers) -> TokenStream {
    let Handlers { outlast, service: Some(service), handlers: each, .. } = handlers else { return TokenStream::new() };
    let fields = each.iter().map(|handler| field(handlers, handler));
    let span = Span::call_site().located_at(service.span());
    let outlast = path_at(outlast, span);
    // Its own tokens are the user's, since the compiler suggests a field of a similar name to the user only; a
    // missing handler is told here too. Types are not hygienic: the alias has a name that nobody writes.
    let literal = quote_spanned! { service.span()=> __Handlers { #(#fields)* } };
    quote_spanned! { span=>
        type __Handlers<__Service> = <dyn #service as #outlast::declare::Service>::Handlers<__Service>;
        #literal
    }
}

/// One field. What the service declares comes in from the struct's type, so every mistake is found against it.
fn field(handlers: &Handlers, handler: &Handler) -> TokenStream {
    let Handler { cfgs, is_async, kind, scope, arguments, returns, .. } = handler;
    let located = |span: Span| Span::call_site().located_at(span);
    let (span, kind, returns) = (located(handler.ident.span()), located(*kind), located(*returns));
    let ident = at_call_site(&handler.ident);
    // Out of the way of the user's names.
    let inner = |name: &str, span: Span| Ident::new(name, Span::mixed_site().located_at(span));
    let (this, declared) = (inner("this", span), inner("arguments", span));
    let rpc = inner(if scope.is_some() { "scope" } else { "_scope" }, span);
    let scope = scope.as_ref().map(|ty| {
        let span = located(ty.span());
        let outlast = path_at(&handlers.outlast, span);
        quote_spanned! { span=> #outlast::declare::scope::<#ty>(#rpc), }
    });
    let names: Vec<Ident> = arguments.iter().enumerate().map(|(n, ty)| inner(&format!("a{n}"), ty.span())).collect();
    let passed = names.iter().zip(arguments).map(|(name, ty)| {
        let span = located(ty.span());
        let outlast = path_at(&handlers.outlast, span);
        quote_spanned! { span=> #outlast::declare::argument::<_, #ty>(#name) }
    });
    let call = quote_spanned! { span=> Self::#ident(#this, #scope #(#passed),*) };
    let at_kind = path_at(&handlers.outlast, kind);
    let (constructor, answer) = if *is_async {
        (
            quote_spanned! { kind=> #at_kind::declare::Handler::command },
            quote_spanned! { span=> ::std::boxed::Box::pin(#call) },
        )
    } else {
        (quote_spanned! { kind=> #at_kind::declare::Handler::read }, call)
    };
    let count = arguments.len();
    let outlast = path_at(&handlers.outlast, span);
    let split = quote_spanned! { span=> let (#(#names,)*) = #outlast::declare::arguments::<#count, _>(#declared); };
    // What is wrong with an answer is told at the closure: at the return type.
    let closure = quote_spanned! { returns=> |#this, #rpc, #declared| { #split #answer } };
    quote_spanned! { span=> #(#cfgs)* #ident: #constructor(#closure), }
}
