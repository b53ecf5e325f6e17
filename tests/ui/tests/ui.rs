//! What the macros take, and what they say of mistakes: one error each, where the mistake is.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

/// Which compiler the expected errors were written with: another one may tell the same in other words.
const WRITTEN_WITH: &str = "rustc 1.95.";

#[test]
fn what_is_taken_and_what_is_refused() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/pass/*.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap().stdout;
    if version.starts_with(WRITTEN_WITH.as_bytes()) {
        cases.compile_fail("tests/fail/*.rs");
    } else {
        println!("the expected errors are those of {WRITTEN_WITH}x, and are not compared");
    }
}
