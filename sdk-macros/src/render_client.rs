//! The client of a declared service.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse_quote;
use syn::spanned::Spanned;

use crate::attributes::docs;
use crate::model::{Argument, Method, Service};
use crate::tokens::{at_call_site, lints, path_at};

/// The client: inherent methods of the declared signatures, and the trait on top of them.
pub(crate) fn client(service: &Service) -> TokenStream {
    let Service { item, outlast, methods, .. } = service;
    let (trait_ident, vis) = (at_call_site(&item.ident), &item.vis);
    let client = service.named("Client");
    let mut docs = docs(&item.attrs);
    if !docs.is_empty() {
        docs.insert(0, parse_quote!(#[doc = ""]));
    }
    let doc = format!(" A client of [`{}`]. Cloning is cheap.", item.ident.unraw());
    let inherent = methods.iter().map(|method| inherent(service, method));
    let implemented = methods.iter().map(implemented);
    let checks = checks(service);
    let lints = lints(&service.allowed);
    quote! {
        #[doc = #doc]
        #(#docs)*
        #lints
        #[derive(::core::clone::Clone, ::core::fmt::Debug)]
        #vis struct #client {
            caller: #outlast::client::Caller,
        }

        #lints
        impl #client {
            /// A client that calls through `client`.
            #[must_use]
            #vis fn new(client: &#outlast::client::Client) -> Self {
                Self { caller: client.caller() }
            }

            /// One whose next command has this L3 key: it names one command. A method with an L2 key keeps its own.
            #[must_use]
            #vis fn with_key(&self, key: impl ::core::convert::Into<#outlast::key::CommandKey>) -> Self {
                Self { caller: self.caller.with_key(key) }
            }

            /// One whose commands with L2 keys are the `n`th attempt; the first is 1.
            #[must_use]
            #vis fn attempt(&self, n: u32) -> Self {
                Self { caller: self.caller.attempt(n) }
            }

            #(#inherent)*
        }

        /// One that calls through `caller`, with the metadata that it has.
        impl ::core::convert::From<#outlast::client::Caller> for #client {
            fn from(caller: #outlast::client::Caller) -> Self {
                Self { caller }
            }
        }

        #lints
        impl #trait_ident for #client {
            #(#implemented)*
        }

        #checks
    }
}

/// What is checked where there is no client to be checked.
pub(crate) fn without_client(service: &Service) -> TokenStream {
    let returned = service.methods.iter().map(|method| {
        let (returns, cfgs, lints) = (&method.returns, &method.cfgs, lints(&service.allowed));
        let span = Span::call_site().located_at(returns.span());
        let outlast = path_at(&service.outlast, span);
        quote_spanned! { span=> #(#cfgs)* #lints const _: () = #outlast::declare::returned::<#returns>(); }
    });
    let checks = checks(service);
    quote! { #(#returned)* #checks }
}

/// What makes sense of commands only is said of commands only.
fn checks(service: &Service) -> TokenStream {
    let checks = service.methods.iter().filter_map(|method| {
        let (returns, cfgs, lints) = (&method.returns, &method.cfgs, lints(&service.allowed));
        let span = Span::call_site().located_at(method.command?);
        let outlast = path_at(&service.outlast, span);
        Some(quote_spanned! { span=> #(#cfgs)* #lints const _: () = #outlast::declare::keyed::<#returns>(); })
    });
    quote! { #(#checks)* }
}

fn inherent(service: &Service, method: &Method) -> TokenStream {
    let Service { item, outlast, .. } = service;
    let Method { attributes, arguments, returns, .. } = method;
    let (trait_ident, vis) = (at_call_site(&item.ident), &item.vis);
    let (ident, constant) = (at_call_site(&method.ident), at_call_site(&method.constant));
    let undocumented = attributes.iter().all(|attribute| !attribute.path().is_ident("doc"));
    let doc = format!(" See [`{0}::{1}`].", item.ident.unraw(), method.ident.unraw());
    let doc = undocumented.then(|| quote! { #[doc = #doc] });
    let parameters = arguments.iter().map(|Argument { ident, ty, .. }| quote! { #ident: #ty });
    let with = arguments.iter().map(|Argument { ident, name, ty, .. }| {
        let span = Span::call_site().located_at(ty.span());
        quote_spanned! { span=> .with(#name, &#ident) }
    });
    let span = Span::call_site().located_at(returns.span());
    let at_returns = path_at(outlast, span);
    let outlast = path_at(outlast, method.span());
    let params = quote_spanned! { method.span()=> #outlast::call::Params::new() #(#with)* };
    // All of the call stands at the return type: it decides what is called, and an error of it is told there alone.
    let ask = quote_spanned! { span=>
        #at_returns::declare::ask(&self.caller, &<dyn #trait_ident>::#constant, #params)
    };
    quote_spanned! { method.span()=>
        #(#attributes)*
        #doc
        #vis fn #ident(&self, #(#parameters),*) -> #returns {
            #ask
        }
    }
}

fn implemented(method: &Method) -> TokenStream {
    let Method { arguments, returns, cfgs, allowed, .. } = method;
    let ident = at_call_site(&method.ident);
    let parameters = arguments.iter().map(|Argument { ident, ty, .. }| quote! { #ident: #ty });
    let idents = arguments.iter().map(|argument| &argument.ident);
    quote_spanned! { method.span()=>
        #(#cfgs)*
        #(#allowed)*
        fn #ident(&self, #(#parameters),*) -> #returns {
            Self::#ident(self, #(#idents),*)
        }
    }
}
