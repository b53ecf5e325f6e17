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

/// What is told of a declaration.
fn told(item: TokenStream) -> Vec<String> {
    let text = crate::render_service::expand(TokenStream::new(), item).to_string();
    let told = text.split("compile_error ! {").skip(1).filter_map(|rest| rest.split('}').next());
    told.map(|message| message.trim().to_owned()).collect()
}

/// A raw name is the same name.
#[test]
fn taken_names_are_taken_raw_too() {
    for name in ["new", "with_key", "attempt", "from", "clone"] {
        let name = syn::Ident::new_raw(name, proc_macro2::Span::call_site());
        let told = told(quote::quote! { trait Farm { fn #name(&self) -> Command; fn go(&self) -> Command; } });
        assert!(told.len() == 1 && told[0].contains("is taken"), "{told:?}");
    }
}

/// Methods whose descriptors would have one name are refused here, and not by the compiler.
#[test]
fn names_that_differ_in_case_only_are_refused() {
    let two = told(quote::quote! { trait Farm { fn ab_c(&self) -> Command; fn aB_c(&self) -> Command; } });
    assert!(two.len() == 1 && two[0].contains("both are described by `<dyn Farm>::AB_C`"), "{two:?}");
    let its_own = told(quote::quote! { trait Farm { fn GO(&self) -> Command; fn stop(&self) -> Command; } });
    assert!(its_own.len() == 1 && its_own[0].contains("`<dyn Farm>::GO` describes the method"), "{its_own:?}");
    let on_the_wire = told(quote::quote! {
        trait Farm { fn go(&self) -> Command; #[wire(name = "went")] fn go(&self) -> Command; }
    });
    assert_eq!(on_the_wire.len(), 1, "{on_the_wire:?}");
    let one = told(quote::quote! { trait Farm { fn gO(&self) -> Command; #[cfg(any())] fn go(&self) -> Command; } });
    assert_eq!(one, [""; 0]);
}

/// `Self` and what needs it are refused where they are written, and leave nothing for the compiler to say.
#[test]
fn what_a_dyn_cannot_have_is_refused() {
    let item = quote::quote! {
        trait Farm: Clone + Send + std::cmp::PartialEq + From<Self> {
            fn a(&self, a: Self) -> Command;
            fn b(&self, b: Vec<(u8, Self)>) -> Command;
            fn c(&self, c: <Self as Other>::Type) -> Command;
            fn d(&self) -> Observable<Self>;
            fn go(&self) -> Command;
        }
    };
    let told_of = told(item);
    assert_eq!(told_of.len(), 7, "{told_of:?}");
    let rest = crate::render_service::expand(
        TokenStream::new(),
        quote::quote! { trait Farm: Clone { fn go(&self) -> Command; } },
    );
    assert!(rest.to_string().contains("trait Farm {"), "{rest}");
    let fine = quote::quote! { trait Farm: Send + Sync + 'static + Debug + my::Clone { fn go(&self) -> Command; } };
    assert_eq!(told(fine), [""; 0]);
}
