//! What the crate costs beside doing the same by hand: fan-out, ingest, append, polls, event streams
//! and the memory of reads, each next to its peer.
//!
//! `cargo bench -p outlast-tests [FILTER]` measures; as a test (`cargo test`, or `--test`) each case runs one
//! tiny round. A filter is a case or a group of them: `append/100`, `fanout`, `poll`.

mod append;
mod events;
mod fanout;
mod harness;
mod ingest;
mod memory;
mod poll;
mod service;

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == memory::CHILD).is_some() {
        return memory::child(arguments);
    }
    let bench = harness::Bench::from_args(arguments);
    fanout::run(&bench);
    ingest::run(&bench);
    append::run(&bench);
    poll::run(&bench);
    events::run(&bench);
    memory::run(&bench);
}
