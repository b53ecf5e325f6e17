use std::time::Duration;

use super::*;

fn sent(credential: &Credential) -> (String, String) {
    let mut headers = HeaderMap::new();
    credential.apply(&mut headers);
    let (name, value) = headers.iter().next().unwrap();
    assert!(value.is_sensitive());
    (name.to_string(), value.to_str().unwrap().to_owned())
}

/// A request with what was there before: a credential replaces it, it is not sent beside it.
#[test]
fn a_credential_is_sent_once() {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer old"));
    Credential::bearer("new").unwrap().apply(&mut headers);
    assert_eq!(headers.get_all(AUTHORIZATION).iter().collect::<Vec<_>>(), ["Bearer new"]);
}

#[test]
fn each_form_is_sent_as_its_rfc_has_it() {
    let (name, value) = sent(&Credential::bearer("s3cret").unwrap());
    assert_eq!((&*name, &*value), ("authorization", "Bearer s3cret"));
    // The example of RFC 7617, 2, and the one in UTF-8 of 2.1.
    let (name, value) = sent(&Credential::basic("Aladdin", "open sesame").unwrap());
    assert_eq!((&*name, &*value), ("authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    assert_eq!(sent(&Credential::basic("test", "123\u{a3}").unwrap()).1, "Basic dGVzdDoxMjPCow==");
    assert_eq!(sent(&Credential::basic("key", "").unwrap()).1, "Basic a2V5Og==");
    assert_eq!(sent(&Credential::basic("", "pat:with:colons").unwrap()).1, "Basic OnBhdDp3aXRoOmNvbG9ucw==");
    let (name, value) = sent(&Credential::header("PRIVATE-TOKEN", "glpat-1").unwrap());
    assert_eq!((&*name, &*value), ("private-token", "glpat-1"));
}

/// Bad input names its field and what was expected, never the secret.
#[test]
fn what_cannot_be_sent_is_refused_without_being_told() {
    let cases = [
        (Credential::bearer(""), "credential: expected a token"),
        (Credential::bearer("s3cret with space"), "credential: expected a token"),
        (Credential::bearer("s3cret\n"), "credential: expected a token"),
        (Credential::bearer("s3cr\u{e9}t"), "credential: expected a token"),
        (Credential::header("no header", "s3cret"), "credential.name: expected the name of a header"),
        (Credential::header("X", " "), "credential: expected a value"),
        (Credential::header("X", "s3cret\r\nHost: x"), "credential: expected a value"),
        (Credential::basic("a:b", "s3cret"), "credential.user: expected no colon"),
        (Credential::basic("a\n", "s3cret"), "credential.user: expected no colon"),
        (Credential::basic("a", "s3cret\0"), "credential.password: expected no control characters"),
        (Credential::basic("", ""), "credential: expected a user"),
    ];
    for (made, expected) in cases {
        let e = made.unwrap_err();
        assert!(e.is_invalid());
        assert!(e.to_string().starts_with(expected), "{e}");
        assert!(!format!("{e} {e:?}").contains("s3cr"), "{e:?}");
    }
}

#[test]
fn a_credential_is_never_printed() {
    let credential = Credential::basic("ci", "s3cret").unwrap().lasting(Duration::from_secs(1));
    let printed = format!("{credential:?} {:?} {:?}", Some(&credential), credential.value);
    assert!(!printed.contains("s3cret") && !printed.contains("Y2k6"), "{printed}");
    let mut headers = HeaderMap::new();
    credential.apply(&mut headers);
    assert!(!format!("{headers:?}").contains("Y2k6"), "{headers:?}");
    assert_eq!(format!("{:?}", credential.fingerprint()), "Fingerprint(..)");
}

#[test]
fn what_differs_for_the_service_differs() {
    let all = [
        Credential::bearer("a").unwrap(),
        Credential::bearer("b").unwrap(),
        Credential::header("x", "Bearer a").unwrap(),
        Credential::basic("a", "").unwrap(),
    ];
    for (i, one) in all.iter().enumerate() {
        for (j, other) in all.iter().enumerate() {
            assert_eq!(one.fingerprint() == other.fingerprint(), i == j);
        }
    }
    let known = Credential::bearer("a").unwrap().expires_at(Wall::from_millis(1));
    assert_eq!(known.fingerprint(), all[0].fingerprint(), "when it expires is not sent");
}

#[test]
fn its_end_is_stated_or_counted_from_when_it_was_got() {
    let got = Wall::from_millis(10_000);
    let credential = Credential::bearer("a").unwrap();
    assert_eq!(credential.expires(got), None);
    assert_eq!(credential.clone().expires_at(Wall::from_millis(7)).expires(got), Some(Wall::from_millis(7)));
    assert_eq!(credential.lasting(Duration::from_secs(2)).expires(got), Some(Wall::from_millis(12_000)));
}
