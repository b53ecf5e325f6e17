//! Credentials that expire, are refused, or cannot be had.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use outlast::http::poll::Pace;
use outlast::testing::Reply;
use outlast::{Cause, Credential, Credentials, End, Error, Reading};

use crate::world::{HOUR, MINUTE, Record, Run, SECOND, World, doubted, run};

/// A source whose answer can be changed.
#[derive(Clone)]
struct Vault {
    shared: Arc<Mutex<(Option<String>, usize)>>,
}

impl Vault {
    fn with(token: &str) -> Self {
        Self { shared: Arc::new(Mutex::new((Some(token.to_owned()), 0))) }
    }

    /// From now on it gives this one; `None`: it is out of reach.
    fn set(&self, token: Option<&str>) {
        self.shared.lock().unwrap().0 = token.map(str::to_owned);
    }

    fn asked(&self) -> usize {
        self.shared.lock().unwrap().1
    }
}

impl Credentials for Vault {
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>> {
        let mut shared = self.shared.lock().unwrap();
        shared.1 += 1;
        let token = shared.0.clone();
        async move { Credential::bearer(token.ok_or_else(|| Error::unavailable("the vault is sealed"))?) }.boxed()
    }
}

/// Serves `/run` to whoever has the token that is valid now.
fn guarded(world: &World, valid: &Arc<Mutex<String>>) {
    let valid = Arc::clone(valid);
    world.ci.on("/run", move |asked| {
        let bearer = format!("Bearer {}", valid.lock().unwrap());
        if asked.header("authorization") == Some(&*bearer) { run("running") } else { Reply::status(401) }
    });
}

fn uses(world: &World, token: &str) -> usize {
    let bearer = format!("Bearer {token}");
    world.ci.asked("/run").iter().filter(|asked| asked.header("authorization") == Some(&*bearer)).count()
}

/// FC-51, R3: the token expires while the connection is down. One refusal, one question to the source, and the next
/// request has the new token.
#[tokio::test(start_paused = true)]
async fn fc_51_a_token_that_expired_is_refreshed_once() {
    let (world, vault, valid) = (World::new(), Vault::with("t1"), Arc::new(Mutex::new("t1".to_owned())));
    guarded(&world, &valid);
    let read = world.get("/run").credential(vault.clone()).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.shows(&read, "running", SECOND).await;
    world.ci.kill();
    world.pass(5 * SECOND).await;
    "t2".clone_into(&mut valid.lock().unwrap());
    vault.set(Some("t2"));
    let (asked, before) = (vault.asked(), uses(&world, "t1"));
    world.ci.revive();
    doubted(&world.env, &read, 2 * SECOND, |cause| *cause == Cause::Unauthorized).await;
    world.shows(&read, "running", 3 * SECOND).await;
    assert_eq!(vault.asked(), asked + 1);
    assert_eq!(uses(&world, "t1"), before + 1);
    world.pass(HOUR).await;
    assert_eq!((vault.asked(), uses(&world, "t1"), seen.end()), (asked + 1, before + 1, None));
}

/// R3: ten reads that share a closure, or a source of one's own without an identity, as an `Arc` of it ask it once. Given
/// to each by itself it is asked for each: nothing says that it is the same.
#[tokio::test(start_paused = true)]
async fn r3_reads_ask_a_closure_that_they_share_once() {
    let asked_by_ten = async |shared: bool| {
        let (world, asked) = (World::new(), Arc::new(AtomicUsize::new(0)));
        world.ci.on("/run", |_| run("running"));
        let count = Arc::clone(&asked);
        let source = Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            async { Credential::bearer("t1") }
        });
        let reads: Vec<_> = (0..10)
            .map(|_| {
                let (get, source) = (world.get("/run"), Arc::clone(&source));
                let get = if shared { get.credential(source) } else { get.credential(move || source()) };
                get.observe::<Run>().unwrap()
            })
            .collect();
        for read in &reads {
            world.shows(read, "running", MINUTE).await;
        }
        assert!(uses(&world, "t1") >= 10);
        asked.load(Ordering::Relaxed)
    };
    assert_eq!((asked_by_ten(true).await, asked_by_ten(false).await), (1, 10));
    let vault = Arc::new(Vault::with("t1"));
    let (one, other) = (Arc::clone(&vault).identity(), Arc::new(Vault::with("t1")).identity());
    assert!(one.is_some() && one == vault.identity() && one != other);
}

/// FC-51, R3: no token is used after two refusals, a second or more apart; the read ends as denied.
#[tokio::test(start_paused = true)]
async fn fc_51_a_token_refused_twice_is_never_sent_again() {
    for status in [401, 403] {
        let (world, vault) = (World::new(), Vault::with("t1"));
        world.ci.replies("/run", [run("running"), Reply::status(status)]);
        let read = world.get("/run").credential(vault.clone()).observe::<Run>().unwrap();
        let seen = Record::of(&read);
        let wait = read.until(Run::is_over).within(HOUR).await.unwrap_err();
        assert_eq!(wait.end(), Some(End::Denied), "{status}");
        assert_eq!(world.ci.total(), 3, "{status}");
        let asked = world.ci.asked("/run");
        assert!(asked[2].at - asked[1].at >= SECOND, "{status}: not a step apart");
        assert!(vault.asked() >= 2, "{status}: the source was not asked");
        assert!(seen.causes().contains(&Cause::Unauthorized));
        world.pass(HOUR).await;
        assert_eq!(world.ci.total(), 3);
    }
}

/// R3: one refusal alone is no end; and the same without any credential.
#[tokio::test(start_paused = true)]
async fn r3_one_refusal_is_no_end() {
    let world = World::new();
    let no = || Reply::status(401);
    world.ci.replies("/run", [no(), run("running"), no(), run("running"), no(), run("success")]);
    let read = world.get("/run").observe::<Run>().unwrap();
    world.shows(&read, "success", MINUTE).await;
    world.ci.replies("/run", [no()]);
    assert_eq!(read.until(|_| false).within(MINUTE).await.unwrap_err().end(), Some(End::Denied));
    assert_eq!(world.ci.total(), 8);
}

/// FC-51, R3: a source that is out of reach says nothing about access. The read is stale, or loading, and comes back.
#[tokio::test(start_paused = true)]
async fn fc_51_a_refresh_that_fails_is_stale() {
    for loaded in [true, false] {
        let (world, vault, valid) = (World::new(), Vault::with("t1"), Arc::new(Mutex::new("t1".to_owned())));
        guarded(&world, &valid);
        if !loaded {
            vault.set(None);
        }
        let read = world.get("/run").credential(vault.clone()).observe::<Run>().unwrap();
        let seen = Record::of(&read);
        if loaded {
            world.shows(&read, "running", SECOND).await;
        }
        "t2".clone_into(&mut valid.lock().unwrap());
        vault.set(None);
        doubted(&world.env, &read, 10 * SECOND, |cause| matches!(cause, Cause::CredentialUnavailable { .. })).await;
        let (asked, sent) = (vault.asked(), world.ci.total());
        world.pass(10 * MINUTE).await;
        assert_eq!(world.ci.total(), sent, "a refused token is not tried while nobody knows a better one");
        let asked = vault.asked() - asked;
        assert!((100..1_300).contains(&asked), "{asked} questions in ten minutes");
        assert_eq!(seen.end(), None);
        assert_eq!(matches!(read.latest(), Reading::Stale { .. }), loaded);
        vault.set(Some("t2"));
        world.shows(&read, "running", 6 * SECOND).await;
        assert!(uses(&world, "t1") <= 3 + usize::from(loaded));
    }
}

/// R8: a source that stays out of reach counts as an outage for a read that is to give up.
#[tokio::test(start_paused = true)]
async fn r8_a_source_out_of_reach_is_an_outage() {
    let (world, vault) = (World::new(), Vault::with("t1"));
    vault.set(None);
    let get = world.get("/run").credential(vault).give_up_after(MINUTE);
    let read = get.observe::<Run>().unwrap();
    let (wait, took) = world.time(read.until(Run::is_over).within(HOUR)).await;
    assert_eq!(wait.unwrap_err().end(), Some(End::Closed));
    assert!((MINUTE..MINUTE + 2 * SECOND).contains(&took), "after {took:?}");
}

/// A service whose tags differ from token to token; `valid` are the tokens that it takes.
fn tagging(world: &World, valid: impl Fn(&str) -> bool + Send + 'static) {
    world.ci.on("/run", move |asked| {
        let token = asked.header("authorization").unwrap().trim_start_matches("Bearer ").to_owned();
        let tag = format!("\"{token}\"");
        match asked.header("if-none-match") {
            _ if !valid(&token) => Reply::status(401),
            Some(named) if *named == tag => Reply::status(304),
            _ => run("running").header("etag", tag),
        }
    });
}

/// No tag went along with another token than its own. How many requests had none.
fn untagged(world: &World) -> usize {
    let asked = world.ci.asked("/run");
    for asked in &asked {
        let (token, tag) = (asked.header("authorization").unwrap(), asked.header("if-none-match"));
        let own = format!("\"{}\"", token.trim_start_matches("Bearer "));
        assert!(tag.is_none() || tag == Some(&*own), "{tag:?} with {token}");
    }
    asked.iter().filter(|asked| asked.header("if-none-match").is_none()).count()
}

/// An `ETag` belongs to the credential that it was given to: it is not sent with another one, and the other one's is
/// learned even where the value is the same.
#[tokio::test(start_paused = true)]
async fn a_tag_belongs_to_its_credential() {
    // Refused, and then another one.
    let (world, vault) = (World::new(), Vault::with("t1"));
    let valid = Arc::new(Mutex::new("t1".to_owned()));
    let now = Arc::clone(&valid);
    tagging(&world, move |token| *now.lock().unwrap() == token);
    let read = world.get("/run").pace(Pace::every(2 * SECOND)).credential(vault.clone()).observe::<Run>().unwrap();
    world.ci.until("/run", 3).await;
    "t2".clone_into(&mut valid.lock().unwrap());
    vault.set(Some("t2"));
    world.pass(MINUTE).await;
    assert!(read.latest().is_fresh());
    assert_eq!(untagged(&world), 2, "one whole answer for each credential");

    // Another one in time.
    let world = World::new();
    tagging(&world, |_| true);
    let minted = AtomicUsize::new(0);
    let source = move || {
        let token = format!("t{}", minted.fetch_add(1, Ordering::Relaxed));
        async move { Ok(Credential::bearer(token)?.lasting(20 * SECOND)) }
    };
    let read = world.get("/run").pace(Pace::every(2 * SECOND)).credential(source).observe::<Run>().unwrap();
    let seen = Record::of(&read);
    world.pass(MINUTE).await;
    let mut tokens: Vec<_> =
        world.ci.asked("/run").iter().map(|asked| asked.header("authorization").unwrap().to_owned()).collect();
    tokens.dedup();
    assert!(tokens.len() > 2 && tokens.len() < 12, "{tokens:?}");
    assert_eq!(untagged(&world), tokens.len(), "one whole answer for each credential");
    assert!(seen.causes().is_empty());
}

/// FC-51, R3: a refusal is one though a body is announced that never comes: the token does not go out again and again.
#[tokio::test(start_paused = true)]
async fn fc_51_a_refusal_is_one_whatever_its_body() {
    for status in [401, 403] {
        let world = World::new();
        world.ci.replies("/run", [Reply::status(status).body("no, no, no").stalls(2)]);
        let read = world.get("/run").credential(Credential::bearer("t").unwrap()).observe::<Run>().unwrap();
        assert_eq!(read.until(Run::is_over).within(MINUTE).await.unwrap_err().end(), Some(End::Denied), "{status}");
        assert_eq!(uses(&world, "t"), 2, "{status}");
    }
}

/// R3: a read that is forbidden, of a source that makes another token at each ask, leaves the others theirs, and their tags
/// with them.
#[tokio::test(start_paused = true)]
async fn r3_a_forbidden_read_takes_no_credential_from_the_others() {
    let (world, minted) = (World::new(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&minted);
    let source: Arc<dyn Credentials> = Arc::new(move || {
        let n = count.fetch_add(1, Ordering::Relaxed);
        async move { Credential::bearer(format!("m{n}")) }
    });
    let whole = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&whole);
    world.ci.on("/good", move |asked| match asked.header("if-none-match") {
        Some(_) => Reply::status(304).header("etag", "\"a\""),
        None => {
            count.fetch_add(1, Ordering::Relaxed);
            run("running").header("etag", "\"a\"")
        }
    });
    world.ci.on("/forbidden", |_| Reply::status(403));
    let get = |path: &str| world.get(path).credential(Arc::clone(&source)).observe::<Run>().unwrap();
    let good = get("/good");
    world.shows(&good, "running", SECOND).await;
    let forbidden = get("/forbidden");
    world.pass(10 * MINUTE).await;
    assert!(matches!(forbidden.latest(), Reading::Ended { end: End::Denied, .. }), "{:?}", forbidden.latest());
    assert!(minted.load(Ordering::Relaxed) <= 3 && whole.load(Ordering::Relaxed) <= 3, "{minted:?} {whole:?}");
    assert!(good.latest().is_fresh());
}
