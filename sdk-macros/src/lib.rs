//! The attribute macros of `outlast`, which re-exports them as `outlast::service` and `outlast::handlers`.
//!
//! An item is parsed into a model, which holds every mistake against it at once; what is right is rendered
//! against the public traits of `outlast`.

#![allow(clippy::wildcard_enum_match_arm, reason = "syn's enums grow; what is not expected is refused")]

mod attributes;
mod errors;
#[cfg(test)]
mod golden;
mod model;
mod render_client;
mod render_handlers;
mod render_server;
mod render_service;
mod tokens;

use proc_macro::TokenStream;

/// Declares a service: on a trait whose methods return `Observable<_>` (a read) or `Command`.
///
/// Of `trait BuildFarm` it makes
///
/// - the trait itself, for mocks: without ids, keys or scopes in its signatures;
/// - `BuildFarmClient`, with inherent methods of exactly those signatures, `new(&Client)`, `with_key(..)` and
///   `attempt(..)`, which implements the trait;
/// - `BuildFarmServer`, with `new(farm)` for a type that has [`macro@handlers`] of it; a server is built with it;
/// - `<dyn BuildFarm>::SUBMIT_BUILD` and so on: how each method is called, for code by hand.
///
/// # Arguments
/// - `name = "builds"`: the service's name on the wire; by default the trait's, as `build_farm`.
/// - `version = 2`: its version, 1 by default. A method is called `build_farm.v2/build`; two versions are two traits.
/// - `crate = "path"`: where `outlast` is, if not at `::outlast`.
///
/// # On methods and arguments
/// - `#[key]` on an argument: it is part of the command's key (L2), on both ends.
/// - `#[command(without_dedupe)]`: the service does not deduplicate this command.
/// - `#[wire(name = "..")]` on a method or an argument: its name on the wire.
///
/// Arguments travel by name as JSON, so their types are owned and implement serde's traits.
#[proc_macro_attribute]
pub fn service(arguments: TokenStream, item: TokenStream) -> TokenStream {
    render_service::expand(arguments.into(), item.into()).into()
}

/// Says that the methods of an `impl` block are the handlers of a service: `#[outlast::handlers(BuildFarm)]`.
///
/// Each method of the service has a handler of its name, with its arguments.
///
/// - A read's is a `fn` that returns a live source: `Live<_>`, a `watch::Receiver<_>`, or a `Result` of one with
///   `outlast::Error`. It looks up and does not wait.
/// - A command's is an `async fn` that returns an outcome: `Events`, `Running`, `Outcome`, or a `Result` of one with
///   `CommandFailure` (which is recorded) or `outlast::Error` (which is not).
/// - Either may ask for `&RpcScope` before its arguments.
///
/// Other methods of the type go in another `impl` block. `crate = "path"` after the service says where `outlast`
/// is, if not at `::outlast`.
#[proc_macro_attribute]
pub fn handlers(arguments: TokenStream, item: TokenStream) -> TokenStream {
    render_handlers::expand(arguments.into(), item.into()).into()
}
