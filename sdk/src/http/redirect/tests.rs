use ::http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::credential::Credential;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn to(location: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(LOCATION, HeaderValue::from_bytes(location.as_bytes()).unwrap());
    headers
}

/// Follows one redirect of `from` to `location`.
fn step(from: &str, location: &str) -> Result<String, Misdirected> {
    let mut trail = Trail::new(url(from));
    trail.follow(StatusCode::FOUND, &to(location)).map(|moved| {
        assert!(moved);
        trail.url().to_string()
    })
}

/// Follows all of them; panics where one is not followed.
fn along(start: &str, locations: &[&str]) -> Trail {
    let mut trail = Trail::new(url(start));
    for location in locations {
        assert_eq!(trail.follow(StatusCode::FOUND, &to(location)), Ok(true), "{location}");
    }
    trail
}

#[test]
fn only_the_five_statuses_lead_on() {
    for status in 200..600 {
        let status = StatusCode::from_u16(status).unwrap();
        let mut trail = Trail::new(url("https://ci.example/a"));
        let moved = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        assert_eq!(trail.follow(status, &to("/b")), Ok(moved), "{status}");
        assert_eq!(trail.url().path(), if moved { "/b" } else { "/a" }, "{status}");
    }
}

#[test]
fn a_location_is_resolved_against_the_url_asked() {
    let base = "https://ci.example:8443/api/v1/runs/7?page=2#top";
    let cases = [
        ("/other", "https://ci.example:8443/other#top"),
        ("8", "https://ci.example:8443/api/v1/runs/8#top"),
        ("../jobs/1?x=y", "https://ci.example:8443/api/v1/jobs/1?x=y#top"),
        ("?page=3", "https://ci.example:8443/api/v1/runs/7?page=3#top"),
        ("//other.example/x", "https://other.example/x#top"),
        ("https://other.example/x#own", "https://other.example/x#own"),
        ("https://other.example", "https://other.example/#top"),
        ("https://other.example/#", "https://other.example/#"),
        ("  /spaces  ", "https://ci.example:8443/spaces#top"),
        ("/caf\u{e9} 1", "https://ci.example:8443/caf%C3%A9%201#top"),
        ("HTTPS://OTHER.example/A", "https://other.example/A#top"),
        ("https://user:pass@other.example/x", "https://other.example/x#top"),
        ("https://user@ci.example:8443/x", "https://ci.example:8443/x#top"),
    ];
    for (location, expected) in cases {
        assert_eq!(step(base, location).as_deref(), Ok(expected), "{location}");
    }
    // User and password of the URL that was asked do not go along either.
    assert_eq!(step("https://me:pw@ci.example/a", "/b").as_deref(), Ok("https://ci.example/b"));
}

#[test]
fn what_is_no_way_on_is_a_typed_cause() {
    let https = "https://ci.example/a";
    let cases = [
        (https, "http://ci.example/a", Misdirected::Downgrade("http://ci.example".into())),
        (https, "http://other.example/?token=s3cret", Misdirected::Downgrade("http://other.example".into())),
        (https, "ftp://ci.example/a", Misdirected::Scheme("ftp://ci.example".into())),
        (https, "file:///etc/passwd", Misdirected::Scheme("file".into())),
        (https, "javascript:alert(1)", Misdirected::Scheme("javascript".into())),
        (https, "data:application/json,{}", Misdirected::Scheme("data".into())),
        (https, "ws://ci.example/a", Misdirected::Scheme("ws://ci.example".into())),
        (https, "https://", Misdirected::Malformed),
        (https, "https://[::1", Misdirected::Malformed),
        (https, "https://ci.example:99999/", Misdirected::Malformed),
        (https, "", Misdirected::Unstated),
        (https, "   ", Misdirected::Unstated),
    ];
    for (from, location, expected) in cases {
        assert_eq!(step(from, location), Err(expected.clone()), "{location}");
        assert!(matches!(expected.cause(), Cause::Misdirected { .. }));
    }
    let follow = |headers: &HeaderMap| Trail::new(url(https)).follow(StatusCode::FOUND, headers);
    assert_eq!(follow(&HeaderMap::new()), Err(Misdirected::Unstated));
    let mut several = to("/b");
    several.append(LOCATION, HeaderValue::from_static("/b"));
    assert_eq!(follow(&several), Ok(true), "the same one twice");
    several.append(LOCATION, HeaderValue::from_static("/c"));
    assert_eq!(follow(&several), Err(Misdirected::Malformed));
    let mut bytes = HeaderMap::new();
    bytes.insert(LOCATION, HeaderValue::from_bytes(b"/\xff\xfe").unwrap());
    assert_eq!(follow(&bytes), Err(Misdirected::Malformed));
}

#[test]
fn a_cause_shows_no_secret_of_the_url() {
    let shown =
        step("https://ci.example/a", "http://u:pw@x.example/path-s3cret?sig=s3cret#s3cret").unwrap_err().cause();
    let text = shown.to_string();
    assert!(text.contains("http://x.example") && !text.contains("s3cret") && !text.contains("pw"), "{text}");
}

#[test]
fn ten_are_followed_and_no_more() {
    let mut trail = Trail::new(url("https://ci.example/0"));
    for hop in 1..=MAX_HOPS {
        assert_eq!(trail.follow(StatusCode::FOUND, &to(&format!("/{hop}"))), Ok(true), "{hop}");
    }
    assert_eq!(trail.follow(StatusCode::FOUND, &to("/11")), Err(Misdirected::TooMany));
    assert_eq!(trail.url().path(), "/10");
    assert_eq!(trail.follow(StatusCode::OK, &HeaderMap::new()), Ok(false));
}

#[test]
fn a_circle_is_found() {
    let loops = Misdirected::Loop("https://ci.example".into());
    assert_eq!(step("https://ci.example/a", "/a"), Err(loops.clone()));
    assert_eq!(step("https://ci.example/a", "#part"), Err(loops.clone()), "a fragment is not sent");
    assert_eq!(step("https://ci.example/a#b", "/a#c"), Err(loops.clone()));
    let mut trail = along("https://ci.example/a", &["/b", "/c"]);
    assert_eq!(trail.follow(StatusCode::SEE_OTHER, &to("/a")), Err(loops));
    assert!(step("https://ci.example/a", "/a?again").is_ok());
}

/// What a caller and a credential put into a request.
fn request() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("accept", "application/json"),
        ("user-agent", "test"),
        ("prefer", "wait=30"),
        ("x-trace", "1"),
        ("authorization", "Basic czNjcmV0"),
        ("cookie", "session=s3cret"),
        ("proxy-authorization", "Basic czNjcmV0"),
        ("private-token", "s3cret"),
        ("x-api-key", "s3cret"),
        ("x-csrf-token", "s3cret"),
        // Names that do not tell.
        ("x-jwt-assertion", "s3cret"),
        ("x-pat", "s3cret"),
    ] {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let mut marked = HeaderValue::from_static("s3cret");
    marked.set_sensitive(true);
    headers.append("x-marked", HeaderValue::from_static("harmless"));
    headers.append("x-marked", marked);
    Credential::header("X-Farm", "s3cret").unwrap().apply(&mut headers);
    headers
}

fn carried(trail: &Trail) -> HeaderMap {
    let mut headers = request();
    trail.carry(&mut headers);
    headers
}

#[test]
fn the_same_origin_gets_everything() {
    for (start, locations) in [
        ("https://ci.example/a", &[][..]),
        ("https://ci.example/a", &["/b"]),
        ("https://ci.example/a", &["https://ci.example:443/b", "//CI.example/c"]),
        ("http://ci.example:80/a", &["http://ci.example/b"]),
    ] {
        let trail = along(start, locations);
        assert!(trail.keeps_credentials());
        assert_eq!(carried(&trail), request(), "{locations:?}");
    }
}

/// Another scheme, host or port is another origin (RFC 6454, 4).
#[test]
fn another_origin_gets_no_secret() {
    for (start, location) in [
        ("https://ci.example/a", "https://other.example/a"),
        ("https://ci.example/a", "https://sub.ci.example/a"),
        ("https://ci.example/a", "https://ci.example.evil.example/a"),
        ("https://ci.example/a", "https://ci.example:8443/a"),
        ("https://ci.example/a", "//other.example/a"),
        ("http://ci.example/a", "https://ci.example/a"),
        ("https://ci.example/a", "https://ci.example@other.example/a"),
        ("https://ci.example/a", "https:\\\\other.example/a"),
    ] {
        let trail = along(start, &[location]);
        assert!(!trail.keeps_credentials(), "{location}");
        let left = carried(&trail);
        let mut names: Vec<_> = left.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "prefer", "user-agent"], "{location}");
        assert!(left.values().all(|value| value != "s3cret"));
    }
}

/// The way back is one that another origin has chosen: it could lead anywhere at the first one.
#[test]
fn what_was_left_behind_does_not_come_back() {
    let trail = along("https://ci.example/a", &["https://other.example/b", "https://ci.example/c", "/d"]);
    assert!(!trail.keeps_credentials());
    assert!(!trail.is_elsewhere());
    assert_eq!(carried(&trail).len(), 3);
}

#[test]
fn another_host_is_elsewhere() {
    assert!(!Trail::new(url("http://ci.example/")).is_elsewhere());
    assert!(!along("http://ci.example/", &["https://ci.example/"]).is_elsewhere());
    assert!(!along("http://ci.example/", &["http://ci.example:81/"]).is_elsewhere());
    assert!(along("http://ci.example/", &["https://login.example/"]).is_elsewhere());
    assert!(along("http://127.0.0.1/", &["http://127.0.0.2/"]).is_elsewhere());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    /// Whatever a service writes: HTTP, no downgrade, nobody's password, and a credential only within one origin.
    #[test]
    fn no_location_leads_a_credential_away(
        locations in prop::collection::vec(
            prop_oneof![
                "[a-z:/.@?#\\\\ ]{0,20}",
                "(https?:)?//([a-c]{1,2}(:[a-z]{1,3})?@)?[ab]\\.example(:[0-9]{1,5})?/[a-z]{0,3}",
                any::<String>(),
            ],
            1..14,
        ),
        secure in any::<bool>(),
    ) {
        let start = url(if secure { "https://a.example/x" } else { "http://a.example/x" });
        let mut trail = Trail::new(start.clone());
        let mut hops = 0;
        let mut only_one = true;
        for location in &locations {
            let Ok(value) = HeaderValue::from_bytes(location.as_bytes()) else { continue };
            let before = trail.clone();
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, value);
            match trail.follow(StatusCode::TEMPORARY_REDIRECT, &headers) {
                Ok(moved) => {
                    prop_assert!(moved);
                    hops += 1;
                    only_one &= trail.url().origin() == start.origin();
                }
                Err(_) => prop_assert_eq!(&before, &trail, "a refusal moves nothing"),
            }
            let now = trail.url();
            prop_assert!(hops <= MAX_HOPS);
            prop_assert!(matches!(now.scheme(), "http" | "https"));
            prop_assert!(!(before.url().scheme() == "https" && now.scheme() == "http"));
            prop_assert!(now.username().is_empty() && now.password().is_none());
            prop_assert_eq!(trail.keeps_credentials(), only_one);
            let secrets = carried(&trail).iter().filter(|(_, value)| *value == "s3cret").count();
            prop_assert_eq!(secrets > 0, only_one);
        }
    }
}
