//! The house keeps what its documents say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn metadata() -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features", "--locked", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn version(text: &str) -> Vec<u64> {
    let mut parts: Vec<u64> = text.split('.').map(|part| part.parse().unwrap()).collect();
    parts.resize(3, 0);
    parts
}

/// Every package that the library itself needs, its own dev-dependencies left out.
fn needed_by_library(metadata: &Value) -> Vec<&Value> {
    let packages = metadata["packages"].as_array().unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let start = packages.iter().find(|p| p["name"] == "outlast").unwrap()["id"].as_str().unwrap();
    let (mut seen, mut todo) = (BTreeSet::from([start]), vec![start]);
    while let Some(id) = todo.pop() {
        let node = nodes.iter().find(|n| n["id"] == id).unwrap();
        for dep in node["deps"].as_array().unwrap() {
            let kinds = dep["dep_kinds"].as_array().unwrap();
            let id = dep["pkg"].as_str().unwrap();
            if kinds.iter().any(|kind| kind["kind"].is_null()) && seen.insert(id) {
                todo.push(id);
            }
        }
    }
    packages.iter().filter(|p| seen.contains(p["id"].as_str().unwrap()) && p["name"] != "outlast").collect()
}

/// `rust-version` is the highest that the library's own dependencies ask for, and the README says so.
#[test]
fn the_rust_version_is_what_the_dependencies_ask_for() {
    let metadata = metadata();
    let asked = needed_by_library(&metadata)
        .into_iter()
        .filter_map(|p| p["rust_version"].as_str())
        .max_by_key(|v| version(v))
        .unwrap()
        .to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    let stated = packages.iter().find(|p| p["name"] == "outlast").unwrap()["rust_version"].as_str().unwrap();
    assert_eq!(version(stated), version(&asked));
    assert!(read("README.md").contains(&format!("needs Rust {stated}")));
}

/// Every licence of what is shipped is one that `deny.toml` allows.
#[test]
fn every_licence_is_allowed() {
    let deny = read("deny.toml");
    let list = deny.split("allow = [").nth(1).unwrap().split(']').next().unwrap();
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(allowed.contains("MIT"), "{allowed:?}");
    let metadata = metadata();
    for package in needed_by_library(&metadata) {
        let said = package["license"].as_str().unwrap_or("none").replace(['(', ')'], "");
        let fine = said.split(" AND ").all(|each| {
            each.split(" OR ").flat_map(|each| each.split('/')).any(|licence| allowed.contains(licence.trim()))
        });
        assert!(fine, "{} is {said}", package["name"]);
    }
}

/// Each direct dependency has its line in the README's table.
#[test]
fn every_dependency_says_why_it_is_there() {
    let readme = read("README.md");
    let table = readme.split("## Dependencies").nth(1).unwrap().split("\n## ").next().unwrap();
    let metadata = metadata();
    let ours = |name: &Value| name.as_str().is_some_and(|name| name == "outlast" || name.starts_with("outlast-"));
    for package in metadata["packages"].as_array().unwrap().iter().filter(|p| ours(&p["name"])) {
        for dep in package["dependencies"].as_array().unwrap() {
            let name = dep["name"].as_str().unwrap();
            let said = table.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).any(|word| word == name);
            assert!(said || ours(&dep["name"]), "{name} is not in the README's table");
        }
    }
}

/// Each promise that is claimed has a test that names it.
#[test]
fn every_promise_has_a_test_that_names_it() {
    let mut tests = String::new();
    for dir in ["sdk/src", "sdk/tests", "tests", "examples"] {
        collect(&root().join(dir), &mut tests);
    }
    let named: BTreeSet<&str> = tests
        .lines()
        .filter(|line| line.trim_start().starts_with("///") || line.contains("fn "))
        .flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '-')))
        .collect();
    let promises = "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 W1 W2 W3 W4 W5 W6 W7 W8 W9 K1 K2 K3 S1 S2 S3 S4 S6 \
         FC-01 FC-04 FC-05 FC-07 FC-09 FC-11 FC-14 FC-17 FC-19 FC-21 FC-23 FC-26 FC-29 FC-32 FC-42 FC-45 FC-48 FC-49 FC-50 FC-51 FC-55 FC-88 FC-90 FC-91";
    for promise in promises.split(' ') {
        assert!(named.contains(promise), "no test names {promise}");
    }
}

/// The text of every file that has tests, from its first test on.
fn collect(dir: &Path, out: &mut String) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, out);
            }
        } else if path.extension().is_some_and(|ext| ext == "rs") && path.file_name().is_some_and(|f| f != "house.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            if let Some(at) = text.find("#[test]").into_iter().chain(text.find("#[tokio::test")).min() {
                // The doc comment above the first test belongs to it.
                out.push_str(&text[text[..at].rfind("\n\n").unwrap_or(0)..]);
                out.push('\n');
            }
        }
    }
}
