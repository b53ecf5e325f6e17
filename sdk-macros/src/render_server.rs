//! The server of a declared service: what a type's handlers must be, and the routes to them.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::model::{Argument, Method, Service};
use crate::tokens::{at_call_site, lints, path_at};

/// The struct of handlers that a type must fill, and the server over a type that has filled it.
///
/// The user's types are named inside what is generic over the type that serves. Types are not hygienic, so its
/// parameter has a name that nobody writes: `__Service`.
pub(crate) fn server(service: &Service) -> TokenStream {
    let Service { item, outlast, name, version, methods, .. } = service;
    let (trait_ident, vis) = (at_call_site(&item.ident), &item.vis);
    if methods.is_empty() {
        // Every one of them is a mistake that is told.
        return TokenStream::new();
    }
    let (handlers, server) = (service.named("Handlers"), service.named("Server"));
    let doc = format!(" Serves [`{}`].", item.ident.unraw());
    let fields = methods.iter().map(|method| field(service, method));
    let mounts = methods.iter().map(|method| mount(service, method));
    let lints = lints(&service.allowed);
    quote! {
        #[doc(hidden)]
        #lints
        #[derive(::core::fmt::Debug)]
        #vis struct #handlers<__Service> {
            #(#fields)*
        }

        #lints
        impl #outlast::declare::Service for dyn #trait_ident {
            type Handlers<__Service> = #handlers<__Service>;
        }

        #[doc = #doc]
        #[derive(::core::fmt::Debug)]
        #[must_use = "it serves nothing until a server is built with it"]
        #vis struct #server {
            routes: #outlast::server::Routes,
        }

        #lints
        impl #server {
            /// Serves with the handlers of `service`.
            #vis fn new<__Service: #outlast::declare::Serve<dyn #trait_ident>>(service: __Service) -> Self {
                Self::shared(::std::sync::Arc::new(service))
            }

            /// Serves with the handlers of `service`, which may serve others too.
            #vis fn shared<__Service: #outlast::declare::Serve<dyn #trait_ident>>(
                service: ::std::sync::Arc<__Service>,
            ) -> Self {
                let handlers = __Service::handlers();
                let routes = #outlast::server::Routes::new(#name, #version);
                #(#mounts)*
                Self { routes }
            }
        }

        impl ::core::convert::From<#server> for #outlast::server::Routes {
            fn from(server: #server) -> Self {
                server.routes
            }
        }
    }
}

fn field(service: &Service, method: &Method) -> TokenStream {
    let (outlast, vis) = (path_at(&service.outlast, method.span()), &service.item.vis);
    let Method { cfgs, allowed, arguments, returns, .. } = method;
    let ident = at_call_site(&method.ident);
    let types = arguments.iter().map(|argument| &argument.ty);
    quote_spanned! { method.span()=>
        #(#cfgs)*
        #(#allowed)*
        #vis #ident: #outlast::declare::Handler<__Service, (#(#types,)*), #returns>,
    }
}

fn mount(service: &Service, method: &Method) -> TokenStream {
    let trait_ident = at_call_site(&service.item.ident);
    let (ident, constant) = (at_call_site(&method.ident), at_call_site(&method.constant));
    let Method { cfgs, allowed, .. } = method;
    let taken = method.arguments.iter().map(|Argument { name, ty, .. }| {
        let span = Span::call_site().located_at(ty.span());
        quote_spanned! { span=> args.take::<#ty>(#name)? }
    });
    let args = if method.arguments.is_empty() { quote!(_) } else { quote!(args) };
    quote_spanned! { method.span()=>
        #(#cfgs)*
        #(#allowed)*
        let routes = handlers.#ident.mount(routes, &<dyn #trait_ident>::#constant, &service, |#args| {
            ::core::result::Result::Ok((#(#taken,)*))
        });
    }
}
