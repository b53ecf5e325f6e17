//! Waits for a build, whatever happens to the service that knows about it.
//!
//! Without `--url` it plays a story of its own ([`build_farm`]); with it, it watches any HTTP service ([`http_poll`]).

mod build_farm;
mod http_poll;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if http_poll::is_meant(&args) { http_poll::main(args) } else { build_farm::main(args) }
}
