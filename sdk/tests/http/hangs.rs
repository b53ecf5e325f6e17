//! Every phase of a request can hang; each has a stated bound (R7), and the read recovers by itself (R8).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use outlast::error::Phase;
use outlast::http::poll::Bounds;
use outlast::testing::{Net, Reply, SimulatedExchange};
use outlast::transport::{Io, Network};
use outlast::{Cause, Credential, Observable};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use crate::world::{MILLI, Record, Run, SECOND, World, doubted, run, stalled};

/// A network whose resolver may hang.
#[derive(Clone)]
struct Resolver {
    net: Net,
    hangs: Arc<AtomicBool>,
}

impl Network for Resolver {
    fn resolve(&self, host: Arc<str>, port: u16) -> BoxFuture<'static, io::Result<Vec<Arc<str>>>> {
        if self.hangs.load(Ordering::Relaxed) {
            return std::future::pending().boxed();
        }
        self.net.resolve(host, port)
    }

    fn connect(&self, address: Arc<str>) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        self.net.connect(address)
    }
}

/// The longest delay soon after the first failure, and the distance that the budget keeps.
const STEP: Duration = Duration::from_millis(1_500);

/// It is found within `bound`, shown as that stall, and gone soon after `heal`.
async fn found(world: &World, read: &Observable<Run>, phase: Phase, bound: Duration, heal: impl FnOnce()) {
    let seen = Record::of(read);
    // A look is at most a second away.
    doubted(&world.env, read, bound + SECOND + 50 * MILLI, stalled(phase, bound)).await;
    heal();
    world.shows(read, "success", STEP).await;
    assert_eq!(seen.end(), None);
}

/// R7: name resolution.
#[tokio::test(start_paused = true)]
async fn r7_a_resolver_that_hangs_is_found() {
    for loaded in [false, true] {
        let net = Net::new();
        let resolver = Resolver { net: net.clone(), hangs: Arc::new(AtomicBool::new(!loaded)) };
        let hangs = Arc::clone(&resolver.hangs);
        let world = World::over(net, SimulatedExchange::new(resolver), 200 * MILLI);
        // Each answer ends its connection, so that each request resolves.
        world.ci.replies("/run", loaded.then(|| run("running").closes()).into_iter().chain([run("success").closes()]));
        let read = world.get("/run").observe::<Run>().unwrap();
        if loaded {
            world.shows(&read, "running", SECOND).await;
            hangs.store(true, Ordering::Relaxed);
        }
        found(&world, &read, Phase::Resolve, 5 * SECOND, || hangs.store(false, Ordering::Relaxed)).await;
    }
}

/// R7: the connect.
#[tokio::test(start_paused = true)]
async fn r7_a_connect_that_hangs_is_found() {
    let world = World::new();
    world.ci.replies("/run", [run("success")]);
    world.net.silence("ci.example");
    let read = world.get("/run").observe::<Run>().unwrap();
    found(&world, &read, Phase::Connect, 5 * SECOND, || world.net.heal("ci.example")).await;
}

/// R7: the head of the answer; the next request goes out on another connection.
#[tokio::test(start_paused = true)]
async fn r7_an_answer_that_does_not_begin_is_found() {
    for loaded in [false, true] {
        let world = World::new();
        world.ci.replies("/run", loaded.then(|| run("running")).into_iter().chain([Reply::hang(), run("success")]));
        let read = world.get("/run").observe::<Run>().unwrap();
        found(&world, &read, Phase::FirstByte, 15 * SECOND, || {}).await;
        let asked = world.ci.asked("/run");
        assert_eq!(asked.last().unwrap().connection, 2);
    }
}

/// R7: the body of a value that stops.
#[tokio::test(start_paused = true)]
async fn r7_a_body_that_stops_is_found() {
    for (what, reply) in [
        ("a value", run("success").stalls(5)),
        ("a value without a byte", run("success").stalls(0)),
        ("a stream without an end", Reply::chunked(["{\"status\":\"success\"}"])),
    ] {
        let world = World::new();
        world.ci.replies("/run", [run("running"), reply, run("success")]);
        let read = world.get("/run").observe::<Run>().unwrap();
        let seen = Record::of(&read);
        world.shows(&read, "running", SECOND).await;
        found(&world, &read, Phase::Idle, 10 * SECOND, || {}).await;
        assert_eq!(seen.statuses(), ["running", "success"], "{what}");
    }
}

/// R7: what the head alone decides does not wait for a body that stops: an error is one, a redirect is followed.
#[tokio::test(start_paused = true)]
async fn r7_a_head_that_decides_waits_for_no_body() {
    let world = World::new();
    let failed = Reply::text("down for maintenance").with_status(503).stalls(4);
    let moved = Reply::text("elsewhere").with_status(302).header("location", "/elsewhere").stalls(4);
    world.ci.replies("/run", [run("running"), failed, moved]);
    world.ci.on("/elsewhere", |_| run("success"));
    let read = world.get("/run").observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.shows(&read, "success", 5 * SECOND).await;
    let causes = seen.causes();
    assert!(!causes.iter().any(|cause| matches!(cause, Cause::Stalled { .. })), "{causes:?}");
    assert_eq!(seen.statuses(), ["running", "success"]);
}

/// R7: a body that drips without an end is found by the bound on the whole body.
#[tokio::test(start_paused = true)]
async fn r7_a_body_that_drips_is_found() {
    let world = World::new();
    let (reply, body) = Reply::stream();
    world.ci.replies("/run", [run("running"), reply, run("success")]);
    let read = world.get("/run").observe::<Run>().unwrap();
    world.ci.until("/run", 2).await;
    let drips = async {
        loop {
            body.send(" ");
            world.pass(5 * SECOND).await;
        }
    };
    tokio::select! {
        () = found(&world, &read, Phase::Idle, 60 * SECOND, || {}) => {}
        () = drips => {}
    }
}

/// R7: the source of credentials. Its hang and its errors are no end and no standstill (FC-51).
#[tokio::test(start_paused = true)]
async fn r7_a_source_of_credentials_that_hangs_is_found() {
    for loaded in [false, true] {
        let world = World::new();
        let hangs = Arc::new(AtomicBool::new(!loaded));
        let source = {
            let hangs = Arc::clone(&hangs);
            move || {
                let hangs = hangs.load(Ordering::Relaxed);
                async move {
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                    // It has to be asked for again at once.
                    Ok(Credential::bearer("token")?.lasting(SECOND))
                }
            }
        };
        world.ci.replies("/run", loaded.then(|| run("running")).into_iter().chain([run("success")]));
        let read = world.get("/run").credential(source).observe::<Run>().unwrap();
        if loaded {
            world.shows(&read, "running", SECOND).await;
            hangs.store(true, Ordering::Relaxed);
        }
        if loaded {
            // What is held goes on until it has expired.
            doubted(&world.env, &read, 8 * SECOND, stalled(Phase::Credential, 5 * SECOND)).await;
            hangs.store(false, Ordering::Relaxed);
            world.shows(&read, "success", STEP).await;
        } else {
            found(&world, &read, Phase::Credential, 5 * SECOND, || hangs.store(false, Ordering::Relaxed)).await;
        }
    }
}

/// R7: each bound can be set.
#[tokio::test(start_paused = true)]
async fn r7_the_bounds_that_were_set_are_kept() {
    let bounds = Bounds::default().with_connect(2 * SECOND).with_first_byte(3 * SECOND).with_idle(4 * SECOND);
    let bounds = bounds.with_body(6 * SECOND).with_credential(2 * SECOND);
    let world = World::new();
    world.ci.replies("/run", [Reply::hang(), run("success").stalls(1), run("success")]);
    world.net.silence("ci.example");
    let source = {
        let first = AtomicBool::new(true);
        move || {
            let hangs = first.swap(false, Ordering::Relaxed);
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Credential::bearer("token")
            }
        }
    };
    let read = world.get("/run").bounds(bounds).credential(source).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    doubted(&world.env, &read, 2 * SECOND + 5 * MILLI, stalled(Phase::Credential, 2 * SECOND)).await;
    doubted(&world.env, &read, 2 * SECOND + STEP, stalled(Phase::Connect, 2 * SECOND)).await;
    world.net.heal("ci.example");
    doubted(&world.env, &read, 3 * SECOND + STEP, stalled(Phase::FirstByte, 3 * SECOND)).await;
    doubted(&world.env, &read, 4 * SECOND + STEP, stalled(Phase::Idle, 4 * SECOND)).await;
    world.shows(&read, "success", STEP).await;
    assert_eq!(seen.end(), None);
}

/// A service that says the first piece, and then the second one each second.
fn drips(world: &World, first: &'static str, then: &'static str) -> JoinSet<()> {
    let (mut listener, env) = (world.net.listen("drip.example"), world.env.clone());
    let mut life = JoinSet::new();
    life.spawn(async move {
        let mut connections = JoinSet::new();
        while let Some(mut io) = listener.accept().await {
            let env = env.clone();
            connections.spawn(async move {
                let _ = io.read(&mut [0; 4096]).await;
                let mut piece = first;
                while io.write_all(piece.as_bytes()).await.is_ok() {
                    piece = then;
                    env.sleep_until(Some(env.instant() + SECOND)).await;
                }
            });
        }
    });
    life
}

/// R7: an answer that goes on for ever without getting anywhere is found by the bound of its phase.
#[tokio::test(start_paused = true)]
async fn r7_an_answer_that_never_ends_is_found() {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    const CHUNK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;";
    const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    for (what, first, then, phase, bound) in [
        ("heads before the head", HINTS, HINTS, Phase::FirstByte, 15 * SECOND),
        ("a head", "HTTP/1.1 200 OK\r\n", "X: y\r\n", Phase::FirstByte, 15 * SECOND),
        ("white space", CHUNKED, "1\r\n \r\n", Phase::Idle, 60 * SECOND),
        ("a word about a chunk", CHUNK, "x", Phase::Idle, 10 * SECOND),
    ] {
        println!("{what}");
        let world = World::new();
        let _service = drips(&world, first, then);
        let read = world.agent.get("http://drip.example/run").observe::<Run>().unwrap();
        doubted(&world.env, &read, bound + SECOND, stalled(phase, bound)).await;
    }
}
