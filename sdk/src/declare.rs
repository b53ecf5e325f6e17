//! What the expansions of [`service`](macro@crate::service) and [`handlers`](macro@crate::handlers) stand on.
//!
//! Nothing here is needed by hand: there a client is a [caller](crate::client::Caller) and a server is
//! [`Routes`](crate::server::Routes), as the manual's chapter on declaring shows.

use crate::command::Command;
use crate::observe::Observable;

#[cfg(feature = "client")]
use crate::call::{Method, Params};
#[cfg(feature = "client")]
use crate::client::Caller;
#[cfg(feature = "server")]
pub use crate::server::declared::{
    Count, DecidedBy, Handler, IntoDecision, IntoRead, IsCommand, IsRead, ReadBy, Scope, Serve, Service, TakenAs,
    argument, arguments, scope,
};

/// What a declared method returns, which tells what it is: a read or a command.
#[diagnostic::on_unimplemented(
    message = "a service's method returns `Observable<_>` or `Command`, not `{Self}`",
    label = "neither a read nor a command"
)]
pub trait Returned: Sized {
    /// Reads or calls `method`.
    #[cfg(feature = "client")]
    fn ask(caller: &Caller, method: &Method, params: Params) -> Self;
}

#[cfg(feature = "client")]
impl<T: serde::de::DeserializeOwned + Send + Sync + 'static> Returned for Observable<T> {
    fn ask(caller: &Caller, method: &Method, params: Params) -> Self {
        caller.read(method, params)
    }
}

#[cfg(not(feature = "client"))]
impl<T> Returned for Observable<T> {}

impl Returned for Command {
    #[cfg(feature = "client")]
    fn ask(caller: &Caller, method: &Method, params: Params) -> Self {
        caller.call(method, params)
    }
}

/// Reads or calls `method`, whichever its return type says.
#[cfg(feature = "client")]
pub fn ask<R: Returned>(caller: &Caller, method: &Method, params: Params) -> R {
    R::ask(caller, method, params)
}

/// Checks that a declared method returns what one may.
pub const fn returned<R: Returned>() {}

/// What a declared method returns that has a key.
#[diagnostic::on_unimplemented(
    message = "only a command has a key, and this method returns `{Self}`",
    label = "for methods that return `Command`"
)]
pub trait Keyed {}

impl Keyed for Command {}

/// Checks that a declared method is a command.
pub const fn keyed<R: Keyed>() {}

/// Its first half with the feature `client`, its second half without.
#[cfg(feature = "client")]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_client {
    ({ $($with:tt)* } else { $($without:tt)* }) => { $($with)* };
}

/// Its first half with the feature `client`, its second half without.
#[cfg(not(feature = "client"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_client {
    ({ $($with:tt)* } else { $($without:tt)* }) => { $($without)* };
}

/// What it is given with the feature `server`, else nothing.
#[cfg(feature = "server")]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_server {
    ({ $($with:tt)* }) => { $($with)* };
}

/// What it is given with the feature `server`, else nothing.
#[cfg(not(feature = "server"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_server {
    ({ $($with:tt)* }) => {};
}
