//! Rounds of several sides in turn, and the table that compares them.
//!
//! Not criterion: it measures one side to the end, then the next, so that whatever else the machine does in
//! between ends up in the comparison, and it does not print the ratio of two sides. Here each round runs
//! every side once (A, B, A, B, ..), and a ratio is of two neighbours in one round. Who comes first rotates, so
//! that no side always follows the same other one.

use std::time::{Duration, Instant};

/// The fewest rounds that a median is taken of.
const LEAST_ROUNDS: usize = 7;

/// The most rounds of one case.
const MOST_ROUNDS: usize = 99;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Bench {
    measure: bool,
    list: bool,
    filters: Vec<String>,
}

/// How much a side did, and in which time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) items: usize,
    pub(crate) elapsed: Duration,
}

impl Sample {
    fn rate(self) -> f64 {
        self.items as f64 / self.elapsed.as_secs_f64()
    }
}

/// One of the sides that are compared: runs one round at each call.
pub(crate) struct Side<'a> {
    name: &'static str,
    round: Box<dyn FnMut() -> Sample + 'a>,
}

impl<'a> Side<'a> {
    pub(crate) fn new(name: &'static str, round: impl FnMut() -> Sample + 'a) -> Self {
        Self { name, round: Box::new(round) }
    }
}

impl Bench {
    /// Understands what `cargo bench` and `cargo test` hand over, libtest's own flags included.
    pub(crate) fn from_args(args: impl Iterator<Item = String>) -> Self {
        let mut bench = Self { measure: false, list: false, filters: Vec::new() };
        let (mut test, mut args) = (false, args);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bench" => bench.measure = true,
                "--test" => test = true,
                "--list" => bench.list = true,
                "--color" | "--format" | "--logfile" | "--skip" | "--test-threads" | "-Z" => drop(args.next()),
                flag if flag.starts_with('-') => {}
                _ => bench.filters.push(arg),
            }
        }
        bench.measure &= !test;
        bench
    }

    /// Whether the case `name` is to run.
    pub(crate) fn wants(&self, name: &str) -> bool {
        // Not any part of a name: `append/1` is not to choose `append/100`.
        let group = name.split('/').next();
        let wanted = self.filters.is_empty() || self.filters.iter().any(|f| f == name || Some(f.as_str()) == group);
        if wanted && self.list {
            println!("{name}: benchmark");
        }
        wanted && !self.list
    }

    /// How large a round is: `full` when measuring, `tiny` as a test.
    pub(crate) fn size(&self, full: usize, tiny: usize) -> usize {
        if self.measure { full } else { tiny }
    }

    /// Runs rounds of all `sides` in turn for about `budget` and prints how the first compares with each other.
    pub(crate) fn compare(&self, name: &str, item: &str, budget: Duration, mut sides: Vec<Side<'_>>) {
        let mut first = 0;
        let mut round = || {
            let mut samples = vec![None; sides.len()];
            for i in 0..sides.len() {
                let i = (first + i) % sides.len();
                samples[i] = Some((sides[i].round)());
            }
            first += 1;
            samples.into_iter().flatten().collect::<Vec<Sample>>()
        };
        if !self.measure {
            round();
            return println!("{name}: ran");
        }
        let warm = Instant::now();
        while warm.elapsed() < budget / 8 {
            round();
        }
        let (start, waited, mut rounds) = (Instant::now(), waited_for_cpu(), Vec::new());
        while rounds.len() < LEAST_ROUNDS || (rounds.len() < MOST_ROUNDS && start.elapsed() < budget) {
            rounds.push(round());
        }
        let (elapsed, waited) =
            (start.elapsed(), waited_for_cpu().zip(waited).map(|(now, then)| now.saturating_sub(then)));
        let names: Vec<_> = sides.iter().map(|side| side.name).collect();
        print(name, item, &names, &rounds);
        if let Some(waited) = waited {
            println!(
                "  in {elapsed:.1?} the threads waited {waited:.1?} for a processor; much of it means a busy machine, no result"
            );
        }
    }
}

/// How long the threads of this process have been ready to run and did not, where the system says so (Linux).
///
/// On a busy machine this is most of what a benchmark that sleeps on a disk measures.
fn waited_for_cpu() -> Option<Duration> {
    let mut waited = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        // Time on a processor, time waiting for one, both in ns; a thread may have ended meanwhile.
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        waited += stat.split_whitespace().nth(1).and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Some(Duration::from_nanos(waited))
}

fn print(name: &str, item: &str, sides: &[&str], rounds: &[Vec<Sample>]) {
    println!("\n{name}: {item} per second, {} rounds", rounds.len());
    println!("  {:<44} {:>11} {:>11} {:>11} {:>10}   ratio (min .. max)", "", "median", "min", "max", "each");
    for (i, side) in sides.iter().enumerate() {
        let rate = Spread::of(rounds.iter().map(|round| round[i].rate()));
        let each = Duration::from_secs_f64(1.0 / rate.median);
        let each = format!("{each:.1?}");
        print!("  {side:<44} {:>11.0} {:>11.0} {:>11.0} {each:>10}", rate.median, rate.min, rate.max);
        if i > 0 {
            let ratio = Spread::of(rounds.iter().map(|round| round[0].rate() / round[i].rate()));
            print!("   {:.3} ({:.3} .. {:.3})", ratio.median, ratio.min, ratio.max);
        }
        println!();
    }
    println!("  a ratio is how fast the first row is beside this one in the same round: 1 is equal, more is faster");
}

struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self { min: values[0], median: f64::midpoint(low, high), max: values[values.len() - 1] }
    }
}
