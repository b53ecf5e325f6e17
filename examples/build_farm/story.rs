//! The story: a build outlives the only server.
//!
//! Everything is started, a build is submitted, the relay swallows the first answer, the server is killed in
//! mid-build and comes back elsewhere, and the build's own verdict arrives at the handle that was awaited all
//! the while.

use outlast::Credential;
use outlast::client::Client;
use outlast::command::{FailureReason, Settlement};
use outlast::env::Env;

use crate::build_farm::cli::Options;
use crate::build_farm::display::{Change, Display, Note};
use crate::build_farm::domain::BuildId;
use crate::build_farm::failure::Failure;
use crate::build_farm::interrupts::Interrupts;
use crate::build_farm::poller;
use crate::build_farm::principals::Tokens;
use crate::build_farm::program::Program;
use crate::build_farm::stage::Stage;
use crate::build_farm::verdict::{Summary, Verdict};
use crate::build_farm::witness::Witness;

/// Plays the story. Whatever happens, nothing is left running or lying about. `None`: ended by a second Ctrl-C.
pub(crate) async fn play(
    options: &Options,
    display: &Display,
    interrupts: &Interrupts,
) -> Result<Option<Summary>, Failure> {
    let env = Env::system();
    let tokens = Tokens::mint(&env);
    let mut stage = Stage::new(tokens.clone())?;
    let played = tokio::select! {
        played = act(options, &mut stage, (&env, &tokens), display, interrupts) => played.map(Some),
        () = interrupts.pressed(2) => Ok(None),
    };
    let closed = stage.close().await;
    let played = played?;
    closed?;
    Ok(played)
}

async fn act(
    options: &Options,
    stage: &mut Stage,
    (env, tokens): (&Env, &Tokens),
    display: &Display,
    interrupts: &Interrupts,
) -> Result<Summary, Failure> {
    let program = Program::write(stage.directory())?;
    let relay = stage.start(display).await?;
    let client = Client::builder(format!("ws://{relay}/")).credential(Credential::bearer(tokens.poller())?).open()?;
    let (id, spec) = (BuildId::new(env.ulid()), program.spec(options));
    display.show(Change::Note(Note::Submitting { build: id.to_string() }));
    let witness = Witness::new();
    let settlement = tokio::select! {
        settled = poller::poll(&client, (id, &spec), interrupts.pressed(1), display, &witness) => settled,
        failure = outage(options, stage, display, &witness) => return Err(failure),
    };
    let verdict = match settlement {
        Ok(Settlement::Succeeded(_)) => Verdict::Succeeded,
        Ok(Settlement::Failed(failure)) if failure.reason == FailureReason::Verdict => {
            display.show(Change::Note(Note::BuildFailed { why: failure.to_string() }));
            Verdict::Failed
        }
        Ok(Settlement::Canceled) => Verdict::Canceled,
        // The build was not run: that is no verdict on it.
        Ok(Settlement::Failed(failure)) => return Err(Failure::Unsettled(format!("the submit failed: {failure}"))),
        Ok(Settlement::NotFound) => return Err(Failure::Unsettled("the server has no record of the build".into())),
        Err(unsettled) => return Err(Failure::Unsettled(unsettled.to_string())),
    };
    let seen = witness.seen();
    client.close();
    Ok(Summary {
        verdict,
        executions: program.executions(),
        read_errors: seen.read_errors,
        server_restarts: stage.restarts(),
        went_stale: seen.went_stale,
        fresh_again_ms: seen.fresh_again.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
    })
}

/// Stages the outage in mid-build; returns only when the farm breaks by itself.
async fn outage(options: &Options, stage: &mut Stage, display: &Display, witness: &Witness) -> Failure {
    tokio::select! {
        () = witness.printed(options.kill_after) => {}
        failure = stage.trouble(display) => return failure,
    }
    match stage.outage(options.outage, display).await {
        Ok(listening) => witness.listening_again(listening),
        Err(failure) => return failure,
    }
    stage.trouble(display).await
}
