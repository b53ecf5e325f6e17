//! The driver, in virtual time.
#![expect(clippy::disallowed_methods, reason = "tests let time pass")]

use futures::FutureExt as _;
use futures::future::join_all;
use tokio::time::{sleep, timeout};
use url::Url;

use super::*;
use crate::http::told::Window;
use crate::testing;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn budgets() -> Budgets {
    Budgets::new(testing::env(1), Limits::default())
}

fn origin(url: &str) -> Origin {
    Url::parse(url).unwrap().origin()
}

fn token(token: &str) -> Credential {
    Credential::bearer(token).unwrap()
}

fn of(budgets: &Budgets, credential: &str) -> Budget {
    budgets.of(&origin("http://ci.example/run"), Some(&token(credential)), None)
}

fn is_one(a: &Budget, b: &Budget) -> bool {
    Arc::ptr_eq(&a.pace, &b.pace)
}

fn entries(budgets: &Budgets) -> usize {
    lock(&budgets.shared.table).entries.len()
}

fn passed(budgets: &Budgets) -> Duration {
    budgets.shared.env.instant().since_start()
}

fn wait(seconds: u64) -> Told {
    Told { retry_after: Some(SECOND * u32::try_from(seconds).unwrap()), throttled: true, ..Told::default() }
}

async fn granted(permit: &mut Permit) -> Granted {
    loop {
        match permit.next().await {
            Step::Held(_) => {}
            Step::Granted(granted) => return granted,
        }
    }
}

async fn held(permit: &mut Permit) -> Duration {
    match permit.next().await {
        Step::Held(until) => until.since_start(),
        Step::Granted(_) => panic!("nothing may be granted"),
    }
}

#[tokio::test(start_paused = true)]
async fn r8_thirty_waiters_share_one_budget_in_the_order_in_which_they_came() {
    let budgets = budgets();
    let times = join_all((0..30).map(|_| {
        let budget = of(&budgets, "t");
        let (mut permit, budgets) = (budget.want(), &budgets);
        async move {
            let granted = granted(&mut permit).await;
            granted.told(&Told::default());
            passed(budgets)
        }
    }))
    .await;
    for (number, at) in (0..).zip(times) {
        let due = MS * 200 * number;
        assert!(at >= due && at <= due + MS * 10, "number {number} at {at:?}");
    }
    let pace = of(&budgets, "t").pace;
    assert!(lock(&pace.state).seats.is_empty(), "nobody is left behind");
}

#[tokio::test(start_paused = true)]
async fn r8_two_origins_or_two_credentials_do_not_share() {
    let budgets = budgets();
    let (here, there) = (origin("http://ci.example/run?x=1"), origin("http://ci.example:81/run"));
    let all = [
        budgets.of(&here, Some(&token("a")), None),
        budgets.of(&here, Some(&token("b")), None),
        budgets.of(&here, Some(&Credential::header("private-token", "Bearer a").unwrap()), None),
        budgets.of(&here, None, None),
        budgets.of(&there, Some(&token("a")), None),
        budgets.of(&there, None, None),
    ];
    for (i, a) in all.iter().enumerate() {
        assert!(all.iter().enumerate().all(|(j, b)| is_one(a, b) == (i == j)));
        granted(&mut a.want()).await.told(&wait(60));
        assert_eq!(passed(&budgets), Duration::ZERO, "the holds of others are not ours");
    }
    assert!(is_one(&all[0], &budgets.of(&origin("http://ci.example/other"), Some(&token("a")), None)));
}

#[tokio::test(start_paused = true)]
async fn a_rotated_credential_keeps_its_budget() {
    let budgets = budgets();
    let first = of(&budgets, "a");
    granted(&mut first.want()).await.told(&wait(60));
    let here = origin("http://ci.example/");
    let second = budgets.of(&here, Some(&token("b")), Some(&first));
    assert!(is_one(&first, &second) && second.held_until() >= Some(Monotonic::new(SECOND * 60)));
    // Whoever comes with the new one alone is in it too, and one of another origin is not.
    assert!(is_one(&first, &of(&budgets, "b")));
    assert!(!is_one(&first, &budgets.of(&origin("http://other.example/"), Some(&token("b")), Some(&first))));
}

#[tokio::test(start_paused = true)]
async fn credentials_that_rotate_for_ever_leave_nothing_behind() {
    let budgets = budgets();
    let mut budget = of(&budgets, "0");
    granted(&mut budget.want()).await.told(&wait(3600));
    for number in 1..1000 {
        budget = budgets.of(&origin("http://ci.example/"), Some(&token(&number.to_string())), Some(&budget));
    }
    assert!(budget.held_until().is_some());
    assert!(entries(&budgets) <= SWEEP, "{}", entries(&budgets));
}

#[tokio::test(start_paused = true)]
async fn fc_55_a_hold_survives_its_last_user_and_then_nothing_is_left() {
    let budgets = budgets();
    granted(&mut of(&budgets, "held").want()).await.told(&wait(60));
    for number in 0..1000 {
        of(&budgets, &format!("other-{number}"));
    }
    assert!(entries(&budgets) <= SWEEP, "{}", entries(&budgets));
    let mut permit = of(&budgets, "held").want();
    assert!(held(&mut permit).await >= SECOND * 60);
    drop(permit);
    sleep(SECOND * 120).await;
    for number in 0..SWEEP {
        of(&budgets, &format!("more-{number}"));
    }
    let key = Key { origin: origin("http://ci.example/"), credential: Some(token("held").fingerprint()) };
    assert!(!lock(&budgets.shared.table).entries.contains_key(&key));
}

#[tokio::test(start_paused = true)]
async fn a_permit_dropped_before_its_grant_makes_way() {
    let budgets = budgets();
    let budget = of(&budgets, "t");
    let _first = granted(&mut budget.want()).await;
    let (mut second, mut third) = (budget.want(), budget.want());
    // The one that minds the timer goes, with its future and without.
    assert!(second.next().now_or_never().is_none());
    let leaves = async {
        sleep(MS * 100).await;
        drop(second);
    };
    let (_third, ()) = tokio::join!(granted(&mut third), leaves);
    assert!(passed(&budgets) <= MS * 210, "{:?}", passed(&budgets));
}

#[tokio::test(start_paused = true)]
async fn a_permit_dropped_after_its_grant_gives_the_place_back() {
    let budgets = Budgets::new(testing::env(1), Limits { in_flight: 1, ..Limits::default() });
    let budget = of(&budgets, "t");
    let (unused, mut next) = (budget.want(), budget.want());
    assert!(timeout(SECOND * 10, next.next()).await.is_err(), "one may be under way");
    drop(unused);
    let taken = granted(&mut next).await;
    let mut last = budget.want();
    assert!(timeout(SECOND * 10, last.next()).await.is_err());
    drop(taken);
    assert!(timeout(SECOND * 20, granted(&mut last)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn r9_a_hold_that_is_extended_is_told_again() {
    let budgets = budgets();
    let budget = of(&budgets, "t");
    let first = granted(&mut budget.want()).await;
    let second = granted(&mut budget.want()).await;
    first.told(&wait(30));
    let mut permit = budget.want();
    let until = held(&mut permit).await;
    assert_eq!(budget.held_until(), Some(Monotonic::new(until)));
    assert!((SECOND * 30..=SECOND * 32).contains(&until), "{until:?}");
    let extends = async {
        sleep(SECOND * 10).await;
        second.told(&wait(300));
    };
    let mut behind = budget.want();
    assert_eq!(held(&mut behind).await, until);
    let (until, last, ()) = tokio::join!(held(&mut permit), held(&mut behind), extends);
    assert_eq!(until, last, "all are told");
    assert!((SECOND * 310..=SECOND * 312).contains(&until), "{until:?}");
    assert!(passed(&budgets) < SECOND * 11, "at once");
    drop((first, second));
    let _granted = granted(&mut permit).await;
    assert_eq!(passed(&budgets).as_secs(), until.as_secs());
    assert_eq!(budget.held_until(), None);
}

#[tokio::test(start_paused = true)]
async fn fc_55_what_was_granted_but_not_sent_waits_with_the_others_and_is_the_first_of_them() {
    let budgets = budgets();
    let budget = of(&budgets, "t");
    let first = granted(&mut budget.want()).await;
    let (mut unpolled, mut other) = (budget.want(), budget.want());
    assert!(timeout(MS * 1300, other.next()).await.is_err(), "the unpolled one is granted meanwhile");
    first.told(&wait(30));
    assert!(held(&mut unpolled).await >= SECOND * 30);
    assert!(held(&mut other).await >= SECOND * 30);
    let order = tokio::join!(
        async {
            granted(&mut unpolled).await;
            passed(&budgets)
        },
        async {
            granted(&mut other).await;
            passed(&budgets)
        }
    );
    assert!(order.0 >= SECOND * 30 && order.0 < order.1, "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_due_seldom_is_not_given_back() {
    let budgets = budgets();
    let budget = of(&budgets, "t");
    let windows = vec![Window::new("core", None, 4, SECOND * 400)];
    granted(&mut budget.want()).await.told(&Told { windows, ..Told::default() });
    for number in 1..3 {
        let mut permit = budget.want();
        assert_eq!(held(&mut permit).await, SECOND * 100 * number);
        granted(&mut permit).await.told(&Told {
            windows: vec![Window::new("core", None, 4 - u64::from(number), SECOND * 100 * (4 - number))],
            ..Told::default()
        });
    }
}

#[tokio::test(start_paused = true)]
async fn r7_who_does_not_look_at_his_permit_strands_nobody() {
    let budgets = budgets();
    let budget = of(&budgets, "t");
    let _first = granted(&mut budget.want()).await;
    let mut unpolled: Vec<_> = (0..10).map(|_| budget.want()).collect();
    // One future is alive, has the timer, and is not polled.
    let mut stuck = Box::pin(unpolled[0].next());
    assert!((&mut stuck).now_or_never().is_none());
    let mut last = budget.want();
    let _granted = granted(&mut last).await;
    assert!(passed(&budgets) <= GRACE + MS * 200 * 12, "{:?}", passed(&budgets));
}

#[tokio::test(start_paused = true)]
async fn one_future_after_the_other_keeps_its_place_and_its_grant() {
    let budgets = budgets();
    let budget = of(&budgets, "t");
    let _first = granted(&mut budget.want()).await;
    let (mut second, mut third) = (budget.want(), budget.want());
    for _ in 0..50 {
        assert!(timeout(MS, second.next()).await.is_err(), "too early");
    }
    sleep(MS * 300).await;
    let (a, b) = (granted(&mut second).await, granted(&mut third).await);
    assert!(a.ticket < b.ticket);
    // The same permit asks for one more.
    let _again = granted(&mut second).await;
    // The second was granted at 350 ms, when somebody looked again.
    assert!(passed(&budgets).abs_diff(MS * 750) < MS * 10, "{:?}", passed(&budgets));
}

/// R8: who is granted at once takes no seat, overtakes nobody, and gives back what the end of his answer frees.
#[tokio::test(start_paused = true)]
async fn r8_a_grant_at_once_is_one_of_the_same_budget() {
    let budgets = Budgets::new(testing::env(1), Limits { in_flight: 1, spacing: Duration::ZERO, ..Limits::default() });
    let budget = of(&budgets, "t");
    let seats = |budget: &Budget| lock(&budget.pace.state).seats.len();
    let first = budget.clone().want_now().unwrap();
    assert_eq!(seats(&budget), 0);
    let mut second = budget.clone().want_now().unwrap_err();
    let mut third = budget.clone().want_now().unwrap_err();
    assert_eq!(seats(&budget), 2);
    assert!(second.next().now_or_never().is_none() && third.next().now_or_never().is_none());
    // Its answer has no body: the place is free though it is still held.
    first.told_and_ended(&Told::default());
    assert!(third.next().now_or_never().is_none(), "the one before it comes first");
    let second = granted(&mut second).await;
    drop(first);
    assert!(third.next().now_or_never().is_none(), "what has ended ends once");
    drop(second);
    drop(granted(&mut third).await);
    drop(third);
    assert_eq!((seats(&budget), passed(&budgets)), (0, Duration::ZERO));
    budget.clone().want_now().unwrap().told(&wait(60));
    assert!(budget.clone().want_now().is_err(), "a hold holds for it, too");
    assert!(budget.is_at(&Url::parse("http://ci.example:80/other").unwrap()) && budget.is_for(Some(&token("t"))));
    assert!(!budget.is_at(&Url::parse("http://ci.example:81/").unwrap()) && !budget.is_for(Some(&token("u"))));
    assert!(!budget.is_at(&Url::parse("https://ci.example:80/").unwrap()) && !budget.is_for(None));
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_not_printed() {
    let budgets = budgets();
    let budget = of(&budgets, "s3cret");
    let text = format!("{budgets:?} {budget:?} {:?}", budget.want());
    assert!(!text.contains("s3cret") && text.contains("Fingerprint(..)"), "{text}");
}
