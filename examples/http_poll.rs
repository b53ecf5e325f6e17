//! Watches any HTTP service by hand: what a bare poll loop does, without what a bare loop gets wrong.
//!
//! The part that a user of the SDK writes is [`watch`]; the rest reads the command line, asks jq, and prints.

mod cli;
mod ending;
mod judge;
mod predicate;
mod report;
mod request;
mod seen;
mod text;
mod token;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use cli::{HELP, Options, Request, UsageError};
use ending::USAGE;

/// How long what is still under way has to end.
const PARTING: Duration = Duration::from_millis(200);

/// How much of what was wrong is printed.
const MESSAGE: usize = 2_000;

/// Whether the arguments ask to watch a service.
pub(crate) fn is_meant(args: &[OsString]) -> bool {
    is_judge(args) || cli::is_meant(args)
}

/// Watches, and says how it ended.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    if is_judge(&args) {
        return judge::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let ended = match cli::parse(args) {
        Ok(Request::Help) => {
            // Who reads no further has read enough.
            let _ = std::io::stdout().write_all(HELP.as_bytes());
            Ok(0)
        }
        Ok(Request::Watch(options)) => run(*options),
        Err(e) => Err(e),
    };
    ExitCode::from(ended.unwrap_or_else(|e| {
        // A profile may come with a repository: its words are somebody else's.
        let said = text::harmless(&e.to_string(), MESSAGE);
        let _ = writeln!(std::io::stderr(), "build_poller: {said}\nSee build_poller --url --help.");
        USAGE
    }))
}

fn is_judge(args: &[OsString]) -> bool {
    matches!(args, [only] if only == judge::ARGUMENT)
}

fn run(options: Options) -> Result<u8, UsageError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| UsageError::new("runtime", format_args!("expected one: {e}")))?;
    let ending = runtime.block_on(watch::watch(options));
    // A command that was asked for a token ends with its task; a file that hangs holds nothing up.
    runtime.shutdown_timeout(PARTING);
    ending.map(ending::Ending::exit_code)
}
