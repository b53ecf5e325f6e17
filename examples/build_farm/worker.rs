//! The worker: takes builds from the queue and runs them, one at a time.
//!
//! It is a client like the poller. While the server is gone the build goes on, what the worker has to report
//! waits in its commands, and is delivered when the server is back.

use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use outlast::Credential;
use outlast::Reading;
use outlast::client::Client;
use outlast::command::{Command, Settlement};

use crate::build_farm::address;
use crate::build_farm::domain::{Build, BuildId, Outcome};
use crate::build_farm::execution::{Execution, Step};
use crate::build_farm::failure::Failure;
use crate::build_farm::principals::Tokens;
use crate::build_farm::service::BuildFarmClient;

/// How many lines may wait to be delivered. While there are more, only the newest of the rest is kept: a
/// line is a sign of life, not the build's log.
const OUTSTANDING: usize = 64;

/// Works until it is dropped, which kills the build that it runs.
pub(crate) async fn run(directory: &Path, tokens: &Tokens) -> Result<(), Failure> {
    let credential = Credential::bearer(tokens.worker())?;
    let directory = PathBuf::from(directory);
    // Asked before every round of dials: the server comes back elsewhere.
    let discover = move || {
        let server = address::current(&directory);
        async move {
            let server = server.map_err(|e| outlast::Error::unavailable("the server's address").with_source(e))?;
            Ok(vec![format!("ws://{server}/")])
        }
    };
    let client = Client::builder(discover).credential(credential).open()?;
    let farm = BuildFarmClient::new(&client);
    let mut queue = farm.queue();
    let mut seen = HashSet::new();
    while let Some(reading) = queue.next().await {
        let Reading::Fresh(waiting) = reading else { continue };
        // What has left the queue does not come back.
        seen.retain(|id| waiting.contains(id));
        for id in waiting.iter().copied() {
            if seen.insert(id) && won(farm.claim(id)).await {
                build(&farm, id).await?;
            }
        }
    }
    Err(Failure::Unsettled("the queue's read has ended".into()))
}

/// Whether a claim has been given to this worker and to no other.
async fn won(claim: Command) -> bool {
    matches!(claim.settled().await, Ok(Settlement::Succeeded(_)))
}

/// Runs one build, and reports what it does.
async fn build(farm: &BuildFarmClient, id: BuildId) -> Result<(), Failure> {
    let claimed = farm.build(id).until(|build: &Build| build.worker.is_some()).await;
    let spec = claimed.map_err(|_| Failure::Unsettled("the build's read has ended".into()))?.spec.clone();
    let mut execution = match Execution::start(&spec) {
        Ok(execution) => execution,
        Err(e) => {
            let outcome = Outcome::Failed(format!("the build could not be started: {e}"));
            return report(farm.finished(id, outcome)).await;
        }
    };
    let mut canceled = std::pin::pin!(farm.build(id).until(|build: &Build| build.cancel_requested));
    let mut watched = true;
    let mut delivered = FuturesUnordered::new();
    let (mut lines, mut newest) = (0, None);
    loop {
        if delivered.len() < OUTSTANDING
            && let Some((n, line)) = newest.take()
        {
            let line: String = line;
            // However that goes, it is no verdict on the build (W4).
            delivered.push(farm.progress(id, n, line).settled());
        }
        tokio::select! {
            step = execution.step() => match step? {
                Step::Line(line) => {
                    lines += 1;
                    newest = Some((lines, line));
                }
                Step::Ended(outcome) => {
                    if let Some((n, line)) = newest {
                        farm.progress(id, n, line).detach();
                    }
                    return report(farm.finished(id, outcome)).await;
                }
            },
            Some(_) = delivered.next() => {}
            asked = &mut canceled, if watched => match asked {
                Ok(_) => {
                    execution.stop().await?;
                    return report(farm.stopped(id)).await;
                }
                // Nobody can ask any more; the build goes on.
                Err(_) => watched = false,
            },
        }
    }
}

/// Waits until a report is recorded, however long the server is gone. One that is refused comes too late
/// for a build that has ended otherwise.
async fn report(command: Command) -> Result<(), Failure> {
    match command.settled().await {
        Ok(Settlement::Succeeded(_) | Settlement::Failed(_) | Settlement::Canceled | Settlement::NotFound) => Ok(()),
        Err(unsettled) => Err(Failure::Unsettled(unsettled.to_string())),
    }
}
