//! The macros' arguments, and the attributes that they read and take away.

use proc_macro2::{Span, TokenStream};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{AttrStyle, Attribute, Expr, ExprLit, Lit, LitStr, Meta, MetaList, MetaNameValue, Path, Token, parse_quote};

use crate::errors::Errors;

/// The arguments of `#[outlast::service(..)]`.
pub(crate) struct ServiceArguments {
    pub(crate) outlast: Path,
    pub(crate) name: Option<String>,
    pub(crate) version: u32,
}

/// The arguments of `#[outlast::handlers(..)]`.
pub(crate) struct HandlersArguments {
    pub(crate) outlast: Path,
    pub(crate) service: Option<Path>,
}

/// What is said of a method beside its signature.
#[derive(Default)]
pub(crate) struct MethodAttributes {
    pub(crate) name: Option<LitStr>,
    /// Where it says that only a command can be meant.
    pub(crate) command: Option<Span>,
    pub(crate) without_dedupe: bool,
}

/// What is said of an argument beside its type.
#[derive(Default)]
pub(crate) struct ArgumentAttributes {
    pub(crate) name: Option<LitStr>,
    pub(crate) key: Option<Span>,
}

impl ServiceArguments {
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut arguments = Self { outlast: parse_quote!(::outlast), name: None, version: 1 };
        for meta in metas(tokens, errors) {
            match &meta {
                Meta::NameValue(pair) if pair.path.is_ident("name") => {
                    arguments.name = name(pair, errors).map(|name| name.value());
                }
                Meta::NameValue(pair) if pair.path.is_ident("version") => match version(&pair.value) {
                    Some(version) => arguments.version = version,
                    None => errors.at(&pair.value, "a version is a whole number, as in `version = 2`"),
                },
                Meta::NameValue(pair) if pair.path.is_ident("crate") => {
                    arguments.outlast = crate_path(pair, errors).unwrap_or(arguments.outlast);
                }
                other => errors.at(other, "a service takes `name = \"..\"`, `version = 2` and `crate = \"..\"`"),
            }
        }
        arguments
    }
}

impl HandlersArguments {
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut arguments = Self { outlast: parse_quote!(::outlast), service: None };
        let before = errors.len();
        for meta in metas(tokens, errors) {
            match meta {
                Meta::Path(path) if arguments.service.is_none() => arguments.service = Some(path),
                Meta::NameValue(pair) if pair.path.is_ident("crate") => {
                    arguments.outlast = crate_path(&pair, errors).unwrap_or(arguments.outlast);
                }
                other => errors.at(other, "handlers take one service and `crate = \"..\"`"),
            }
        }
        if arguments.service.is_none() && errors.len() == before {
            errors.add(syn::Error::new(
                Span::call_site(),
                "whose handlers are these? name the service: `#[outlast::handlers(BuildFarm)]`",
            ));
        }
        arguments
    }
}

impl MethodAttributes {
    /// Reads and removes those that are ours.
    pub(crate) fn take(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> Self {
        let mut found = Self::default();
        for attribute in taken(attributes, &["wire", "command", "key"]) {
            if attribute.path().is_ident("wire") {
                found.name = wire_name(&attribute, errors);
            } else if attribute.path().is_ident("command") {
                let said = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated);
                match said {
                    Ok(said) if !said.is_empty() && said.iter().all(|path| path.is_ident("without_dedupe")) => {
                        found.command = Some(attribute.path().span());
                        found.without_dedupe = true;
                    }
                    Ok(_) | Err(_) => errors.at(&attribute, "a command's option is `#[command(without_dedupe)]`"),
                }
            } else {
                errors.at(&attribute, "`#[key]` goes on the arguments that make the key");
            }
        }
        found
    }
}

impl ArgumentAttributes {
    /// Reads and removes those that are ours.
    pub(crate) fn take(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> Self {
        let mut found = Self::default();
        for attribute in taken(attributes, &["wire", "key"]) {
            if attribute.path().is_ident("wire") {
                found.name = wire_name(&attribute, errors);
            } else if attribute.meta.require_path_only().is_err() {
                errors.at(attribute, "`#[key]` says all there is to say");
            } else {
                found.key = Some(attribute.path().span());
            }
        }
        found
    }
}

/// The `cfg`s among these.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<Attribute> {
    copied(attributes, "cfg")
}

/// The doc comments among these.
pub(crate) fn docs(attributes: &[Attribute]) -> Vec<Attribute> {
    copied(attributes, "doc")
}

/// What these allow of lints, for what is made of their item.
pub(crate) fn allowed(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter_map(as_allowed).map(outer).collect()
}

/// These for a copy of their item, where what they expect may not come true and is allowed instead.
pub(crate) fn unexpecting(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().map(|attribute| as_allowed(attribute).unwrap_or_else(|| attribute.clone())).collect()
}

/// `#[allow(..)]` as it is, and `#[expect(..)]` as one that the user has not written.
fn as_allowed(attribute: &Attribute) -> Option<Attribute> {
    let path = attribute.path();
    if path.is_ident("allow") {
        return Some(attribute.clone());
    }
    let Meta::List(MetaList { tokens, .. }) = &attribute.meta else { return None };
    path.is_ident("expect").then(|| parse_quote! { #[allow(#tokens)] })
}

fn copied(attributes: &[Attribute], name: &str) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident(name)).cloned().map(outer).collect()
}

/// What is written inside of an item is put before its copies.
fn outer(mut attribute: Attribute) -> Attribute {
    attribute.style = AttrStyle::Outer;
    attribute
}

fn taken(attributes: &mut Vec<Attribute>, names: &[&str]) -> Vec<Attribute> {
    attributes.extract_if(.., |attribute| names.iter().any(|name| attribute.path().is_ident(name))).collect()
}

fn metas(tokens: TokenStream, errors: &mut Errors) -> Vec<Meta> {
    match Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(metas) => metas.into_iter().collect(),
        Err(e) => {
            errors.add(e);
            Vec::new()
        }
    }
}

/// `#[wire(name = "..")]`.
fn wire_name(attribute: &Attribute, errors: &mut Errors) -> Option<LitStr> {
    match attribute.parse_args::<MetaNameValue>() {
        Ok(pair) if pair.path.is_ident("name") => name(&pair, errors),
        Ok(_) | Err(_) => {
            errors.at(attribute, "a name on the wire is given as `#[wire(name = \"..\")]`");
            None
        }
    }
}

fn name(pair: &MetaNameValue, errors: &mut Errors) -> Option<LitStr> {
    let name = string(&pair.value).filter(|name| {
        let name = name.value();
        !name.is_empty() && !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control())
    });
    if name.is_none() {
        errors.at(&pair.value, "a name is a string without slashes and spaces, as in `name = \"builds\"`");
    }
    name
}

fn crate_path(pair: &MetaNameValue, errors: &mut Errors) -> Option<Path> {
    let path = string(&pair.value).and_then(|path| path.parse_with(Path::parse_mod_style).ok());
    if path.is_none() {
        errors.at(&pair.value, "the crate is a path in quotes, as in `crate = \"::outlast\"`");
    }
    path
}

fn version(value: &Expr) -> Option<u32> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(version), .. }) => version.base10_parse().ok(),
        _ => None,
    }
}

fn string(value: &Expr) -> Option<LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
        _ => None,
    }
}
