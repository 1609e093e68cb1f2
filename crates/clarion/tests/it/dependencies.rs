//! The judge of dependencies (`scripts/judge-dependencies`, part of `make lint`) is content with ours, and can be discontent.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        // Under libfaketime (scripts/test-anytime) the compiler sometimes hangs before it does anything; it does not ask for the time.
        .env_remove("LD_PRELOAD")
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn reasons() -> String {
    std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap()
}

/// What the judge complains of.
fn judged(metadata: &Value, reasons: &str) -> Result<String, String> {
    let file = |content: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        file
    };
    let (metadata, reasons) = (file(&metadata.to_string()), file(reasons));
    let output = Command::new(root().join("scripts/judge-dependencies"))
        .args([metadata.path(), reasons.path()])
        .output()
        .unwrap();
    let (said, complained) = (output.stdout, output.stderr);
    if output.status.success() {
        return Ok(String::from_utf8(said).unwrap());
    }
    Err(String::from_utf8(complained).unwrap())
}

fn package<'a>(metadata: &'a mut Value, name: &str) -> &'a mut Value {
    let packages = metadata["packages"].as_array_mut().unwrap();
    packages
        .iter_mut()
        .find(|package| package["name"] == name)
        .unwrap()
}

#[test]
fn ours_are_accepted_and_so_is_every_way_to_write_a_good_licence() {
    let mut metadata = metadata();
    for (name, licence) in [
        ("hex", "(MIT OR GPL-3.0-only) AND ISC"),
        ("url", "GPL-3.0-only/Apache-2.0"),
        ("toml", "Apache-2.0 WITH LLVM-exception"),
    ] {
        package(&mut metadata, name)["license"] = licence.into();
    }
    let said = judged(&metadata, &reasons()).unwrap();
    assert!(said.contains("none unused"), "{said}");
}

#[test]
fn bad_licences_strange_sources_newer_compilers_and_unused_dependencies_are_named() {
    let mut metadata = metadata();
    for (name, licence) in [
        ("hex", Value::from("GPL-3.0-only")),
        ("url", "MIT AND GPL-3.0-only".into()),
        ("toml", Value::Null),
    ] {
        package(&mut metadata, name)["license"] = licence;
    }
    package(&mut metadata, "strsim")["source"] = "git+https://example.com/strsim".into();
    package(&mut metadata, "ipnet")["rust_version"] = "1.400".into();
    let idle = json!({ "name": "idle-crate", "rename": null, "kind": null });
    let dependencies = &mut package(&mut metadata, "clarion")["dependencies"];
    dependencies.as_array_mut().unwrap().push(idle);
    let complaints = judged(&metadata, &reasons()).unwrap_err();
    for complaint in [
        "the licence `GPL-3.0-only` is not among",
        "the licence `MIT AND GPL-3.0-only` is not among",
        "the licence `` is not among",
        "strsim: comes from git+https://example.com/strsim",
        "asks for Rust 1.400, and rust-version in Cargo.toml is",
        "clarion: idle-crate (normal) is not used",
        "idle-crate: clarion uses it, and docs/dependencies.md does not say why",
    ] {
        assert!(complaints.contains(complaint), "{complaints}");
    }
    assert_eq!(complaints.lines().count(), 7, "{complaints}");
}

#[test]
fn a_dependency_without_a_reason_and_a_reason_without_a_dependency_are_named() {
    let with_hyper = "| tokio, hyper, hyper-util,";
    let without_hyper = "| tokio, hyper-cube (pinned), hyper-util,";
    let reasons = reasons().replace(with_hyper, without_hyper);
    let complaints = judged(&metadata(), &reasons).unwrap_err();
    for complaint in [
        " hyper: clarion uses it, and docs/dependencies.md does not say why",
        " hyper-cube: docs/dependencies.md has a line about it, and nothing of ours uses it",
    ] {
        assert!(complaints.contains(complaint), "{complaints}");
    }
    assert_eq!(complaints.lines().count(), 2, "{complaints}");
}
