//! The client: one connection, many reads and commands.

mod builder;
mod caller;
mod commands;
mod reads;
mod registry;
mod router;
mod shared;
mod timers;

pub use builder::ClientBuilder;
pub use caller::Caller;

use std::sync::Arc;

use crate::command::Command;
use crate::connection::{Discover, LinkState};
use crate::error::Error;
use crate::key::CommandKey;
use crate::observe::Observable;
use shared::{Request, Shared};

/// A client of one service. Cloning is cheap and shares the connection.
///
/// It connects behind, and again whenever the connection is lost, for as long as it, a read that is
/// observed or an open command is there (R8).
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

impl Client {
    /// A client of the service at `url`, `ws://` or `wss://`. Returns at once and connects behind.
    ///
    /// # Errors
    /// When `url` is no such URL or holds a password, and when called outside a tokio runtime.
    pub fn open(url: &str) -> Result<Self, Error> {
        ClientBuilder::checked(url)?.open()
    }

    /// Sets up a client of the service that `discover` finds: a URL, a list, or a closure that is asked on each round.
    pub fn builder(discover: impl Discover) -> ClientBuilder {
        ClientBuilder::new(discover)
    }

    /// Where the connection stands.
    pub fn connection(&self) -> Observable<LinkState> {
        self.shared.connection.clone()
    }

    /// What a service's client is written with, by hand or by macro.
    pub fn caller(&self) -> Caller {
        Caller::new(Arc::clone(&self.shared))
    }

    /// Follows the command of `key` without sending it: after a restart of this program, or from another one
    /// of the same principal.
    ///
    /// A key that the service has never seen ends as [`NotFound`](crate::CommandStatus::NotFound).
    pub fn attach(&self, key: impl Into<CommandKey>) -> Command {
        self.caller().attach(key.into())
    }

    /// Closes the connection; reads and open handles end as [`Closed`](crate::End::Closed). Nothing is said about the
    /// work of open commands: they go on at the service.
    pub fn close(&self) {
        self.shared.tell(Request::Close);
    }
}
