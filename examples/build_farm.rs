//! A build farm, and a poller that outlives its server.
//!
//! Without arguments it plays one story (see [`story`]): a real build is submitted to a farm of three
//! processes, whose only server is killed in mid-build and comes back elsewhere. The part that a user of the
//! SDK writes is [`poller`]; [`service`], [`domain`], [`handlers`] and [`view`] are the service, written by hand.

mod address;
mod cli;
mod display;
mod domain;
mod execution;
mod failure;
mod frames;
mod handlers;
mod interrupts;
mod lifeline;
mod poller;
mod principals;
mod process;
mod program;
mod relay;
mod server;
mod service;
mod stage;
mod story;
mod verdict;
mod view;
mod witness;
mod worker;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::timeout;

use cli::{Options, Request, Role};
use display::{Change, Display, Note};
use failure::Failure;
use interrupts::Interrupts;
use lifeline::Parting;
use principals::Tokens;
use verdict::{INTERRUPTED, NO_VERDICT, USAGE};

/// How long the display has for its last word after a second Ctrl-C.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Plays the story, or one of its processes, as the arguments say.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    let code = match cli::parse(args) {
        Ok(Request::Help) => {
            // Who reads no further has read enough.
            let _ = std::io::stdout().write_all(cli::HELP.as_bytes());
            Ok(0)
        }
        Ok(Request::Poll(options)) => run(poll(&options)),
        Ok(Request::Serve(role, directory)) => run(serve(role, &directory)),
        Err(usage) => {
            eprintln!("build_poller: {usage}\nSee build_poller --help.");
            Ok(USAGE)
        }
    };
    ExitCode::from(code.unwrap_or_else(|failure| {
        eprintln!("build_poller: {failure}");
        NO_VERDICT
    }))
}

fn run(role: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(role);
    // Nothing that matters is left; a blocking read must not hold up the end.
    runtime.shutdown_background();
    code
}

/// Plays the story.
async fn poll(options: &Options) -> Result<u8, Failure> {
    let interrupts = Interrupts::listen()?;
    let display = Display::open(options.json);
    let played = story::play(options, &display, &interrupts).await;
    match played {
        Ok(Some(summary)) => {
            let code = summary.verdict.exit_code();
            display.show(Change::Summary(summary));
            display.close().await;
            Ok(code)
        }
        Ok(None) => {
            display.show(Change::Note(Note::Interrupted));
            // A terminal that is held (Ctrl-S) does not hold up a second Ctrl-C.
            let _ = timeout(LAST_WORD, display.close()).await;
            Ok(INTERRUPTED)
        }
        Err(failure) => {
            display.close().await;
            Err(failure)
        }
    }
}

/// Plays one of the farm's processes, until the parent says farewell or is gone.
async fn serve(role: Role, directory: &Path) -> Result<u8, Failure> {
    let tokens = Tokens::given();
    let parting = {
        let played = async {
            match role {
                Role::Server => server::run(directory, tokens).await,
                Role::Relay => Ok(relay::run(directory).await?),
                Role::Worker => worker::run(directory, &tokens).await,
            }
        };
        tokio::select! {
            played = played => return played.map(|()| 0),
            parting = lifeline::parting() => parting?,
            // Everything of the role is dropped at the end of this block; the worker's build is killed with it.
        }
    };
    match parting {
        Parting::Farewell => {}
        Parting::Lost => lifeline::clean_up(directory).await,
    }
    Ok(0)
}
