//! What the macros write, beside what it is written for.
//!
//! `UPDATE_GOLDEN=1 cargo test -p outlast-macros` writes the expected files anew; then read them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, File, Item, ItemMacro, Meta};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

/// A file of declarations, expanded, with all features of `outlast`.
fn expanded(source: &str) -> String {
    let items = syn::parse_file(source).unwrap().items.into_iter().flat_map(expand).flat_map(with_features).collect();
    prettyplease::unparse(&File { shebang: None, frontmatter: None, attrs: Vec::new(), items })
}

fn expand(mut item: Item) -> Vec<Item> {
    let (attributes, macro_): (_, fn(TokenStream, TokenStream) -> TokenStream) = match &mut item {
        Item::Trait(item) => (&mut item.attrs, crate::render_service::expand),
        Item::Impl(item) => (&mut item.attrs, crate::render_handlers::expand),
        _ => return vec![item],
    };
    let ours =
        |attribute: &mut Attribute| attribute.path().is_ident("service") || attribute.path().is_ident("handlers");
    let Some(ours) = attributes.extract_if(.., ours).next() else { return vec![item] };
    let arguments = match ours.meta {
        Meta::List(list) => list.tokens,
        _ => TokenStream::new(),
    };
    items(macro_(arguments, item.to_token_stream()))
}

fn items(tokens: TokenStream) -> Vec<Item> {
    syn::parse2::<File>(tokens).unwrap().items
}

/// What a macro that asks for a feature gives when there is that feature.
fn with_features(item: Item) -> Vec<Item> {
    match item {
        Item::Macro(ItemMacro { mac, .. })
            if mac.path.segments.last().unwrap().ident.to_string().starts_with("__if_") =>
        {
            match mac.tokens.into_iter().next() {
                Some(TokenTree::Group(first)) => items(first.stream()),
                _ => panic!("a group comes first"),
            }
        }
        other => vec![other],
    }
}

fn check(name: &str) {
    let got = expanded(&std::fs::read_to_string(path(&format!("{name}.rs"))).unwrap());
    let expected = path(&format!("{name}.expanded.rs"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&expected, &got).unwrap();
    }
    let expected = std::fs::read_to_string(&expected).unwrap_or_default();
    let differs = got.lines().zip(expected.lines()).position(|(got, expected)| got != expected);
    assert!(got == expected, "{name} differs from its expected file, at line {differs:?}:\n{got}");
}

#[test]
fn a_service_with_everything() {
    check("build_farm");
}

#[test]
fn a_private_service_elsewhere() {
    check("greeter");
}

/// All mistakes of an item are told at once, and none hides what is right.
#[test]
fn mistakes_are_told_together() {
    let expanded = crate::render_service::expand(
        TokenStream::new(),
        quote::quote! {
            trait Farm {
                fn new(&self) -> Command;
                fn build(&self, id: &str) -> Observable<Build>;
                fn stop(&self, id: u64) -> Command;
            }
        },
    );
    let text = expanded.to_string();
    assert_eq!(text.matches("compile_error").count(), 2, "{text}");
    assert!(text.contains("STOP") && !text.contains("BUILD"), "{text}");
}
