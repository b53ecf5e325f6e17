//! A declared service.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, FnArg, Ident, ItemTrait, Pat, PatType, Path, ReceiverKind, ReturnType, Signature, TraitBound, TraitItem,
    TraitItemFn, Type, TypeParamBound,
};

use super::names::{constant, snake_case};
use super::types::{SelfType, Unowned, is_scope};
use crate::attributes::{ArgumentAttributes, MethodAttributes, ServiceArguments, allowed, cfgs, unexpecting};
use crate::errors::Errors;

/// How many arguments a method may have.
const MOST_ARGUMENTS: usize = 12;

/// Methods that the client has of its own.
const TAKEN: [&str; 5] = ["new", "with_key", "attempt", "from", "clone"];

/// Traits of the language that a `dyn` cannot have.
const SIZED: [&str; 9] = ["Clone", "Copy", "Default", "Eq", "Hash", "Ord", "PartialEq", "PartialOrd", "Sized"];

/// A declared service.
pub(crate) struct Service {
    /// The trait without what only the macro reads, and without the methods that are mistaken.
    pub(crate) item: ItemTrait,
    pub(crate) outlast: Path,
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) cfgs: Vec<Attribute>,
    /// The lints that it allows.
    pub(crate) allowed: Vec<Attribute>,
    pub(crate) methods: Vec<Method>,
}

/// The names of methods so far.
#[derive(Default)]
struct Names {
    /// On the wire.
    wire: HashSet<String>,
    /// Those of their descriptors, and whose each is.
    constants: HashMap<Ident, Ident>,
}

/// A declared method.
pub(crate) struct Method {
    pub(crate) ident: Ident,
    /// The name of its descriptor.
    pub(crate) constant: Ident,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) cfgs: Vec<Attribute>,
    /// The lints that it allows.
    pub(crate) allowed: Vec<Attribute>,
    /// Its name on the wire, without the service's.
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) returns: Type,
    /// Where something is said that only makes sense of a command.
    pub(crate) command: Option<Span>,
    pub(crate) without_dedupe: bool,
}

/// A declared argument.
pub(crate) struct Argument {
    pub(crate) ident: Ident,
    /// Its name on the wire.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) key: bool,
}

impl Service {
    /// Reads a declaration; what is mistaken in it is left out and told.
    pub(crate) fn parse(arguments: TokenStream, mut item: ItemTrait, errors: &mut Errors) -> Self {
        let ServiceArguments { outlast, name, version } = ServiceArguments::parse(arguments, errors);
        let name = name.unwrap_or_else(|| snake_case(&item.ident));
        refuse_trait(&mut item, errors);
        let mut methods = Vec::new();
        let mut names = Names::default();
        item.items.retain_mut(|each| match each {
            TraitItem::Fn(method) => match Method::parse(method, &item.ident, &mut names, errors) {
                Some(method) => {
                    methods.push(method);
                    true
                }
                None => false,
            },
            other => {
                errors.at(other, "a service has methods and nothing else");
                false
            }
        });
        if methods.is_empty() && errors.is_empty() {
            errors.at(&item.ident, "a service has methods");
        }
        Self { cfgs: cfgs(&item.attrs), allowed: allowed(&item.attrs), item, outlast, name, version, methods }
    }

    /// The name of a type that is made of the trait's.
    pub(crate) fn named(&self, suffix: &str) -> Ident {
        let ident = &self.item.ident;
        Ident::new(&format!("{}{suffix}", ident.unraw()), Span::call_site().located_at(ident.span()))
    }

    /// Whether its methods may be rendered: a mistake of the trait itself leaves only the trait.
    pub(crate) fn is_sound(&self) -> bool {
        self.item.generics.params.is_empty() && self.item.generics.where_clause.is_none()
    }
}

fn refuse_trait(item: &mut ItemTrait, errors: &mut Errors) {
    let generics = &item.generics;
    if !generics.params.is_empty() {
        errors.at(generics, "a service has no generic parameters: both ends agree on its types");
    }
    if let Some(clause) = &generics.where_clause {
        errors.at(clause, "a service has no `where` clause: both ends agree on its types");
    }
    if let Some(token) = item.unsafety.take() {
        errors.at(token, "a service is a safe trait");
    }
    // What is told here is left out, or the compiler would tell it again of every `dyn`.
    let supertraits = std::mem::take(&mut item.supertraits);
    item.supertraits = supertraits.into_iter().filter(|bound| !refuse_supertrait(bound, errors)).collect();
    if item.supertraits.is_empty() {
        item.colon_token = None;
    }
}

fn refuse_supertrait(bound: &TypeParamBound, errors: &mut Errors) -> bool {
    if let Some(token) = SelfType::find_in_bound(bound) {
        errors.at(token, "a service is used as `dyn`, whose supertraits know no `Self`");
        return true;
    }
    let TypeParamBound::Trait(TraitBound { path, maybe, .. }) = bound else { return false };
    let relaxed = maybe.is_some();
    let of_the_language = path.segments.first().is_some_and(|first| first.ident == "std" || first.ident == "core");
    let sized = (of_the_language || path.segments.len() == 1)
        && path.segments.last().is_some_and(|last| SIZED.iter().any(|sized| last.ident == sized));
    if sized && !relaxed {
        errors.at(path, "a service is used as `dyn`, and this supertrait needs to know the type");
    }
    sized && !relaxed
}

impl Method {
    fn parse(item: &mut TraitItemFn, service: &Ident, names: &mut Names, errors: &mut Errors) -> Option<Self> {
        let before = errors.len();
        let said = MethodAttributes::take(&mut item.attrs, errors);
        refuse_signature(item, service, errors);
        let arguments = arguments(&mut item.sig, errors);
        let returns = returns(&item.sig, errors);
        let ident = item.sig.ident.clone();
        let name = said.name.as_ref().map_or_else(|| ident.unraw().to_string(), syn::LitStr::value);
        let constant = constant(&ident);
        let other = names.constants.insert(constant.clone(), ident.clone());
        let always = cfgs(&item.attrs).is_empty();
        if !names.wire.insert(name.clone()) && always {
            let at = said.name.as_ref().map_or_else(|| ident.to_token_stream(), ToTokens::to_token_stream);
            errors.at(at, format_args!("another method is called `{name}` on the wire"));
        } else if ident.unraw() == constant {
            let message = format!(
                "`{constant}` is taken: `<dyn {service}>::{constant}` describes the method; a name in lower case here may \
                 still be `{name}` on the wire, by `#[wire(name = \"{name}\")]`"
            );
            errors.at(&ident, message);
        } else if let Some(other) = other.filter(|_| always) {
            let message = format!(
                "`{other}` is too similar: both are described by `<dyn {service}>::{constant}`; another name here may \
                 still be `{name}` on the wire, by `#[wire(name = \"{name}\")]`"
            );
            errors.at(&ident, message);
        }
        if errors.len() != before {
            return None;
        }
        let key = arguments.iter().find_map(|(_, key)| *key);
        Some(Self {
            constant,
            ident,
            attributes: unexpecting(&item.attrs),
            cfgs: cfgs(&item.attrs),
            allowed: allowed(&item.attrs),
            name,
            arguments: arguments.into_iter().map(|(argument, _)| argument).collect(),
            returns: returns?,
            command: said.command.or(key),
            without_dedupe: said.without_dedupe,
        })
    }

    /// The span of what is generated for it: where its name is, outside the user's lints.
    pub(crate) fn span(&self) -> Span {
        Span::call_site().located_at(self.ident.span())
    }
}

fn refuse_signature(item: &TraitItemFn, service: &Ident, errors: &mut Errors) {
    let TraitItemFn { sig, default, .. } = item;
    let name = sig.ident.unraw();
    if TAKEN.iter().any(|taken| name == taken) {
        let message = format!(
            "`{name}` is taken: `{service}Client::{name}` is the client's own; another name here may still be \
             `{name}` on the wire, by `#[wire(name = \"{name}\")]`"
        );
        errors.at(&sig.ident, message);
    }
    if let Some(token) = &sig.constness {
        errors.at(token, "a service's method is called at run time");
    }
    if let Some(token) = &sig.asyncness {
        errors.at(token, "a service's method returns at once: it is a `fn` that returns `Observable<_>` or `Command`");
    }
    if !matches!(sig.safety, syn::Safety::Default) {
        errors.at(&sig.safety, "a service's method is safe to call");
    }
    if let Some(abi) = &sig.abi {
        errors.at(abi, "a service's method has no ABI");
    }
    if !sig.generics.params.is_empty() {
        errors.at(&sig.generics, "a service's method has no generic parameters: both ends agree on its types");
    } else if let Some(clause) = &sig.generics.where_clause {
        errors.at(clause, "a service's method has no `where` clause: both ends agree on its types");
    }
    if let Some(body) = default {
        errors.at(body, "a service's method has no body: a type's handlers are in `#[outlast::handlers(..)]`");
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, "arguments travel by name");
    }
    match sig.receiver() {
        None => errors.at(&sig.ident, "a service's method takes `&self`"),
        Some(receiver) => {
            if !matches!(receiver.kind, ReceiverKind::Reference(_, None, None)) {
                errors.at(receiver, "a service's method takes `&self`");
            }
            if let Some(attribute) = receiver.attrs.first() {
                errors.at(attribute, "attributes go on arguments");
            }
        }
    }
}

/// The arguments, each with where it is said to be part of the key.
fn arguments(signature: &mut Signature, errors: &mut Errors) -> Vec<(Argument, Option<Span>)> {
    let mut arguments = Vec::new();
    let mut names = HashSet::new();
    for input in &mut signature.inputs {
        let FnArg::Typed(typed) = input else { continue };
        let said = ArgumentAttributes::take(&mut typed.attrs, errors);
        if let Some(attribute) = typed.attrs.first() {
            let cfg = attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr");
            errors.at(
                attribute,
                if cfg {
                    "`cfg` goes on whole methods: the two ends would disagree on an argument"
                } else {
                    "an argument has `#[key]` and `#[wire(name = \"..\")]`"
                },
            );
        }
        refuse_type(typed, errors);
        let ident = match &*typed.pat {
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.mutability.is_none() && pat.subpat.is_none() => {
                pat.ident.clone()
            }
            other => {
                errors.at(other, "an argument has a plain name: it travels by name");
                continue;
            }
        };
        let name = said.name.as_ref().map_or_else(|| ident.unraw().to_string(), syn::LitStr::value);
        if !names.insert(name.clone()) {
            let at = said.name.as_ref().map_or_else(|| ident.to_token_stream(), ToTokens::to_token_stream);
            errors.at(at, format_args!("another argument is called `{name}` on the wire"));
        }
        let key = said.key.is_some();
        arguments.push((Argument { ident, name, ty: (*typed.ty).clone(), key }, said.key));
    }
    if let Some(first) = signature.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_))).nth(MOST_ARGUMENTS) {
        errors.at(first, format_args!("a method has at most {MOST_ARGUMENTS} arguments"));
    }
    arguments
}

fn refuse_type(argument: &PatType, errors: &mut Errors) {
    if is_scope(&argument.ty) {
        errors.at(&argument.ty, "the scope is not declared: a handler that wants it takes `&RpcScope` first");
    } else if let Some(token) = SelfType::find(&argument.ty) {
        errors.at(token, "`Self` is another type on each end: a declared argument is of a type with a name");
    } else if let Some(unowned) = Unowned::find(&argument.ty) {
        errors.at(unowned, "arguments travel: a declared argument is of an owned type");
    }
}

fn returns(signature: &Signature, errors: &mut Errors) -> Option<Type> {
    match &signature.output {
        // Of an `async fn` that is told already.
        ReturnType::Default if signature.asyncness.is_some() => None,
        ReturnType::Default => {
            errors
                .at(&signature.ident, "a service's method returns `Observable<_>` or `Command`, and this one nothing");
            None
        }
        ReturnType::Type(_, ty) => {
            if let Some(token) = SelfType::find(ty) {
                errors.at(
                    token,
                    "`Self` is another type on each end: a method returns `Observable<_>` of a type with a name, or \
                     `Command`",
                );
            } else if let Some(unowned) = Unowned::find(ty) {
                errors.add(syn::Error::new(
                    unowned.span(),
                    "a service's method returns `Observable<_>` of an owned type, or `Command`",
                ));
            }
            Some((**ty).clone())
        }
    }
}
