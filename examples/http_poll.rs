//! Watches any HTTP service by hand: what a bare poll loop does, without what a bare loop gets wrong.
//!
//! The part that a user of the SDK writes is [`watch`]; the rest reads the command line and prints.

mod cli;
mod ending;
mod predicate;
mod report;
mod seen;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use cli::{HELP, Request};
use ending::{Ending, USAGE};

/// Whether the arguments ask to watch a service.
pub(crate) fn is_meant(args: &[OsString]) -> bool {
    args.iter().any(|arg| {
        let arg = arg.to_string_lossy();
        ["--url", "--profile", "--done"].iter().any(|flag| arg == *flag || arg.starts_with(&format!("{flag}=")))
    })
}

/// Watches, and says how it ended.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    match cli::parse(args).map(run) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(e)) => usage(&e),
        Err(e) => usage(&e),
    }
}

fn usage(e: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("build_poller: {e}\nSee build_poller --help.");
    ExitCode::from(USAGE)
}

fn run(request: Request) -> Result<u8, outlast::Error> {
    let Request::Watch(options) = request else {
        print!("{HELP}");
        return Ok(0);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| outlast::Error::unavailable("no runtime").with_source(e))?;
    let ending: Result<Ending, _> = runtime.block_on(watch::watch(*options));
    // Nothing that matters is left.
    runtime.shutdown_background();
    ending.map(Ending::exit_code)
}
