#![expect(clippy::disallowed_methods, reason = "a test waits in virtual time")]

use std::collections::HashSet;
use std::future::pending;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use futures::future::{BoxFuture, join_all};
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::error::Error;
use crate::machine::Wall;
use crate::testing::{SimulatedClock, env};

const SECOND: Duration = Duration::from_secs(1);
const BOUND: Duration = Duration::from_secs(5);

/// A source in a test's hands.
#[derive(Clone, Default)]
struct Vault(Arc<Inside>);

#[derive(Default)]
struct Inside {
    asked: AtomicUsize,
    /// Asks that have not ended.
    open: AtomicUsize,
    takes: AtomicU64,
    gives: Mutex<Gives>,
    lasts: Mutex<Option<Duration>>,
}

#[derive(Clone)]
enum Gives {
    Token(String),
    Nothing,
    Hangs,
    Panics,
    PanicsBefore,
}

impl Default for Gives {
    fn default() -> Self {
        Self::Token("one".into())
    }
}

struct Open(Vault);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Vault {
    fn gives(&self, gives: Gives) {
        *self.0.gives.lock().unwrap() = gives;
    }

    fn token(&self, token: &str) {
        self.gives(Gives::Token(token.into()));
    }

    fn takes(&self, time: Duration) {
        self.0.takes.store(time.as_millis() as u64, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }

    fn open(&self) -> usize {
        self.0.open.load(Ordering::SeqCst)
    }

    fn keeper(&self) -> Keeper {
        Keeper::new(Arc::new(self.clone()), env(1), BOUND)
    }
}

impl Credentials for Vault {
    fn credential(&self) -> BoxFuture<'static, Result<Credential, Error>> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        self.0.open.fetch_add(1, Ordering::SeqCst);
        let (open, this) = (Open(self.clone()), self.clone());
        let gives = self.0.gives.lock().unwrap().clone();
        assert!(!matches!(gives, Gives::PanicsBefore), "a panic in the call itself");
        async move {
            let _open = open;
            sleep(Duration::from_millis(this.0.takes.load(Ordering::SeqCst))).await;
            match gives {
                Gives::Token(token) => {
                    let credential = Credential::bearer(token)?;
                    Ok(match *this.0.lasts.lock().unwrap() {
                        Some(time) => credential.lasting(time),
                        None => credential,
                    })
                }
                Gives::Nothing => Err(Error::unavailable("the vault is sealed")),
                Gives::Hangs => pending().await,
                Gives::Panics | Gives::PanicsBefore => panic!("a panic in the future"),
            }
        }
        .boxed()
    }
}

fn sealed() -> Result<Held, Unheld> {
    Err(Unheld::Unavailable(Cause::CredentialUnavailable { detail: "the vault is sealed".into() }))
}

fn stalled() -> Result<Held, Unheld> {
    Err(Unheld::Unavailable(Cause::Stalled { phase: Phase::Credential, bound: BOUND }))
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.generation == other.generation && token(self) == token(other)
    }
}

fn token(held: &Held) -> Option<String> {
    let mut headers = ::http::HeaderMap::new();
    held.credential.as_ref()?.apply(&mut headers);
    Some(headers["authorization"].to_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned())
}

async fn used(keeper: &Keeper) -> String {
    token(&keeper.held().await.unwrap()).unwrap()
}

/// A request to a service that lets in `valid` and nothing else, as a read makes it: 401 or 200 after 50 ms.
async fn request(keeper: &Keeper, service: &Service) -> Result<bool, Unheld> {
    let held = keeper.held().await?;
    let token = token(&held).unwrap();
    service.log.lock().unwrap().push(token.clone());
    sleep(Duration::from_millis(50)).await;
    let valid = *service.valid.lock().unwrap() == token;
    if valid {
        keeper.accepted(&held)
    } else {
        keeper.refused(&held, Scope::Credential)
    }
    Ok(valid)
}

#[derive(Default)]
struct Service {
    valid: Mutex<String>,
    log: Mutex<Vec<String>>,
}

impl Service {
    fn letting_in(token: &str) -> Self {
        Self { valid: Mutex::new(token.into()), log: Mutex::default() }
    }

    fn lets_in(&self, token: &str) {
        token.clone_into(&mut self.valid.lock().unwrap());
    }

    fn times(&self, token: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|used| *used == token).count()
    }
}

/// FC-51, R3: the token expires while it is in use; one refusal, one refresh, and the next request has the new one.
#[tokio::test(start_paused = true)]
async fn fc51_a_refused_token_is_renewed_once() {
    let (vault, service) = (Vault::default(), Service::letting_in("one"));
    let keeper = vault.keeper();
    for _ in 0..5 {
        assert!(request(&keeper, &service).await.unwrap());
    }
    assert_eq!(vault.asked(), 1);
    service.lets_in("two");
    vault.token("two");
    assert!(!request(&keeper, &service).await.unwrap());
    assert!(request(&keeper, &service).await.unwrap());
    assert!(request(&keeper, &service).await.unwrap());
    assert_eq!(vault.asked(), 2, "one refresh");
    assert_eq!((service.times("one"), service.times("two")), (6, 2));
    assert_eq!(keeper.held().await.unwrap().generation, Generation::new(2));
}

/// FC-51, R3: no token is used after two refusals that are a step apart, by nobody who shares it, however long it lasts.
#[tokio::test(start_paused = true)]
async fn fc51_no_token_is_used_after_two_refusals() {
    let (vault, service) = (Vault::default(), Service::letting_in("another"));
    let keeper = vault.keeper();
    let start = Instant::now();
    assert!(!request(&keeper, &service).await.unwrap());
    assert!(!request(&keeper, &service).await.unwrap());
    assert!(start.elapsed() >= Duration::from_millis(550), "a backoff step apart");
    for _ in 0..1_000 {
        assert_eq!(request(&keeper, &service).await, Err(Unheld::Denied));
        sleep(SECOND).await;
    }
    assert_eq!(service.times("one"), 2);
    assert!((30..40).contains(&vault.asked()), "asked every 30 s whether it has another: {}", vault.asked());
    // Another one revives.
    vault.token("another");
    sleep(SECOND * 30).await;
    assert!(request(&keeper, &service).await.unwrap());
}

/// FC-51, R3: a refresh that fails is no denial, for however long, and the refused token is not used meanwhile.
#[tokio::test(start_paused = true)]
async fn fc51_a_failed_refresh_is_only_unavailable() {
    let (vault, service) = (Vault::default(), Service::letting_in("two"));
    let keeper = vault.keeper();
    assert!(!request(&keeper, &service).await.unwrap());
    vault.gives(Gives::Nothing);
    let start = Instant::now();
    for _ in 0..1_000 {
        assert_eq!(keeper.held().await, sealed());
    }
    assert!(start.elapsed() >= SECOND * 499, "and not asked more often than each half second: {:?}", start.elapsed());
    assert_eq!(service.times("one"), 1);
    vault.token("two");
    assert!(request(&keeper, &service).await.unwrap());
}

/// R3: a denial stays one while the source is away: an authority has spoken.
#[tokio::test(start_paused = true)]
async fn r3_a_denial_outlasts_the_source() {
    let (vault, service) = (Vault::default(), Service::default());
    let keeper = vault.keeper();
    request(&keeper, &service).await.unwrap();
    request(&keeper, &service).await.unwrap();
    for gives in [Gives::Nothing, Gives::Hangs, Gives::Panics] {
        vault.gives(gives);
        sleep(SECOND * 31).await;
        let before = vault.asked();
        assert_eq!(keeper.held().await, Err(Unheld::Denied));
        assert_eq!(vault.asked(), before + 1);
    }
}

/// R3: thirty requests that are refused together are one refusal, and have the source asked once.
#[tokio::test(start_paused = true)]
async fn r3_thirty_refusals_at_once_count_once() {
    let (vault, service) = (Vault::default(), Service::letting_in("two"));
    let keeper = vault.keeper();
    let all = join_all((0..30).map(|_| request(&keeper, &service))).await;
    assert!(all.into_iter().all(|served| served == Ok(false)));
    let held = keeper.held().await.unwrap();
    assert_eq!((held.generation, vault.asked()), (Generation::new(1), 2), "still in use");
    // Stragglers that began before the first refusal was known, whenever they end.
    let late = {
        let held = Held { at: Monotonic::ZERO, ..held.clone() };
        sleep(SECOND * 3).await;
        held
    };
    for _ in 0..30 {
        keeper.refused(&late, Scope::Credential);
    }
    assert_eq!(keeper.held().await.unwrap().generation, Generation::new(1));
    assert_eq!(vault.asked(), 2);
    keeper.refused(&held, Scope::Credential);
    assert_eq!(keeper.held().await, Err(Unheld::Denied));
}

/// R3: what is refused now and then and works in between is no denial.
#[tokio::test(start_paused = true)]
async fn r3_a_credential_that_works_in_between_is_not_denied() {
    let (vault, service) = (Vault::default(), Service::default());
    let keeper = vault.keeper();
    for _ in 0..5 {
        service.lets_in("another");
        assert_eq!(request(&keeper, &service).await, Ok(false));
        service.lets_in("one");
        assert_eq!(request(&keeper, &service).await, Ok(true));
    }
}

/// R3: a credential without a source behind it is treated alike: asking for it gives it again.
#[tokio::test(start_paused = true)]
async fn r3_a_fixed_credential_is_denied_at_its_second_refusal() {
    let keeper = Keeper::new(Arc::new(Credential::bearer("fixed").unwrap()), env(1), BOUND);
    let service = Service::default();
    assert_eq!(request(&keeper, &service).await, Ok(false));
    assert_eq!(request(&keeper, &service).await, Ok(false));
    for _ in 0..100 {
        assert_eq!(request(&keeper, &service).await, Err(Unheld::Denied));
        sleep(SECOND * 10).await;
    }
    assert_eq!(service.times("fixed"), 2);
}

/// R3: what one resource forbids leaves the others alone, however often, and they do not have to wait.
#[tokio::test(start_paused = true)]
async fn r3_a_forbidden_resource_leaves_the_others_alone() {
    let vault = Vault::default();
    let keeper = vault.keeper();
    used(&keeper).await;
    for n in 1..20 {
        sleep(SECOND).await;
        let held = keeper.held().await.unwrap();
        keeper.refused(&held, Scope::Resource);
        let start = Instant::now();
        assert_eq!(used(&keeper).await, "one");
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(vault.asked(), n + 1, "the source is asked, since it may have a better one");
    }
}

/// Without a credential there is none to spare.
#[tokio::test(start_paused = true)]
async fn without_a_source_nothing_is_sent() {
    let keeper = Keeper::none(env(1));
    for _ in 0..5 {
        let held = keeper.held().await.unwrap();
        assert!(held.credential.is_none());
        assert_eq!(held.generation, Generation::default());
        keeper.refused(&held, Scope::Credential);
        sleep(SECOND).await;
    }
}

/// Thirty who need it at once have the source asked once, also if it takes its time.
#[tokio::test(start_paused = true)]
async fn thirty_at_once_are_one_ask() {
    let vault = Vault::default();
    vault.takes(SECOND * 2);
    let keeper = vault.keeper();
    let all = join_all((0..30).map(|n| {
        let keeper = keeper.clone();
        async move {
            sleep(Duration::from_millis(n * 50)).await;
            keeper.held().await.unwrap().generation
        }
    }));
    assert_eq!(all.await.into_iter().collect::<HashSet<_>>(), HashSet::from([Generation::new(1)]));
    assert_eq!(vault.asked(), 1);
}

/// R7: a source that hangs is found out after 5 s, by each who waits, and the next ask is a new one.
#[tokio::test(start_paused = true)]
async fn r7_a_source_that_hangs_is_stalled() {
    let vault = Vault::default();
    vault.gives(Gives::Hangs);
    let keeper = vault.keeper();
    let start = Instant::now();
    let all = join_all((0..30).map(|n| {
        let keeper = keeper.clone();
        async move {
            sleep(Duration::from_millis(n * 100)).await;
            keeper.held().await
        }
    }));
    assert!(all.await.into_iter().all(|held| held == stalled()));
    assert!((SECOND * 5..Duration::from_millis(5_010)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!((vault.asked(), vault.open()), (1, 0), "what hung was let go");
    vault.token("one");
    assert_eq!(used(&keeper).await, "one");
    assert_eq!(start.elapsed().as_secs(), 5, "at once");
}

/// A source that panics, in the call or in the future, is one that cannot be reached now.
#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_survived() {
    let vault = Vault::default();
    let keeper = vault.keeper();
    for gives in [Gives::Panics, Gives::PanicsBefore] {
        vault.gives(gives);
        let panicked = Unheld::Unavailable(Cause::CredentialUnavailable { detail: "the source panicked".into() });
        let all = join_all((0..30).map(|_| keeper.held())).await;
        assert!(all.into_iter().all(|held| held == Err(panicked.clone())));
    }
    assert_eq!(vault.asked(), 2);
    vault.token("one");
    assert_eq!(used(&keeper).await, "one");
}

/// Whoever began an ask may leave: it goes on, and those who wait get its answer.
#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_strands_nobody() {
    let vault = Vault::default();
    vault.takes(SECOND);
    let keeper = vault.keeper();
    let start = Instant::now();
    let first = tokio::select! {
        held = keeper.held() => Some(held),
        () = sleep(SECOND / 2) => None,
    };
    assert_eq!(first, None);
    assert_eq!(used(&keeper).await, "one");
    assert_eq!(start.elapsed().as_millis() / 10, 100, "the answer to the first ask");
    assert_eq!(vault.asked(), 1);
}

/// An ask whose runtime ends is taken over by the next who waits.
#[test]
fn an_ask_that_dies_with_its_runtime_is_asked_again() {
    let paused = || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (first, second) = (paused(), paused());
    let vault = Vault::default();
    vault.gives(Gives::Hangs);
    let keeper = second.block_on(async { vault.keeper() });
    first.block_on(async {
        assert!(timeout(SECOND, keeper.held()).await.is_err());
    });
    let waits = second.spawn({
        let keeper = keeper.clone();
        async move { used(&keeper).await }
    });
    second.block_on(async {
        tokio::task::yield_now().await;
        assert_eq!(vault.asked(), 1, "it waits for the one under way");
        vault.token("one");
        first.shutdown_background();
        assert_eq!(waits.await.unwrap(), "one");
    });
    assert_eq!(vault.asked(), 2);
}

/// With the last who could use it the ask ends.
#[tokio::test(start_paused = true)]
async fn an_ask_ends_with_its_keeper() {
    let vault = Vault::default();
    vault.gives(Gives::Hangs);
    let keeper = vault.keeper();
    assert!(timeout(SECOND, keeper.held()).await.is_err());
    assert_eq!(vault.open(), 1);
    drop(keeper);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(vault.open(), 0);
}

/// FC-51: a token of known life is renewed 60 s before its end, behind its users; a source that fails meanwhile costs
/// nothing until then.
#[tokio::test(start_paused = true)]
async fn fc51_a_token_is_renewed_before_it_expires() {
    let vault = Vault::default();
    *vault.0.lasts.lock().unwrap() = Some(SECOND * 600);
    let keeper = vault.keeper();
    let start = Instant::now();
    let until = |secs: u64| tokio::time::sleep_until(start + SECOND * secs as u32);
    assert_eq!(used(&keeper).await, "one");
    until(539).await;
    assert_eq!(used(&keeper).await, "one");
    assert_eq!(vault.asked(), 1);

    vault.gives(Gives::Nothing);
    until(541).await;
    for _ in 0..1_000 {
        assert_eq!(used(&keeper).await, "one");
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(vault.asked(), 2, "asked, and not over and over");
    vault.takes(SECOND * 2);
    vault.token("two");
    until(580).await;
    assert_eq!(used(&keeper).await, "one", "nobody waits for the new one");
    tokio::task::yield_now().await;
    assert_eq!(vault.asked(), 3);
    sleep(SECOND * 3).await;
    assert_eq!(used(&keeper).await, "two");

    // Its life is over, and there is no other: it is not used.
    vault.takes(Duration::ZERO);
    vault.gives(Gives::Nothing);
    until(1_183).await;
    assert_eq!(keeper.held().await, sealed());
}

/// R7: after a sleep of the machine the wall clock says that it has expired, where the other one stood still.
#[tokio::test(start_paused = true)]
async fn r7_a_token_that_expired_in_a_sleep_is_renewed() {
    let clock = SimulatedClock::new();
    let vault = Vault::default();
    *vault.0.lasts.lock().unwrap() = Some(SECOND * 600);
    let keeper = Keeper::new(Arc::new(vault.clone()), Env::new(clock.clone(), 1), BOUND);
    assert_eq!(used(&keeper).await, "one");
    vault.token("two");
    sleep(SECOND).await;
    clock.advance(SECOND * 600);
    assert_eq!(used(&keeper).await, "two");
}

/// What a source says in its own error is shown; nothing else that holds a secret is.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_keeper_prints_a_secret() {
    let vault = Vault::default();
    vault.token("s3cret");
    let keeper = vault.keeper();
    let held = keeper.held().await.unwrap();
    keeper.refused(&held, Scope::Credential);
    vault.token("s3cret with a space");
    let unheld = keeper.held().await.unwrap_err();
    let Unheld::Unavailable(cause) = &unheld else { panic!("{unheld:?}") };
    let standing = keeper.shared.as_ref().unwrap().lock().standing.clone();
    let printed = format!("{keeper:?} {held:?} {unheld:?} {cause} {standing:?}");
    assert!(!printed.contains("s3cret"), "{printed}");
    assert!(cause.to_string().contains("expected a token"), "{cause}");
    assert_eq!(held.credential.unwrap().expires(Wall::default()), None);
}
