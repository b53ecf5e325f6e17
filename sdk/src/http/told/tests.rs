use ::http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);
/// Sun, 06 Nov 1994 08:49:37 GMT.
const THEN: u64 = 784_111_777;

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn wall(seconds: u64) -> Wall {
    Wall::new(secs(seconds))
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::try_from(*name).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

fn told(status: u16, lines: &[(&str, &str)]) -> Told {
    Told::of(StatusCode::from_u16(status).unwrap(), &headers(lines), wall(THEN))
}

fn windows(lines: &[(&str, &str)]) -> Vec<Window> {
    told(200, lines).windows
}

fn window(name: &str, limit: Option<u64>, remaining: u64, reset: u64) -> Window {
    Window::new(name, limit, remaining, secs(reset))
}

/// FC-55: seconds in every spelling that is sent.
#[test]
fn retry_after_in_seconds() {
    let cases: &[(&str, Option<Duration>)] = &[
        ("7", Some(secs(7))),
        ("0", Some(secs(0))),
        ("3600", Some(secs(3600))),
        ("  7\t", Some(secs(7))),
        ("1.5", Some(secs(2))),
        ("1.0", Some(secs(1))),
        ("0.001", Some(secs(1))),
        ("007", Some(secs(7))),
        ("86400", Some(DAY)),
        ("86401", Some(DAY)),
        ("31536000", Some(DAY)),
        ("99999999999999999999999999", Some(DAY)),
        ("18446744073709551615.9", Some(DAY)),
        ("60, 120", Some(secs(120))),
        ("-5", None),
        ("", None),
        ("soon", None),
        ("7s", None),
        ("1e3", None),
        ("0x10", None),
        ("+7", None),
        (".5", None),
        ("5.", None),
        ("1.2.3", None),
        ("\u{663}", None),
        ("NaN", None),
        ("inf", None),
    ];
    for (text, expected) in cases {
        assert_eq!(told(429, &[("retry-after", text)]).retry_after, *expected, "{text:?}");
    }
    assert_eq!(told(429, &[("retry-after", "5"), ("retry-after", "30")]).retry_after, Some(secs(30)));
}

/// FC-55: the three forms of a date (RFC 9110, 5.6.7), against our clock where the answer has none of its own.
#[test]
fn retry_after_as_a_date() {
    for date in ["Sun, 06 Nov 1994 08:50:37 GMT", "Sunday, 06-Nov-94 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"] {
        assert_eq!(told(503, &[("retry-after", date)]).retry_after, Some(secs(60)), "{date}");
    }
    let past = told(503, &[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]);
    assert_eq!((past.retry_after, past.throttled), (Some(secs(0)), true));
    assert_eq!(told(503, &[("retry-after", "Sat, 06 Nov 2094 08:00:00 GMT")]).retry_after, Some(DAY));
    assert_eq!(told(503, &[("retry-after", "Thu, 31 Feb 1994 08:00:00 GMT")]).retry_after, None);
}

/// FC-55: clocks differ, so a date counts from the answer's own.
#[test]
fn a_date_counts_from_the_answers_own() {
    let two_hours_fast = [("date", "Sun, 06 Nov 1994 10:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 10:49:44 GMT")];
    assert_eq!(told(503, &two_hours_fast).retry_after, Some(secs(7)));
    // From a cache: three seconds of them have passed there.
    let cached = [two_hours_fast[0], two_hours_fast[1], ("age", "3")];
    assert_eq!(told(503, &cached).retry_after, Some(secs(4)));
    let unreadable = [("date", "yesterday"), ("retry-after", "Sun, 06 Nov 1994 08:49:44 GMT")];
    assert_eq!(told(503, &unreadable).retry_after, Some(secs(7)));
}

/// FC-55: a 403 that says when to come back is a rate limit, and any status may say it.
#[test]
fn who_says_when_to_come_back_has_not_refused_for_good() {
    let later = [("retry-after", "7")];
    let cases: &[(u16, bool)] =
        &[(200, false), (401, false), (403, true), (404, false), (429, true), (500, false), (502, false), (503, true)];
    for (status, throttled) in cases {
        let told = told(*status, &later);
        assert_eq!((told.retry_after, told.throttled), (Some(secs(7)), *throttled), "{status}");
    }
    assert!(told(403, &[("retry-after", "later")]).throttled, "unreadable, but there");
    assert!(told(429, &[]).throttled);
    assert!(!told(403, &[]).throttled);
    assert!(!told(503, &[]).throttled);
    let nothing_left = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "784111837")];
    assert!(told(403, &nothing_left).throttled);
    assert_eq!(told(403, &nothing_left).wait(), Some(secs(60)));
    assert!(!told(200, &nothing_left).throttled);
    assert!(!told(403, &[("x-ratelimit-remaining", "4999")]).throttled);
    assert!(!told(401, &nothing_left).throttled);
}

#[test]
fn the_wait_is_what_is_asked_for_else_until_the_last_used_up_window_opens() {
    let used_up = [("ratelimit", r#""a";r=0;t=10, "b";r=0;t=40, "c";r=1;t=900"#)];
    assert_eq!(told(429, &used_up).wait(), Some(secs(40)));
    assert_eq!(told(429, &[used_up[0], ("retry-after", "5")]).wait(), Some(secs(5)));
    assert_eq!(told(429, &[("ratelimit", r#""c";r=1;t=900"#)]).wait(), None);
}

/// draft-ietf-httpapi-ratelimit-headers: the list of the later drafts.
#[test]
fn the_drafts_list() {
    let policy = ("ratelimit-policy", r#""burst";q=100;w=60, "daily";q=1000;w=86400;pk=:cHsdsRa894==:"#);
    let both = ("ratelimit", r#""burst";r=50;t=30,"daily";r=900;t=4000"#);
    let expected = [window("burst", Some(100), 50, 30), window("daily", Some(1000), 900, 4000)];
    assert_eq!(windows(&[policy, both]), expected);
    let apart = [policy, ("ratelimit", r#""burst";r=50;t=30"#), ("ratelimit", r#""daily";r=900;t=4000"#)];
    assert_eq!(windows(&apart), expected);
    // The reset may be left out: a window is over after its length at the latest.
    assert_eq!(windows(&[policy, ("ratelimit", r#""burst";r=50"#)]), [window("burst", Some(100), 50, 60)]);
    assert_eq!(windows(&[("ratelimit", r#""x";r=5"#)]), [window("x", None, 5, 60)]);
    assert_eq!(windows(&[("ratelimit", "default;r=50;t=30")]), [window("default", None, 50, 30)]);
    assert_eq!(windows(&[("ratelimit", r#""a,b;c\"d";r=1;t=2"#)]), [window(r#"a,b;c"d"#, None, 1, 2)]);
    assert_eq!(windows(&[("ratelimit", r#""default";t=30"#)]), []);
    assert_eq!(windows(&[("ratelimit", r#""default";r=many;t=30"#)]), []);
    assert_eq!(windows(&[policy]), [], "a policy alone says nothing of what is left");
}

/// The earlier drafts: one dictionary, or three headers with seconds.
#[test]
fn the_earlier_drafts() {
    assert_eq!(
        windows(&[("ratelimit", "limit=100, remaining=50, reset=30"), ("ratelimit-policy", "100;w=60")]),
        [window("default", Some(100), 50, 30)]
    );
    assert_eq!(
        windows(&[("ratelimit", "limit=100, remaining=50"), ("ratelimit-policy", "10;w=1, 100;w=60")]),
        [window("default", Some(100), 50, 60)]
    );
    let three = [("ratelimit-limit", "100"), ("ratelimit-remaining", "50"), ("ratelimit-reset", "30")];
    assert_eq!(windows(&three), [window("default", Some(100), 50, 30)]);
    let policies = [("ratelimit-limit", "10, 10;w=1, 50;w=60"), ("ratelimit-remaining", "9")];
    assert_eq!(windows(&policies), [window("default", Some(10), 9, 60)], "the first is the one that counts");
    let docker = [("ratelimit-limit", "100;w=21600"), ("ratelimit-remaining", "76;w=21600")];
    assert_eq!(windows(&docker), [window("default", Some(100), 76, 21600)]);
    let by_policy = [("ratelimit-limit", "50"), ("ratelimit-remaining", "9"), ("ratelimit-policy", "10;w=1, 50;w=120")];
    assert_eq!(windows(&by_policy), [window("default", Some(50), 9, 120)]);
}

/// GitHub: seconds since 1970, by the service's clock, and the name of the resource.
#[test]
fn a_reset_since_1970_is_told_from_seconds_by_its_size() {
    let reset = |text: &str| {
        let date = ("date", "Sat, 29 Nov 2025 20:00:00 GMT"); // 1764446400
        windows(&[date, ("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", text)])[0].reset
    };
    let cases: &[(&str, u64)] = &[
        ("1764446460", 60),
        ("1764446400", 0),
        ("1764440000", 0),
        ("1764446460.25", 61),
        ("1764446460000", 60),
        ("1764446460500", 61),
        ("1764446460000000", 60),
        ("1764446460000000000", 60),
        ("1764446400000000000000", 86_400),
        ("60", 60),
        ("59.2", 60),
        ("99999999", 86_400),
        ("Sat, 29 Nov 2025 20:01:00 GMT", 60),
        ("-1", 60),
        ("never", 60),
    ];
    for (text, expected) in cases {
        assert_eq!(reset(text), secs(*expected), "{text:?}");
    }
    let github = [
        ("date", "Sat, 29 Nov 2025 20:00:00 GMT"),
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "4987"),
        ("x-ratelimit-reset", "1764448200"),
        ("x-ratelimit-used", "13"),
        ("x-ratelimit-resource", "core"),
    ];
    assert_eq!(windows(&github), [window("core", Some(5000), 4987, 1800)]);
    let gitlab = [
        ("date", "Sat, 29 Nov 2025 20:00:00 GMT"),
        ("ratelimit-limit", "600"),
        ("ratelimit-name", "throttle_authenticated_api"),
        ("ratelimit-observed", "6"),
        ("ratelimit-remaining", "594"),
        ("ratelimit-reset", "1764446437"),
        ("ratelimit-resettime", "Sat, 29 Nov 2025 20:00:37 GMT"),
    ];
    assert_eq!(windows(&gitlab), [window("throttle_authenticated_api", Some(600), 594, 37)]);
    // Without a `Date`, our own clock has to do.
    let bare = [("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "1764446460")];
    let own = Told::of(StatusCode::OK, &headers(&bare), wall(1_764_446_400));
    assert_eq!(own.windows, [window("default", None, 1, 60)]);
}

/// Buildkite: a window of the organisation, and one of the user.
#[test]
fn several_windows_side_by_side() {
    let buildkite = [
        ("ratelimit-user-limit", "50"),
        ("ratelimit-user-remaining", "0"),
        ("ratelimit-user-reset", "12"),
        ("ratelimit-limit", "200"),
        ("ratelimit-remaining", "180"),
        ("ratelimit-reset", "42"),
    ];
    let expected = [window("default", Some(200), 180, 42), window("user", Some(50), 0, 12)];
    assert_eq!(windows(&buildkite), expected);
    assert!(told(403, &buildkite).throttled);
    let lists =
        [("x-ratelimit-limit", "10, 1000"), ("x-ratelimit-remaining", "3, 900"), ("x-ratelimit-reset", "5, 3000")];
    let expected = [window("default", Some(10), 3, 5), window("default-2", Some(1000), 900, 3000)];
    assert_eq!(windows(&lists), expected);
    let okta = [("x-rate-limit-limit", "600"), ("x-rate-limit-remaining", "598"), ("x-rate-limit-reset", "784111797")];
    assert_eq!(windows(&okta), [window("default", Some(600), 598, 20)]);
    let after = [("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "9"), ("x-ratelimit-reset-after", "1.5")];
    assert_eq!(windows(&after), [window("default", None, 1, 2)]);
    // One window under two names of its headers is one.
    let twice = [
        ("x-ratelimit-remaining", "70"),
        ("x-ratelimit-reset", "30"),
        ("ratelimit-remaining", "60"),
        ("ratelimit-reset", "30"),
    ];
    assert_eq!(windows(&twice), [window("default", None, 60, 30)]);
}

#[test]
fn counts_as_they_are_sent() {
    let cases: &[(&str, Option<u64>)] = &[
        ("5", Some(5)),
        (" 5 ", Some(5)),
        ("0", Some(0)),
        ("-3", Some(0)),
        ("4.9", Some(4)),
        ("99999999999999999999999", Some(u64::MAX)),
        ("unlimited", None),
        ("", None),
        ("-", None),
    ];
    for (text, expected) in cases {
        let windows = windows(&[("x-ratelimit-remaining", text)]);
        assert_eq!(windows.first().map(|window| window.remaining), *expected, "{text:?}");
    }
    assert_eq!(windows(&[("x-ratelimit-limit", "60"), ("x-ratelimit-reset", "5")]), [], "what is left is not said");
    assert_eq!(windows(&[("x-notratelimit-remaining", "5"), ("x-ratelimiter-remaining", "5")]), []);
}

#[test]
fn the_number_of_windows_and_the_length_of_names_are_bounded() {
    let many: String = (0..100).map(|n| format!(r#""n{n}";r=1;t=1,"#)).collect();
    assert_eq!(windows(&[("ratelimit", &many)]).len(), 16);
    let commas = "1,".repeat(1000);
    assert_eq!(windows(&[("x-ratelimit-remaining", &commas)]).len(), 16);
    let long = "a".repeat(500);
    let named = windows(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-resource", &long)]);
    assert_eq!(named[0].name.len(), 64);
}

#[test]
fn the_least_interval_is_read() {
    assert_eq!(told(200, &[("x-poll-interval", "60")]).poll_interval, Some(secs(60)));
    assert_eq!(told(304, &[("x-poll-interval", "0.5")]).poll_interval, Some(secs(1)));
    assert_eq!(told(200, &[("x-poll-interval", "9999999")]).poll_interval, Some(DAY));
    assert_eq!(told(200, &[("x-poll-interval", "often")]).poll_interval, None);
}

/// RFC 9111, 4.2.
#[test]
fn freshness() {
    let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    let hour = ("expires", "Sun, 06 Nov 1994 09:49:37 GMT");
    type Lines = [(&'static str, &'static str)];
    let cases: &[(&Lines, Option<u64>)] = &[
        (&[], None),
        (&[now], None),
        (&[("cache-control", "max-age=60")], Some(60)),
        (&[("cache-control", "private, max-age=60, s-maxage=600")], Some(60)),
        (&[("cache-control", "MAX-AGE=\"60\" , must-revalidate")], Some(60)),
        (&[("cache-control", "public"), ("cache-control", "max-age=60")], Some(60)),
        (&[("cache-control", "max-age=60, max-age=30")], Some(30)),
        (&[("cache-control", "max-age=0")], Some(0)),
        (&[("cache-control", "max-age=-1")], Some(0)),
        (&[("cache-control", "max-age=1.5")], Some(0)),
        (&[("cache-control", "max-age=")], Some(0)),
        (&[("cache-control", "max-age=99999999999999999999999")], Some(86_400)),
        (&[("cache-control", "no-cache, max-age=60")], Some(0)),
        (&[("cache-control", "max-age=60, No-Store")], Some(0)),
        (&[("cache-control", "no-cache=\"set-cookie, x\"")], Some(0)),
        (&[("cache-control", "must-revalidate")], None),
        (&[("cache-control", "s-maxage=600")], None),
        (&[("cache-control", "x=\"max-age=5, no-store\"")], None),
        (&[("cache-control", "max-age=60"), ("age", "20")], Some(40)),
        (&[("cache-control", "max-age=60"), ("age", "90")], Some(0)),
        (&[("cache-control", "max-age=60"), ("age", "old")], Some(60)),
        (&[("cache-control", "max-age=60"), ("age", "99999999999999999999999")], Some(0)),
        (&[now, hour], Some(3600)),
        (&[now, hour, ("age", "600")], Some(3000)),
        (&[hour], Some(3600)),
        (&[("date", "Sun, 06 Nov 1994 09:00:00 GMT"), hour], Some(2977)),
        (&[now, hour, ("cache-control", "max-age=5")], Some(5)),
        (&[now, ("expires", "0")], Some(0)),
        (&[now, ("expires", "-1")], Some(0)),
        (&[now, hour, ("expires", "0")], Some(0)),
        (&[now, ("expires", "Sun, 06 Nov 1994 08:49:37 GMT")], Some(0)),
    ];
    for (lines, expected) in cases {
        assert_eq!(told(200, lines).fresh_for, expected.map(secs), "{lines:?}");
    }
}

/// Every header that is read, with bytes that look like what is sent and others that do not.
fn hostile() -> impl Strategy<Value = HeaderMap> {
    let name = prop::sample::select(vec![
        "retry-after",
        "date",
        "age",
        "expires",
        "cache-control",
        "x-poll-interval",
        "ratelimit",
        "ratelimit-policy",
        "ratelimit-limit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "ratelimit-user-remaining",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "x-ratelimit-reset-after",
        "x-ratelimit-limit",
        "x-ratelimit-resource",
        "x-rate-limit-remaining",
    ]);
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    let shaped = "[-0-9.,;=\" \\\\a-z]{0,40}".prop_map(String::into_bytes);
    let date = (0_u64..300_000_000_000)
        .prop_map(|n| httpdate::fmt_http_date(std::time::UNIX_EPOCH + secs(n.min(253_402_300_799))).into_bytes());
    let value = prop_oneof![bytes, shaped, date, any::<i128>().prop_map(|n| n.to_string().into_bytes())];
    prop::collection::vec((name, value), 0..12).prop_map(|lines| {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                map.append(name, value);
            }
        }
        map
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_make_it_panic_or_exceed_its_bounds(
        headers in hostile(),
        status in 100_u16..600,
        wall in prop_oneof![Just(u64::MAX), Just(0), any::<u64>()],
    ) {
        let told = Told::of(StatusCode::from_u16(status).unwrap(), &headers, Wall::new(secs(wall)));
        let times = [told.retry_after, told.poll_interval, told.fresh_for, told.wait()];
        prop_assert!(times.into_iter().flatten().all(|time| time <= DAY));
        prop_assert!(told.windows.len() <= 16);
        prop_assert!(told.windows.iter().all(|w| w.reset <= DAY && w.name.chars().count() <= 70));
        prop_assert!(status != 429 || told.throttled);
    }

    #[test]
    fn whole_seconds_up_to_a_day_are_themselves(n in 0_u64..=86_400, padding in " {0,3}") {
        let text = format!("{padding}{n}{padding}");
        prop_assert_eq!(told(429, &[("retry-after", &text)]).retry_after, Some(secs(n)));
    }

    #[test]
    fn a_date_counts_from_any_clock(clock in 0_u64..4_000_000_000, ahead in 0_u64..86_400) {
        let date = |n| httpdate::fmt_http_date(std::time::UNIX_EPOCH + secs(n));
        let lines = [("date", date(clock)), ("retry-after", date(clock + ahead))];
        let lines = lines.each_ref().map(|(name, value)| (*name, value.as_str()));
        prop_assert_eq!(told(503, &lines).retry_after, Some(secs(ahead)));
    }
}
