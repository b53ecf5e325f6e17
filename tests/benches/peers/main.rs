//! What the crate costs beside doing the same by hand: fan-out, ingest and append, each next to its peer.
//!
//! `cargo bench -p outlast-tests [FILTER]` measures; as a test (`cargo test`, or `--test`) each case runs one
//! tiny round. A filter is a case or a group of them: `append/100`, `fanout`.

mod append;
mod fanout;
mod harness;
mod ingest;

fn main() {
    let bench = harness::Bench::from_args(std::env::args().skip(1));
    fanout::run(&bench);
    ingest::run(&bench);
    append::run(&bench);
}
