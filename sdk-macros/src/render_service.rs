//! A declared service: the trait, how its methods are called, and both ends.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ItemTrait;
use syn::ext::IdentExt;

use crate::errors::Errors;
use crate::model::{Method, Service};
use crate::render_client::{client, without_client};
use crate::render_server::server;
use crate::tokens::{at_call_site, lints, path_at};

/// Expands `#[service(arguments)] item`.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = match syn::parse2::<ItemTrait>(item.clone()) {
        Ok(parsed) => parsed,
        Err(e) => {
            let e = if item.to_string().contains("trait") { e } else { not_a_trait(&item) };
            let e = e.into_compile_error();
            return quote! { #item #e };
        }
    };
    let mut errors = Errors::default();
    let service = Service::parse(arguments, parsed, &mut errors);
    let rendered = if service.is_sound() { render(&service) } else { declaration(&service) };
    let errors = errors.into_tokens();
    quote! { #rendered #errors }
}

fn not_a_trait(item: &TokenStream) -> syn::Error {
    syn::Error::new_spanned(item, "a service is declared by a trait: `#[outlast::service] trait BuildFarm { .. }`")
}

fn render(service: &Service) -> TokenStream {
    let declaration = declaration(service);
    let descriptors = descriptors(service);
    let (client, without_client, server) = (client(service), without_client(service), server(service));
    let Service { outlast, cfgs, .. } = service;
    quote! {
        #declaration
        #descriptors
        #(#cfgs)*
        #outlast::__if_client! { { #client } else { #without_client } }
        #(#cfgs)*
        #outlast::__if_server! { { #server } }
    }
}

/// The trait, as its users see it.
fn declaration(service: &Service) -> TokenStream {
    let item = &service.item;
    quote! {
        #[allow(dead_code, reason = "the macro reads it; not every crate calls it")]
        #item
    }
}

/// How each method is called: the one description that both ends use (K2).
fn descriptors(service: &Service) -> TokenStream {
    let Service { item, cfgs, methods, .. } = service;
    let trait_ident = at_call_site(&item.ident);
    let lints = lints(&service.allowed);
    let constants = methods.iter().map(|method| descriptor(service, method));
    quote! {
        #(#cfgs)*
        #lints
        impl dyn #trait_ident {
            #(#constants)*
        }
    }
}

fn descriptor(service: &Service, method: &Method) -> TokenStream {
    let Service { name, version, item, .. } = service;
    let Method { constant, cfgs, without_dedupe, .. } = method;
    let span = method.span();
    let outlast = path_at(&service.outlast, span);
    let full_name = format!("{name}.v{version}/{}", method.name);
    let doc = format!(" How [`{0}`]({1}::{0}) is called.", method.ident.unraw(), item.ident.unraw());
    let keys: Vec<&str> =
        method.arguments.iter().filter(|argument| argument.key).map(|argument| &*argument.name).collect();
    let keyed_by = (!keys.is_empty()).then(|| quote_spanned! { span=> .keyed_by(&[#(#keys),*]) });
    let without_dedupe = without_dedupe.then(|| quote_spanned! { span=> .without_dedupe() });
    let constant = at_call_site(constant);
    let vis = &item.vis;
    quote_spanned! { span=>
        #[doc = #doc]
        #(#cfgs)*
        #vis const #constant: #outlast::call::Method = #outlast::call::Method::new(#full_name) #keyed_by #without_dedupe;
    }
}
