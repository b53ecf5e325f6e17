//! Greetings, served by a crate that denies itself every lint and knows `outlast` as `steadfast`.
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    unused_results,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason
)]

use steadfast::command::Retry;
use steadfast::log::Subject;
use steadfast::server::{Cells, Events, Live, RpcScope};
use steadfast::{Command, CommandFailure, Error, Observable};

/// What a greeting is written with.
type Written = Command;

/// Greetings by name.
#[steadfast::service(crate = "steadfast", name = "greetings", version = 2)]
pub trait Greeter {
    /// The greeting of a name.
    fn greeting(&self, name: String) -> Observable<String>;

    /// How many there are.
    fn count(&self) -> Observable<u64>;

    /// Greets a name; the same name and language is the same command.
    fn greet(&self, #[key] name: String, #[key] language: Option<String>, loudly: bool) -> Written;

    /// Shouts, as often as it is called.
    #[command(without_dedupe)]
    #[wire(name = "shout")]
    fn cry(&self, #[wire(name = "what")] words: Vec<String>) -> Command;

    /// As [`greet`](Self::greet), in the old way.
    #[deprecated = "greet instead"]
    fn hail(&self, name: String) -> Command;

    /// There only where it is asked for.
    #[cfg(any())]
    fn never(&self, x: Nothing) -> Command;
}

/// What is kept of greetings.
#[derive(Debug)]
pub struct Hall {
    greetings: Cells<String, String>,
    count: steadfast::server::Cell<u64>,
}

impl Hall {
    /// A hall where these are shown.
    #[must_use]
    pub fn new(greetings: Cells<String, String>, count: steadfast::server::Cell<u64>) -> Self {
        Self { greetings, count }
    }

    /// The greetings.
    #[must_use]
    pub fn greetings(&self) -> &Cells<String, String> {
        &self.greetings
    }
}

#[steadfast::handlers(Greeter, crate = "steadfast")]
impl Hall {
    fn greeting(&self, name: String) -> Result<Live<String>, Error> {
        if name.is_empty() {
            return Err(Error::invalid("name", "a name"));
        }
        Ok(self.greetings.live(&name))
    }

    fn count(&self) -> Live<u64> {
        self.count.live()
    }

    /// Greets: for a test without a transport, a handler is a method like any other.
    ///
    /// # Errors
    /// When the name is empty.
    pub async fn greet(
        &self,
        rpc: &RpcScope,
        name: String,
        _language: Option<String>,
        loudly: bool,
    ) -> Result<Events, CommandFailure> {
        if name.is_empty() {
            return Err(CommandFailure::rejected(Retry::Never, "nobody to greet"));
        }
        let greeting = format!("{} says: hello {name}{}", rpc.principal(), if loudly { "!" } else { "" });
        Ok(Events::on(Subject::of(["greeting", &name])).push(&greeting))
    }

    async fn cry(&self, words: Vec<String>) -> Events {
        Events::on(Subject::of(["greeting", "everybody"])).push(&words.join(" "))
    }

    async fn hail(&self, name: String) -> Events {
        Events::on(Subject::of(["greeting", &name])).push("hail")
    }

    #[cfg(any())]
    async fn never(&self, x: Nothing) -> Nothing {}
}
