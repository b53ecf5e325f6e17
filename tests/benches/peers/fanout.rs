//! From a publication until every observer has seen it, against a raw `tokio::sync::watch`.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outlast::Reading;
use outlast::observe;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::harness::{Bench, Sample, Side};

/// Runs every case.
pub(crate) fn run(bench: &Bench) {
    // A round is about as long whatever the number of observers.
    for (observers, publications) in [(1, 20_000), (100, 1_000), (10_000, 10)] {
        let name = format!("fanout/{observers}");
        if bench.wants(&name) {
            compare(bench, &name, observers, bench.size(publications, 2));
        }
    }
}

fn compare(bench: &Bench, name: &str, observers: usize, publications: usize) {
    // Two threads on every machine: more would measure the scheduler.
    let runtime = Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let mut tasks = JoinSet::new();

    let (publisher, observable) = observe::channel::<u64>();
    let publisher = Arc::new(publisher);
    let seen = Arc::new(Seen::default());
    for _ in 0..observers {
        let (mut observable, seen) = (observable.clone(), Arc::clone(&seen));
        let observer = async move {
            while let Some(reading) = observable.next().await {
                if let Reading::Fresh(value) = reading {
                    black_box(*value);
                    seen.once();
                }
            }
        };
        tasks.spawn_on(observer, runtime.handle());
    }
    drop(observable);

    let (sender, receiver) = watch::channel(Arc::new(0_u64));
    let sender = Arc::new(sender);
    let raw_seen = Arc::new(Seen::default());
    for _ in 0..observers {
        let (mut receiver, seen) = (receiver.clone(), Arc::clone(&raw_seen));
        let observer = async move {
            while receiver.changed().await.is_ok() {
                let value = Arc::clone(&receiver.borrow_and_update());
                black_box(*value);
                seen.once();
            }
        };
        tasks.spawn_on(observer, runtime.handle());
    }
    drop(receiver);

    let ours = || {
        let publisher = Arc::clone(&publisher);
        round(&runtime, observers, publications, &seen, move |value| publisher.fresh(value))
    };
    let raw = || {
        let sender = Arc::clone(&sender);
        round(&runtime, observers, publications, &raw_seen, move |value| drop(sender.send_replace(Arc::new(value))))
    };
    let sides =
        vec![Side::new("Publisher -> Observable::next", ours), Side::new("watch::Sender -> changed, borrow", raw)];
    bench.compare(name, "publications seen by all", Duration::from_secs(7), sides);

    drop((publisher, sender));
    let ended = runtime.block_on(tasks.join_all()).len();
    assert_eq!(ended, 2 * observers, "every observer sees the end");
}

/// Publishes one value after another, each once all have seen the one before.
fn round(
    runtime: &Runtime,
    observers: usize,
    publications: usize,
    seen: &Arc<Seen>,
    publish: impl Fn(u64) + Send + 'static,
) -> Sample {
    let seen = Arc::clone(seen);
    let publisher = runtime.spawn(async move {
        let start = Instant::now();
        for value in 0..publications as u64 {
            seen.left.store(observers, Ordering::Release);
            publish(value);
            seen.all.notified().await;
        }
        start.elapsed()
    });
    let elapsed = runtime.block_on(publisher).expect("a publisher");
    Sample { items: publications, elapsed }
}

/// Counts down the observers of one publication.
#[derive(Debug, Default)]
struct Seen {
    left: AtomicUsize,
    all: Notify,
}

impl Seen {
    fn once(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all.notify_one();
        }
    }
}
