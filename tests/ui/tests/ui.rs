//! What the macros take, and what they say of mistakes: one error each, where the mistake is.

#[test]
fn what_is_taken_and_what_is_refused() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/pass/*.rs");
    cases.compile_fail("tests/fail/*.rs");
}
