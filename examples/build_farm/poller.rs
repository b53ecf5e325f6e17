//! The poller: what a user of the SDK writes.
//!
//! The verdict comes from one awaited handle. There is nothing here that tries again: a test reads this file
//! and checks that.

use std::convert::Infallible;
use std::future::pending;

use futures::StreamExt;
use outlast::client::Client;
use outlast::command::{Settlement, Unsettled};
use tokio::time::Instant;

use crate::display::{Change, Display, Note};
use crate::domain::{BuildId, BuildSpec};
use crate::service::BuildFarmClient;
use crate::witness::Witness;

/// Submits a build and waits for its verdict; shows meanwhile what is known of it. When `interrupted`
/// completes, the build is canceled.
pub(crate) async fn poll(
    client: &Client,
    (id, spec): (BuildId, &BuildSpec),
    interrupted: impl Future<Output = ()>,
    display: &Display,
    witness: &Witness,
) -> Result<Settlement, Unsettled> {
    let farm = BuildFarmClient::new(client);
    let submit = farm.submit_build(id, spec);

    let connection = client.connection().readings().for_each(async |link| display.show(Change::Link(link)));
    let command = submit.state().readings().for_each(async |state| display.show(Change::Command(state)));
    let build = farm.build(id).readings().for_each(async |build| {
        witness.reading(&build, Instant::now());
        display.show(Change::Build(build));
    });
    let watched = async {
        tokio::join!(connection, command, async {
            build.await;
            witness.read_vanished();
        });
        pending::<Infallible>().await
    };
    let canceled = async {
        interrupted.await;
        submit.cancel();
        display.show(Change::Note(Note::Canceling));
        pending::<Infallible>().await
    };

    tokio::select! {
        settlement = submit.settled() => settlement,
        never = watched => match never {},
        never = canceled => match never {},
    }
}
