use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const ONE: Generation = Generation::new(1);
const TWO: Generation = Generation::new(2);

fn print(text: &str) -> Fingerprint {
    Fingerprint::of("authorization", text)
}

fn at(ms: u64) -> Now {
    let time = Duration::from_millis(ms);
    Now { instant: Monotonic::new(time), wall: Wall::new(Duration::from_secs(1_000_000) + time), draw: 0 }
}

/// Asked and answered at `ms`.
fn answer(standing: &mut Standing, ms: u64, text: &str, lasts: Option<Duration>) -> Generation {
    standing.asked(&at(ms));
    standing.answered(&at(ms), print(text), lasts.map(|lasts| at(ms).wall + lasts))
}

fn held(ms: u64, text: &str, lasts: Option<Duration>) -> Standing {
    let mut standing = Standing::default();
    assert_eq!(standing.next(&at(ms)), Next::Ask);
    answer(&mut standing, ms, text, lasts);
    assert_eq!(standing.next(&at(ms)), Next::Use { generation: ONE, ask: false });
    standing
}

fn refused(standing: &mut Standing, ms: u64, generation: Generation, used: u64) -> bool {
    standing.refused(&at(ms), generation, at(used).instant, Scope::Credential)
}

/// R3: asked once after the first refusal; the same one again is used once more, a step later; then never again.
#[test]
fn r3_one_credential_refused_twice_is_denied() {
    let mut it = held(0, "a", None);
    assert!(!refused(&mut it, 1_000, ONE, 900));
    assert_eq!(it.next(&at(1_000)), Next::Ask);
    assert_eq!(answer(&mut it, 1_000, "a", None), ONE, "the same text is the same generation");
    assert_eq!(it.next(&at(1_001)), Next::Until(at(1_500).instant));
    assert_eq!(it.next(&at(1_500)), Next::Use { generation: ONE, ask: false });
    assert!(!refused(&mut it, 1_600, ONE, 999), "began before the first was known: the same refusal");
    assert_eq!(it.next(&at(1_600)), Next::Use { generation: ONE, ask: false });
    assert!(refused(&mut it, 1_700, ONE, 1_500));
    assert_eq!(it.next(&at(1_700)), Next::Denied);
    assert_eq!(it.next(&at(31_699)), Next::Denied);
    assert_eq!(it.next(&at(31_700)), Next::Ask, "whether there is another");
    answer(&mut it, 31_700, "a", None);
    assert_eq!(it.next(&at(61_699)), Next::Denied);
    assert_eq!(answer(&mut it, 61_700, "b", None), TWO);
    assert_eq!(it.next(&at(61_700)), Next::Use { generation: TWO, ask: false }, "another one revives");
}

/// FC-51: no token is used after two refusals, also where the source goes back to it.
#[test]
fn fc51_a_source_that_goes_back_to_a_denied_credential_does_not_get_it_sent() {
    let mut it = held(0, "a", None);
    refused(&mut it, 1_000, ONE, 900);
    answer(&mut it, 1_000, "a", None);
    assert!(refused(&mut it, 1_600, ONE, 1_500));
    answer(&mut it, 31_600, "b", None);
    refused(&mut it, 32_000, TWO, 31_900);
    assert_eq!(answer(&mut it, 32_200, "a", None), ONE);
    assert_eq!(it.next(&at(32_200)), Next::Denied);
}

/// R3: what was refused and then works was not denied.
#[test]
fn r3_an_answer_resets_the_count_if_its_request_began_after_the_refusal() {
    let mut it = held(0, "a", None);
    for n in 1..10 {
        assert!(!refused(&mut it, n * 1_000, ONE, n * 1_000 - 1));
        answer(&mut it, n * 1_000, "a", None);
        it.accepted(ONE, at(n * 1_000 + 600).instant);
    }
    assert!(!refused(&mut it, 20_000, ONE, 19_999));
    answer(&mut it, 20_000, "a", None);
    it.accepted(ONE, at(19_000).instant);
    assert!(refused(&mut it, 21_000, ONE, 20_900), "one that began before says nothing");
    it.accepted(ONE, at(22_000).instant);
    assert!(it.is_denied(), "a denial is final for that credential");
}

/// R3: what one resource forbids has the source asked, and denies nobody else.
#[test]
fn r3_a_forbidden_resource_is_no_denial_of_the_credential() {
    let mut it = held(0, "a", None);
    for n in 1..10 {
        let ms = n * 1_000;
        assert!(!it.refused(&at(ms), ONE, at(ms - 1).instant, Scope::Resource));
        assert_eq!(it.next(&at(ms)), Next::Ask);
        answer(&mut it, ms, "a", None);
        assert_eq!(it.next(&at(ms)), Next::Use { generation: ONE, ask: false }, "nobody else has to wait");
        assert!(!it.refused(&at(ms + 100), ONE, at(ms - 1).instant, Scope::Resource));
        assert_eq!(it.next(&at(ms + 100)), Next::Use { generation: ONE, ask: false }, "the source has answered since");
    }
}

/// R3: a refusal that comes while the source is being asked is not answered by what that ask brings.
#[test]
fn r3_an_ask_from_before_the_refusal_is_not_the_one_after_it() {
    let mut it = held(0, "a", Some(SECOND * 100));
    assert_eq!(it.next(&at(50_000)), Next::Use { generation: ONE, ask: true });
    it.asked(&at(50_000));
    refused(&mut it, 51_000, ONE, 50_500);
    it.answered(&at(52_000), print("a"), None);
    assert_eq!(it.next(&at(52_000)), Next::Ask);
    it.asked(&at(52_000));
    assert_eq!(it.answered(&at(52_000), print("b"), None), TWO);
    assert_eq!(it.next(&at(52_000)), Next::Use { generation: TWO, ask: false });
}

/// R3: whoever counts for himself has the source asked, once for each refusal and not for a credential of before; the
/// credential itself is not counted.
#[test]
fn r3_a_doubt_asks_the_source_and_counts_nothing() {
    let mut it = held(0, "a", Some(SECOND * 100));
    for n in 1..10 {
        let ms = n * 1_000;
        it.doubt(&at(ms), ONE);
        assert_eq!(it.next(&at(ms)), Next::Ask);
        it.asked(&at(ms));
        it.doubt(&at(ms + 1), ONE);
        it.answered(&at(ms + 2), print("a"), Some(at(100_000).wall));
        assert_eq!(it.next(&at(ms + 2)), Next::Use { generation: ONE, ask: false }, "said again, and no other refusal");
    }
    assert_eq!(it.next(&at(60_000)), Next::Use { generation: ONE, ask: true });
    it.asked(&at(60_000));
    it.doubt(&at(61_000), ONE);
    it.answered(&at(62_000), print("a"), None);
    assert_eq!(it.next(&at(62_000)), Next::Ask, "an ask of before the refusal is not the one after it");
    answer(&mut it, 62_000, "b", None);
    it.doubt(&at(63_000), ONE);
    assert_eq!(it.next(&at(63_000)), Next::Use { generation: TWO, ask: false }, "there is another already");
}

/// R3: an unreachable source is only that, however often it fails, and is not asked more often than a step apart.
#[test]
fn r3_an_unreachable_source_denies_nobody() {
    let mut it = held(0, "a", None);
    refused(&mut it, 1_000, ONE, 900);
    for n in 2..100 {
        let ms = n * 500;
        assert_eq!(it.next(&at(ms)), Next::Ask);
        it.asked(&at(ms));
        assert_eq!(it.next(&at(ms)), Next::Await);
        it.failed(&at(ms + 1));
        assert_eq!(it.next(&at(ms + 1)), Next::Until(at(ms + 500).instant));
        assert!(!refused(&mut it, ms + 1, ONE, 950));
        assert!(!it.is_denied());
    }
}

/// FC-51: asked for 60 s before it expires, used until then, and not after.
#[test]
fn fc51_a_credential_is_renewed_before_it_expires() {
    let mut it = held(0, "a", Some(SECOND * 600));
    assert_eq!(it.next(&at(539_999)), Next::Use { generation: ONE, ask: false });
    assert_eq!(it.next(&at(540_000)), Next::Use { generation: ONE, ask: true });
    it.asked(&at(540_000));
    assert_eq!(it.next(&at(540_001)), Next::Use { generation: ONE, ask: false }, "one ask at a time");
    it.failed(&at(541_000));
    assert_eq!(it.next(&at(541_000)), Next::Use { generation: ONE, ask: false });
    assert_eq!(it.next(&at(570_500)), Next::Use { generation: ONE, ask: true }, "again at half of what is left");
    assert_eq!(it.next(&at(599_999)), Next::Use { generation: ONE, ask: true });
    assert_eq!(it.next(&at(600_000)), Next::Ask);
    answer(&mut it, 600_000, "b", Some(SECOND * 20));
    assert_eq!(it.next(&at(609_999)), Next::Use { generation: TWO, ask: false });
    assert_eq!(it.next(&at(610_000)), Next::Use { generation: TWO, ask: true }, "half of a short life");
}

/// R7: a machine that slept, or whose clock was set, finds that it has expired.
#[test]
fn r7_either_clock_ends_a_credential() {
    let it = held(0, "a", Some(SECOND * 600));
    let slept = Now { wall: at(0).wall + SECOND * 600, ..at(1_000) };
    assert_eq!(it.next(&slept), Next::Ask);
    let set_back = Now { wall: Wall::new(Duration::ZERO), ..at(600_000) };
    assert_eq!(it.next(&set_back), Next::Ask);
}

/// What the source gives is used, even if our clock says that it is too late: the service knows better.
#[test]
fn what_looks_expired_on_arrival_is_used() {
    let mut it = Standing::default();
    it.asked(&at(0));
    it.answered(&at(10), print("a"), Some(Wall::new(SECOND)));
    assert_eq!(
        it.next(&at(30_009)),
        Next::Use { generation: ONE, ask: false },
        "nobody waits, and the source has its peace"
    );
    assert_eq!(it.next(&at(30_010)), Next::Use { generation: ONE, ask: true });
    it.asked(&at(30_010));
    it.failed(&at(30_020));
    assert_eq!(it.next(&at(60_019)), Next::Use { generation: ONE, ask: false });
    assert_eq!(it.next(&at(60_020)), Next::Use { generation: ONE, ask: true });
}

/// R3: a source that makes another credential at each ask is not asked each time that one resource is forbidden: the others
/// would lose theirs. One that has the same still is: it may have another the next time.
#[test]
fn r3_a_forbidden_resource_does_not_mint_one_credential_after_another() {
    let mut it = held(0, "a", None);
    it.refused(&at(1_000), ONE, at(999).instant, Scope::Resource);
    assert_eq!(it.next(&at(1_000)), Next::Ask);
    answer(&mut it, 1_000, "b", None);
    let two = ONE.next();
    for ms in [2_000, 10_000, 30_999] {
        it.refused(&at(ms), two, at(ms - 1).instant, Scope::Resource);
        assert_eq!(it.next(&at(ms)), Next::Use { generation: two, ask: false }, "{ms}");
    }
    it.refused(&at(31_000), two, at(30_999).instant, Scope::Resource);
    assert_eq!(it.next(&at(31_000)), Next::Ask);
}

#[derive(Clone, Debug)]
enum Happens {
    Passes(u64),
    Needed,
    Answers(u8, Option<u64>),
    Fails,
    /// The n-th request on its way is refused, served, or never answered.
    Refused(usize, Scope),
    Served(usize),
    Lost(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => prop_oneof![0..700u64, 0..40_000u64].prop_map(Happens::Passes),
        6 => Just(Happens::Needed),
        3 => (0..3u8, proptest::option::of(0..90_000u64)).prop_map(|(text, lasts)| Happens::Answers(text, lasts)),
        1 => Just(Happens::Fails),
        4 => (0..8usize, prop_oneof![Just(Scope::Credential), Just(Scope::Resource)]).prop_map(|(n, s)| Happens::Refused(n, s)),
        1 => (0..8usize).prop_map(Happens::Served),
        1 => (0..8usize).prop_map(Happens::Lost),
    ]
}

proptest! {
    /// R3, FC-51 on any schedule: no credential is used after the second refusal that counts, those two are a step apart
    /// and without an answer of the source or a success in between, nothing else denies, and asks begin a step apart, one at
    /// a time.
    #[test]
    fn r3_on_any_schedule(steps in proptest::collection::vec(happens(), 1..120)) {
        let mut it = Standing::default();
        let mut now = 0;
        let mut requests: Vec<(Generation, u64)> = Vec::new();
        let mut asking = false;
        let mut asked: Option<u64> = None;
        // What a plain count of the same says: generation -> refusals since the last success, when the last was counted.
        let mut counts: BTreeMap<Generation, (u32, u64)> = BTreeMap::new();
        let mut present = Generation::default();
        for step in steps {
            match step {
                Happens::Passes(ms) => now += ms,
                Happens::Needed => match it.next(&at(now)) {
                    Next::Use { generation, ask } => {
                        prop_assert_eq!(generation, present);
                        let (times, last) = counts.get(&generation).copied().unwrap_or_default();
                        prop_assert!(times < 2, "used after two refusals");
                        prop_assert!(times == 0 || last + 500 <= now, "used within a step of its refusal");
                        requests.push((generation, now));
                        if ask {
                            prop_assert!(!asking && asked.is_none_or(|asked| asked + 500 <= now));
                            it.asked(&at(now));
                            (asking, asked) = (true, Some(now));
                        }
                    }
                    Next::Ask => {
                        prop_assert!(!asking && asked.is_none_or(|asked| asked + 500 <= now));
                        it.asked(&at(now));
                        (asking, asked) = (true, Some(now));
                    }
                    Next::Await => prop_assert!(asking, "nobody is left waiting for nothing"),
                    Next::Until(until) => prop_assert!(until > at(now).instant && until <= at(now + 500).instant),
                    Next::Denied => prop_assert_eq!(counts.get(&present).map(|count| count.0), Some(2)),
                },
                Happens::Answers(text, lasts) if asking => {
                    let expires = lasts.map(|ms| at(now + ms).wall);
                    present = it.answered(&at(now), print(&text.to_string()), expires);
                    asking = false;
                }
                Happens::Fails if asking => {
                    it.failed(&at(now));
                    asking = false;
                }
                Happens::Answers(..) | Happens::Fails => {}
                Happens::Refused(n, scope) if n < requests.len() => {
                    let (generation, used) = requests.remove(n);
                    let denied = it.refused(&at(now), generation, at(used).instant, scope);
                    let (times, last) = counts.get(&generation).copied().unwrap_or((0, 0));
                    let fresh = !counts.contains_key(&generation) || last < used;
                    if scope == Scope::Credential && generation == present && fresh && times < 2 {
                        prop_assert!(times == 0 || last + 500 <= now);
                        counts.insert(generation, (times + 1, now));
                        prop_assert_eq!(denied, times == 1);
                    } else {
                        prop_assert!(!denied);
                    }
                }
                Happens::Served(n) if n < requests.len() => {
                    let (generation, used) = requests.remove(n);
                    it.accepted(generation, at(used).instant);
                    if let Some((times, last)) = counts.get_mut(&generation)
                        && generation == present && *times < 2 && *last < used
                    {
                        *times = 0;
                    }
                }
                Happens::Lost(n) if n < requests.len() => {
                    requests.remove(n);
                }
                Happens::Refused(..) | Happens::Served(_) | Happens::Lost(_) => {}
            }
        }
    }
}
