//! Which handler answers which method of a service.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Serialize;

use super::live::{Feed, IntoLive};
use super::outcome::{IntoOutcome, Outcome};
use super::scope::RpcScope;
use crate::call::{Args, Method};
use crate::error::Error;

/// The handlers of one service, by method.
///
/// ```
/// # use outlast::call::{Args, Method};
/// # use outlast::log::Subject;
/// # use outlast::server::{Cells, Events, Routes, RpcScope};
/// const GREETING: Method = Method::new("greeter.v1/greeting");
/// const GREET: Method = Method::new("greeter.v1/greet");
///
/// let greetings: Cells<String, String> = Cells::new();
/// let routes = Routes::new("greeter", 1)
///     .read(&GREETING, move |_: &RpcScope, mut args: Args| Ok(greetings.live(&args.take("name")?)))
///     .command(&GREET, |_: RpcScope, mut args: Args| async move {
///         let name: String = args.take("name")?;
///         Ok(Events::on(Subject::of(["greeting", &name])).push("hello"))
///     });
/// # let _ = routes;
/// ```
#[must_use = "routes do nothing until a server is built with them"]
pub struct Routes {
    prefix: String,
    pub(crate) routes: BTreeMap<&'static str, Route>,
    pub(crate) error: Option<Error>,
}

#[derive(Clone)]
pub(crate) enum Route {
    Read(ReadHandler),
    Command(Method, CommandHandler),
}

pub(crate) type ReadHandler = Arc<dyn Fn(&RpcScope, Args) -> Result<Box<dyn Feed>, Error> + Send + Sync>;
pub(crate) type CommandHandler =
    Arc<dyn Fn(RpcScope, Args) -> BoxFuture<'static, Result<Outcome, Error>> + Send + Sync>;

impl Routes {
    /// The routes of a service: its methods are called `name.v<version>/<method>`.
    pub fn new(name: &str, version: u32) -> Self {
        Self { prefix: format!("{name}.v{version}/"), routes: BTreeMap::new(), error: None }
    }

    /// A read: `handler` says where the value lives.
    ///
    /// It runs once for each subscription, on the connection's task: it looks up and does not wait. An
    /// [invalid](Error::is_invalid) or retryable error leaves the subscription unserved;
    /// [denied](Error::is_denied) ends it (R3).
    pub fn read<F, L>(self, method: &Method, handler: F) -> Self
    where
        F: Fn(&RpcScope, Args) -> Result<L, Error> + Send + Sync + 'static,
        L: IntoLive,
        L::Value: Serialize,
    {
        let handler: ReadHandler = Arc::new(move |scope, args| Ok(handler(scope, args)?.into_live().into_feed()));
        self.route(method, Route::Read(handler))
    }

    /// A command: `handler` decides what it does.
    ///
    /// It may run several times for one command (a version conflict, a crash), so it only reads and
    /// decides; what it returns happens once. Its arguments' errors ([invalid](Error::is_invalid)) refuse
    /// the call; every other error is answered as retryable, without a record.
    pub fn command<F, Fut, O>(self, method: &Method, handler: F) -> Self
    where
        F: Fn(RpcScope, Args) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Error>> + Send + 'static,
        O: IntoOutcome,
    {
        let handler: CommandHandler = Arc::new(move |scope, args| {
            let answer = handler(scope, args);
            Box::pin(async move { Ok(answer.await?.into_outcome()) })
        });
        self.route(method, Route::Command(*method, handler))
    }

    pub(super) fn route(mut self, method: &Method, route: Route) -> Self {
        if !method.name().starts_with(&self.prefix) {
            self.error
                .get_or_insert(Error::invalid(method.name(), format_args!("a name that starts with {}", self.prefix)));
        } else if self.routes.insert(method.name(), route).is_some() {
            self.error.get_or_insert(Error::invalid(method.name(), "one handler, got two"));
        }
        self
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.routes.keys()).finish()
    }
}
