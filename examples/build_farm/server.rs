//! The farm's server: a single instance on a durable log. Killed and started again, it goes on where it was.

use std::io;
use std::path::Path;

use axum::serve::ListenerExt;
use http::HeaderMap;
use outlast::key::Principal;
use outlast::log::SqliteLog;
use outlast::server::{Server, Unauthenticated};
use tokio::net::TcpListener;

use crate::build_farm::address;
use crate::build_farm::failure::Failure;
use crate::build_farm::handlers::Farm;
use crate::build_farm::lifeline::{self, Notice};
use crate::build_farm::principals::Tokens;
use crate::build_farm::service::BuildFarmServer;
use crate::build_farm::view::View;

/// Serves until it is dropped.
pub(crate) async fn run(directory: &Path, tokens: Tokens) -> Result<(), Failure> {
    let log = SqliteLog::open(directory.join("farm.sqlite")).await?;
    let view = View::new();
    let farm = BuildFarmServer::new(Farm::new(log.clone(), view.shown()));
    let authenticate = move |headers: &HeaderMap| {
        let name = tokens.holder(headers).ok_or(Unauthenticated::Refused)?;
        Principal::new(name).map_err(|_| Unauthenticated::Refused)
    };
    let server = Server::builder(log).authenticate(authenticate).project(view).service(farm).start().await?;
    let listener = listen(directory).await?;
    let address = listener.local_addr()?;
    // The parent first: nobody is to be answered before it knows that the server is back.
    lifeline::tell(&Notice::Listening(address));
    address::publish(directory, address)?;
    // Small frames are not to wait for each other (Nagle). A connection that refuses the option works too.
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    Ok(axum::serve(listener, server.router()).await?)
}

/// A port of the system's choice, and another one than before: whoever comes back must ask where it is.
async fn listen(directory: &Path) -> io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    match address::current(directory) {
        // While the old port is held, the system chooses another.
        Ok(before) if before == listener.local_addr()? => TcpListener::bind("127.0.0.1:0").await,
        Ok(_) | Err(_) => Ok(listener),
    }
}
