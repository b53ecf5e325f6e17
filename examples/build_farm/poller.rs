//! The poller: what a user of the SDK writes.
//!
//! The verdict comes from one awaited handle. There is nothing here that tries again: a test reads this file
//! and checks that.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use futures::StreamExt;
use outlast::Reading;
use outlast::client::Client;
use outlast::command::{Settlement, Unsettled};
use tokio::time::Instant;

use crate::build_farm::display::{Change, Display, Note};
use crate::build_farm::domain::{Build, BuildId, BuildSpec};
use crate::build_farm::service::BuildFarmClient;
use crate::build_farm::witness::Witness;

/// How long the build's last state is awaited once the verdict is known.
const LAST_LOOK: Duration = Duration::from_secs(2);

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
    let submit = farm.submit_build(id, spec.clone());

    let build = farm.build(id);
    let saw = |reading: Reading<Build>| {
        witness.reading(&reading, Instant::now());
        display.show(Change::Build(reading));
    };

    let connection = client.connection().readings().for_each(async |link| display.show(Change::Link(link)));
    let command = submit.state().readings().for_each(async |state| display.show(Change::Command(state)));
    let watched = async {
        tokio::join!(connection, command, async {
            build.readings().for_each(async |reading| saw(reading)).await;
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
    let verdict = async {
        let ended = submit.settled().await;
        display.show(Change::Command(submit.state().latest()));
        if build.latest().last().is_some() {
            // Completes the picture. The verdict is known, and does not come from here (R10).
            let _ = build.until(|build| build.status.is_terminal()).within(LAST_LOOK).await;
            saw(build.latest());
        }
        ended
    };

    tokio::select! {
        ended = verdict => ended,
        never = watched => match never {},
        never = canceled => match never {},
    }
}
